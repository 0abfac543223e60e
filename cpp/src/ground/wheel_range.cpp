#include "mlnav/ground/wheel_range.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>

namespace mlnav {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The footprint over the map in cells: sample (i, j) at start + u cos - v sin, start + u sin + v cos.
struct Placement {
  const GridView* grid;
  double start_x, start_y;
  double cos, sin;        // in cells per metre
  double half_x, half_y;  // of the rectangle, in cells
  bool inside;            // every cell that can be read is a cell of the map

  double z(int ix, int iy) const noexcept {
    if (!inside) {  // replicated borders keep the outermost half cell constant
      ix = ix < 0 ? 0 : (ix < grid->nx ? ix : grid->nx - 1);
      iy = iy < 0 ? 0 : (iy < grid->ny ? iy : grid->ny - 1);
    }
    return static_cast<double>(grid->at(ix, iy));
  }
};

// Floor of x > -1 (samples lie inside the extent). The sum may round up to a whole number: the place
// within the cell is then negative by less than 1e-8, which kRangeRounding_m covers.
int floor_cell(double x) noexcept { return static_cast<int>(x + 1.0) - 1; }

bool place(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
           SinCos heading, double half_x_m, double half_y_m, Placement* out) noexcept {
  const double per_cell = 1.0 / grid.resolution_m;
  out->grid = &grid;
  out->start_x = (x_m - grid.origin_x_m) * per_cell;
  out->start_y = (y_m - grid.origin_y_m) * per_cell;
  out->cos = heading.cos * per_cell;
  out->sin = heading.sin * per_cell;
  out->half_x = half_x_m * per_cell;
  out->half_y = half_y_m * per_cell;
  const double u = footprint.u_m[footprint.along - 1];
  const double v = footprint.v_m[footprint.across - 1];
  const double reach_x = u * std::fabs(out->cos) + v * std::fabs(out->sin) + out->half_x;
  const double reach_y = u * std::fabs(out->sin) + v * std::fabs(out->cos) + out->half_y;
  if (!(out->start_x - reach_x >= -0.5 && out->start_x + reach_x < grid.nx - 0.5)) return false;
  if (!(out->start_y - reach_y >= -0.5 && out->start_y + reach_y < grid.ny - 0.5)) return false;
  out->inside = out->start_x - reach_x >= 1.0 && out->start_x + reach_x < grid.nx - 2.0 &&
                out->start_y - reach_y >= 1.0 && out->start_y + reach_y < grid.ny - 2.0;
  return true;
}

double height_at(const Placement& at, double x, double y) noexcept {
  const int ix = floor_cell(x);
  const int iy = floor_cell(y);
  const double tx = x - ix;
  const double ty = y - iy;
  const double z00 = at.z(ix, iy);
  const double z01 = at.z(ix, iy + 1);
  const double low = z00 + tx * (at.z(ix + 1, iy) - z00);
  const double high = z01 + tx * (at.z(ix + 1, iy + 1) - z01);
  return low + ty * (high - low);
}

// One sample: its height at the centre, and the range of the ground's gradient (rise per cell) over the
// rectangle, as middle and half width.
struct Sample {
  double height_m;
  double slope_x, spread_x;
  double slope_y, spread_y;
};

// Bilinear ground has, within a cell, a gradient along x that is linear in y and the other way round;
// over several cells the hull of theirs. NaN corners make NaN.
Sample sample_at(const Placement& at, double x, double y) noexcept {
  const int ix = floor_cell(x);
  const int iy = floor_cell(y);
  const double tx = x - ix;
  const double ty = y - iy;
  const double z00 = at.z(ix, iy);
  const double low = at.z(ix + 1, iy) - z00;
  const double z01 = at.z(ix, iy + 1);
  const double bend = (at.z(ix + 1, iy + 1) - z01) - low;
  const double side = z01 - z00;
  Sample s;
  s.slope_x = low + ty * bend;
  s.slope_y = side + tx * bend;
  s.height_m = z00 + tx * low + ty * s.slope_y;
  const bool one_cell =
      tx >= at.half_x && tx + at.half_x <= 1.0 && ty >= at.half_y && ty + at.half_y <= 1.0;
  if (one_cell) {
    s.spread_x = std::fabs(bend) * at.half_y;
    s.spread_y = std::fabs(bend) * at.half_x;
    return s;
  }
  double x_lo = kInfinity, x_hi = -kInfinity, y_lo = kInfinity, y_hi = -kInfinity;
  double all = 0.0;
  const int last_x = floor_cell(x + at.half_x);
  const int last_y = floor_cell(y + at.half_y);
  for (int cy = floor_cell(y - at.half_y); cy <= last_y; ++cy) {
    for (int cx = floor_cell(x - at.half_x); cx <= last_x; ++cx) {
      const double a = at.z(cx, cy), b = at.z(cx + 1, cy);
      const double c = at.z(cx, cy + 1), d = at.z(cx + 1, cy + 1);
      all += a + b + c + d;
      for (const double slope : {b - a, d - c}) {
        x_lo = slope < x_lo ? slope : x_lo;
        x_hi = slope > x_hi ? slope : x_hi;
      }
      for (const double slope : {c - a, d - b}) {
        y_lo = slope < y_lo ? slope : y_lo;
        y_hi = slope > y_hi ? slope : y_hi;
      }
    }
  }
  if (std::isnan(all)) s.height_m = all;
  s.slope_x = 0.5 * (x_lo + x_hi);
  s.spread_x = 0.5 * (x_hi - x_lo);
  s.slope_y = 0.5 * (y_lo + y_hi);
  s.spread_y = 0.5 * (y_hi - y_lo);
  return s;
}

// Lowest and highest of the cells that samples read which lie within (reach_x, reach_y) of (x, y), anywhere
// in the rectangle; infinite where one is unknown.
struct CellRange {
  double lo, hi;
};
CellRange cells_about(const Placement& at, double x, double y, double reach_x,
                      double reach_y) noexcept {
  const int first_x = floor_cell(x - reach_x - at.half_x);
  const int last_x = floor_cell(x + reach_x + at.half_x) + 1;
  const int first_y = floor_cell(y - reach_y - at.half_y);
  const int last_y = floor_cell(y + reach_y + at.half_y) + 1;
  CellRange range{kInfinity, -kInfinity};
  for (int iy = first_y; iy <= last_y; ++iy) {
    for (int ix = first_x; ix <= last_x; ++ix) {
      const double z = at.z(ix, iy);
      if (std::isnan(z)) return {-kInfinity, kInfinity};  // the samples will tell
      range.lo = z < range.lo ? z : range.lo;
      range.hi = z > range.hi ? z : range.hi;
    }
  }
  return range;
}

CellRange cells_of_row(const Placement& at, const WheelFootprint& footprint, double row_x,
                       double row_y) noexcept {
  const double v = footprint.v_m[footprint.across - 1];
  return cells_about(at, row_x, row_y, std::fabs(v * at.sin), std::fabs(v * at.cos));
}

CellRange cells_of_footprint(const Placement& at, const WheelFootprint& footprint) noexcept {
  const double u = footprint.u_m[footprint.along - 1];
  const double v = footprint.v_m[footprint.across - 1];
  return cells_about(at, at.start_x, at.start_y, u * std::fabs(at.cos) + v * std::fabs(at.sin),
                     u * std::fabs(at.sin) + v * std::fabs(at.cos));
}

}  // namespace

WheelRange wheel_range(const GridView& grid, const WheelFootprint& footprint, double x_m,
                       double y_m, SinCos heading, double half_x_m, double half_y_m) noexcept {
  WheelRange out;
  Placement at;
  if (!place(grid, footprint, x_m, y_m, heading, half_x_m, half_y_m, &at)) {
    out.status = Status::kOutsideMap;
    return out;
  }
  const int middle = footprint.along / 2;
  const int across = footprint.across;
  double highest[WheelFootprint::kMaxAlong];  // rim height no sample of the row exceeds, anywhere
  const double highest_cell = cells_of_footprint(at, footprint).hi;
  // First the sample that carries the wheel at the centre: rows from the axle outwards, those that
  // cannot hold it skipped.
  const double margin = 2.0 * (half_x_m + half_y_m);
  double best = -kInfinity;
  double carrier_x = at.start_x;
  double carrier_y = at.start_y;
  for (int k = 0; k < footprint.along; ++k) {
    const int i = middle + (k % 2 == 0 ? -(k / 2) : (k + 1) / 2);
    const double row_x = at.start_x + footprint.u_m[i] * at.cos;
    const double row_y = at.start_y + footprint.u_m[i] * at.sin;
    // By all cells first, then, if that does not settle it, by the row's own. The margin keeps rows that
    // the second pass may need after all from being judged by the coarse bound.
    highest[i] = highest_cell - footprint.lift_m[i];
    if (highest[i] <= best - margin) continue;
    highest[i] = cells_of_row(at, footprint, row_x, row_y).hi - footprint.lift_m[i];
    if (highest[i] <= best) continue;
    for (int j = 0; j < across; ++j) {
      const double x = row_x - footprint.v_m[j] * at.sin;
      const double y = row_y + footprint.v_m[j] * at.cos;
      const double rim = height_at(at, x, y) - footprint.lift_m[i];
      if (std::isnan(rim)) {
        out.status = Status::kUnknownGround;
        return out;
      }
      if (rim > best) {
        best = rim;
        carrier_x = x;
        carrier_y = y;
      }
    }
  }
  // Then the residual about the carrier's plane. H falls no lower below it than the carrier's own sample does;
  // a row that stays below that wherever the wheel stands cannot matter.
  const Sample carrier = sample_at(at, carrier_x, carrier_y);
  const double fall =
      std::fabs(carrier.slope_x) * at.half_x + std::fabs(carrier.slope_y) * at.half_y;
  double lo = best - carrier.spread_x * at.half_x - carrier.spread_y * at.half_y;
  double hi = lo;
  const double least = lo - fall - kRangeRounding_m;
  for (int i = 0; i < footprint.along; ++i) {
    if (highest[i] < least) continue;
    const double row_x = at.start_x + footprint.u_m[i] * at.cos;
    const double row_y = at.start_y + footprint.u_m[i] * at.sin;
    for (int j = 0; j < across; ++j) {
      const Sample s =
          sample_at(at, row_x - footprint.v_m[j] * at.sin, row_y + footprint.v_m[j] * at.cos);
      if (std::isnan(s.height_m)) {
        out.status = Status::kUnknownGround;
        return out;
      }
      const double rim = s.height_m - footprint.lift_m[i];
      const double spread = (std::fabs(s.slope_x - carrier.slope_x) + s.spread_x) * at.half_x +
                            (std::fabs(s.slope_y - carrier.slope_y) + s.spread_y) * at.half_y;
      lo = rim - spread > lo ? rim - spread : lo;
      hi = rim + spread > hi ? rim + spread : hi;
    }
  }
  out.height_m = best;
  out.slope_x = carrier.slope_x / grid.resolution_m;
  out.slope_y = carrier.slope_y / grid.resolution_m;
  out.residual_lo_m = lo - best - kRangeRounding_m;
  out.residual_hi_m = hi - best + kRangeRounding_m;
  return out;
}

double relief_bound_m(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
                      SinCos heading, double half_x_m, double half_y_m, double enough_m) noexcept {
  Placement at;
  if (!place(grid, footprint, x_m, y_m, heading, half_x_m, half_y_m, &at)) return kInfinity;
  double lowest = kInfinity;
  double highest = -kInfinity;
  for (int i = 0; i < footprint.along; ++i) {
    const CellRange cells = cells_of_row(at, footprint, at.start_x + footprint.u_m[i] * at.cos,
                                         at.start_y + footprint.u_m[i] * at.sin);
    lowest = cells.lo < lowest ? cells.lo : lowest;
    highest = cells.hi > highest ? cells.hi : highest;
  }
  const double coarse = highest - lowest + kRangeRounding_m;
  if (coarse <= enough_m) return coarse;
  lowest = kInfinity;
  highest = -kInfinity;
  for (int i = 0; i < footprint.along; ++i) {
    const double row_x = at.start_x + footprint.u_m[i] * at.cos;
    const double row_y = at.start_y + footprint.u_m[i] * at.sin;
    for (int j = 0; j < footprint.across; ++j) {
      const double v = footprint.v_m[j];
      const Sample s = sample_at(at, row_x - v * at.sin, row_y + v * at.cos);
      if (std::isnan(s.height_m)) return kInfinity;
      // Over the rectangle the sample's height stays within this of its height at the centre.
      const double spread = (std::fabs(s.slope_x) + s.spread_x) * at.half_x +
                            (std::fabs(s.slope_y) + s.spread_y) * at.half_y;
      lowest = s.height_m - spread < lowest ? s.height_m - spread : lowest;
      highest = s.height_m + spread > highest ? s.height_m + spread : highest;
    }
  }
  const double fine = highest - lowest + 2.0 * kRangeRounding_m;
  return fine < coarse ? fine : coarse;
}

}  // namespace mlnav
