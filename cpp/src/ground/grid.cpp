#include "mlnav/ground/grid.hpp"

#include <cmath>

namespace mlnav {
namespace {

// Lower edge of cell i. This one expression decides which cell owns a point and whether it is inside, so that
// neighbours share their edge to the bit.
double edge(double origin, double resolution, int i) noexcept {
  return origin + resolution * (static_cast<double>(i) - 0.5);
}

// The cell along one axis, or -1 outside. At an edge the quotient may have a rounding error; comparison with
// the edges themselves corrects it.
int cell_along(double origin, double resolution, int n, double value) noexcept {
  const double guess = (value - origin) / resolution + 0.5;
  if (!(guess >= -1.0 && guess <= static_cast<double>(n) + 1.0)) return -1;  // NaN fails too
  // A guess beyond the last cell is set to the last cell first: with the largest n, an int could overflow.
  const double last = static_cast<double>(n) - 1.0;
  int i = static_cast<int>((guess < last ? guess : last) + 1.0) - 1;
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

// For a `value` inside the extent. Constant over the outer half cells.
Between between(double origin, double resolution, int n, double value) noexcept {
  const double f = (value - origin) / resolution;
  if (!(f > 0.0)) return {0, 0, 0.0};
  if (f >= static_cast<double>(n - 1)) return {n - 1, n - 1, 0.0};
  const int lo = static_cast<int>(f);
  const double t = f - static_cast<double>(lo);
  return {lo, t > 0.0 ? lo + 1 : lo, t};
}

double mix(double a, double b, double t) noexcept { return a + t * (b - a); }

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

  // A comparison with NaN is false: unknown cells do not change the largest magnitude, which stays negative
  // if no cell is known. Sixteen lanes without a branch, so that compilers vectorise the loop.
  constexpr int kLanes = 16;
  float largest[kLanes];
  for (float& lane : largest) lane = -1.0f;
  const std::size_t cells = grid.cells();
  std::size_t i = 0;
  for (; i + kLanes <= cells; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const float magnitude = std::fabs(grid.z[i + static_cast<std::size_t>(k)]);
      largest[k] = magnitude > largest[k] ? magnitude : largest[k];
    }
  }
  for (; i < cells; ++i) {
    const float magnitude = std::fabs(grid.z[i]);
    largest[0] = magnitude > largest[0] ? magnitude : largest[0];
  }
  for (const float lane : largest) largest[0] = lane > largest[0] ? lane : largest[0];
  if (largest[0] < 0.0f) return Status::kMapAllUnknown;
  if (largest[0] > static_cast<float>(kMaxHeight_m)) return Status::kMapBadHeight;
  bool bounded = grid.height_error_m >= 0.0 && grid.height_error_m <= kMaxHeight_m;
  for (i = 0; grid.cell_error_m != nullptr && i < cells; ++i) {
    bounded &=
        grid.cell_error_m[i] >= 0.0f && grid.cell_error_m[i] <= static_cast<float>(kMaxHeight_m);
  }
  return bounded ? Status::kOk : Status::kMapBadError;
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
  const double low =
      mix(static_cast<double>(grid.at(x.lo, y.lo)), static_cast<double>(grid.at(x.hi, y.lo)), x.t);
  const double high =
      mix(static_cast<double>(grid.at(x.lo, y.hi)), static_cast<double>(grid.at(x.hi, y.hi)), x.t);
  return mix(low, high, y.t);
}

double height_error_m(const GridView& grid, double x_m, double y_m, double half_side_m) noexcept {
  if (grid.cell_error_m == nullptr) return grid.height_error_m;
  // A cell more on each side: for rounding, and for the corners that bilinear ground reads.
  const auto first = [&](double origin, double at) {
    const double cell = (at - half_side_m - origin) / grid.resolution_m - 1.0;
    return cell > 0.0 ? static_cast<int>(cell) : 0;
  };
  const auto beyond = [&](double origin, double at, int n) {
    const double cell = (at + half_side_m - origin) / grid.resolution_m + 2.0;
    return cell < static_cast<double>(n) ? static_cast<int>(cell) + 1 : n;
  };
  float largest = 0.0f;
  const int end_x = beyond(grid.origin_x_m, x_m, grid.nx);
  const int end_y = beyond(grid.origin_y_m, y_m, grid.ny);
  for (int iy = first(grid.origin_y_m, y_m); iy < end_y; ++iy) {
    const float* const row = grid.cell_error_m + static_cast<std::ptrdiff_t>(iy) * grid.nx;
    for (int ix = first(grid.origin_x_m, x_m); ix < end_x; ++ix)
      largest = row[ix] > largest ? row[ix] : largest;
  }
  return grid.height_error_m + static_cast<double>(largest);
}

}  // namespace mlnav
