#include "mlnav/safety/checker.hpp"

#include <cmath>

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

bool stance_ok(const Stance& stance) noexcept {
  const Pose2& pose = stance.pose;
  return !std::isnan(stance.curvature_per_m) && std::isfinite(pose.x_m) &&
         std::isfinite(pose.y_m) && std::fabs(pose.heading_rad) <= kMaxHeading_rad;
}

}  // namespace mlnav
