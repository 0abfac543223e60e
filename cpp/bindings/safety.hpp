#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "common.hpp"
#include "ground.hpp"
#include "mlnav/safety/checker.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/probabilistic.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"
#include "python_checker.hpp"

namespace mlnav::bindings {

// What a checker is made of.
struct CheckerSpec {
  std::string name;
  RoverModel model;
  FixedBoxConfig boxes;
  VerifiedConfig verified;
  ProbabilisticConfig probabilistic;
  std::size_t max_map_cells = 0;  // of those that prepare tables; 0: of the others
  py::object make = py::none();   // of a checker in Python
};

// A checker with memory, or a Python object, of its own.
class CheckerInstance {
 public:
  CheckerInstance(const CheckerSpec& spec, std::size_t map_cells);
  CheckerInstance(const CheckerInstance&) = delete;
  CheckerInstance& operator=(const CheckerInstance&) = delete;

  AceChecker* get() { return checker_; }
  const AceChecker& operator*() const { return *checker_; }
  const FixedBoxChecker& fixed_box() const { return fixed_box_; }
  const PythonChecker* python() const { return python_.get(); }
  // What a checker in Python raised while the core asked it; null: nothing.
  std::exception_ptr take_error() const { return python_ ? python_->take_error() : nullptr; }

 private:
  Memory memory_;
  FixedBoxChecker fixed_box_;
  SettleChecker settle_;
  VerifiedChecker verified_;
  ProbabilisticChecker probabilistic_;
  std::unique_ptr<PythonChecker> python_;
  AceChecker* checker_ = nullptr;
};

// Any checker behind one Python class. It owns its map: set_map() makes a new checker for the new map and
// leaves the old pair to those that still ask it, so that a verdict is always of one whole map, whatever other
// threads do. Planners have checkers of their own.
class Checker {
 public:
  explicit Checker(CheckerSpec spec);

  void set_map(std::shared_ptr<Grid> grid);
  py::array reasons(const Array<double>& array) const;
  py::dict report(const Array<double>& array) const;
  py::array ace_map(int bins) const;

  // The values it is set to, by name.
  const py::dict& settings() const { return settings_; }
  const CheckerSpec& spec() const { return spec_; }
  bool sees_steering() const { return sees_steering_; }

 private:
  // A checker that has been given its map, and the map; not changed from then on.
  struct Mapped {
    Mapped(const CheckerSpec& spec, std::shared_ptr<Grid> map)
        : grid(std::move(map)), checker(spec, grid->view.cells()) {}
    std::shared_ptr<Grid> grid;
    CheckerInstance checker;
    mutable std::mutex asking;  // a checker answers one question at a time
  };
  std::shared_ptr<const Mapped> require_map() const;

  CheckerSpec spec_;
  py::dict settings_;
  bool sees_steering_ = true;
  std::shared_ptr<const Mapped> mapped_;
};

}  // namespace mlnav::bindings
