#include "python_checker.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "ground.hpp"
#include "reports.hpp"

namespace mlnav::bindings {
namespace {

// Rows of a pose and its curvature, or of a whole sweep.
Array<double> to_rows(const std::vector<Sweep>& sweeps, bool whole) {
  const py::ssize_t width = whole ? 6 : 4;
  Array<double> out({static_cast<py::ssize_t>(sweeps.size()), width});
  double* p = out.mutable_data();
  for (const Sweep& sweep : sweeps) {
    const Pose2& pose = sweep.begin.pose;
    const double row[6] = {
        pose.x_m,
        pose.y_m,
        pose.heading_rad,
        sweep.begin.curvature_per_m,
        sweep.extent,
        sweep.resteers ? sweep.steered_from_per_m : std::numeric_limits<double>::quiet_NaN()};
    p = std::copy_n(row, width, p);
  }
  return out;
}

// Bits per pose. Truth values are refused: True would mean "tilt" and False "safe".
std::vector<Reasons> to_reasons(const py::object& answer, std::size_t poses) {
  const auto bits = py::array::ensure(answer);
  const bool integers = bits && (bits.dtype().kind() == 'u' || bits.dtype().kind() == 'i');
  if (!integers || bits.ndim() != 1 || static_cast<std::size_t>(bits.size()) != poses) {
    throw py::type_error("a checker's reasons(poses) must return one integer a pose, " +
                         std::to_string(poses) + " here, of reason bits; 0: safe");
  }
  std::vector<Reasons> out;
  for (const py::handle bit : bits) {
    const auto value = py::cast<std::int64_t>(py::int_(py::reinterpret_borrow<py::object>(bit)));
    if (value < 0 || value >= (1 << kReasonCount)) {
      throw py::value_error("a checker's reasons(poses) returned " + std::to_string(value) +
                            ": bits beyond those of _core.REASONS");
    }
    out.push_back(static_cast<Reasons>(value));
  }
  return out;
}

}  // namespace

PythonChecker::PythonChecker(const RoverModel& model, const py::object& make) : model_(model) {
  require(validate(model));
  if (PyCallable_Check(make.ptr()) == 0) {
    throw py::type_error("make must make a checker: a class, or a function without parameters");
  }
  checker_ = make();
  for (const char* method : {"set_map", "reasons"}) {
    if (!py::hasattr(checker_, method)) {
      throw py::type_error(std::string("a checker needs a method ") + method + "()");
    }
  }
  const auto attribute = [&](const char* name, auto* value) {
    using Value = std::remove_pointer_t<decltype(value)>;
    if (py::hasattr(checker_, name)) *value = py::cast<Value>(checker_.attr(name));
  };
  attribute("spacing_m", &spacing_m_);
  attribute("takes_sweeps", &takes_sweeps_);
  attribute("sees_steering", &sees_steering_);
  if (!(spacing_m_ >= 1e-3 && spacing_m_ <= 1.0)) {
    throw py::value_error("a checker's spacing_m must be 0.001 to 1 m");
  }
}

std::vector<Reasons> PythonChecker::reasons(const std::vector<Sweep>& sweeps) const {
  std::vector<Reasons> out;
  for (const AceReport& row : answers(sweeps, false)) out.push_back(row.reasons);
  return out;
}

std::vector<AceReport> PythonChecker::report(const std::vector<Sweep>& sweeps) const {
  return answers(sweeps, py::hasattr(checker_, "report"));
}

std::vector<AceReport> PythonChecker::answers(const std::vector<Sweep>& sweeps,
                                              bool with_report) const {
  AceReport bad_pose;
  bad_pose.reasons = kBadPose;
  std::vector<AceReport> out(sweeps.size(), bad_pose);
  std::vector<Sweep> asked;
  std::vector<std::size_t> place;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    if (!sweep_ok(sweeps[i])) continue;
    const auto ask = [&](const Sweep& what) {
      asked.push_back(what);
      place.push_back(i);
      return true;
    };
    if (takes_sweeps_) {
      ask(sweeps[i]);
    } else {
      each_stance(sweeps[i], model_.geometry, spacing_m_, ask);
    }
  }
  if (asked.empty()) return out;
  const Array<double> poses = to_rows(asked, takes_sweeps_);
  const std::vector<Reasons> bits = to_reasons(checker_.attr("reasons")(poses), asked.size());
  std::vector<AceReport> rows(asked.size());
  if (with_report) read_columns(checker_.attr("report")(poses), &rows);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    rows[k].reasons = bits[k];
    rows[k].safe = bits[k] == 0;
    if (k > 0 && place[k] == place[k - 1]) {
      out[place[k]].include(rows[k]);
    } else {
      out[place[k]] = rows[k];
    }
  }
  return out;
}

py::dict PythonChecker::settings() const {
  return py::hasattr(checker_, "settings") ? py::dict(checker_.attr("settings")) : py::dict();
}

template <typename Ask>
bool PythonChecker::held(Ask&& ask) const noexcept {
  const py::gil_scoped_acquire acquire;
  if (error_) return false;
  try {
    ask();
    return true;
  } catch (...) {
    error_ = std::current_exception();
    return false;
  }
}

Status PythonChecker::set_map(const GridView& map) noexcept {
  const bool set = held([&] {
    const Array<float> z({py::ssize_t{map.ny}, py::ssize_t{map.nx}}, map.z);
    py::object error = py::none();
    if (map.cell_error_m != nullptr) error = Array<float>(z.request().shape, map.cell_error_m);
    const auto grid =
        std::make_shared<Grid>(z, map.resolution_m, map.origin_x_m, map.origin_y_m, error);
    checker_.attr("set_map")(grid);
  });
  return set ? Status::kOk : Status::kNotInitialized;
}

bool PythonChecker::check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept {
  *reasons = kNotCertified;
  ++work->boxes;
  held([&] { *reasons = this->reasons({sweep}).front(); });
  return *reasons == 0;
}

AceReport PythonChecker::report(const Sweep& sweep) const noexcept {
  AceReport out;
  out.reasons = kNotCertified;
  held([&] { out = report(std::vector<Sweep>{sweep}).front(); });
  return out;
}

}  // namespace mlnav::bindings
