// H(x, y, psi, phi): the height at which a wheel rests on the ground. Its axle is over (x, y), its heading is
// psi, and it leans by phi, the elevation of the axle's left end.
//
// H is the terrain (bilinear) dilated by the wheel, a cylinder of radius r and width w whose axle leans with
// the body. With s = sqrt(r^2 - u^2), the depth of the cylinder below its axle,
//
//   H = max over (u, v) of  z(x + R(psi) (u, v cos(phi) + s sin(phi))) - v sin(phi) + s cos(phi) - r,
//       |u| <= r, |v| <= w/2
//
// over a lattice of samples that is fixed in the wheel, at most kWheelSample_m apart. The axle is at H + r;
// without lean on level ground, H is the ground's height. H is continuous, as a maximum of finitely many
// continuous functions. Every part of the project (settling, the checkers, labels, the kinematic world) uses
// this one field.
#pragma once

#include "mlnav/ground/grid.hpp"
#include "mlnav/math.hpp"

namespace mlnav {

inline constexpr double kWheelSample_m = 0.05;

// Sample lattice of one wheel, in the wheel's frame. The last entry of each array is repeated, so that
// samples can be taken in pairs.
struct WheelFootprint {
  static constexpr int kMaxAlong = 33;
  static constexpr int kMaxAcross = 33;
  int along = 0;   // samples in the rolling direction, odd
  int across = 0;  // samples across, odd
  double radius_m;
  double u_m[kMaxAlong + 1];     // offsets along, ascending
  double drop_m[kMaxAlong + 1];  // sqrt(r^2 - u^2): depth of the rim below the axle
  double v_m[kMaxAcross + 1];    // offsets across, ascending
};

// radius and width positive, and small enough for the lattice (2r and w <= 1.6 m).
Status make_footprint(double radius_m, double width_m, WheelFootprint* footprint) noexcept;

// Sine and cosine of the lean of a wheel on a level axle.
inline constexpr SinCos kLevel{0.0, 1.0};

struct WheelContact {
  Status status = Status::kOk;  // kOk, kUnknownGround or kOutsideMap
  double height_m = 0.0;        // H
  double ground_min_m = 0.0;    // lowest and highest terrain under the footprint
  double ground_max_m = 0.0;
};

// Contact of a wheel over (x, y). `heading` and `lean` are sine and cosine of psi and phi, |phi| < 84 deg.
// Faults: a sample over unknown ground or outside the map's extent (outside is reported if both occur). On a
// fault the values are NaN. The grid's heights must have passed validate().
WheelContact wheel_contact(const GridView& grid, const WheelFootprint& footprint, double x_m,
                           double y_m, SinCos heading, SinCos lean = kLevel) noexcept;

// The same status and the same height_m, to the bit, without the ground's extremes: samples that
// cannot be the highest are skipped. For settling and others that need only H.
struct WheelHeight {
  Status status = Status::kOk;
  double height_m = 0.0;
};
WheelHeight wheel_height(const GridView& grid, const WheelFootprint& footprint, double x_m,
                         double y_m, SinCos heading, SinCos lean = kLevel) noexcept;

}  // namespace mlnav
