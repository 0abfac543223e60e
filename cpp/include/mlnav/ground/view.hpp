// Ray casting: the first intersections of rays from a viewpoint with the heightmap.
//
// Rays are a lattice of azimuths and elevations in the levelled world frame, so that all rays of one azimuth
// lie in one vertical plane. That plane is traversed once, outwards, over the bilinear patches between cell
// centres; a higher ray meets the ground farther out. Within a patch the ground along the plane is a
// parabola, and its intersection with a ray is solved for, so hits lie on height_m() to rounding.
#pragma once

#include <cstddef>

#include "mlnav/ground/grid.hpp"
#include "mlnav/math.hpp"

namespace mlnav {

struct Viewpoint {
  double x_m = 0.0;
  double y_m = 0.0;
  double z_m = 0.0;
};

inline constexpr double kMaxElevation_rad = 89.9 * kDeg;
inline constexpr double kMaxViewRange_m = 1e5;
inline constexpr std::size_t kMaxViewAngles = 100000;  // azimuths, and elevations; 1 at least

struct RayLattice {
  Span<const double>
      azimuth_rad;  // counter-clockwise from +x, in any order; within kMaxHeading_rad
  Span<const double> elevation_rad;  // above the horizon, ascending; within kMaxElevation_rad
  double range_min_m = 0.0;  // of hits along the ray; nearer ground still hides what is behind it
  double range_max_m = 0.0;  // up to kMaxViewRange_m

  std::size_t rays() const noexcept { return azimuth_rad.size * elevation_rad.size; }
};

Fault validate(const RayLattice& rays) noexcept;

// Scratch doubles that cast_view needs.
std::size_t view_scratch_doubles(std::size_t elevations) noexcept;

// Fills `range_m`, rays() floats with all elevations of an azimuth next to each other: the distance along the
// ray to the ground [m], NaN where it meets none within the ranges.
//
// Unknown ground and everything off the map give no hits and hide nothing, since they might lie low. A ray
// that leaves such ground below known ground met the ground somewhere unknown: it has no hit either. The
// viewpoint itself may be over unknown ground or off the map.
//
// Faults: the geometry of the grid (its heights must be valid), a field of `rays`, a viewpoint that is not
// finite (kConfigBad, with the field) or at or below the ground (kViewpointBelowGround). Nothing is written
// then.
Fault cast_view(const GridView& grid, const Viewpoint& eye, const RayLattice& rays, double* scratch,
                float* range_m) noexcept;

}  // namespace mlnav
