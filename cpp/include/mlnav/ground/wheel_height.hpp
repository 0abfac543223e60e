// H(x, y, psi): the height at which a wheel whose contact point is over (x, y), heading psi, rests.
//
// The terrain (bilinear) is dilated by the wheel, a cylinder of radius r and width w about a
// horizontal axle:
//
//   H(x, y, psi) = max over (u, v) of  z(x + R(psi) (u, v)) - (r - sqrt(r^2 - u^2)),
//                  |u| <= r, |v| <= w/2
//
// taken over a fixed body-aligned lattice of samples no further apart than kWheelSample_m. A maximum
// of finitely many continuous functions is continuous, and every part of the project (settling, the
// checkers, labels, the kinematic world) uses this one field.
#pragma once

#include "mlnav/ground/grid.hpp"
#include "mlnav/math.hpp"

namespace mlnav {

inline constexpr double kWheelSample_m = 0.05;

// Sample lattice of one wheel, in the wheel's frame.
struct WheelFootprint {
  static constexpr int kMaxAlong = 33;
  static constexpr int kMaxAcross = 33;
  int along = 0;               // samples in the rolling direction, odd
  int across = 0;              // samples across, odd
  double u_m[kMaxAlong];       // offsets along, ascending
  double lift_m[kMaxAlong];    // r - sqrt(r^2 - u^2): how far the rim is above the contact point
  double v_m[kMaxAcross + 1];  // offsets across, ascending; the last one is there twice
};

// radius and width positive, and small enough for the lattice (2r and w <= 1.6 m).
Status make_footprint(double radius_m, double width_m, WheelFootprint* footprint) noexcept;

struct WheelContact {
  Status status = Status::kOk;  // kOk, kUnknownGround or kOutsideMap
  double height_m = 0.0;        // H
  double ground_min_m = 0.0;    // lowest and highest terrain under the footprint
  double ground_max_m = 0.0;
};

// Contact of a wheel over (x, y). `heading` is sin and cos of psi. Faults: any sample over unknown
// ground, any sample outside the map's extent (the worse one, outside, is reported). On a fault the
// values are NaN. Heights within +-kMaxHeight_m (validate).
WheelContact wheel_contact(const GridView& grid, const WheelFootprint& footprint, double x_m,
                           double y_m, SinCos heading) noexcept;

// The same status and the same height_m, to the bit, without the ground's extremes: samples that
// cannot be the highest are skipped. For settling and whoever else needs H alone.
struct WheelHeight {
  Status status = Status::kOk;
  double height_m = 0.0;
};
WheelHeight wheel_height(const GridView& grid, const WheelFootprint& footprint, double x_m,
                         double y_m, SinCos heading) noexcept;

}  // namespace mlnav
