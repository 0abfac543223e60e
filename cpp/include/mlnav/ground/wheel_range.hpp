// Bounds of the wheel-height field H over a small rectangle of positions: what a certificate needs
// besides H itself.
#pragma once

#include "mlnav/ground/wheel_height.hpp"

namespace mlnav {

// H about a centre c, detrended: for every p with |p.x - c.x| <= half_x and |p.y - c.y| <= half_y,
//
//   H(p) - H(c) - slope . (p - c)   lies in   [residual_lo_m, residual_hi_m].
//
// The slope is that of the ground under the sample that carries the wheel at c, so
// that slopes cost nothing and only bends and changes of the carrying sample widen the residual. The bounds are rigorous
// for the real-valued H: kRangeRounding_m on either side covers every float64 rounding on the way, for
// heights up to kMaxHeight_m and origins up to kMaxOrigin_m (docs/verified_ace.md).
struct WheelRange {
  Status status = Status::kOk;  // kOk, kUnknownGround or kOutsideMap anywhere in the rectangle
  double height_m = 0.0;        // H(c)
  double slope_x = 0.0;         // rise over run, world axes
  double slope_y = 0.0;
  double residual_lo_m = 0.0;
  double residual_hi_m = 0.0;
};

inline constexpr double kRangeRounding_m = 1e-8;

WheelRange wheel_range(const GridView& grid, const WheelFootprint& footprint, double x_m,
                       double y_m, SinCos heading, double half_x_m, double half_y_m) noexcept;

// Upper bound of the height span of the terrain samples under the footprint, wherever in the rectangle
// the wheel stands; +inf over unknown ground or beyond the map. Coarse and quick (by whole cells) where
// that is at most `enough_m` already, sample by sample otherwise.
double relief_bound_m(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
                      SinCos heading, double half_x_m, double half_y_m, double enough_m) noexcept;

}  // namespace mlnav
