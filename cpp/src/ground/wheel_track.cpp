#include "mlnav/ground/wheel_track.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>

namespace mlnav {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Heights are kept as float32 above datum and trend, at most kMostRise_m: they are off by less than 5e-7 m. The
// rest covers float64 rounding, of places too (docs/verified_ace.md).
constexpr double kMostRise_m = 8.0;
constexpr double kStored_m = 6e-7;

constexpr float kFar = std::numeric_limits<float>::infinity();

template <typename T>
T larger(T a, T b) noexcept {
  return a > b ? a : b;
}
template <typename T>
T smaller(T a, T b) noexcept {
  return a < b ? a : b;
}
int floor_of(double x) noexcept { return static_cast<int>(x + 1024.0) - 1024; }

// No point of the wheel's lower half is farther than this from its foot, whatever the lean: (r - s)^2 + u^2 <= 2 r^2.
double size_m(const WheelFootprint& f) noexcept {
  const double v = f.v_m[f.across - 1];
  return std::sqrt(2.0 * f.radius_m * f.radius_m + v * v);
}

}  // namespace

double WheelRegion::reach_m(const WheelFootprint& footprint) const noexcept {
  const double size = size_m(footprint);
  const double turn = half_heading_rad + half_lean_rad;
  return std::sqrt(half_along_m * half_along_m + half_across_m * half_across_m) +
         size * turn * (1.0 + 0.5 * turn);
}

Status WheelPatch::fill(const GridView& grid, const WheelFootprint& footprint,
                        const WheelTrend& trend, const WheelRegion& whole, double turn_step_rad,
                        WheelTrackScratch* scratch) noexcept {
  static_assert(kSide * kSide <= WheelTrackScratch::kMaxCells, "room for all cells");
  scratch_ = scratch;
  footprint_ = &footprint;
  trend_ = trend;
  resolution_m_ = grid.resolution_m;
  const double per_m = 1.0 / grid.resolution_m;
  // Feet are in the rectangle, and samples about them as the middle heading and lean place them, give or take what a
  // part's own middle differs by and what its samples move.
  const double turn = whole.half_heading_rad + whole.half_lean_rad + turn_step_rad;
  const double apart =
      size_m(footprint) * turn * (1.0 + 0.5 * turn) + whole.reach_m(footprint) + 1e-6;
  const double u = footprint.u_m[footprint.along - 1];
  const double w =
      footprint.v_m[footprint.across - 1] + footprint.radius_m * std::fabs(whole.lean.sin);
  const auto extent = [&](double along, double across, double head, double left) {
    return std::fabs(along) * whole.half_along_m + std::fabs(across) * whole.half_across_m +
           std::fabs(head) * u + std::fabs(left) * w + apart;
  };
  const double x_m = extent(whole.along.cos, whole.along.sin, whole.heading.cos, whole.heading.sin);
  const double y_m = extent(whole.along.sin, whole.along.cos, whole.heading.sin, whole.heading.cos);
  const double x0 = (whole.foot.x_m - grid.origin_x_m - x_m) * per_m;
  const double y0 = (whole.foot.y_m - grid.origin_y_m - y_m) * per_m;
  const double x1 = (whole.foot.x_m - grid.origin_x_m + x_m) * per_m;
  const double y1 = (whole.foot.y_m - grid.origin_y_m + y_m) * per_m;
  // Also rejects NaN.
  if (!(x1 > 0.0 && y1 > 0.0 && x0 < grid.nx && y0 < grid.ny && x1 - x0 < kSide &&
        y1 - y0 < kSide)) {
    return x1 > 0.0 && y1 > 0.0 && x0 < grid.nx && y0 < grid.ny ? Status::kConfigBad
                                                                : Status::kOutsideMap;
  }
  const int cell_x = floor_of(x0);
  const int cell_y = floor_of(y0);
  // The hull over four blocks looks one cell farther than samples do.
  nx_ = floor_of(x1) + kBlock + 3 - cell_x;
  ny_ = floor_of(y1) + kBlock + 3 - cell_y;
  if (nx_ > kSide || ny_ > kSide) return Status::kConfigBad;
  over_border_ = cell_x < 0 || cell_y < 0 || cell_x + nx_ > grid.nx || cell_y + ny_ > grid.ny;
  origin_x_m_ = grid.center_x_m(cell_x);
  origin_y_m_ = grid.center_y_m(cell_y);
  // Any height near by serves as the datum.
  const double middle_x = (trend.foot.x_m - grid.origin_x_m) * per_m;
  const double middle_y = (trend.foot.y_m - grid.origin_y_m) * per_m;
  datum_m_ = 0.0;
  if (middle_x >= 0.0 && middle_y >= 0.0 && middle_x < grid.nx && middle_y < grid.ny) {
    const float z = grid.at(static_cast<int>(middle_x), static_cast<int>(middle_y));
    if (z == z) datum_m_ = static_cast<double>(z);
  }
  any_unknown_ = false;
  bool high = false;
  float highest = -std::numeric_limits<float>::infinity();
  float error = 0.0F;
  for (int iy = 0; iy < ny_; ++iy) {
    const bool in_map = cell_y + iy >= 0 && cell_y + iy < grid.ny;
    const std::ptrdiff_t first = in_map ? static_cast<std::ptrdiff_t>(cell_y + iy) * grid.nx : 0;
    float* const to = z_ + iy * kSide;
    const double row = datum_m_ +
                       trend.slope_y * (origin_y_m_ + iy * resolution_m_ - trend.foot.y_m) +
                       trend.slope_x * (origin_x_m_ - trend.foot.x_m);
    const double step = trend.slope_x * resolution_m_;
    for (int ix = 0; ix < nx_; ++ix) {
      // The map's outermost half cell, where the ground is level, counts as unknown as well.
      const bool inside = in_map && cell_x + ix >= 0 && cell_x + ix < grid.nx;
      const float ground =
          inside ? grid.z[first + cell_x + ix] : std::numeric_limits<float>::quiet_NaN();
      const double z = static_cast<double>(ground) - (row + step * ix);
      high |= std::fabs(z) > kMostRise_m;
      const float stored = static_cast<float>(z);
      any_unknown_ |= stored != stored;
      highest = stored > highest ? stored : highest;
      to[ix] = stored;
    }
    if (!in_map || grid.cell_error_m == nullptr) continue;
    for (int ix = larger(0, -cell_x); ix < smaller(nx_, grid.nx - cell_x); ++ix)
      error = larger(error, grid.cell_error_m[first + cell_x + ix]);
  }
  if (high) return Status::kConfigBad;
  highest_ = highest;
  error_m_ = grid.height_error_m + static_cast<double>(error);
  steepest_ = 0.0F;

  // Extremes of the slopes over blocks, along x first, then along y, in arrays that compilers vectorize. Slopes by
  // unknown cells count as none.
  float* const x_lo = scratch_->x_lo;
  float* const x_hi = scratch_->x_hi;
  float* const y_lo = scratch_->y_lo;
  float* const y_hi = scratch_->y_hi;
  for (int iy = 0; iy < ny_; ++iy) {
    const float* const a = z_ + iy * kSide;
    const float* const b = iy + 1 < ny_ ? a + kSide : a;
    for (int ix = 0; ix + kBlock < nx_; ++ix) {
      const int at = iy * kSide + ix;
      float least = kFar, most = -kFar;
      for (int k = 0; k < kBlock; ++k) {
        const float dx = a[ix + k + 1] - a[ix + k];
        least = dx < least ? dx : least;
        most = dx > most ? dx : most;
      }
      x_lo[at] = least;
      x_hi[at] = most;
      least = kFar;
      most = -kFar;
      for (int k = 0; k <= kBlock; ++k) {
        const float dy = b[ix + k] - a[ix + k];
        least = dy < least ? dy : least;
        most = dy > most ? dy : most;
      }
      y_lo[at] = least;
      y_hi[at] = most;
    }
  }
  const auto lowest_of = [](const float* from, int rows) {
    float least = from[0];
    for (int k = 1; k < rows; ++k) least = from[k * kSide] < least ? from[k * kSide] : least;
    return least;
  };
  const auto highest_of = [](const float* from, int rows) {
    float most = from[0];
    for (int k = 1; k < rows; ++k) most = from[k * kSide] > most ? from[k * kSide] : most;
    return most;
  };
  for (int iy = 0; iy + kBlock < ny_; ++iy) {
    for (int at = iy * kSide; at + kBlock < iy * kSide + nx_; ++at) {
      const float xl = lowest_of(x_lo + at, kBlock + 1), xh = highest_of(x_hi + at, kBlock + 1);
      const float yl = lowest_of(y_lo + at, kBlock), yh = highest_of(y_hi + at, kBlock);
      // Half-widths are rounded up.
      const float x = 0.5F * (xl + xh), half_x = 0.500001F * (xh - xl) + 2e-6F;
      const float y = 0.5F * (yl + yh), half_y = 0.500001F * (yh - yl) + 2e-6F;
      const float most_x = std::fabs(x) + half_x, most_y = std::fabs(y) + half_y;
      gradient_[at] = {x, half_x, y, half_y};
      steep_[at] = 1.00001F * std::sqrt(most_x * most_x + most_y * most_y);
    }
    for (int at = iy * kSide; at + kBlock < iy * kSide + nx_; ++at)
      steepest_ = steep_[at] > steepest_ ? steep_[at] : steepest_;
  }
  return Status::kOk;
}

// Whether every cell that a sample at (x, y) can read is known.
bool WheelPatch::known(double x, double y, double wide_x, double wide_y) const noexcept {
  float all = 0.0F;
  for (int iy = floor_of(y - wide_y); iy <= floor_of(y + wide_y) + 1; ++iy) {
    for (int ix = floor_of(x - wide_x); ix <= floor_of(x + wide_x) + 1; ++ix) all += z(ix, iy);
  }
  return all == all;
}

// The largest gradient within `reach` of (x, y), cells; rise per cell.
double WheelPatch::steepest(double x, double y, double reach) const noexcept {
  if (reach > kBlock - 0.5) return static_cast<double>(steepest_);
  const float* const at =
      steep_ + static_cast<int>(y - reach) * kSide + static_cast<int>(x - reach);
  if (reach <= 0.5 * (kBlock - 1)) return static_cast<double>(*at);
  const float* const above = at + kBlock * kSide;
  return static_cast<double>(larger(larger(at[0], at[kBlock]), larger(above[0], above[kBlock])));
}

// The samples of a region, in cells of the patch. For a sample (u, v) at s below the axle (wheel_range.cpp has
// the derivation), relative to the foot: at (u, w) along and across, w = v cos(lean) - (r - s) sin(lean), which
// changes with the lean at `rate`, while the rim rises at `climb`. No second derivative of its place by heading and
// lean exceeds size (d heading + d lean)^2.
struct WheelPatch::Layout {
  double per_m;
  double foot_x, foot_y;  // cells
  double head_x, head_y;  // unit vectors: along the wheel, and to its left
  double left_x, left_y;
  double half_x, half_y;  // of the rectangle of feet, its extent along the axes, m,
  double half_m;          // and from its centre to a corner
  double second_m;

  Layout(const WheelPatch& patch, const WheelRegion& at) noexcept {
    per_m = 1.0 / patch.resolution_m_;
    foot_x = (at.foot.x_m - patch.origin_x_m_) * per_m;
    foot_y = (at.foot.y_m - patch.origin_y_m_) * per_m;
    head_x = at.heading.cos;
    head_y = at.heading.sin;
    left_x = -at.heading.sin;
    left_y = at.heading.cos;
    half_x = std::fabs(at.along.cos) * at.half_along_m + std::fabs(at.along.sin) * at.half_across_m;
    half_y = std::fabs(at.along.sin) * at.half_along_m + std::fabs(at.along.cos) * at.half_across_m;
    half_m = std::sqrt(at.half_along_m * at.half_along_m + at.half_across_m * at.half_across_m);
    const double turn = at.half_heading_rad + at.half_lean_rad;
    second_m = 0.5 * size_m(*patch.footprint_) * turn * turn;
  }
};

void WheelSamples::all_of(const WheelFootprint& f) noexcept {
  count = 0;
  for (int k = 0; k < f.along; ++k) {
    const int i = f.along / 2 + (k % 2 == 0 ? -(k / 2) : (k + 1) / 2);
    for (int j = 0; j < f.across; ++j) id[count++] = static_cast<std::uint16_t>(i * f.across + j);
  }
}

// Rows of samples in a region, each prepared when it is asked for.
struct WheelPatch::Rows {
  struct Row {
    double x, y;   // of its middle, cells
    double above;  // the axle over its rim
    double rim;    // at v = 0, with the trend over the offset from the foot
    double sway;   // by heading and lean, over flat ground
    double reach;  // no sample of the row moves farther, cells
    double most;   // no sample of the row rises above this, over the region
    double rate;   // at v = 0
  };
  const WheelPatch& patch;
  const WheelRegion& at;
  const Layout& lay;
  const WheelFootprint& f;
  double g_head, g_left;  // trend
  double v_x, v_y, v_rim, v_most;
  std::uint64_t ready = 0;
  Row row[WheelFootprint::kMaxAlong];

  Rows(const WheelPatch& p, const WheelRegion& region, const Layout& layout) noexcept
      : patch(p), at(region), lay(layout), f(*p.footprint_) {
    g_head = p.trend_.slope_x * lay.head_x + p.trend_.slope_y * lay.head_y;
    g_left = p.trend_.slope_x * lay.left_x + p.trend_.slope_y * lay.left_y;
    v_x = lay.left_x * at.lean.cos * lay.per_m;
    v_y = lay.left_y * at.lean.cos * lay.per_m;
    v_rim = g_left * at.lean.cos - at.lean.sin;
    v_most = f.v_m[f.across - 1];
  }
  const Row& operator[](int i) noexcept {
    Row& r = row[i];
    if ((ready >> i & 1) != 0) return r;
    ready |= std::uint64_t{1} << i;
    const double u = f.u_m[i];
    r.above = f.radius_m - f.drop_m[i];
    const double w = -r.above * at.lean.sin;
    r.x = lay.foot_x + (u * lay.head_x + w * lay.left_x) * lay.per_m;
    r.y = lay.foot_y + (u * lay.head_y + w * lay.left_y) * lay.per_m;
    r.rim = g_head * u + g_left * w + f.drop_m[i] * at.lean.cos - f.radius_m;
    r.rate = -r.above * at.lean.cos;
    // The trend moves the rim with heading and lean, the ground over the trend is nowhere above highest_.
    const double climb =
        std::fabs(g_left * r.rate - f.drop_m[i] * at.lean.sin - patch.trend_.slope_lean_m) +
        v_most * std::fabs(g_left * at.lean.sin + at.lean.cos);
    r.sway = (std::fabs(g_left) * std::fabs(u) + std::fabs(g_head) * (std::fabs(w) + v_most)) *
                 at.half_heading_rad +
             climb * at.half_lean_rad +
             (std::fabs(g_head) + std::fabs(g_left) + 1.0) * lay.second_m;
    r.reach =
        (lay.half_m + (std::fabs(u) + std::fabs(w) + v_most) * at.half_heading_rad +
         (std::fabs(r.rate) + v_most * std::fabs(at.lean.sin)) * at.half_lean_rad + lay.second_m) *
        lay.per_m;
    r.most = static_cast<double>(patch.highest_) + r.rim + v_most * std::fabs(v_rim) + r.sway;
    return r;
  }
};

WheelTrackBounds WheelPatch::bound(const WheelRegion& at, const WheelSamples& among, bool coarse,
                                   WheelSamples* left) const noexcept {
  const WheelFootprint& f = *footprint_;
  const Layout lay(*this, at);
  Rows rows(*this, at, lay);
  const double half_lean = at.half_lean_rad;
  const double half_turn = at.half_heading_rad;
  const double second = lay.second_m;
  const double ca = at.along.cos, sa = at.along.sin;
  const double abs_ca = std::fabs(ca), abs_sa = std::fabs(sa);
  const double abs_left_x = std::fabs(lay.left_x), abs_left_y = std::fabs(lay.left_y);
  const int across = f.across;

  // 1. Heights of the rim's samples at the centre of the region, over ground and trend. `best` carries the wheel.
  using Sample = WheelTrackScratch::Sample;
  Sample* const samples = scratch_->samples;
  double* const upper = scratch_->upper;
  int count = 0, best = -1;
  double highest = -kInfinity;
  for (int k = 0; k < among.count; ++k) {
    const int i = among.id[k] / across;
    const int j = among.id[k] - i * across;
    const Rows::Row& row = rows[i];
    // It is never above what carries the wheel at the centre; elsewhere, in a part, it may carry the wheel.
    if (left == nullptr && !any_unknown_ && row.most <= highest) continue;
    const double v = f.v_m[j];
    const double x = row.x + v * rows.v_x;
    const double y = row.y + v * rows.v_y;
    const int ix = static_cast<int>(x);
    const int iy = static_cast<int>(y);
    const float* const p = z_ + iy * kSide + ix;
    const double tx = x - ix;
    const double ty = y - iy;
    const double z00 = static_cast<double>(p[0]);
    const double z01 = static_cast<double>(p[kSide]);
    const double low = z00 + tx * (static_cast<double>(p[1]) - z00);
    const double high = z01 + tx * (static_cast<double>(p[kSide + 1]) - z01);
    const double value = low + ty * (high - low) + row.rim + v * rows.v_rim;
    if (value > highest) {
      highest = value;
      best = count;
    }
    samples[count++] = {x, y, value, i, j};
  }
  if (best < 0) best = 0;  // all unknown

  // 2. Each sample's range over the region.
  double lo = -kInfinity, hi = -kInfinity;
  bool unknown = false;
  if (left != nullptr) left->count = 0;
  const auto widen = [&](const Sample& sample) -> double {
    const int i = sample.i;
    const Rows::Row& row = rows.row[i];
    const double v = f.v_m[sample.j];
    const double u = f.u_m[i];
    const double w = v * at.lean.cos - row.above * at.lean.sin;
    const double rate = row.rate - v * at.lean.sin;
    const double climb = -v * at.lean.cos - f.drop_m[i] * at.lean.sin;
    // By heading the sample moves at (turn_x, turn_y) m/rad.
    const double turn_x = u * lay.left_x - w * lay.head_x;
    const double turn_y = u * lay.left_y - w * lay.head_y;
    const double abs_rate = std::fabs(rate);
    const double wide_x =
        (lay.half_x + std::fabs(turn_x) * half_turn + abs_left_x * abs_rate * half_lean + second) *
        lay.per_m;
    const double wide_y =
        (lay.half_y + std::fabs(turn_y) * half_turn + abs_left_y * abs_rate * half_lean + second) *
        lay.per_m;
    const double x = sample.x;
    const double y = sample.y;
    if (any_unknown_ && !known(x, y, wide_x, wide_y)) {
      unknown = true;
      return kInfinity;
    }
    const int ix = static_cast<int>(x);
    const int iy = static_cast<int>(y);
    const double tx = x - ix;
    const double ty = y - iy;
    double c_lo = kInfinity, c_hi = -kInfinity;
    bool corners = false;
    double sx, sy, qx, qy;  // gradient, rise over run
    const auto spread_of = [&] {
      const double gx = sx + trend_.slope_x;
      const double gy = sy + trend_.slope_y;
      return (std::fabs(sx * ca + sy * sa) + qx * abs_ca + qy * abs_sa) * at.half_along_m +
             (std::fabs(sy * ca - sx * sa) + qy * abs_ca + qx * abs_sa) * at.half_across_m +
             (std::fabs(gx * turn_x + gy * turn_y) + qx * std::fabs(turn_x) +
              qy * std::fabs(turn_y)) *
                 half_turn +
             (std::fabs((gx * lay.left_x + gy * lay.left_y) * rate + climb - trend_.slope_lean_m) +
              (qx * abs_left_x + qy * abs_left_y) * abs_rate) *
                 half_lean +
             (std::fabs(gx) + qx + std::fabs(gy) + qy + 1.0) * second;
    };
    // The hull of the slopes near by says whether the sample matters.
    if (larger(wide_x, wide_y) <= 0.5 * (kBlock - 1)) {  // within one block
      const Gradient& hull =
          gradient_[static_cast<int>(y - wide_y) * kSide + static_cast<int>(x - wide_x)];
      sx = static_cast<double>(hull.x) * lay.per_m;
      sy = static_cast<double>(hull.y) * lay.per_m;
      qx = static_cast<double>(hull.spread_x) * lay.per_m;
      qy = static_cast<double>(hull.spread_y) * lay.per_m;
      const double spread = spread_of();
      lo = larger(sample.value_m - spread, lo);
      const double most = sample.value_m + spread;
      if (&sample != &samples[best] && most <= lo) {
        hi = larger(most, hi);
        return most;
      }
    }
    if (tx >= wide_x && tx + wide_x <= 1.0 && ty >= wide_y && ty + wide_y <= 1.0) {
      const float* const p = z_ + iy * kSide + ix;
      const double z00 = static_cast<double>(p[0]);
      const double low = static_cast<double>(p[1]) - z00;
      const double side = static_cast<double>(p[kSide]) - z00;
      const double bend = (static_cast<double>(p[kSide + 1]) - static_cast<double>(p[kSide])) - low;
      sx = (low + ty * bend) * lay.per_m;
      sy = (side + tx * bend) * lay.per_m;
      qx = std::fabs(bend) * wide_y * lay.per_m;
      qy = std::fabs(bend) * wide_x * lay.per_m;
    } else {
      double x_lo = kInfinity, x_hi = -kInfinity, y_lo = kInfinity, y_hi = -kInfinity;
      const double x_a = x - wide_x, x_b = x + wide_x, y_a = y - wide_y, y_b = y + wide_y;
      for (int cy = static_cast<int>(y_a); cy <= static_cast<int>(y_b); ++cy) {
        const double ay = larger(y_a - cy, 0.0), by = smaller(y_b - cy, 1.0);
        for (int cx = static_cast<int>(x_a); cx <= static_cast<int>(x_b); ++cx) {
          const double ax = larger(x_a - cx, 0.0), bx = smaller(x_b - cx, 1.0);
          const float* const p = z_ + cy * kSide + cx;
          const double z00 = static_cast<double>(p[0]), z10 = static_cast<double>(p[1]);
          const double z01 = static_cast<double>(p[kSide]), z11 = static_cast<double>(p[kSide + 1]);
          const double low = z10 - z00, side = z01 - z00, bend = (z11 - z01) - low;
          const double x1 = low + ay * bend, x2 = low + by * bend;
          const double y1 = side + ax * bend, y2 = side + bx * bend;
          x_lo = smaller(x_lo, smaller(x1, x2));
          x_hi = larger(x_hi, larger(x1, x2));
          y_lo = smaller(y_lo, smaller(y1, y2));
          y_hi = larger(y_hi, larger(y1, y2));
          for (const double sx_ : {ax, bx}) {
            const double base = z00 + sx_ * low;
            const double up = side + sx_ * bend;
            for (const double sy_ : {ay, by}) {
              const double z = base + sy_ * up;
              c_lo = smaller(c_lo, z);
              c_hi = larger(c_hi, z);
            }
          }
        }
      }
      corners = true;
      sx = 0.5 * (x_lo + x_hi) * lay.per_m;
      sy = 0.5 * (y_lo + y_hi) * lay.per_m;
      qx = 0.5 * (x_hi - x_lo) * lay.per_m;
      qy = 0.5 * (y_hi - y_lo) * lay.per_m;
    }
    const double spread = spread_of();
    double s_lo = sample.value_m - spread, s_hi = sample.value_m + spread;
    if (corners) {
      // The ground over the trend lies between its corners; the trend over the offset moves with heading and lean.
      const double rim = row.rim + v * rows.v_rim;
      const double rest = std::fabs(trend_.slope_x * turn_x + trend_.slope_y * turn_y) * half_turn +
                          std::fabs(rows.g_left * rate + climb - trend_.slope_lean_m) * half_lean +
                          (std::fabs(trend_.slope_x) + std::fabs(trend_.slope_y) + 1.0) * second;
      s_lo = larger(s_lo, c_lo + rim - rest);
      s_hi = smaller(s_hi, c_hi + rim + rest);
    }
    lo = larger(s_lo, lo);
    hi = larger(s_hi, hi);
    return s_hi;
  };
  if (count > 0) upper[best] = widen(samples[best]);
  for (int k = 0; k < count; ++k) {
    const Sample& sample = samples[k];
    if (k == best) continue;
    upper[k] = -kInfinity;
    if (!any_unknown_) {
      const Rows::Row& row = rows.row[sample.i];
      const double most =
          sample.value_m + row.sway + steepest(sample.x, sample.y, row.reach) * row.reach;
      if (most <= lo) continue;
      if (coarse) {
        upper[k] = most;
        hi = larger(most, hi);
        continue;
      }
    }
    upper[k] = widen(sample);
  }
  if (unknown) return {Status::kUnknownGround, 0.0, 0.0};
  if (left != nullptr) {
    for (int k = 0; k < count; ++k) {
      if (upper[k] > lo || k == best)
        left->id[left->count++] = static_cast<std::uint16_t>(samples[k].i * across + samples[k].j);
    }
  }
  const double base = datum_m_ - trend_.slope_lean_m * (at.lean_rad - trend_.lean_rad);
  return {Status::kOk, base + lo - kStored_m - error_m_, base + hi + kStored_m + error_m_};
}

double WheelPatch::relief_bound_m(const WheelRegion& at, double enough_m) const noexcept {
  const WheelFootprint& f = *footprint_;
  const Layout lay(*this, at);
  // Coarse: all cells that samples of the region can read.
  const double v = f.v_m[f.across - 1];
  const double u = f.u_m[f.along - 1];
  const double w =
      v * at.lean.cos + f.radius_m * std::fabs(at.lean.sin) + f.radius_m * at.half_lean_rad;
  const double turn = (u + w) * at.half_heading_rad + lay.second_m;
  const double x_m = lay.half_x + u * std::fabs(lay.head_x) + w * std::fabs(lay.left_x) + turn;
  const double y_m = lay.half_y + u * std::fabs(lay.head_y) + w * std::fabs(lay.left_y) + turn;
  const int x0 = floor_of(lay.foot_x - x_m * lay.per_m),
            x1 = floor_of(lay.foot_x + x_m * lay.per_m) + 1;
  const int y0 = floor_of(lay.foot_y - y_m * lay.per_m),
            y1 = floor_of(lay.foot_y + y_m * lay.per_m) + 1;
  double lowest = kInfinity, highest = -kInfinity, all = 0.0;
  for (int iy = y0 < 0 ? 0 : y0; iy <= y1 && iy < ny_; ++iy) {
    double rise = trend_.slope_x * (origin_x_m_ + x0 * resolution_m_ - trend_.foot.x_m) +
                  trend_.slope_y * (origin_y_m_ + iy * resolution_m_ - trend_.foot.y_m);
    const double step = trend_.slope_x * resolution_m_;
    if (x0 < 0) return kInfinity;
    for (int ix = x0; ix <= x1 && ix < nx_; ++ix) {
      const double z_m = static_cast<double>(z(ix, iy)) + rise;
      rise += step;
      all += z_m;
      lowest = smaller(z_m, lowest);
      highest = larger(z_m, highest);
    }
  }
  const double off = 2.0 * (kStored_m + error_m_);
  if (all == all && highest - lowest + off <= enough_m) return highest - lowest + off;

  lowest = kInfinity;
  highest = -kInfinity;
  for (int i = 0; i < f.along; ++i) {
    const double above = f.radius_m - f.drop_m[i];
    for (int j = 0; j < f.across; ++j) {
      const double across = f.v_m[j] * at.lean.cos - above * at.lean.sin;
      const double rate = std::fabs(f.v_m[j] * at.lean.sin + above * at.lean.cos);
      const double o_x = f.u_m[i] * lay.head_x + across * lay.left_x;
      const double o_y = f.u_m[i] * lay.head_y + across * lay.left_y;
      const double x = lay.foot_x + o_x * lay.per_m;
      const double y = lay.foot_y + o_y * lay.per_m;
      const double wide_x = (lay.half_x + std::fabs(o_y) * at.half_heading_rad +
                             std::fabs(lay.left_x) * rate * at.half_lean_rad + lay.second_m) *
                            lay.per_m;
      const double wide_y = (lay.half_y + std::fabs(o_x) * at.half_heading_rad +
                             std::fabs(lay.left_y) * rate * at.half_lean_rad + lay.second_m) *
                            lay.per_m;
      if (any_unknown_ && !known(x, y, wide_x, wide_y)) return kInfinity;
      // The ground over the trend is bilinear in each cell, so over the part of a cell that the sample can be over it
      // has its extremes at that part's corners; so has the ground itself.
      double s_lo = kInfinity, s_hi = -kInfinity;
      for (int cy = floor_of(y - wide_y); cy <= floor_of(y + wide_y); ++cy) {
        const double ay = larger(y - wide_y, 1.0 * cy) - cy,
                     by = smaller(y + wide_y, cy + 1.0) - cy;
        for (int cx = floor_of(x - wide_x); cx <= floor_of(x + wide_x); ++cx) {
          const double ax = larger(x - wide_x, 1.0 * cx) - cx,
                       bx = smaller(x + wide_x, cx + 1.0) - cx;
          const double rise =
              trend_.slope_x * (origin_x_m_ + cx * resolution_m_ - trend_.foot.x_m) +
              trend_.slope_y * (origin_y_m_ + cy * resolution_m_ - trend_.foot.y_m);
          const double gx = trend_.slope_x * resolution_m_, gy = trend_.slope_y * resolution_m_;
          const double z00 = static_cast<double>(z(cx, cy)) + rise;
          const double z10 = static_cast<double>(z(cx + 1, cy)) + rise + gx;
          const double z01 = static_cast<double>(z(cx, cy + 1)) + rise + gy;
          const double z11 = static_cast<double>(z(cx + 1, cy + 1)) + rise + gx + gy;
          for (int corner = 0; corner < 4; ++corner) {
            const double tx = (corner & 1) != 0 ? bx : ax;
            const double ty = (corner & 2) != 0 ? by : ay;
            const double low = z00 + tx * (z10 - z00);
            const double height = low + ty * (z01 + tx * (z11 - z01) - low);
            s_lo = smaller(height, s_lo);
            s_hi = larger(height, s_hi);
          }
        }
      }
      lowest = smaller(s_lo, lowest);
      highest = larger(s_hi, highest);
    }
  }
  return highest - lowest + off;
}

}  // namespace mlnav
