// Driving along an arc.
#pragma once

#include "mlnav/types.hpp"

namespace mlnav {

// Pose at arc length s along a constant-curvature arc from `start`.
Pose2 along_arc(const Pose2& start, double curvature_per_m, double s_m) noexcept;

}  // namespace mlnav
