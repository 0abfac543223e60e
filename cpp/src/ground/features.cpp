#include "mlnav/ground/features.hpp"

#include <cmath>
#include <limits>

#include "mlnav/math.hpp"

namespace mlnav {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
constexpr double kMinPoints = 6.0;

int blocks(int cells, int coarsening) noexcept {
  return cells / coarsening + (cells % coarsening != 0 ? 1 : 0);
}

// Moments: sums over the known cells of a block or patch. x and y are whole cells from the map's middle, so
// sums without z are exact. z is relative to a datum of the map, so that its squares do not lose their digits
// to a common height. The remaining rounding error is about 1e-8 of the map's relief.
enum Moment { kN, kX, kY, kXX, kXY, kYY, kZ, kXZ, kYZ, kZZ, kMoments };

struct Moments {
  double of[kMoments] = {};
};

struct Line {
  double n = 0.0, j = 0.0, jj = 0.0, z = 0.0, jz = 0.0, zz = 0.0;
};

// Sums along `count` cells of a row, j = 0, 1, ...
Line sum_line(const float* z, int count, double datum) noexcept {
  Line line;
  for (int j = 0; j < count; ++j) {
    const double height = static_cast<double>(z[j]) - datum;
    line.z += height;
    line.jz += static_cast<double>(j) * height;
    line.zz += height * height;
  }
  const double n = static_cast<double>(count);
  line.n = n;
  line.j = 0.5 * n * (n - 1.0);
  line.jj = n * (n - 1.0) * (2.0 * n - 1.0) / 6.0;
  if (!std::isnan(line.z)) return line;

  line = Line{};  // a cell is unknown: sum the known ones
  for (int j = 0; j < count; ++j) {
    if (std::isnan(z[j])) continue;
    const double height = static_cast<double>(z[j]) - datum;
    const double at = static_cast<double>(j);
    line.n += 1.0;
    line.j += at;
    line.jj += at * at;
    line.z += height;
    line.jz += at * height;
    line.zz += height * height;
  }
  return line;
}

// Adds a line that starts at (x, y).
void add_line(const Line& line, double x, double y, Moments* sums) noexcept {
  double* const of = sums->of;
  const double sum_x = line.j + line.n * x;
  of[kN] += line.n;
  of[kX] += sum_x;
  of[kY] += line.n * y;
  of[kXX] += line.jj + x * (2.0 * line.j + line.n * x);
  of[kXY] += sum_x * y;
  of[kYY] += line.n * y * y;
  of[kZ] += line.z;
  of[kXZ] += line.jz + line.z * x;
  of[kYZ] += line.z * y;
  of[kZZ] += line.zz;
}

struct Plane {
  bool fitted = false;
  double slope = 0.0;        // rise over run, in metres per cell
  double mean_square = 0.0;  // of the residuals
};

Plane fit_plane(const Moments& sums) noexcept {
  const double* const of = sums.of;
  const double n = of[kN];
  if (n < kMinPoints) return {};
  const double mean_x = of[kX] / n;
  const double mean_y = of[kY] / n;
  const double mean_z = of[kZ] / n;
  const double xx = of[kXX] - of[kX] * mean_x;
  const double xy = of[kXY] - of[kX] * mean_y;
  const double yy = of[kYY] - of[kY] * mean_y;
  const double det = xx * yy - xy * xy;
  if (!(det > 1e-9 * (xx * yy) && xx > 0.0 && yy > 0.0)) return {};  // points on one line
  const double xz = of[kXZ] - of[kX] * mean_z;
  const double yz = of[kYZ] - of[kY] * mean_z;
  const double zz = of[kZZ] - of[kZ] * mean_z;
  const double a = (xz * yy - yz * xy) / det;
  const double b = (yz * xx - xz * xy) / det;
  const double residual = (zz - a * xz - b * yz) / n;
  return {true, std::sqrt(a * a + b * b), residual > 0.0 ? residual : 0.0};
}

double first_known(const GridView& grid) noexcept {
  for (std::size_t i = 0; i < grid.cells(); ++i) {
    if (!std::isnan(grid.z[i])) return static_cast<double>(grid.z[i]);
  }
  return 0.0;
}

struct BlockExtent {
  int x0, x1, y0, y1;  // heightmap cells [x0, x1) x [y0, y1)
};

BlockExtent block_extent(const GridView& grid, int k, int cx, int cy) noexcept {
  const int x1 = (cx + 1) * k;
  const int y1 = (cy + 1) * k;
  return {cx * k, x1 < grid.nx ? x1 : grid.nx, cy * k, y1 < grid.ny ? y1 : grid.ny};
}

// One plane of coarse cells per moment.
void sum_blocks(const GridView& grid, int k, const CoarseGrid& coarse, double* planes) noexcept {
  const double datum = first_known(grid);
  const int cells = coarse.cells();
  for (int cy = 0; cy < coarse.ny; ++cy) {
    for (int cx = 0; cx < coarse.nx; ++cx) {
      const BlockExtent e = block_extent(grid, k, cx, cy);
      Moments sums;
      const int middle_x = grid.nx / 2;  // about the map's middle the moments are smallest
      const int middle_y = grid.ny / 2;
      for (int y = e.y0; y < e.y1; ++y) {
        const float* row = grid.z + static_cast<std::size_t>(y) * static_cast<std::size_t>(grid.nx);
        add_line(sum_line(row + e.x0, e.x1 - e.x0, datum), static_cast<double>(e.x0 - middle_x),
                 static_cast<double>(y - middle_y), &sums);
      }
      for (int m = 0; m < kMoments; ++m) planes[m * cells + cy * coarse.nx + cx] = sums.of[m];
    }
  }
}

// Sums over the patches of one row of coarse cells: over rows [y0, y1], then over `half` cells each way. One
// row of sums per moment.
void sum_patches(const CoarseGrid& coarse, const double* planes, int y0, int y1, double* row_sums,
                 double* patch_sums, int half) noexcept {
  const int nx = coarse.nx;
  for (int m = 0; m < kMoments; ++m) {
    const double* const plane = planes + m * coarse.cells();
    for (int x = 0; x < nx; ++x) row_sums[x] = plane[y0 * nx + x];
    for (int y = y0 + 1; y <= y1; ++y) {
      for (int x = 0; x < nx; ++x) row_sums[x] += plane[y * nx + x];
    }
    double* const to = patch_sums + m * nx;
    for (int x = 0; x < nx; ++x) to[x] = row_sums[x];
    for (int d = 1; d <= half && d < nx; ++d) {
      for (int x = 0; x < nx - d; ++x) to[x] += row_sums[x + d];
      for (int x = d; x < nx; ++x) to[x] += row_sums[x - d];
    }
  }
}

Moments column(const double* patch_sums, int nx, int x) noexcept {
  Moments sums;
  for (int m = 0; m < kMoments; ++m) sums.of[m] = patch_sums[m * nx + x];
  return sums;
}

bool any_set(const std::uint8_t* flags, std::size_t count) noexcept {
  unsigned any = 0;
  for (std::size_t i = 0; i < count; ++i) any |= flags[i];
  return any != 0;
}

bool any_kept_out(const GridView& grid, const std::uint8_t* keep_out, int k, int cx,
                  int cy) noexcept {
  const BlockExtent e = block_extent(grid, k, cx, cy);
  const auto nx = static_cast<std::size_t>(grid.nx);
  for (int y = e.y0; y < e.y1; ++y) {
    const std::uint8_t* const row = keep_out + static_cast<std::size_t>(y) * nx + e.x0;
    if (any_set(row, static_cast<std::size_t>(e.x1 - e.x0))) return true;
  }
  return false;
}

// Sums of `n` non-negative values, `stride` apart, over windows [i - half, i + half], in place. A window is
// the tail of one block of its own length and the head of the next (van Herk's scheme). So nothing is
// subtracted, and nothing cancels. Scratch: 2 * (n + 2 * half) doubles.
void window_sums(double* values, int n, std::ptrdiff_t stride, int half, double* scratch) noexcept {
  const int length = 2 * half + 1;
  const int padded = n + 2 * half;
  double* const heads = scratch;
  double* const tails = scratch + padded;
  for (int i = 0; i < half; ++i) tails[i] = tails[half + n + i] = 0.0;
  for (int i = 0; i < n; ++i) tails[half + i] = values[i * stride];
  for (int start = 0; start < padded; start += length) {
    const int end = start + length < padded ? start + length : padded;
    double sum = 0.0;
    for (int i = start; i < end; ++i) heads[i] = sum += tails[i];
    for (int i = end - 2; i >= start; --i) tails[i] += tails[i + 1];
  }
  for (int start = 0; start < n; start += length) {
    values[start * stride] = tails[start];  // the window is exactly one block
    const int end = start + length < n ? start + length : n;
    for (int i = start + 1; i < end; ++i) values[i * stride] = tails[i] + heads[i + length - 1];
  }
}

// Squared gradient by Sobel's 3 x 3 operators; false if a cell it needs is unknown or outside.
bool sobel_square(const GridView& grid, int x, int y, double* square) noexcept {
  if (x < 1 || y < 1 || x + 1 >= grid.nx || y + 1 >= grid.ny) return false;
  const float* mid = grid.z + static_cast<std::size_t>(y) * static_cast<std::size_t>(grid.nx) + x;
  const float* low = mid - grid.nx;
  const float* high = mid + grid.nx;
  const auto rise = [](float from, float to) noexcept {
    return static_cast<double>(to) - static_cast<double>(from);
  };
  const double dx = rise(low[-1], low[1]) + 2.0 * rise(mid[-1], mid[1]) + rise(high[-1], high[1]);
  const double dy = rise(low[-1], high[-1]) + 2.0 * rise(low[0], high[0]) + rise(low[1], high[1]);
  const double run = 8.0 * grid.resolution_m;
  *square = (dx * dx + dy * dy) / (run * run);
  return !std::isnan(*square);
}

}  // namespace

Fault validate(const CostmapConfig& config) noexcept { return check_fields(config); }

Fault validate(const SobelConfig& config) noexcept { return check_fields(config); }

CoarseGrid coarse_grid(const GridView& grid, int coarsening) noexcept {
  const double shift = 0.5 * static_cast<double>(coarsening - 1) * grid.resolution_m;
  return {blocks(grid.nx, coarsening), blocks(grid.ny, coarsening), grid.origin_x_m + shift,
          grid.origin_y_m + shift, grid.resolution_m * static_cast<double>(coarsening)};
}

std::size_t costmap_scratch_doubles(int nx, int ny, int coarsening) noexcept {
  const auto cx = static_cast<std::size_t>(blocks(nx, coarsening));
  const auto cy = static_cast<std::size_t>(blocks(ny, coarsening));
  return kMoments * cx * (cy + 1) + cx;
}

void build_costmap(const GridView& grid, const std::uint8_t* keep_out, const CostmapConfig& config,
                   double* scratch, Costmap* costmap) noexcept {
  const int k = config.coarsening;
  const CoarseGrid coarse = coarse_grid(grid, k);
  costmap->grid = coarse;
  double* const planes = scratch;
  double* const patch_sums = scratch + kMoments * coarse.cells();
  double* const row_sums = patch_sums + kMoments * coarse.nx;
  sum_blocks(grid, k, coarse, planes);

  const double half_blocks = config.patch_half_width_m / coarse.resolution_m + 1e-9;
  const int most = coarse.nx > coarse.ny ? coarse.nx : coarse.ny;
  const int half = half_blocks < static_cast<double>(most) ? static_cast<int>(half_blocks) : most;
  const double per_slope = 1.0 / grid.resolution_m;
  for (int cy = 0; cy < coarse.ny; ++cy) {
    const int y0 = cy - half < 0 ? 0 : cy - half;
    const int y1 = cy + half < coarse.ny ? cy + half : coarse.ny - 1;
    sum_patches(coarse, planes, y0, y1, row_sums, patch_sums, half);
    // Most rows hold no keep-out cell: the whole band is tested first.
    const BlockExtent band = block_extent(grid, k, 0, cy);
    const auto nx = static_cast<std::size_t>(grid.nx);
    const bool look =
        keep_out != nullptr && any_set(keep_out + static_cast<std::size_t>(band.y0) * nx,
                                       static_cast<std::size_t>(band.y1 - band.y0) * nx);
    for (int cx = 0; cx < coarse.nx; ++cx) {
      const int cell = cy * coarse.nx + cx;
      float cost = static_cast<float>(config.unknown_cost);
      float tilt_out = kUnknown;
      float roughness_out = kUnknown;
      if (planes[kN * coarse.cells() + cell] > 0.0) {
        const Plane plane = fit_plane(column(patch_sums, coarse.nx, cx));
        cost = kInfinity;
        if (plane.fitted) {
          const double tilt = det_atan(plane.slope * per_slope);
          const double roughness = std::sqrt(plane.mean_square);
          const double tilts = tilt / config.tilt_scale_rad;
          tilt_out = static_cast<float>(tilt);
          roughness_out = static_cast<float>(roughness);
          if (tilt <= config.tilt_limit_rad) {
            cost = static_cast<float>(1.0 + tilts * tilts + roughness / config.roughness_scale_m);
          }
        }
      }
      if (look && any_kept_out(grid, keep_out, k, cx, cy)) cost = kInfinity;
      costmap->cost_per_m[cell] = cost;
      costmap->tilt_rad[cell] = tilt_out;
      costmap->roughness_m[cell] = roughness_out;
    }
  }
}

std::size_t sobel_scratch_doubles(int nx, int ny) noexcept {
  const auto x = static_cast<std::size_t>(nx);
  const auto y = static_cast<std::size_t>(ny);
  return 2 * x * y + 6 * (x > y ? x : y);
}

void sobel_risk(const GridView& grid, const SobelConfig& config, double* scratch,
                float* risk) noexcept {
  const int most = grid.nx > grid.ny ? grid.nx : grid.ny;
  const double half_cells = config.kernel_half_width_m / grid.resolution_m + 1e-9;
  const int half = half_cells < static_cast<double>(most)
                       ? (half_cells > 0.0 ? static_cast<int>(half_cells) : 0)
                       : most;
  const auto cells = static_cast<std::ptrdiff_t>(grid.cells());
  double* const sums = scratch;
  double* const counts = scratch + cells;
  double* const lines = scratch + 2 * cells;
  for (int y = 0; y < grid.ny; ++y) {
    for (int x = 0; x < grid.nx; ++x) {
      const std::ptrdiff_t cell = static_cast<std::ptrdiff_t>(y) * grid.nx + x;
      double square = 0.0;
      const bool known = sobel_square(grid, x, y, &square);
      sums[cell] = known ? square : 0.0;
      counts[cell] = known ? 1.0 : 0.0;
    }
  }
  double* const planes[] = {sums, counts};
  for (double* plane : planes) {
    for (int y = 0; y < grid.ny; ++y) {
      window_sums(plane + static_cast<std::ptrdiff_t>(y) * grid.nx, grid.nx, 1, half, lines);
    }
    for (int x = 0; x < grid.nx; ++x) window_sums(plane + x, grid.ny, grid.nx, half, lines);
  }
  for (std::ptrdiff_t i = 0; i < cells; ++i) {
    risk[i] = counts[i] > 0.0 ? static_cast<float>(1.0 - det_exp(-(sums[i] / counts[i]))) : 0.0f;
  }
}

}  // namespace mlnav
