#include "mlnav/ground/wheel_height.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "pair.hpp"

namespace mlnav {
namespace {

constexpr double kHuge = std::numeric_limits<double>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Fewest samples over `length`, odd, no further apart than kWheelSample_m.
int odd_samples(double length_m) noexcept {
  const int intervals = static_cast<int>(std::ceil(length_m / kWheelSample_m - 1e-9));
  const int even = intervals + intervals % 2;
  return (even < 2 ? 2 : even) + 1;
}

void symmetric_offsets(double half_length_m, int n, double* offsets_m) noexcept {
  const int middle = n / 2;
  for (int i = 0; i <= middle; ++i) {
    const double offset = half_length_m * static_cast<double>(i) / static_cast<double>(middle);
    offsets_m[middle + i] = offset;
    offsets_m[middle - i] = -offset;
  }
  offsets_m[middle] = 0.0;
}

// The sample lattice laid over the map, in grid units, counted from the corner of a square window of
// cells around the wheel's centre. Sample (i, j) is at
//
//   ((fraction + reach) + u[i] * cos) + v[j] * -sin,   ((fraction + reach) + u[i] * sin) + v[j] * cos
//
// where `fraction` is the centre's place within its cell and sin and cos count in cells: that
// expression, and the interpolation `mix`, are the definition of H to the bit. `reach` depends on
// footprint and resolution alone, and keeps every sample at 1 or above.
struct Lattice {
  static constexpr int kPairs = (WheelFootprint::kMaxAcross + 1) / 2;

  int reach;
  int cell_x;  // grid cell of window cell (0, 0); may be negative
  int cell_y;
  double start_x;
  double start_y;
  double cos;
  double sin;
  int pairs;  // of samples across; the last sample is repeated to fill the last pair
  alignas(16) double across_x[2 * kPairs];
  alignas(16) double across_y[2 * kPairs];
  int first_x, last_x;  // window cells that hold samples
  int first_y, last_y;
};

// The lower of the two cells that a sample at x lies between: floor, or one less where x is whole
// (then that cell has no weight). See floor_of.
int cell_below(double x) noexcept { return static_cast<int>((x + (kShift - 0.5)) - kShift); }

struct Range {
  double lo;
  double hi;
};

// (start + a) + b for a in {a0, a1} and b in {b0, b1}. Sums are monotone in each term, rounding
// included, so over ascending offsets this bounds every sample, exactly.
Range range_of_sums(double start, double a0, double a1, double b0, double b1) noexcept {
  const double s0 = start + a0;
  const double s1 = start + a1;
  return {(s0 < s1 ? s0 : s1) + (b0 < b1 ? b0 : b1), (s0 < s1 ? s1 : s0) + (b0 < b1 ? b1 : b0)};
}

// False when a sample lies outside the map's extent.
bool lay(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
         SinCos heading, Lattice* lattice) noexcept {
  const double per_cell = 1.0 / grid.resolution_m;
  const double grid_x = (x_m - grid.origin_x_m) * per_cell;
  const double grid_y = (y_m - grid.origin_y_m) * per_cell;
  const double end_x = static_cast<double>(grid.nx) - 0.5;
  const double end_y = static_cast<double>(grid.ny) - 0.5;
  // The centre is a sample. NaN fails.
  if (!(grid_x >= -0.5 && grid_x < end_x && grid_y >= -0.5 && grid_y < end_y)) return false;
  const int center_x = static_cast<int>(grid_x + 1.0) - 1;
  const int center_y = static_cast<int>(grid_y + 1.0) - 1;

  const int n = footprint.along;
  const int m = footprint.across;
  const double half_extent = (footprint.u_m[n - 1] + footprint.v_m[m - 1]) * per_cell;
  const int reach = static_cast<int>(half_extent + 1.0) + 1;
  lattice->cell_x = center_x - reach;
  lattice->cell_y = center_y - reach;
  lattice->start_x = (grid_x - static_cast<double>(center_x)) + static_cast<double>(reach);
  lattice->start_y = (grid_y - static_cast<double>(center_y)) + static_cast<double>(reach);
  lattice->cos = heading.cos * per_cell;
  lattice->sin = heading.sin * per_cell;
  lattice->pairs = (m + 1) / 2;
  const Pair minus_sin = both(-lattice->sin);
  const Pair cos = both(lattice->cos);
  for (int p = 0; p < lattice->pairs; ++p) {
    const Pair v = load_pair(footprint.v_m + 2 * p);
    store_aligned(lattice->across_x + 2 * p, v * minus_sin);
    store_aligned(lattice->across_y + 2 * p, v * cos);
  }

  const double rear = footprint.u_m[0];
  const double front = footprint.u_m[n - 1];
  const Range x =
      range_of_sums(lattice->start_x, rear * lattice->cos, front * lattice->cos,
                    footprint.v_m[0] * -lattice->sin, footprint.v_m[m - 1] * -lattice->sin);
  const Range y =
      range_of_sums(lattice->start_y, rear * lattice->sin, front * lattice->sin,
                    footprint.v_m[0] * lattice->cos, footprint.v_m[m - 1] * lattice->cos);
  if (!(x.lo + lattice->cell_x >= -0.5 && x.hi + lattice->cell_x < end_x)) return false;
  if (!(y.lo + lattice->cell_y >= -0.5 && y.hi + lattice->cell_y < end_y)) return false;
  // Only a heading that is no sine and cosine could leave the window; memory must not depend on it.
  const double window = 2.0 * static_cast<double>(reach) + 1.0;
  if (!(x.lo >= 0.75 && x.hi < window && y.lo >= 0.75 && y.hi < window)) return false;
  lattice->reach = reach;
  lattice->first_x = cell_below(x.lo);
  lattice->last_x = cell_below(x.hi);
  lattice->first_y = cell_below(y.lo);
  lattice->last_y = cell_below(y.hi);
  return true;
}

double mix(double a, double b, double t) noexcept { return a + t * (b - a); }

// mix where the end without weight need not be known.
double mix_known(double a, double b, double t) noexcept {
  if (t == 0.0) return a;
  if (t == 1.0 && !(a == a)) return b;
  return mix(a, b, t);
}

int clamped(int i, int n) noexcept { return i < 0 ? 0 : (i < n ? i : n - 1); }

// Height of the sample at (x, y) in the window, any case: map borders, unknown cells, fine grids.
double sample(const GridView& grid, const Lattice& lattice, double x, double y) noexcept {
  const int ix = cell_below(x);
  const int iy = cell_below(y);
  const double tx = x - static_cast<double>(ix);
  const double ty = y - static_cast<double>(iy);
  // Replicated border cells make the outer half cell constant.
  const int x0 = clamped(lattice.cell_x + ix, grid.nx);
  const int x1 = clamped(lattice.cell_x + ix + 1, grid.nx);
  const int y0 = clamped(lattice.cell_y + iy, grid.ny);
  const int y1 = clamped(lattice.cell_y + iy + 1, grid.ny);
  const double low =
      mix_known(static_cast<double>(grid.at(x0, y0)), static_cast<double>(grid.at(x1, y0)), tx);
  const double high =
      mix_known(static_cast<double>(grid.at(x0, y1)), static_cast<double>(grid.at(x1, y1)), tx);
  return mix_known(low, high, ty);
}

constexpr WheelContact fault(Status status) noexcept { return {status, kNan, kNan, kNan}; }

// Sample by sample.
WheelContact contact_any(const GridView& grid, const WheelFootprint& footprint,
                         const Lattice& lattice) noexcept {
  double height = -kHuge;
  double lowest = kHuge;
  double highest = -kHuge;
  for (int i = 0; i < footprint.along; ++i) {
    const double x = lattice.start_x + footprint.u_m[i] * lattice.cos;
    const double y = lattice.start_y + footprint.u_m[i] * lattice.sin;
    for (int j = 0; j < footprint.across; ++j) {
      const double z = sample(grid, lattice, x + lattice.across_x[j], y + lattice.across_y[j]);
      if (!(z == z)) return fault(Status::kUnknownGround);
      const double rim = z - footprint.lift_m[i];
      height = rim > height ? rim : height;
      lowest = z < lowest ? z : lowest;
      highest = z > highest ? z : highest;
    }
  }
  return {Status::kOk, height + 0.0, lowest + 0.0, highest + 0.0};
}

// The window's cells that samples lie between, in columns [first_x, end_x), at least four.
struct Patch {
  static constexpr int kStride = 32;
  static constexpr int kMaxReach = 13;  // cells 0 to 2 * reach + 1, rounded up to a group of four

  int first_x, end_x;
  FloatScan all;
  // The cells as they are: cell (wx, wy) at map[wy * map_stride + wx - first_x], from row first_y on.
  // In the map itself or, at its border, in `border`, replicated.
  const float* map;
  std::ptrdiff_t map_stride;
  alignas(16) double z[kStride * kStride];  // cell (wx, wy) at z[wy * kStride + wx]
  float border[kStride * kStride];
};

void replicate_border(const GridView& grid, const Lattice& lattice, Patch* patch) noexcept {
  const int width = patch->end_x - patch->first_x;
  const int height = lattice.last_y + 2 - lattice.first_y;
  for (int i = 0; i < height; ++i) {
    const int y = clamped(lattice.cell_y + lattice.first_y + i, grid.ny);
    float* to = patch->border + i * Patch::kStride;
    for (int k = 0; k < width; ++k) {
      to[k] = grid.at(clamped(lattice.cell_x + lattice.first_x + k, grid.nx), y);
    }
  }
  patch->map = patch->border;
  patch->map_stride = Patch::kStride;
}

void fill(const GridView& grid, const Lattice& lattice, Patch* patch) noexcept {
  const int groups = (lattice.last_x + 2 - lattice.first_x + 3) / 4;
  const int x0 = lattice.cell_x + lattice.first_x;
  const int y0 = lattice.cell_y + lattice.first_y;
  const int height = lattice.last_y + 2 - lattice.first_y;
  patch->first_x = lattice.first_x;
  patch->end_x = lattice.first_x + 4 * groups;
  if (x0 >= 0 && y0 >= 0 && x0 + 4 * groups <= grid.nx && y0 + height <= grid.ny) {
    patch->map = grid.z + static_cast<std::ptrdiff_t>(y0) * grid.nx + x0;
    patch->map_stride = grid.nx;
  } else {
    replicate_border(grid, lattice, patch);
  }
  FloatScan all;
  const float* from = patch->map;
  double* to = patch->z + lattice.first_y * Patch::kStride + lattice.first_x;
  for (int i = 0; i < height; ++i) {
    for (int g = 0; g < 4 * groups; g += 4) {
      all.read4(from + g);
      widen4(from + g, to + g);
    }
    from += patch->map_stride;
    to += Patch::kStride;
  }
  patch->all = all;
}

// Highest of the cells [x0, x1] x [y0, y1] of the window, or of a few more that the patch holds.
double highest_cell(const Lattice& lattice, const Patch& patch, int x0, int x1, int y0,
                    int y1) noexcept {
  FloatScan result;
  const int first = x0 - patch.first_x;
  const int last = x1 - 3 < patch.first_x ? 0 : x1 - 3 - patch.first_x;
  const float* row = patch.map + (y0 - lattice.first_y) * patch.map_stride;
  for (int y = y0; y <= y1; ++y) {
    for (int x = first; x < last; x += 4) result.read4(row + x);
    result.read4(row + last);
    row += patch.map_stride;
  }
  return result.max();
}

// Heights of two samples.
MLNAV_INLINE Pair sample_pair(const Patch& patch, Pair x, Pair y) noexcept {
  const Floor ix = floor_of(x);
  const Floor iy = floor_of(y);
  const Pair tx = x - ix.value;
  const Pair ty = y - iy.value;
  const IntPair cell = integers(iy.value * both(static_cast<double>(Patch::kStride)) + ix.shifted);
  const double* const a = patch.z + cell.first;
  const double* const b = patch.z + cell.second;
  const Pair a0 = load_pair(a);
  const Pair b0 = load_pair(b);
  const Pair a1 = load_pair(a + Patch::kStride);
  const Pair b1 = load_pair(b + Patch::kStride);
  const Pair z00 = firsts(a0, b0);
  const Pair z01 = firsts(a1, b1);
  const Pair low = z00 + tx * (seconds(a0, b0) - z00);
  const Pair high = z01 + tx * (seconds(a1, b1) - z01);
  return low + ty * (high - low);
}

// Every sample; `nan` tells whether one came out as NaN.
template <bool kLookForNan>
WheelContact contact_fast(const WheelFootprint& footprint, const Lattice& lattice,
                          const Patch& patch, NanScan* nan) noexcept {
  Pair height = both(-kHuge);
  Pair lowest = both(kHuge);
  Pair highest = both(-kHuge);
  for (int i = 0; i < footprint.along; ++i) {
    const Pair x = both(lattice.start_x + footprint.u_m[i] * lattice.cos);
    const Pair y = both(lattice.start_y + footprint.u_m[i] * lattice.sin);
    Pair row = both(-kHuge);
    for (int p = 0; p < lattice.pairs; ++p) {
      const Pair z = sample_pair(patch, x + load_aligned(lattice.across_x + 2 * p),
                                 y + load_aligned(lattice.across_y + 2 * p));
      if (kLookForNan) nan->see(z);
      row = larger(row, z);
      lowest = smaller(lowest, z);
    }
    highest = larger(highest, row);
    height = larger(height, row - both(footprint.lift_m[i]));
  }
  return {Status::kOk, largest(height) + 0.0, smallest(lowest) + 0.0, largest(highest) + 0.0};
}

WheelContact contact_on(const GridView& grid, const WheelFootprint& footprint,
                        const Lattice& lattice, const Patch& patch) noexcept {
  NanScan nan;
  if (!patch.all.any_nan()) return contact_fast<false>(footprint, lattice, patch, &nan);
  const WheelContact contact = contact_fast<true>(footprint, lattice, patch, &nan);
  // NaN times a weight of zero is NaN as well: the slow path tells them apart.
  return nan.any() ? contact_any(grid, footprint, lattice) : contact;
}

}  // namespace

Status make_footprint(double radius_m, double width_m, WheelFootprint* footprint) noexcept {
  constexpr double kMaxLength_m = kWheelSample_m * (WheelFootprint::kMaxAlong - 1);
  if (!(radius_m > 0.0 && 2.0 * radius_m <= kMaxLength_m)) return Status::kConfigBad;
  if (!(width_m > 0.0 && width_m <= kMaxLength_m)) return Status::kConfigBad;
  footprint->along = odd_samples(2.0 * radius_m);
  footprint->across = odd_samples(width_m);
  symmetric_offsets(radius_m, footprint->along, footprint->u_m);
  symmetric_offsets(0.5 * width_m, footprint->across, footprint->v_m);
  footprint->v_m[footprint->across] = footprint->v_m[footprint->across - 1];
  for (int i = 0; i < footprint->along; ++i) {
    const double u = footprint->u_m[i];
    const double inside = radius_m * radius_m - u * u;
    footprint->lift_m[i] = radius_m - std::sqrt(inside > 0.0 ? inside : 0.0);
  }
  return Status::kOk;
}

WheelContact wheel_contact(const GridView& grid, const WheelFootprint& footprint, double x_m,
                           double y_m, SinCos heading) noexcept {
  Lattice lattice;
  if (!lay(grid, footprint, x_m, y_m, heading, &lattice)) return fault(Status::kOutsideMap);
  if (lattice.reach > Patch::kMaxReach) return contact_any(grid, footprint, lattice);
  Patch patch;
  fill(grid, lattice, &patch);
  return contact_on(grid, footprint, lattice, patch);
}

WheelHeight wheel_height(const GridView& grid, const WheelFootprint& footprint, double x_m,
                         double y_m, SinCos heading) noexcept {
  Lattice lattice;
  if (!lay(grid, footprint, x_m, y_m, heading, &lattice)) return {Status::kOutsideMap, kNan};
  if (lattice.reach > Patch::kMaxReach) {
    const WheelContact contact = contact_any(grid, footprint, lattice);
    return {contact.status, contact.height_m};
  }
  Patch patch;
  fill(grid, lattice, &patch);
  if (patch.all.any_nan()) {
    const WheelContact contact = contact_on(grid, footprint, lattice, patch);
    return {contact.status, contact.height_m};
  }

  // Rows in the order of their lift, from the axle's outwards. Interpolation does not rise above the
  // highest cell it reads, rounding apart (below 1e-10 m for heights up to kMaxHeight_m). So once
  // the patch's highest cell cannot win, no row that is left can; and a row whose own cells cannot
  // win is skipped.
  constexpr double kRounding_m = 1e-9;
  const double limit = patch.all.max() + kRounding_m;
  const int middle = footprint.along / 2;
  const int end = footprint.across - 1;
  const double ax = lattice.across_x[0], bx = lattice.across_x[end];
  const double ay = lattice.across_y[0], by = lattice.across_y[end];
  double best = -kHuge;
  for (int k = 0; k < footprint.along; ++k) {
    const int i = middle + (k % 2 == 0 ? -(k / 2) : (k + 1) / 2);
    const double lift = footprint.lift_m[i];
    if (limit - lift <= best) break;
    const double x = lattice.start_x + footprint.u_m[i] * lattice.cos;
    const double y = lattice.start_y + footprint.u_m[i] * lattice.sin;
    if (k > 0) {
      const double highest =
          highest_cell(lattice, patch, cell_below(x + (ax < bx ? ax : bx)),
                       cell_below(x + (ax < bx ? bx : ax)) + 1, cell_below(y + (ay < by ? ay : by)),
                       cell_below(y + (ay < by ? by : ay)) + 1);
      if (highest + kRounding_m - lift <= best) continue;
    }
    Pair row = both(-kHuge);
    for (int p = 0; p < lattice.pairs; ++p) {
      row = larger(row, sample_pair(patch, both(x) + load_aligned(lattice.across_x + 2 * p),
                                    both(y) + load_aligned(lattice.across_y + 2 * p)));
    }
    const double rim = largest(row) - lift;
    best = rim > best ? rim : best;
  }
  return {Status::kOk, best + 0.0};
}

}  // namespace mlnav
