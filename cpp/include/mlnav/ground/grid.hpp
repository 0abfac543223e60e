// A view of a heightmap: row-major z[iy * nx + ix], cell (0, 0) at the smallest x and y. `origin` is
// the centre of that cell. The extent is half-open by half a cell: a cell owns
// [centre - res/2, centre + res/2) in x and in y. NaN is unknown ground.
#pragma once

#include <cstdint>

#include "mlnav/status.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

inline constexpr double kMinResolution_m = 1e-3;
inline constexpr double kMaxResolution_m = 100.0;
inline constexpr double kMaxHeight_m = 1e5;  // float32 resolves 8 mm there; reduce to a datum first
inline constexpr double kMaxOrigin_m = 1e7;  // float64 resolves 2 nm there
inline constexpr double kMaxHeading_rad = 1e6;

struct CellIndex {
  int ix = 0;
  int iy = 0;
};

struct GridView {
  const float* z = nullptr;
  int nx = 0;
  int ny = 0;
  double origin_x_m = 0.0;
  double origin_y_m = 0.0;
  double resolution_m = 0.0;
  double height_error_m = 0.0;          // no known cell's height is off by more than this,
  const float* cell_error_m = nullptr;  // (ny, nx), and its own part of it; null: none has one

  std::size_t cells() const noexcept {
    return static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny);
  }
  float at(int ix, int iy) const noexcept {
    return z[static_cast<std::size_t>(iy) * static_cast<std::size_t>(nx) +
             static_cast<std::size_t>(ix)];
  }
  bool exact() const noexcept { return height_error_m == 0.0 && cell_error_m == nullptr; }
  double center_x_m(int ix) const noexcept { return origin_x_m + resolution_m * ix; }
  double center_y_m(int iy) const noexcept { return origin_y_m + resolution_m * iy; }
  bool contains_cell(int ix, int iy) const noexcept {
    return ix >= 0 && iy >= 0 && ix < nx && iy < ny;
  }
};

// Shape, resolution and origin only; O(1).
Status validate_geometry(const GridView& grid) noexcept;

// validate_geometry and every height: NaN passes, infinities and |z| > kMaxHeight_m do not, and at least one
// cell must be known. Errors are from 0 to kMaxHeight_m. O(cells).
Status validate(const GridView& grid) noexcept;

// The cell that owns (x, y); false when outside the extent or not finite.
bool cell_of(const GridView& grid, double x_m, double y_m, CellIndex* cell) noexcept;

// Bilinear height between cell centres, constant over the outermost half cell. NaN outside the
// extent, and where a cell with nonzero weight is unknown. Continuous where it is known.
double height_m(const GridView& grid, double x_m, double y_m) noexcept;

// Largest bound of a cell's height error in a square about (x, y), of its cells in the map.
double height_error_m(const GridView& grid, double x_m, double y_m, double half_side_m) noexcept;

}  // namespace mlnav
