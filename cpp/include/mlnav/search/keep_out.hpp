// Keep-out zones: ground that no part of the rover may be above, at any place of the way.
//
// The rover's outline is a rectangle about body and wheels. A planner checks poses some way apart. What lies
// between two of them is covered by the outline at the middle of that piece of the way, grown by as much as
// any point of it moves from there to either end.
#pragma once

#include <cstdint>

#include "mlnav/ground/grid.hpp"
#include "mlnav/rover/model.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// Forbidden cells of a map, row-major as its heights are. Without cells nothing is forbidden.
struct KeepOutMask {
  const std::uint8_t* cells = nullptr;  // nonzero: forbidden
  int nx = 0;
  int ny = 0;
};

// A rectangle in the rover frame, by how far it reaches from the origin.
struct RoverOutline {
  double front_m = 0.0;
  double rear_m = 0.0;
  double half_width_m = 0.0;

  // Closer than this to a zone the origin cannot be, whatever the heading.
  double inscribed_m() const noexcept;
};

// Holds belly pan and wheels seen from above, with the wheels steered to any angle and with every tilt,
// rocker and bogie angle that the limits allow: on rough ground that is a tenth to a third of a metre more
// than on level ground. What is above the pan is taken to be no wider.
RoverOutline rover_outline(const RoverModel& model) noexcept;

// Holds the outline at every place of an arc of this length, seen from the middle of the arc.
RoverOutline swept_by_arc(const RoverOutline& outline, double curvature_per_m,
                          double length_m) noexcept;

// Holds the outline at every heading of a turn in place through this angle, seen from half way.
RoverOutline swept_by_turn(const RoverOutline& outline, double turn_rad) noexcept;

// Whether the outline at a pose shares a point with a forbidden cell, borders included. Exact but for a
// micrometre, to the side of caution. Ground beyond the map is not forbidden: checkers refuse to stand there.
// `grid` places the mask, which has its shape.
bool touches(const KeepOutMask& mask, const GridView& grid, const Pose2& pose,
             const RoverOutline& outline) noexcept;

}  // namespace mlnav
