#include "mlnav/ground/wheel_height.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "pair.hpp"

namespace mlnav {
namespace {

constexpr double kHuge = std::numeric_limits<double>::max();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The smallest odd number of samples over `length` that are at most kWheelSample_m apart.
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

// The sample lattice over the map, in grid units from the corner of a square window of cells around the
// wheel's centre. Sample (i, j) is at
//
//   ((start + u[i] * cos) + side[i] * -sin) + v[j] * -sin    along the map's x,
//   ((start + u[i] * sin) + side[i] * cos) + v[j] * cos      along its y,
//
// with side = drop * sin(lean), and v multiplied by cos(lean); start is the place of the centre, and sin and
// cos are in cells per metre. `reach` depends on footprint and resolution alone, and keeps every sample at 1
// or above.
//
// Heights are taken above a plane through the centre that leans like the axle,
//
//   z - v sin(lean) + drop cos(lean) - r  =  (z - offset across * tan(lean)) - (r - drop / cos(lean)),
//
// so that rows, which lie across, can be bounded by their highest cell at any lean. Interpolation reproduces
// planes, so the plane can be subtracted from the cells. These expressions and the interpolation `mix` define
// H to the bit.
struct Lattice {
  static constexpr int kPairs = (WheelFootprint::kMaxAcross + 1) / 2;
  static constexpr int kRowPairs = (WheelFootprint::kMaxAlong + 1) / 2;

  int reach;
  int cell_x;  // grid cell of window cell (0, 0); may be negative
  int cell_y;
  double start_x;
  double start_y;
  double plane_x;  // rise of the leaning plane from cell to cell
  double plane_y;
  int pairs;  // of samples across; the last sample is repeated to fill the last pair
  alignas(16) double across_x[2 * kPairs];
  alignas(16) double across_y[2 * kPairs];
  alignas(16) double row_x[2 * kRowPairs];  // rows; the last one is repeated likewise
  alignas(16) double row_y[2 * kRowPairs];
  alignas(16) double lift[2 * kRowPairs];  // r - drop / cos(lean)
  int first_x, last_x;                     // window cells that hold samples
  int first_y, last_y;

  // Height of the leaning plane over (x, y) in the window.
  double plane(double x, double y) const noexcept {
    return (x - start_x) * plane_x + (y - start_y) * plane_y;
  }
};

// The lower of the two cells that a sample at x lies between: floor(x), or one less if x is whole
// (then that cell has no weight). See floor_of.
int cell_below(double x) noexcept { return static_cast<int>((x + (kShift - 0.5)) - kShift); }

// No wheel leans further, and the plane would become too steep.
constexpr double kLeastCosLean = 0.1;

// False when a sample lies outside the map's extent.
bool lay(const GridView& grid, const WheelFootprint& footprint, double x_m, double y_m,
         SinCos heading, SinCos lean, Lattice* lattice) noexcept {
  const double per_cell = 1.0 / grid.resolution_m;
  const double grid_x = (x_m - grid.origin_x_m) * per_cell;
  const double grid_y = (y_m - grid.origin_y_m) * per_cell;
  const double end_x = static_cast<double>(grid.nx) - 0.5;
  const double end_y = static_cast<double>(grid.ny) - 0.5;
  // The centre is the mean of samples, so it must be inside too. NaN fails.
  if (!(grid_x >= -0.5 && grid_x < end_x && grid_y >= -0.5 && grid_y < end_y)) return false;
  if (!(lean.cos >= kLeastCosLean)) return false;
  const int center_x = static_cast<int>(grid_x + 1.0) - 1;
  const int center_y = static_cast<int>(grid_y + 1.0) - 1;

  const int m = footprint.across;
  const double half_extent = (footprint.u_m[footprint.along - 1] + footprint.v_m[m - 1]) * per_cell;
  const int reach = static_cast<int>(half_extent + 1.0) + 1;
  lattice->cell_x = center_x - reach;
  lattice->cell_y = center_y - reach;
  lattice->start_x = (grid_x - static_cast<double>(center_x)) + static_cast<double>(reach);
  lattice->start_y = (grid_y - static_cast<double>(center_y)) + static_cast<double>(reach);
  const double per_cos = 1.0 / lean.cos;
  const double rise = lean.sin * per_cos * grid.resolution_m;
  lattice->plane_x = heading.sin * -rise;
  lattice->plane_y = heading.cos * rise;
  lattice->pairs = (m + 1) / 2;
  const Pair sin = both(heading.sin * per_cell);
  const Pair minus_sin = both(-(heading.sin * per_cell));
  const Pair cos = both(heading.cos * per_cell);
  for (int p = 0; p < lattice->pairs; ++p) {
    const Pair v = load_pair(footprint.v_m + 2 * p) * both(lean.cos);
    store_aligned(lattice->across_x + 2 * p, v * minus_sin);
    store_aligned(lattice->across_y + 2 * p, v * cos);
  }
  Pair least_x = both(kHuge), most_x = both(-kHuge);
  Pair least_y = both(kHuge), most_y = both(-kHuge);
  for (int i = 0; i < footprint.along; i += 2) {
    const Pair u = load_pair(footprint.u_m + i);
    const Pair drop = load_pair(footprint.drop_m + i);
    const Pair side = drop * both(lean.sin);
    const Pair x = (both(lattice->start_x) + u * cos) + side * minus_sin;
    const Pair y = (both(lattice->start_y) + u * sin) + side * cos;
    store_aligned(lattice->row_x + i, x);
    store_aligned(lattice->row_y + i, y);
    store_aligned(lattice->lift + i, both(footprint.radius_m) - drop * both(per_cos));
    least_x = smaller(least_x, x);
    most_x = larger(most_x, x);
    least_y = smaller(least_y, y);
    most_y = larger(most_y, y);
  }

  // Sums are monotone in each term, including rounding, so these bound every sample exactly.
  const double ax = lattice->across_x[0], bx = lattice->across_x[m - 1];
  const double ay = lattice->across_y[0], by = lattice->across_y[m - 1];
  const double lo_x = smallest(least_x) + (ax < bx ? ax : bx);
  const double hi_x = largest(most_x) + (ax < bx ? bx : ax);
  const double lo_y = smallest(least_y) + (ay < by ? ay : by);
  const double hi_y = largest(most_y) + (ay < by ? by : ay);
  if (!(lo_x + lattice->cell_x >= -0.5 && hi_x + lattice->cell_x < end_x)) return false;
  if (!(lo_y + lattice->cell_y >= -0.5 && hi_y + lattice->cell_y < end_y)) return false;
  // Samples leave the window only if heading or lean are not a sine and cosine. Memory safety must not depend
  // on that.
  const double window = 2.0 * static_cast<double>(reach) + 1.0;
  if (!(lo_x >= 0.75 && hi_x < window && lo_y >= 0.75 && hi_y < window)) return false;
  lattice->reach = reach;
  lattice->first_x = cell_below(lo_x);
  lattice->last_x = cell_below(hi_x);
  lattice->first_y = cell_below(lo_y);
  lattice->last_y = cell_below(hi_y);
  return true;
}

double mix(double a, double b, double t) noexcept { return a + t * (b - a); }

// The same as mix, but an end without weight may be unknown.
double mix_known(double a, double b, double t) noexcept {
  if (t == 0.0) return a;
  if (t == 1.0 && !(a == a)) return b;
  return mix(a, b, t);
}

int clamped(int i, int n) noexcept { return i < 0 ? 0 : (i < n ? i : n - 1); }

// Height of the sample at (x, y) in the window above the leaning plane, in all cases: map borders, unknown
// cells, fine grids.
double sample(const GridView& grid, const Lattice& lattice, double x, double y) noexcept {
  const int ix = cell_below(x);
  const int iy = cell_below(y);
  const double tx = x - static_cast<double>(ix);
  const double ty = y - static_cast<double>(iy);
  const auto cell = [&](int wx, int wy) {
    // Replicated border cells make the ground's outer half cell constant.
    const float z =
        grid.at(clamped(lattice.cell_x + wx, grid.nx), clamped(lattice.cell_y + wy, grid.ny));
    return static_cast<double>(z) - lattice.plane(wx, wy);
  };
  const double low = mix_known(cell(ix, iy), cell(ix + 1, iy), tx);
  const double high = mix_known(cell(ix, iy + 1), cell(ix + 1, iy + 1), tx);
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
    for (int j = 0; j < footprint.across; ++j) {
      const double x = lattice.row_x[i] + lattice.across_x[j];
      const double y = lattice.row_y[i] + lattice.across_y[j];
      const double above = sample(grid, lattice, x, y);
      if (!(above == above)) return fault(Status::kUnknownGround);
      const double rim = above - lattice.lift[i];
      const double z = above + lattice.plane(x, y);
      height = rim > height ? rim : height;
      lowest = z < lowest ? z : lowest;
      highest = z > highest ? z : highest;
    }
  }
  return {Status::kOk, height + 0.0, lowest + 0.0, highest + 0.0};
}

// The cells of the window that samples lie between, in columns [first_x, end_x), at least four, as heights
// above the leaning plane.
struct Patch {
  static constexpr int kStride = 32;
  static constexpr int kMaxReach = 13;  // cells 0 to 2 * reach + 1, up to a multiple of four

  bool any_nan;
  double highest;
  alignas(16) double z[kStride * kStride];  // cell (wx, wy) at z[wy * kStride + wx]
  float border[kStride * kStride];
};

// The cells of a window at the map's border, which is replicated: `height` rows of `width`.
void replicate_border(const GridView& grid, int x0, int y0, int width, int height,
                      float* border) noexcept {
  for (int i = 0; i < height; ++i) {
    const int y = clamped(y0 + i, grid.ny);
    for (int k = 0; k < width; ++k) {
      border[i * Patch::kStride + k] = grid.at(clamped(x0 + k, grid.nx), y);
    }
  }
}

void fill(const GridView& grid, const Lattice& lattice, Patch* patch) noexcept {
  const int width = (lattice.last_x + 2 - lattice.first_x + 3) / 4 * 4;
  const int height = lattice.last_y + 2 - lattice.first_y;
  const int x0 = lattice.cell_x + lattice.first_x;
  const int y0 = lattice.cell_y + lattice.first_y;
  const float* from = patch->border;
  std::ptrdiff_t stride = Patch::kStride;
  if (x0 >= 0 && y0 >= 0 && x0 + width <= grid.nx && y0 + height <= grid.ny) {
    from = grid.z + static_cast<std::ptrdiff_t>(y0) * grid.nx + x0;
    stride = grid.nx;
  } else {
    replicate_border(grid, x0, y0, width, height, patch->border);
  }
  alignas(16) double plane[Patch::kStride];  // along one row of cells
  for (int k = 0; k < width; ++k) {
    plane[k] = (static_cast<double>(lattice.first_x + k) - lattice.start_x) * lattice.plane_x;
  }
  NanScan nan;
  Pair highest = both(-kHuge);
  for (int i = 0; i < height; ++i) {
    const int wy = lattice.first_y + i;
    const Pair row = both((static_cast<double>(wy) - lattice.start_y) * lattice.plane_y);
    double* const to = patch->z + wy * Patch::kStride + lattice.first_x;
    for (int k = 0; k < width; k += 4) {
      const FourWide z = widen4(from + k);
      const Pair a = z.first - (load_aligned(plane + k) + row);
      const Pair b = z.second - (load_aligned(plane + k + 2) + row);
      nan.see4(from + k);
      highest = larger(highest, larger(a, b));
      store_pair(to + k, a);
      store_pair(to + k + 2, b);
    }
    from += stride;
  }
  patch->any_nan = nan.any();
  patch->highest = largest(highest);
}

// Highest of the cells [x0, x1] x [y0, y1] of the window.
double highest_cell(const Patch& patch, int x0, int x1, int y0, int y1) noexcept {
  Pair highest = both(-kHuge);
  for (int y = y0; y <= y1; ++y) {
    const double* const row = patch.z + y * Patch::kStride;
    for (int x = x0; x < x1 - 1; x += 2) highest = larger(highest, load_pair(row + x));
    highest = larger(highest, load_pair(row + x1 - 1));
  }
  return largest(highest);
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

// The highest of all samples; `nan` is set if one is NaN.
template <bool kLookForNan>
WheelContact contact_fast(const WheelFootprint& footprint, const Lattice& lattice,
                          const Patch& patch, NanScan* nan) noexcept {
  const Pair start_x = both(lattice.start_x), plane_x = both(lattice.plane_x);
  const Pair start_y = both(lattice.start_y), plane_y = both(lattice.plane_y);
  Pair height = both(-kHuge);
  Pair lowest = both(kHuge);
  Pair highest = both(-kHuge);
  for (int i = 0; i < footprint.along; ++i) {
    Pair row = both(-kHuge);
    for (int p = 0; p < lattice.pairs; ++p) {
      const Pair x = both(lattice.row_x[i]) + load_aligned(lattice.across_x + 2 * p);
      const Pair y = both(lattice.row_y[i]) + load_aligned(lattice.across_y + 2 * p);
      const Pair above = sample_pair(patch, x, y);
      if (kLookForNan) nan->see(above);
      row = larger(row, above);
      const Pair z = above + ((x - start_x) * plane_x + (y - start_y) * plane_y);
      lowest = smaller(lowest, z);
      highest = larger(highest, z);
    }
    height = larger(height, row - both(lattice.lift[i]));
  }
  return {Status::kOk, largest(height) + 0.0, smallest(lowest) + 0.0, largest(highest) + 0.0};
}

WheelContact contact_on(const GridView& grid, const WheelFootprint& footprint,
                        const Lattice& lattice, const Patch& patch) noexcept {
  NanScan nan;
  if (!patch.any_nan) return contact_fast<false>(footprint, lattice, patch, &nan);
  const WheelContact contact = contact_fast<true>(footprint, lattice, patch, &nan);
  // NaN may come from an unknown cell with weight zero: the slow path decides.
  return nan.any() ? contact_any(grid, footprint, lattice) : contact;
}

}  // namespace

Status make_footprint(double radius_m, double width_m, WheelFootprint* footprint) noexcept {
  constexpr double kMaxLength_m = kWheelSample_m * (WheelFootprint::kMaxAlong - 1);
  if (!(radius_m > 0.0 && 2.0 * radius_m <= kMaxLength_m)) return Status::kConfigBad;
  if (!(width_m > 0.0 && width_m <= kMaxLength_m)) return Status::kConfigBad;
  const int n = odd_samples(2.0 * radius_m);
  const int m = odd_samples(width_m);
  footprint->along = n;
  footprint->across = m;
  footprint->radius_m = radius_m;
  symmetric_offsets(radius_m, n, footprint->u_m);
  symmetric_offsets(0.5 * width_m, m, footprint->v_m);
  for (int i = 0; i < n; ++i) {
    const double u = footprint->u_m[i];
    const double inside = radius_m * radius_m - u * u;
    footprint->drop_m[i] = std::sqrt(inside > 0.0 ? inside : 0.0);
  }
  footprint->u_m[n] = footprint->u_m[n - 1];
  footprint->drop_m[n] = footprint->drop_m[n - 1];
  footprint->v_m[m] = footprint->v_m[m - 1];
  return Status::kOk;
}

WheelContact wheel_contact(const GridView& grid, const WheelFootprint& footprint, double x_m,
                           double y_m, SinCos heading, SinCos lean) noexcept {
  Lattice lattice;
  if (!lay(grid, footprint, x_m, y_m, heading, lean, &lattice)) return fault(Status::kOutsideMap);
  if (lattice.reach > Patch::kMaxReach) return contact_any(grid, footprint, lattice);
  Patch patch;
  fill(grid, lattice, &patch);
  return contact_on(grid, footprint, lattice, patch);
}

WheelHeight wheel_height(const GridView& grid, const WheelFootprint& footprint, double x_m,
                         double y_m, SinCos heading, SinCos lean) noexcept {
  Lattice lattice;
  if (!lay(grid, footprint, x_m, y_m, heading, lean, &lattice)) return {Status::kOutsideMap, kNan};
  if (lattice.reach > Patch::kMaxReach) {
    const WheelContact contact = contact_any(grid, footprint, lattice);
    return {contact.status, contact.height_m};
  }
  Patch patch;
  fill(grid, lattice, &patch);
  if (patch.any_nan) {
    const WheelContact contact = contact_on(grid, footprint, lattice, patch);
    return {contact.status, contact.height_m};
  }

  // Rows in the order of their lift, from the axle outwards. An interpolated height is at most the highest
  // cell it reads, except for rounding (below 1e-10 m for heights up to kMaxHeight_m). So when the patch's
  // highest cell cannot be the maximum any more, no remaining row can, and a row whose own cells cannot be
  // the maximum is skipped.
  constexpr double kRounding_m = 1e-9;
  const double limit = patch.highest + kRounding_m;
  const int middle = footprint.along / 2;
  const int end = footprint.across - 1;
  const double ax = lattice.across_x[0], bx = lattice.across_x[end];
  const double ay = lattice.across_y[0], by = lattice.across_y[end];
  double best = -kHuge;
  for (int k = 0; k < footprint.along; ++k) {
    const int i = middle + (k % 2 == 0 ? -(k / 2) : (k + 1) / 2);
    const double lift = lattice.lift[i];
    if (limit - lift <= best) break;
    const double x = lattice.row_x[i];
    const double y = lattice.row_y[i];
    if (k > 0) {
      const double highest = highest_cell(
          patch, cell_below(x + (ax < bx ? ax : bx)), cell_below(x + (ax < bx ? bx : ax)) + 1,
          cell_below(y + (ay < by ? ay : by)), cell_below(y + (ay < by ? by : ay)) + 1);
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
