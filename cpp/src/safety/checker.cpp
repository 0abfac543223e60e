#include "mlnav/safety/checker.hpp"

#include <cmath>
#include <initializer_list>

namespace mlnav {

const char* reason_name(int bit) noexcept {
  static constexpr const char* kNames[kReasonCount] = {
      "tilt",    "bogie",  "differential", "clearance", "relief",   "mechanical",
      "unknown", "border", "not_settled",  "bad_pose",  "keep_out", "not_certified"};
  return bit >= 0 && bit < kReasonCount ? kNames[bit] : "";
}

Reasons reason_of(Status status) noexcept {
  switch (status) {
    case Status::kOk:
      return 0;
    case Status::kUnknownGround:
      return kUnknown;
    case Status::kOutsideMap:
      return kBorder;
    case Status::kOutOfMechanicalRange:
      return kMechanical;
    case Status::kPoseNotFinite:
      return kBadPose;
    default:
      return kNotSettled;
  }
}

void AceReport::include(const AceReport& other) noexcept {
  // A part that is not evaluated leaves nothing to say of the whole.
  const auto least = [](double* a, double b) {
    if (*a > b || std::isnan(b)) *a = b;
  };
  const auto most = [](double* a, double b) {
    if (*a < b || std::isnan(b)) *a = b;
  };
  for (Bounds AceReport::* const bounds :
       {&AceReport::roll_rad, &AceReport::pitch_rad, &AceReport::differential_rad,
        &AceReport::bogie_left_rad, &AceReport::bogie_right_rad, &AceReport::origin_z_m}) {
    least(&(this->*bounds).lo, (other.*bounds).lo);
    most(&(this->*bounds).hi, (other.*bounds).hi);
  }
  for (double AceReport::* const value :
       {&AceReport::tilt_max_rad, &AceReport::relief_max_m, &AceReport::risk}) {
    most(&(this->*value), other.*value);
  }
  for (double AceReport::* const value :
       {&AceReport::clearance_min_m, &AceReport::margin_tilt_rad, &AceReport::margin_bogie_rad,
        &AceReport::margin_differential_rad, &AceReport::margin_clearance_m,
        &AceReport::margin_relief_m}) {
    least(&(this->*value), other.*value);
  }
  reasons = static_cast<Reasons>(reasons | other.reasons);
  safe = safe && other.safe;
  inner_steps += other.inner_steps;
  lookups += other.lookups;
  ranges += other.ranges;
}

bool stance_ok(const Stance& stance) noexcept {
  const Pose2& pose = stance.pose;
  return !std::isnan(stance.curvature_per_m) && std::isfinite(pose.x_m) &&
         std::isfinite(pose.y_m) && std::fabs(pose.heading_rad) <= kMaxHeading_rad;
}

bool sweep_ok(const Sweep& sweep) noexcept {
  return stance_ok(sweep.begin) && std::fabs(sweep.extent) <= kMaxExtent &&
         !std::isnan(sweep.steered_from_per_m);
}

}  // namespace mlnav
