// How far the linkage is from linear: bounds of what its first derivatives leave out, over a box of states.
#pragma once

#include "verified_work.hpp"

namespace mlnav {

// Angles that turn a wheel's links: the roll of the side's plane and, in that plane, body, rocker and bogie.
enum LinkAngle : int { kRolled, kBody, kRocker, kBogieLink };
inline constexpr int kLinkAngles = 4;

// Bounds for one wheel.
struct LinkBounds {
  double s_m = 0.0;        // of S = up - slope . foot - slope_lean lean
  double forward_m = 0.0;  // of the foot's place, heading frame
  double left_m = 0.0;
  double lean_rad = 0.0;
  bool usable = false;  // the wheel leans less than kSteepestSinLean anywhere
};

// With q_m the middle, where the links are turned as `at` says, a line within `line_rad` of it and delta within
// `box_rad`, angle by angle: bounds of S(q_m + line + delta) - S(q_m + line) - S'(q_m) delta, and of the same of foot
// and lean. The wheel is steered as `steered`, or up to steering_half_rad off it. The slopes are those of the ground in
// the heading frame, and of H by the lean.
//
//   S(q) - S(q_c) - S'(q_m) delta = S''(q_m)[line, delta] + S''(q_m)[delta, delta] / 2 + third order.
//
// A wheel hangs on three link vectors (x, z), which turn by the angles of body, rocker and bogie in the side's plane,
// and the plane turns by the roll. A link's second derivative is the link itself, turned back; written out per link
// and for the roll, the ground's slope cancels most of it. The third derivative of a link is at most its length times
// (its own turning + the roll's)^3.
LinkBounds bound_links(const RoverGeometry& geometry, int wheel, const verified::Turns<double>& at,
                       SinCos steered, double steering_half_rad, double slope_forward,
                       double slope_left, double slope_lean_m, const double line_rad[kLinkAngles],
                       const double box_rad[kLinkAngles]) noexcept;

}  // namespace mlnav
