// Bounds of the wheel-height field H over a small range of places and leans: what a certificate needs
// besides H itself.
#pragma once

#include "mlnav/ground/wheel_height.hpp"

namespace mlnav {

// How far a wheel can be from where it is thought to be: half widths of the place of its foot, along the
// world's axes, and of its lean. The foot is the lowest point of the wheel's middle, r sin(phi) to the left
// of the axle's: a body that rolls moves it less than the axle.
struct WheelPlay {
  double x_m = 0.0;
  double y_m = 0.0;
  double lean_rad = 0.0;
};

// H about a centre, the axle over c with lean phi_c, detrended: wherever foot b and lean phi are within the
// play of b_c and phi_c,
//
//   H(axle over b - (r sin(phi) to the left), phi) - H(c, phi_c)
//     - slope . (b - b_c) - slope_lean (phi - phi_c)
//
// lies in [residual_lo_m, residual_hi_m]. The slope is that of the ground under the sample that carries the
// wheel at the centre, so that slopes cost nothing and only bends and changes of the carrying sample widen
// the residual. A wheel that stands flat on the ground goes over to one rim or the other with every lean:
// slope_lean is that of the chord over the leans. The bounds are rigorous for the real-valued H:
// kRangeRounding_m on either side covers every float64 rounding on the way, for heights up to kMaxHeight_m
// and origins up to kMaxOrigin_m (docs/verified_ace.md).
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

// Upper bound of the height span of the terrain samples under the footprint, wherever within the play the
// wheel stands; +inf over unknown ground or beyond the map. Coarse and quick (by whole cells) where
// that is at most `enough_m` already, sample by sample otherwise.
double relief_bound_m(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
                      SinCos heading, SinCos lean, const WheelPlay& play, double enough_m) noexcept;

}  // namespace mlnav
