#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "common.hpp"
#include "fields.hpp"
#include "ground.hpp"
#include "mlnav/ground/wheel_height.hpp"
#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/settle_checker.hpp"

namespace mlnav::bindings {
namespace {

// Six numbers a pose, or none at all; `holder` keeps them alive.
const double* wheel_rows(const char* name, const py::object& given, py::ssize_t poses,
                         Array<double>* holder) {
  if (given.is_none()) return nullptr;
  if (!py::isinstance<Array<double>>(given)) {
    throw CoreError(std::string(name) + " must be a C-contiguous float64 array");
  }
  *holder = py::cast<Array<double>>(given);
  if (holder->ndim() != 2 || holder->shape(0) != poses || holder->shape(1) != kWheels) {
    throw CoreError(std::string(name) + " must have shape (n, 6), as many rows as poses");
  }
  return holder->data();
}

py::dict settle_poses(const Grid& grid, const RoverModel& model, const Array<double>& pose_array,
                      const py::object& start_heights, const py::object& steering_angles) {
  const std::vector<Stance> poses = to_stances(pose_array);
  Array<double> starts, angles;
  const double* const start =
      wheel_rows("start_heights_m", start_heights, pose_array.shape(0), &starts);
  const double* const steering_rad =
      wheel_rows("steering_rad", steering_angles, pose_array.shape(0), &angles);
  SettleModel settle_model;
  require(make_settle_model(model.geometry, &settle_model), "wheel_radius_m");
  SettleChecker checker;
  require(checker.init(model));
  require(checker.set_map(grid.view));
  std::vector<SettledState> rows(poses.size());
  std::vector<AceReport> reports(poses.size());
  {
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < poses.size(); ++i) {
      const double* const from = start == nullptr ? nullptr : start + kWheels * i;
      if (!stance_ok(poses[i])) {
        rows[i].status = Status::kPoseNotFinite;
      } else if (steering_rad == nullptr) {
        rows[i] = settle(grid.view, settle_model, poses[i], from);
      } else {
        SinCos steering[kWheels];
        bool finite = true;
        for (int w = 0; w < kWheels; ++w) {
          const double angle = steering_rad[kWheels * i + static_cast<std::size_t>(w)];
          finite &= std::fabs(angle) <= kMaxHeading_rad;  // not so for NaN
          steering[w] = finite ? det_sincos(angle) : SinCos{0.0, 1.0};
        }
        rows[i].status = Status::kPoseNotFinite;
        if (finite) rows[i] = settle(grid.view, settle_model, poses[i].pose, steering, from);
      }
      reports[i] = checker.judge(poses[i].pose, rows[i]);
    }
  }
  using S = const SettledState&;
  using R = const AceReport&;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Where nothing settled there is no state to report.
  const auto state = [nan, &rows](double ChainState<double>::* field) {
    return column<double>(rows,
                          [=](S s) { return s.status == Status::kOk ? s.state.*field : nan; });
  };
  py::dict out;
  out["status"] = column<std::uint8_t>(rows, [](S s) { return s.status; });
  out["roll_rad"] = state(&ChainState<double>::roll_rad);
  out["pitch_rad"] = state(&ChainState<double>::pitch_rad);
  out["differential_rad"] = state(&ChainState<double>::differential_rad);
  out["bogie_left_rad"] = state(&ChainState<double>::bogie_left_rad);
  out["bogie_right_rad"] = state(&ChainState<double>::bogie_right_rad);
  out["origin_z_m"] = state(&ChainState<double>::origin_z_m);
  out["tilt_rad"] = column<double>(reports, [](R r) { return r.tilt_max_rad; });
  out["clearance_m"] = column<double>(reports, [](R r) { return r.clearance_min_m; });
  out["relief_max_m"] = column<double>(reports, [](R r) { return r.relief_max_m; });
  out["relief_m"] = wheel_column(rows, [](S s) { return s.relief_m; });
  out["residual_m"] = column<double>(rows, [](S s) { return s.residual_m; });
  out["heights_m"] = wheel_column(rows, [](S s) { return s.heights_m; });
  out["forward_m"] = wheel_column(rows, [](S s) { return s.positions.forward_m; });
  out["left_m"] = wheel_column(rows, [](S s) { return s.positions.left_m; });
  out["steps"] = column<std::int32_t>(rows, [](S s) { return s.steps; });
  out["lookups"] = column<std::int32_t>(rows, [](S s) { return s.lookups; });
  out["safe"] = column<bool>(reports, [](R r) { return r.safe; });
  out["reasons"] = column<Reasons>(reports, [](R r) { return r.reasons; });
  return out;
}

// Clearance of the belly pan of rovers whose attitude and height are known, settled or not.
py::array clearance_of(const Grid& grid, const RoverModel& model, const Array<double>& pose_array,
                       const Array<double>& attitudes) {
  const std::vector<Stance> poses = to_stances(pose_array);
  if (attitudes.ndim() != 2 || attitudes.shape(0) != pose_array.shape(0) ||
      attitudes.shape(1) != 3) {
    throw CoreError("attitudes must have shape (n, 3): roll_rad, pitch_rad, origin_z_m");
  }
  require(validate(model));
  const double* row = attitudes.data();
  Array<double> out(static_cast<py::ssize_t>(poses.size()));
  double* p = out.mutable_data();
  const py::gil_scoped_release release;
  for (const Stance& stance : poses) {
    p[0] = std::numeric_limits<double>::quiet_NaN();
    if (stance_ok(stance) && std::isfinite(row[0] + row[1] + row[2])) {
      ChainState<double> state{};
      state.roll_rad = row[0];
      state.pitch_rad = row[1];
      state.origin_z_m = row[2];
      const SinCos roll = det_sincos(row[0]);
      const SinCos pitch = det_sincos(row[1]);
      state.sin_roll = roll.sin;
      state.cos_roll = roll.cos;
      state.sin_pitch = pitch.sin;
      state.cos_pitch = pitch.cos;
      p[0] = pan_clearance(grid.view, model.geometry, stance.pose, state).clearance_m;
    }
    row += 3;
    ++p;
  }
  return out;
}

}  // namespace

void bind_rover(py::module_& m) {
  bind_config<RoverGeometry>(m, "RoverGeometry");
  bind_config<Tube>(m, "Tube");
  bind_config<SafetyLimits>(m, "SafetyLimits")
      .def_static("flight_like", &SafetyLimits::flight_like)
      .def_static("enav_like", &SafetyLimits::enav_like);
  {
    using Self = RoverModel;
    py::class_<Self>(m, "RoverModel")
        .def(py::init<>())
        .def_readwrite("geometry", &Self::geometry)
        .def_readwrite("limits", &Self::limits)
        .def_readwrite("tracking", &Self::tracking)
        .def("validate", [](const Self& self) { require(validate(self)); })
        .def(
            "wheel_steering_rad",
            [](const Self& self, double curvature_per_m) {
              if (std::isnan(curvature_per_m)) throw CoreError("curvature_per_m must be a number");
              SinCos steering[kWheels];
              wheel_steering(self.geometry, curvature_per_m, steering);
              Array<double> out(py::ssize_t{kWheels});
              for (int i = 0; i < kWheels; ++i) {
                out.mutable_at(i) = det_atan2(steering[i].sin, steering[i].cos);
              }
              return out;
            },
            py::arg("curvature_per_m"))
        .def("wheel_plan", [](const Self& self) {
          const WheelPlan plan = wheel_plan(self.geometry);
          Array<double> out({py::ssize_t{kWheels}, py::ssize_t{2}});
          for (int i = 0; i < kWheels; ++i) {
            out.mutable_at(i, 0) = plan.x_m[i];
            out.mutable_at(i, 1) = plan.y_m[i];
          }
          return out;
        });
  }
  py::class_<Grid, std::shared_ptr<Grid>> grid(m.attr("Grid"));
  grid.def(
      "wheel_heights",
      [](const Grid& self, const RoverModel& model, const Array<double>& array) {
        SettleModel settle_model;
        require(make_settle_model(model.geometry, &settle_model), "wheel_radius_m");
        const std::vector<Stance> poses = to_stances(array);
        Array<double> out(static_cast<py::ssize_t>(poses.size()));
        double* h = out.mutable_data();
        const py::gil_scoped_release release;
        for (std::size_t i = 0; i < poses.size(); ++i) {
          const Pose2& wheel = poses[i].pose;
          const WheelContact contact =
              stance_ok(poses[i]) ? wheel_contact(self.view, settle_model.footprint, wheel.x_m,
                                                  wheel.y_m, det_sincos(wheel.heading_rad))
                                  : WheelContact{Status::kPoseNotFinite, 0.0, 0.0, 0.0};
          h[i] = contact.status == Status::kOk ? contact.height_m
                                               : std::numeric_limits<double>::quiet_NaN();
        }
        return out;
      },
      py::arg("model"), py::arg("poses").noconvert());
  m.def("settle", &settle_poses, py::arg("grid"), py::arg("model"), py::arg("poses").noconvert(),
        py::arg("start_heights_m") = py::none(), py::arg("steering_rad") = py::none());
  m.def("clearance", &clearance_of, py::arg("grid"), py::arg("model"), py::arg("poses").noconvert(),
        py::arg("attitudes").noconvert());
}

}  // namespace mlnav::bindings
