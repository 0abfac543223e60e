#include "mlnav/ground/grid.hpp"

#include <cmath>
#include <cstring>

namespace mlnav {
namespace {

// Lower edge of cell i. Every question of "which cell" and "inside or outside" is decided by this
// one expression, so that neighbours share their edge to the bit.
double edge(double origin, double resolution, int i) noexcept {
  return origin + resolution * (static_cast<double>(i) - 0.5);
}

// The cell along one axis, or -1 outside. The quotient may be off by a rounding error at an edge;
// comparing with the edges themselves puts it right.
int cell_along(double origin, double resolution, int n, double value) noexcept {
  const double guess = (value - origin) / resolution + 0.5;
  if (!(guess >= -1.0 && guess <= static_cast<double>(n) + 1.0)) return -1;  // NaN fails too
  int i = static_cast<int>(guess + 1.0) - 1;
  if (value < edge(origin, resolution, i)) {
    --i;
  } else if (value >= edge(origin, resolution, i + 1)) {
    ++i;
  }
  return i >= 0 && i < n ? i : -1;
}

// Position between two cell centres along one axis: weight `t` on `hi`, 1 - t on `lo`.
struct Between {
  int lo;
  int hi;
  double t;
};

// `value` is inside the extent. Constant over the outer half cells.
Between between(double origin, double resolution, int n, double value) noexcept {
  const double f = (value - origin) / resolution;
  if (!(f > 0.0)) return {0, 0, 0.0};
  if (f >= static_cast<double>(n - 1)) return {n - 1, n - 1, 0.0};
  const int lo = static_cast<int>(f);
  const double t = f - static_cast<double>(lo);
  return {lo, t > 0.0 ? lo + 1 : lo, t};
}

double mix(double a, double b, double t) noexcept { return a + t * (b - a); }

constexpr std::int32_t kInfinityBits = 0x7f800000;
constexpr std::int32_t kMagnitudeMask = 0x7fffffff;

}  // namespace

Status validate_geometry(const GridView& grid) noexcept {
  if (grid.z == nullptr || grid.nx <= 0 || grid.ny <= 0) return Status::kMapEmpty;
  if (!(grid.resolution_m >= kMinResolution_m && grid.resolution_m <= kMaxResolution_m)) {
    return Status::kMapBadResolution;
  }
  if (!(std::fabs(grid.origin_x_m) <= kMaxOrigin_m && std::fabs(grid.origin_y_m) <= kMaxOrigin_m)) {
    return Status::kMapBadOrigin;
  }
  return Status::kOk;
}

Status validate(const GridView& grid) noexcept {
  const Status geometry = validate_geometry(grid);
  if (geometry != Status::kOk) return geometry;

  // Compared as integers: the bits of non-negative floats are in the order of their values, with
  // infinity and then the NaNs on top. Sixteen lanes without a branch, so that compilers vectorise.
  constexpr int kLanes = 16;
  const float limit = static_cast<float>(kMaxHeight_m);
  std::int32_t limit_bits;
  std::memcpy(&limit_bits, &limit, sizeof limit_bits);

  std::int32_t bad[kLanes] = {};
  std::int32_t known[kLanes] = {};
  const std::size_t cells = grid.cells();
  std::size_t i = 0;
  for (; i + kLanes <= cells; i += kLanes) {
    std::int32_t bits[kLanes];
    std::memcpy(bits, grid.z + i, sizeof bits);
    for (int k = 0; k < kLanes; ++k) {
      const std::int32_t magnitude = bits[k] & kMagnitudeMask;
      const std::int32_t is_known = magnitude <= kInfinityBits ? -1 : 0;
      const std::int32_t is_large = magnitude > limit_bits ? -1 : 0;
      bad[k] |= is_known & is_large;
      known[k] |= is_known;
    }
  }
  for (; i < cells; ++i) {
    std::int32_t bits;
    std::memcpy(&bits, grid.z + i, sizeof bits);
    const std::int32_t magnitude = bits & kMagnitudeMask;
    if (magnitude > kInfinityBits) continue;
    known[0] = -1;
    if (magnitude > limit_bits) bad[0] = -1;
  }

  std::int32_t any_bad = 0;
  std::int32_t any_known = 0;
  for (int k = 0; k < kLanes; ++k) {
    any_bad |= bad[k];
    any_known |= known[k];
  }
  if (any_bad != 0) return Status::kMapBadHeight;
  return any_known != 0 ? Status::kOk : Status::kMapAllUnknown;
}

bool cell_of(const GridView& grid, double x_m, double y_m, CellIndex* cell) noexcept {
  const int ix = cell_along(grid.origin_x_m, grid.resolution_m, grid.nx, x_m);
  const int iy = cell_along(grid.origin_y_m, grid.resolution_m, grid.ny, y_m);
  if (ix < 0 || iy < 0) return false;
  *cell = {ix, iy};
  return true;
}

double height_m(const GridView& grid, double x_m, double y_m) noexcept {
  CellIndex cell;
  if (!cell_of(grid, x_m, y_m, &cell)) return std::nan("");
  const Between x = between(grid.origin_x_m, grid.resolution_m, grid.nx, x_m);
  const Between y = between(grid.origin_y_m, grid.resolution_m, grid.ny, y_m);
  const double low = mix(static_cast<double>(grid.at(x.lo, y.lo)),
                         static_cast<double>(grid.at(x.hi, y.lo)), x.t);
  const double high = mix(static_cast<double>(grid.at(x.lo, y.hi)),
                          static_cast<double>(grid.at(x.hi, y.hi)), x.t);
  return mix(low, high, y.t);
}

}  // namespace mlnav
