#include "mlnav/safety/settle_checker.hpp"

#include <cmath>

namespace mlnav {

Fault SettleChecker::init(const RoverModel& model) noexcept {
  const Fault fault = validate(model);
  if (!fault.ok()) return fault;
  model_ = model;
  const Status status = make_settle_model(model.geometry, &settle_);
  return {status, status == Status::kOk ? "" : "wheel_radius_m"};
}

Status SettleChecker::set_map(const GridView& map) noexcept {
  const Status status = validate_geometry(map);
  if (status == Status::kOk) map_ = map;
  return status;
}

bool SettleChecker::check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept {
  const AceReport r = along(sweep, true);
  *reasons = r.reasons;
  work->boxes += r.inner_steps;
  work->lookups += r.lookups;
  return r.safe;
}

AceReport SettleChecker::report(const Sweep& sweep) const noexcept { return along(sweep, false); }

AceReport SettleChecker::along(const Sweep& sweep, bool to_first_failure) const noexcept {
  if (!sweep_ok(sweep)) {
    SettledState none;
    none.status = Status::kPoseNotFinite;
    return judge(sweep.begin.pose, none);
  }
  AceReport all;
  const int steps = static_cast<int>(std::ceil(sweep.length_m(model_.geometry) / kSettleSpacing_m));
  for (int i = 0; i <= steps; ++i) {
    const double fraction = steps == 0 ? 0.0 : static_cast<double>(i) / steps;
    SinCos steering[kWheels];
    sweep.steering_at(model_.geometry, fraction, steering);
    const Pose2 pose = sweep.pose_at(fraction);
    const AceReport here = judge(pose, settle(map_, settle_, pose, steering));
    if (i == 0) {
      all = here;
    } else {
      all.include(here);
    }
    if (to_first_failure && !here.safe) break;
  }
  return all;
}

AceReport SettleChecker::judge(const Pose2& pose, const SettledState& settled) const noexcept {
  AceReport out;
  out.inner_steps = settled.steps;
  out.lookups = settled.lookups;
  if (settled.status != Status::kOk) {
    out.reasons = reason_of(settled.status);
    return out;
  }
  const ChainState<double>& s = settled.state;
  const auto point = [](double v) { return Bounds{v, v}; };
  out.roll_rad = point(s.roll_rad);
  out.pitch_rad = point(s.pitch_rad);
  out.differential_rad = point(s.differential_rad);
  out.bogie_left_rad = point(s.bogie_left_rad);
  out.bogie_right_rad = point(s.bogie_right_rad);
  out.origin_z_m = point(s.origin_z_m);
  out.tilt_max_rad = tilt_rad(s);
  out.relief_max_m = settled.relief_max_m;
  const Clearance clearance = pan_clearance(map_, model_.geometry, pose, s);
  out.clearance_min_m = clearance.clearance_m;

  const SafetyLimits& l = model_.limits;
  const double left = std::fabs(s.bogie_left_rad);
  const double right = std::fabs(s.bogie_right_rad);
  out.margin_tilt_rad = l.tilt_max_rad - out.tilt_max_rad;
  out.margin_bogie_rad = l.bogie_max_rad - (left > right ? left : right);
  out.margin_differential_rad = l.differential_max_rad - std::fabs(s.differential_rad);
  out.margin_clearance_m = out.clearance_min_m - l.clearance_min_m;
  out.margin_relief_m = l.relief_max_m - out.relief_max_m;

  unsigned reasons = reason_of(clearance.status);
  if (out.margin_tilt_rad < 0.0) reasons |= kTilt;
  if (out.margin_bogie_rad < 0.0) reasons |= kBogie;
  if (out.margin_differential_rad < 0.0) reasons |= kDifferential;
  if (out.margin_clearance_m < 0.0) reasons |= kClearance;
  if (out.margin_relief_m < 0.0) reasons |= kRelief;
  out.reasons = static_cast<Reasons>(reasons);
  out.safe = reasons == 0;
  return out;
}

}  // namespace mlnav
