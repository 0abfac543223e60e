#include "mlnav/rover/arc.hpp"

#include <cmath>

#include "mlnav/math.hpp"

namespace mlnav {

Pose2 along_arc(const Pose2& start, double curvature_per_m, double s_m) noexcept {
  // Chord of the arc: length s sinc(turned / 2), at half the turn.
  const double half = 0.5 * curvature_per_m * s_m;
  const double chord =
      std::fabs(half) < 1e-4 ? s_m * (1.0 - half * half / 6.0) : s_m * det_sincos(half).sin / half;
  const SinCos direction = det_sincos(start.heading_rad + half);
  return {start.x_m + chord * direction.cos, start.y_m + chord * direction.sin,
          start.heading_rad + 2.0 * half};
}

}  // namespace mlnav
