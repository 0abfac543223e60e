// Keep-out zones: ground that no part of the rover may be above, anywhere along its motion.
//
// The rover's outline is a rectangle about body and wheels. A planner checks discrete poses. The motion
// between two of them is covered by the outline at its middle, enlarged by the most that any point of the
// outline moves from there to either end.
#pragma once

#include <cstdint>

#include "mlnav/ground/grid.hpp"
#include "mlnav/rover/model.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// Forbidden cells of a map, row-major like its heights. If `cells` is null, nothing is forbidden.
struct KeepOutMask {
  const std::uint8_t* cells = nullptr;  // nonzero: forbidden
  int nx = 0;
  int ny = 0;
};

// A rectangle in the rover frame: its distances from the origin.
struct RoverOutline {
  double front_m = 0.0;
  double rear_m = 0.0;
  double half_width_m = 0.0;

  // The origin cannot be closer than this to a zone, at any heading.
  double inscribed_m() const noexcept;
};

// Contains the belly pan and the wheels, seen from above, for all steering angles and for every tilt, rocker
// and bogie angle that the limits allow: on rough ground that is a tenth to a third of a metre more than on
// level ground. The structure above the pan is assumed to be no wider.
RoverOutline rover_outline(const RoverModel& model) noexcept;

// Contains the outline at every pose of an arc of this length, in the frame of the arc's middle.
RoverOutline swept_by_arc(const RoverOutline& outline, double curvature_per_m,
                          double length_m) noexcept;

// Contains the outline at every heading of a turn in place through this angle, in the frame of its middle.
RoverOutline swept_by_turn(const RoverOutline& outline, double turn_rad) noexcept;

// Whether the outline at a pose shares a point with a forbidden cell, borders included. Exact up to a
// micrometre, on the safe side. Ground beyond the map is not forbidden: checkers reject poses there. `grid`
// has the mask's shape and gives its place.
bool touches(const KeepOutMask& mask, const GridView& grid, const Pose2& pose,
             const RoverOutline& outline) noexcept;

}  // namespace mlnav
