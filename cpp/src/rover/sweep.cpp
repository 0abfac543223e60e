#include "mlnav/rover/sweep.hpp"

#include <cmath>

namespace mlnav {

bool Sweep::turns() const noexcept { return std::isinf(begin.curvature_per_m); }

Pose2 Sweep::pose_at(double fraction) const noexcept {
  if (extent == 0.0) return begin.pose;
  const double moved = extent * fraction;
  if (!turns()) return along_arc(begin.pose, begin.curvature_per_m, moved);
  return {begin.pose.x_m, begin.pose.y_m, begin.pose.heading_rad + moved};
}

void Sweep::steering_at(const RoverGeometry& geometry, double fraction,
                        SinCos steering[kWheels]) const noexcept {
  wheel_steering(geometry, begin.curvature_per_m, steering);
  if (!resteers) return;
  SinCos from[kWheels];
  wheel_steering(geometry, steered_from_per_m, from);
  for (int i = 0; i < kWheels; ++i) {
    const double angle = det_atan2(from[i].sin, from[i].cos);
    const double to = det_atan2(steering[i].sin, steering[i].cos);
    steering[i] = det_sincos(angle + fraction * (to - angle));
  }
}

}  // namespace mlnav
