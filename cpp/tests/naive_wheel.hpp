// The wheel's dilation written the plain way, as test oracle and as the bench's starting point:
// every sample on its own, border and unknown handled sample by sample.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "mlnav/ground/wheel_height.hpp"

namespace naive {

// a + t (b - a); an end without weight need not be known.
inline double mix(double a, double b, double t) {
  if (t == 0.0) return a;
  if (t == 1.0 && std::isnan(a)) return b;
  return a + t * (b - a);
}

// Same expression as the shipped code (wheel_height.cpp, "The sample lattice"), so that results can
// be compared bit by bit. All values NaN on a fault.
inline mlnav::WheelContact wheel_contact(const mlnav::GridView& grid,
                                         const mlnav::WheelFootprint& footprint, double x_m,
                                         double y_m, mlnav::SinCos heading,
                                         mlnav::SinCos lean = mlnav::kLevel) {
  using mlnav::Status;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double per_cell = 1.0 / grid.resolution_m;
  const double gx = (x_m - grid.origin_x_m) * per_cell;
  const double gy = (y_m - grid.origin_y_m) * per_cell;
  const double cx = std::floor(gx);
  const double cy = std::floor(gy);
  const double extent = footprint.u_m[footprint.along - 1] + footprint.v_m[footprint.across - 1];
  const double reach = std::floor(extent * per_cell + 1.0) + 1.0;
  const double start_x = gx - cx + reach;
  const double start_y = gy - cy + reach;
  const double per_cos = 1.0 / lean.cos;
  const double rise = lean.sin * per_cos * grid.resolution_m;
  bool outside = !(std::isfinite(gx) && std::isfinite(gy));
  bool unknown = false;
  double height = -kInf;
  double lowest = kInf;
  double highest = -kInf;
  // The plane through the wheel's centre that leans as its axle does.
  const auto plane = [&](double x, double y) {
    return (x - start_x) * -(heading.sin * rise) + (y - start_y) * (heading.cos * rise);
  };
  const auto at = [&](double ix, double iy) {
    const double x = std::clamp(ix + cx - reach, 0.0, grid.nx - 1.0);
    const double y = std::clamp(iy + cy - reach, 0.0, grid.ny - 1.0);
    return static_cast<double>(grid.at(static_cast<int>(x), static_cast<int>(y))) - plane(ix, iy);
  };
  for (int i = 0; i < footprint.along && !outside; ++i) {
    const double u = footprint.u_m[i];
    const double side = footprint.drop_m[i] * lean.sin;
    const double lift = footprint.radius_m - footprint.drop_m[i] * per_cos;
    for (int j = 0; j < footprint.across && !outside; ++j) {
      const double v = footprint.v_m[j] * lean.cos;
      const double x =
          ((start_x + u * (heading.cos * per_cell)) + side * -(heading.sin * per_cell)) +
          v * -(heading.sin * per_cell);
      const double y =
          ((start_y + u * (heading.sin * per_cell)) + side * (heading.cos * per_cell)) +
          v * (heading.cos * per_cell);
      const double map_x = x + (cx - reach);
      const double map_y = y + (cy - reach);
      if (!(map_x >= -0.5 && map_x < grid.nx - 0.5 && map_y >= -0.5 && map_y < grid.ny - 0.5)) {
        outside = true;
        break;
      }
      // The lower of two cells; at whole x the even one of x and x - 1, which gives the same height.
      const double ix = std::nearbyint(x - 0.5);
      const double iy = std::nearbyint(y - 0.5);
      const double tx = x - ix;
      const double ty = y - iy;
      const double low = mix(at(ix, iy), at(ix + 1.0, iy), tx);
      const double high = mix(at(ix, iy + 1.0), at(ix + 1.0, iy + 1.0), tx);
      const double above = mix(low, high, ty);
      if (std::isnan(above)) unknown = true;
      const double z = above + plane(x, y);
      height = std::max(height, above - lift);
      lowest = std::min(lowest, z);
      highest = std::max(highest, z);
    }
  }
  if (outside) return {Status::kOutsideMap, kNan, kNan, kNan};
  if (unknown) return {Status::kUnknownGround, kNan, kNan, kNan};
  return {Status::kOk, height, lowest, highest};
}

}  // namespace naive
