// A checker written in Python, for the core: it may be slow, and it may raise, but it never passes a pose by
// accident.
#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "common.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav::bindings {

// Asks an object with set_map(grid), reasons(poses) and, if it has one, report(poses), as Checker has them. It judges
// poses, rows of (x_m, y_m, heading_rad, curvature_per_m); its attribute spacing_m says how close along a sweep. One
// whose attribute takes_sweeps is true gets whole sweeps, rows of six, as Checker.reasons does.
//
// As an AceChecker it takes the interpreter's lock for each question, so that a planner may plan without it.
// What the object raises cannot pass through the core: the answer is kNotCertified, without further questions,
// until someone takes the error. The other calls hold the lock and raise.
class PythonChecker final : public AceChecker {
 public:
  PythonChecker(const RoverModel& model, const py::object& make);

  std::vector<Reasons> reasons(const std::vector<Sweep>& sweeps) const;
  std::vector<AceReport> report(const std::vector<Sweep>& sweeps) const;
  py::dict settings() const;  // its attribute of that name, if it has one

  Status set_map(const GridView& map) noexcept override;
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override;
  AceReport report(const Sweep& sweep) const noexcept override;
  const RoverModel& model() const noexcept override { return model_; }
  bool sees_steering() const noexcept override { return sees_steering_; }

  // What was raised first since the last time; null: nothing.
  std::exception_ptr take_error() { return std::exchange(error_, nullptr); }

 private:
  // The object is not asked about sweeps that are not finite: kBadPose. Of others it is asked about poses at most
  // spacing_m apart.
  std::vector<AceReport> answers(const std::vector<Sweep>& sweeps, bool with_report) const;
  // Calls ask() with the lock held; false where it raised, or an earlier error waits.
  template <typename Ask>
  bool held(Ask&& ask) const noexcept;

  RoverModel model_;
  double spacing_m_ = 0.05;
  bool takes_sweeps_ = false;
  bool sees_steering_ = true;
  py::object checker_;
  mutable std::exception_ptr error_;
};

}  // namespace mlnav::bindings
