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

}  // namespace mlnav
