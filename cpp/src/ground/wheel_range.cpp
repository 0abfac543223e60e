#include "mlnav/ground/wheel_range.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>

namespace mlnav {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double larger(double a, double b) noexcept { return a > b ? a : b; }
double smaller(double a, double b) noexcept { return a < b ? a : b; }

// The footprint over the map, in cells, at the centre of the play: sample (i, j) is at row[i] + v[j] *
// across.
struct Placement {
  const GridView* grid;
  double foot_x, foot_y;
  double sin, cos;  // of the heading, in cells per metre
  double across_x, across_y;
  double plane_x,
      plane_y;            // rise per cell of a plane through the foot; heights are bounded above it
  double half_x, half_y;  // how far the foot can be from its centre place
  double lo_x, hi_x;      // extent of all samples over the play
  double lo_y, hi_y;
  bool inside;  // every cell that can be read is a cell of the map
  double row_x[WheelFootprint::kMaxAlong];
  double row_y[WheelFootprint::kMaxAlong];
  // How far a sample of each row can be from its centre place.
  double wide_x[WheelFootprint::kMaxAlong];
  double wide_y[WheelFootprint::kMaxAlong];

  double z(int ix, int iy) const noexcept {
    if (!inside) {  // the border is replicated: the outermost half cell is constant
      ix = ix < 0 ? 0 : (ix < grid->nx ? ix : grid->nx - 1);
      iy = iy < 0 ? 0 : (iy < grid->ny ? iy : grid->ny - 1);
    }
    return static_cast<double>(grid->at(ix, iy));
  }
};

// floor(x) for x > -1 (samples lie inside the extent). The sum may round up to a whole number; the position
// within the cell is then negative by less than 1e-8, which kRangeRounding_m covers.
int floor_cell(double x) noexcept { return static_cast<int>(x + 1.0) - 1; }

// Bound of the changes of second order in the lean. No point of the wheel's lower half is farther than `size`
// from the middle of its axle or from its foot, so its second derivative by the lean is at most `size`.
double second_order_m(const WheelFootprint& footprint, double half_lean_rad) noexcept {
  const double r = footprint.radius_m;
  const double v = footprint.v_m[footprint.across - 1];
  const double size = std::sqrt(r * r + v * v);
  return 0.5 * size * half_lean_rad * half_lean_rad;
}

// `plane` is the lean of the plane above which heights are bounded. False if a sample can leave the map.
bool place(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
           SinCos heading, SinCos lean, const WheelPlay& play, SinCos plane,
           Placement* out) noexcept {
  const double per_cell = 1.0 / grid.resolution_m;
  const double r = footprint.radius_m;
  const double v = footprint.v_m[footprint.across - 1];
  out->grid = &grid;
  out->sin = heading.sin * per_cell;
  out->cos = heading.cos * per_cell;
  out->foot_x = (x_m - grid.origin_x_m) * per_cell - r * lean.sin * out->sin;
  out->foot_y = (y_m - grid.origin_y_m) * per_cell + r * lean.sin * out->cos;
  // The foot is a sample. This also rejects NaN, which the comparisons below would accept.
  if (!(out->foot_x >= -0.5 && out->foot_y >= -0.5)) return false;
  out->across_x = -out->sin * lean.cos;
  out->across_y = out->cos * lean.cos;
  const double rise = plane.sin / plane.cos * grid.resolution_m;
  out->plane_x = -heading.sin * rise;
  out->plane_y = heading.cos * rise;
  out->half_x = play.x_m * per_cell;
  out->half_y = play.y_m * per_cell;
  const double reach_x = v * std::fabs(out->across_x);
  const double reach_y = v * std::fabs(out->across_y);
  const double second = second_order_m(footprint, play.lean_rad);
  out->lo_x = out->lo_y = kInfinity;
  out->hi_x = out->hi_y = -kInfinity;
  for (int i = 0; i < footprint.along; ++i) {
    const double above = r - footprint.drop_m[i];
    const double side = -above * lean.sin;
    const double x = out->foot_x + footprint.u_m[i] * out->cos - side * out->sin;
    const double y = out->foot_y + footprint.u_m[i] * out->sin + side * out->cos;
    // A change of lean moves a sample across, relative to the foot.
    const double shift_m = (above * lean.cos + v * std::fabs(lean.sin)) * play.lean_rad + second;
    const double wide_x = out->half_x + std::fabs(out->sin) * shift_m;
    const double wide_y = out->half_y + std::fabs(out->cos) * shift_m;
    out->row_x[i] = x;
    out->row_y[i] = y;
    out->wide_x[i] = wide_x;
    out->wide_y[i] = wide_y;
    out->lo_x = smaller(x - reach_x - wide_x, out->lo_x);
    out->hi_x = larger(x + reach_x + wide_x, out->hi_x);
    out->lo_y = smaller(y - reach_y - wide_y, out->lo_y);
    out->hi_y = larger(y + reach_y + wide_y, out->hi_y);
  }
  if (!(out->lo_x >= -0.5 && out->hi_x < grid.nx - 0.5)) return false;
  if (!(out->lo_y >= -0.5 && out->hi_y < grid.ny - 0.5)) return false;
  out->inside = out->lo_x >= 1.0 && out->hi_x < grid.nx - 2.0 && out->lo_y >= 1.0 &&
                out->hi_y < grid.ny - 2.0;
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

// One sample: its height at the centre, and the range of the ground's gradient (rise per cell) over all its
// places, as middle and half-width.
struct Sample {
  double height_m;
  double slope_x, spread_x;
  double slope_y, spread_y;
};

// Within a cell of bilinear ground, the gradient along x is linear in y, and that along y is linear in x;
// over several cells their hull is taken. NaN corners give NaN.
Sample sample_at(const Placement& at, const WheelFootprint& footprint, int i, int j) noexcept {
  const double x = at.row_x[i] + footprint.v_m[j] * at.across_x;
  const double y = at.row_y[i] + footprint.v_m[j] * at.across_y;
  const double wide_x = at.wide_x[i];
  const double wide_y = at.wide_y[i];
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
  const bool one_cell = tx >= wide_x && tx + wide_x <= 1.0 && ty >= wide_y && ty + wide_y <= 1.0;
  if (one_cell) {
    s.spread_x = std::fabs(bend) * wide_y;
    s.spread_y = std::fabs(bend) * wide_x;
    return s;
  }
  double x_lo = kInfinity, x_hi = -kInfinity, y_lo = kInfinity, y_hi = -kInfinity;
  double all = 0.0;
  const int last_x = floor_cell(x + wide_x);
  const int last_y = floor_cell(y + wide_y);
  for (int cy = floor_cell(y - wide_y); cy <= last_y; ++cy) {
    for (int cx = floor_cell(x - wide_x); cx <= last_x; ++cx) {
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

// Lowest and highest height above the plane of the cells that samples between (lo_x, lo_y) and (hi_x, hi_y)
// read; infinite if one is unknown.
struct CellRange {
  double lo, hi;
};
CellRange cells_between(const Placement& at, double lo_x, double hi_x, double lo_y,
                        double hi_y) noexcept {
  const int first_x = floor_cell(lo_x);
  const int last_x = floor_cell(hi_x) + 1;
  const int last_y = floor_cell(hi_y) + 1;
  CellRange range{kInfinity, -kInfinity};
  for (int iy = floor_cell(lo_y); iy <= last_y; ++iy) {
    double plane = (first_x - at.foot_x) * at.plane_x + (iy - at.foot_y) * at.plane_y;
    for (int ix = first_x; ix <= last_x; ++ix) {
      const double z = at.z(ix, iy) - plane;
      plane += at.plane_x;
      if (std::isnan(z)) return {-kInfinity, kInfinity};  // the samples decide
      range.lo = z < range.lo ? z : range.lo;
      range.hi = z > range.hi ? z : range.hi;
    }
  }
  return range;
}

CellRange cells_of_row(const Placement& at, const WheelFootprint& footprint, int i) noexcept {
  const double v = footprint.v_m[footprint.across - 1];
  const double reach_x = v * std::fabs(at.across_x) + at.wide_x[i];
  const double reach_y = v * std::fabs(at.across_y) + at.wide_y[i];
  return cells_between(at, at.row_x[i] - reach_x, at.row_x[i] + reach_x, at.row_y[i] - reach_y,
                       at.row_y[i] + reach_y);
}

}  // namespace

// For a sample (u, v) at s below the axle, with delta = phi - phi_c and up to second order in it:
//
//   offset across from the foot:  v cos(phi) - (r - s) sin(phi)   = that at the centre + rate delta,
//     rate = -v sin(phi_c) - (r - s) cos(phi_c)
//   rim above the ground there:   -v sin(phi) + s cos(phi) - r    = that at the centre + climb delta,
//     climb = -v cos(phi_c) - s sin(phi_c)
//
// So its height changes by  gradient . (b - b_c) + (gradient_across rate + climb) delta,  where the gradient
// is that of the ground somewhere between the sample's two places.
//
// Rows are bounded by their highest cell above a plane that leans like the wheel, on which all samples of a
// row are equal. With t = tan(phi_c) a rim is above the highest of its cells by at most
//
//   t (b - b_c) across - lift + sway,   lift = r - (s - r sin(phi_c)^2) / cos(phi_c),
//   sway = |-v / cos(phi_c) - r sin(phi_c)| |delta| and second order.
WheelRange wheel_range(const GridView& grid, const WheelFootprint& footprint, double x_m,
                       double y_m, SinCos heading, SinCos lean, const WheelPlay& play) noexcept {
  WheelRange out;
  Placement at;
  if (!place(grid, footprint, x_m, y_m, heading, lean, play, lean, &at)) {
    out.status = Status::kOutsideMap;
    return out;
  }
  const int middle = footprint.along / 2;
  const int last = footprint.across - 1;
  const double r = footprint.radius_m;
  const double half_lean = play.lean_rad;
  const double second = second_order_m(footprint, half_lean);
  const double per_cos = 1.0 / lean.cos;
  const double tan_lean = std::fabs(lean.sin) * per_cos;
  const double abs_sin = std::fabs(at.sin);
  const double abs_cos = std::fabs(at.cos);
  const double sway =
      (footprint.v_m[last] * per_cos + r * std::fabs(lean.sin)) * half_lean +
      (1.0 + tan_lean) * second +
      tan_lean * (std::fabs(heading.sin) * play.x_m + std::fabs(heading.cos) * play.y_m);
  const auto rim_at = [&](int i, int j) {
    const double v = footprint.v_m[j];
    return height_at(at, at.row_x[i] + v * at.across_x, at.row_y[i] + v * at.across_y) -
           v * lean.sin + (footprint.drop_m[i] * lean.cos - r);
  };
  // Upper bound of every sample of the row over the play, without `sway`.
  double highest[WheelFootprint::kMaxAlong];
  const double highest_cell = cells_between(at, at.lo_x, at.hi_x, at.lo_y, at.hi_y).hi;
  // 1. The sample that carries the wheel at the centre: rows from the axle outwards, except those that cannot
  // hold it.
  const double margin = 2.0 * (play.x_m + play.y_m + sway);
  double best = -kInfinity;
  int carrier_i = middle;
  int carrier_j = 0;
  for (int k = 0; k < footprint.along; ++k) {
    const int i = middle + (k % 2 == 0 ? -(k / 2) : (k + 1) / 2);
    const double lift = r - (footprint.drop_m[i] - r * lean.sin * lean.sin) * per_cos;
    // The bound by all cells first; if that does not exclude the row, the bound by its own cells. The margin
    // keeps rows that the second pass may need from having only the coarse bound.
    highest[i] = highest_cell - lift;
    if (highest[i] <= best - margin) continue;
    highest[i] = cells_of_row(at, footprint, i).hi - lift;
    if (highest[i] <= best) continue;
    for (int j = 0; j <= last; ++j) {
      const double rim = rim_at(i, j);
      if (std::isnan(rim)) {
        out.status = Status::kUnknownGround;
        return out;
      }
      if (rim > best) {
        best = rim;
        carrier_i = i;
        carrier_j = j;
      }
    }
  }
  const Sample carrier = sample_at(at, footprint, carrier_i, carrier_j);
  const double carrier_across = carrier.slope_y * at.cos - carrier.slope_x * at.sin;
  // Of a row, and of a sample in it.
  const auto row_rate = [&](int i) { return (footprint.drop_m[i] - r) * lean.cos; };
  const auto rate_in = [&](double of_row, int j) { return of_row - footprint.v_m[j] * lean.sin; };
  const auto climb = [&](int i, int j) {
    return -footprint.v_m[j] * lean.cos - footprint.drop_m[i] * lean.sin;
  };
  // 2. Slope by the lean: that of the chord over the carrier's row, where one sample takes over from another.
  double left = -kInfinity;
  double right = -kInfinity;
  for (int j = 0; j <= last; ++j) {
    const double rim = rim_at(carrier_i, j);
    const double rise =
        (carrier_across * rate_in(row_rate(carrier_i), j) + climb(carrier_i, j)) * half_lean;
    left = larger(rim + rise, left);
    right = larger(rim - rise, right);
  }
  const double slope_lean = half_lean > 0.0 ? (left - right) / (2.0 * half_lean) : 0.0;

  // 3. The residual about that trend. H is at least the carrier's own sample; a row that stays below that
  // over the whole play has no effect.
  const auto spread_of = [&](const Sample& s, double rate, double climb_of) {
    const double across = s.slope_y * at.cos - s.slope_x * at.sin;
    const double spread_across = s.spread_x * abs_sin + s.spread_y * abs_cos;
    return (std::fabs(s.slope_x - carrier.slope_x) + s.spread_x) * at.half_x +
           (std::fabs(s.slope_y - carrier.slope_y) + s.spread_y) * at.half_y +
           (std::fabs(across * rate + climb_of - slope_lean) + spread_across * std::fabs(rate)) *
               half_lean +
           (std::fabs(across) + spread_across + 1.0) * second;
  };
  const double fall = std::fabs(carrier.slope_x) * at.half_x +
                      std::fabs(carrier.slope_y) * at.half_y + std::fabs(slope_lean) * half_lean;
  double lo = best - spread_of(carrier, rate_in(row_rate(carrier_i), carrier_j),
                               climb(carrier_i, carrier_j));
  double hi = lo;
  const double least = lo - fall - sway - kRangeRounding_m;
  for (int i = 0; i < footprint.along; ++i) {
    if (highest[i] < least) continue;
    const double of_row = row_rate(i);
    const double rim_of_row = footprint.drop_m[i] * lean.cos - r;
    for (int j = 0; j <= last; ++j) {
      const Sample s = sample_at(at, footprint, i, j);
      if (std::isnan(s.height_m)) {
        out.status = Status::kUnknownGround;
        return out;
      }
      const double rim = s.height_m - footprint.v_m[j] * lean.sin + rim_of_row;
      const double spread = spread_of(s, rate_in(of_row, j), climb(i, j));
      lo = larger(rim - spread, lo);
      hi = larger(rim + spread, hi);
    }
  }
  out.height_m = best;
  out.slope_x = carrier.slope_x / grid.resolution_m;
  out.slope_y = carrier.slope_y / grid.resolution_m;
  out.slope_lean_m = slope_lean;
  out.residual_lo_m = lo - best - kRangeRounding_m;
  out.residual_hi_m = hi - best + kRangeRounding_m;
  return out;
}

double relief_bound_m(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
                      SinCos heading, SinCos lean, const WheelPlay& play,
                      double enough_m) noexcept {
  Placement at;
  if (!place(grid, footprint, x_m, y_m, heading, lean, play, kLevel, &at)) return kInfinity;
  double lowest = kInfinity;
  double highest = -kInfinity;
  for (int i = 0; i < footprint.along; ++i) {
    const CellRange cells = cells_of_row(at, footprint, i);
    lowest = cells.lo < lowest ? cells.lo : lowest;
    highest = cells.hi > highest ? cells.hi : highest;
  }
  const double coarse = highest - lowest + kRangeRounding_m;
  if (coarse <= enough_m) return coarse;
  lowest = kInfinity;
  highest = -kInfinity;
  for (int i = 0; i < footprint.along; ++i) {
    for (int j = 0; j < footprint.across; ++j) {
      const Sample s = sample_at(at, footprint, i, j);
      if (std::isnan(s.height_m)) return kInfinity;
      // Over the whole play the sample's height stays within this of its height at the centre.
      const double spread = (std::fabs(s.slope_x) + s.spread_x) * at.wide_x[i] +
                            (std::fabs(s.slope_y) + s.spread_y) * at.wide_y[i];
      lowest = s.height_m - spread < lowest ? s.height_m - spread : lowest;
      highest = s.height_m + spread > highest ? s.height_m + spread : highest;
    }
  }
  const double fine = highest - lowest + 2.0 * kRangeRounding_m;
  return fine < coarse ? fine : coarse;
}

}  // namespace mlnav
