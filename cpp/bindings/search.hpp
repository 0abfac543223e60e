#pragma once

#include <exception>
#include <tuple>

#include "common.hpp"
#include "mlnav/plan/planner.hpp"
#include "mlnav/search/risk.hpp"

namespace mlnav::bindings {

// A risk map that keeps its numpy array alive.
struct Risk {
  Risk() = default;
  Risk(const py::object& p, double resolution_m, std::tuple<double, double> origin_m) {
    if (!py::isinstance<Array<float>>(p)) {
      throw CoreError("risk must be a C-contiguous float32 array");
    }
    array = py::cast<Array<float>>(p);
    if (array.ndim() != 3) require(Status::kRiskBadShape);
    view = {array.data(),
            static_cast<int>(array.shape(0)),
            static_cast<int>(array.shape(2)),
            static_cast<int>(array.shape(1)),
            std::get<0>(origin_m),
            std::get<1>(origin_m),
            resolution_m};
  }
  Array<float> array;
  RiskView view;
};

// A Python callable as a RiskSource. What it raises waits here until the cycle is over: the core knows
// no exceptions.
class PyRiskSource {
 public:
  explicit PyRiskSource(py::object callable) : callable_(std::move(callable)) {
    if (!callable_.is_none() && PyCallable_Check(callable_.ptr()) == 0) {
      throw py::type_error("risk_source must be callable or None");
    }
  }
  RiskSource source() { return callable_.is_none() ? RiskSource{} : RiskSource{&fill, this}; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static bool fill(void* context, RiskView* risk) noexcept {
    auto& self = *static_cast<PyRiskSource*>(context);
    const py::gil_scoped_acquire acquire;
    try {
      return self.ask(risk);
    } catch (...) {
      self.error_ = std::current_exception();
      return false;
    }
  }
  bool ask(RiskView* risk) {
    const py::object answer = callable_();
    if (answer.is_none()) return false;
    std::tuple<py::object, double, std::tuple<double, double>> parts;
    try {
      parts = answer.cast<decltype(parts)>();
    } catch (const py::cast_error&) {
      throw py::type_error("risk_source must return None or (p, resolution_m, (x, y) origin)");
    }
    risk_ = Risk(std::get<0>(parts), std::get<1>(parts), std::get<2>(parts));
    *risk = risk_.view;
    return true;
  }

  py::object callable_;
  Risk risk_;
  std::exception_ptr error_;
};

}  // namespace mlnav::bindings
