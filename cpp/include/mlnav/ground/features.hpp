// Terrain features that the planner reads from the heightmap besides ACE: a coarse costmap of plane-fit tilt
// and roughness (as in ENav's goodness map), and Sobel gradient risk (Abcouwer et al. 2021).
#pragma once

#include <cstdint>

#include "mlnav/fields.hpp"
#include "mlnav/ground/grid.hpp"
#include "mlnav/math.hpp"

namespace mlnav {

struct CostmapConfig {
  int coarsening = 4;  // 0.1 -> 0.4 m
  double patch_half_width_m = 1.0;
  double tilt_scale_rad = 20 * kDeg;
  double roughness_scale_m = 0.08;
  double tilt_limit_rad = 30 * kDeg;
  double unknown_cost = 1.4;  // above known flat ground
};
template <>
inline constexpr auto kFields<CostmapConfig> = std::tuple{
    number("coarsening", "cells", &CostmapConfig::coarsening, 1, 64,
           "Heightmap cells per costmap cell, each way."),
    number("patch_half_width_m", "m", &CostmapConfig::patch_half_width_m, 1e-6, 1e3,
           "Half width of the square that a plane is fitted to."),
    number("tilt_scale_rad", "rad", &CostmapConfig::tilt_scale_rad, 1e-6, 0.5 * kPi,
           "Cost per metre = 1 + (tilt / tilt_scale)^2 + roughness / roughness_scale."),
    number("roughness_scale_m", "m", &CostmapConfig::roughness_scale_m, 1e-6, 1e6),
    number("tilt_limit_rad", "rad", &CostmapConfig::tilt_limit_rad, 1e-6, 0.5 * kPi,
           "Steeper patches cost infinity."),
    number("unknown_cost", "", &CostmapConfig::unknown_cost, 1.0, 1e6,
           "Per metre over unseen cells."),
};

Fault validate(const CostmapConfig& config) noexcept;

// Coarse grid that covers the heightmap: cell (cx, cy) covers heightmap cells
// [cx*k, min((cx+1)*k, nx)) and likewise in y.
struct CoarseGrid {
  int nx = 0;
  int ny = 0;
  double origin_x_m = 0.0;  // centre of cell (0, 0)
  double origin_y_m = 0.0;
  double resolution_m = 0.0;
  int cells() const noexcept { return nx * ny; }
};

CoarseGrid coarse_grid(const GridView& grid, int coarsening) noexcept;

struct Costmap {
  CoarseGrid grid;
  float* cost_per_m = nullptr;   // >= 1, or +inf: extreme tilt, plane fit fails, keep-out
  float* tilt_rad = nullptr;     // plane-fit tilt; NaN where no plane was fitted
  float* roughness_m = nullptr;  // root mean square residual about the plane; NaN likewise
};

// Scratch floats/doubles that build_costmap needs for a heightmap of nx x ny cells.
std::size_t costmap_scratch_doubles(int nx, int ny, int coarsening) noexcept;

// Fills `costmap` (buffers sized for coarse_grid(...).cells() by the caller). For each coarse cell a plane is
// fitted by least squares to all known heights of the patch around it: the whole coarse cells within h of it
// each way, h = floor(patch_half_width / coarse resolution) (at 0.4 m and 1 m: 5 x 5 coarse cells, exactly
// +-1 m). Sums are shared between patches, which costs roughness a rounding error of about 1e-8 of the map's
// relief.
//  - a cell without any known height of its own: unknown_cost (finite), tilt and roughness NaN
//  - a cell with known heights but too few (< 6) or degenerate (collinear) points: infinite
//  - tilt beyond tilt_limit_rad: infinite
//  - any heightmap cell of the coarse cell in `keep_out` (nonzero; same shape as the map, may be
//    null): infinite
void build_costmap(const GridView& grid, const std::uint8_t* keep_out, const CostmapConfig& config,
                   double* scratch, Costmap* costmap) noexcept;

struct SobelConfig {
  double kernel_half_width_m = 1.2;  // rover-sized
};
template <>
inline constexpr auto kFields<SobelConfig> = std::tuple{
    number("kernel_half_width_m", "m", &SobelConfig::kernel_half_width_m, 1e-3, 100.0,
           "Of the square over which squared gradients are averaged."),
};
Fault validate(const SobelConfig& config) noexcept;

std::size_t sobel_scratch_doubles(int nx, int ny) noexcept;

// Sobel risk on the heightmap's own cells: risk = 1 - exp(-g2), with g2 the mean over the kernel of
// the squared Sobel gradient (rise over run). So the price of the risk, -log(1 - risk), is g2.
// Unknown neighbours are left out of the mean; a kernel without any known gradient gives risk 0.
// `risk` has ny * nx floats.
void sobel_risk(const GridView& grid, const SobelConfig& config, double* scratch,
                float* risk) noexcept;

}  // namespace mlnav
