// Bounds of the wheel-height field H over a small range of places and leans, for certificates.
#pragma once

#include "mlnav/ground/wheel_height.hpp"

namespace mlnav {

// How far a wheel can be from its centre position: half-widths of the place of its foot, along the world's
// axes, and of its lean. The foot is the lowest point of the wheel's middle, r sin(phi) to the left of the
// axle's. It is used because a rolling body moves the foot less than the axle.
struct WheelPlay {
  double x_m = 0.0;
  double y_m = 0.0;
  double lean_rad = 0.0;
};

// H about a centre (the axle over c with lean phi_c), less a linear trend. For all feet b and leans phi
// within the play of b_c and phi_c,
//
//   H(axle over b - (r sin(phi) to the left), phi) - H(c, phi_c)
//     - slope . (b - b_c) - slope_lean (phi - phi_c)
//
// lies in [residual_lo_m, residual_hi_m]. The slope is that of the ground under the sample that carries the
// wheel at the centre. So a slope does not widen the residual; only bends, and changes of the carrying
// sample, do. A wheel that stands flat on the ground changes to one rim or the other with any lean, and
// slope_lean is the slope of the chord over the leans. The bounds are rigorous for the real-valued H:
// kRangeRounding_m on either side covers all float64 rounding, for heights up to kMaxHeight_m and origins up
// to kMaxOrigin_m (docs/verified_ace.md).
struct WheelRange {
  Status status = Status::kOk;  // kOk, kUnknownGround or kOutsideMap anywhere within the play
  double height_m = 0.0;        // H(c, phi_c)
  double slope_x = 0.0;         // rise over run, world axes
  double slope_y = 0.0;
  double slope_lean_m = 0.0;  // rise per radian of lean
  double residual_lo_m = 0.0;
  double residual_hi_m = 0.0;
};

inline constexpr double kRangeRounding_m = 1e-8;

WheelRange wheel_range(const GridView& grid, const WheelFootprint& footprint, double x_m,
                       double y_m, SinCos heading, SinCos lean, const WheelPlay& play) noexcept;

// Upper bound of the height span of the terrain samples under the footprint, for all positions within the
// play; +inf over unknown ground or beyond the map. A coarse, quick bound (by whole cells) is returned if it
// is at most `enough_m`; otherwise the bound is computed sample by sample.
double relief_bound_m(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
                      SinCos heading, SinCos lean, const WheelPlay& play, double enough_m) noexcept;

}  // namespace mlnav
