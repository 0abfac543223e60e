// A stretch of motion: what a checker is asked about. A pose is the shortest.
#pragma once

#include "mlnav/rover/arc.hpp"
#include "mlnav/rover/model.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// The rover moves from `begin` with its wheels steered as `begin` says: along the arc of that curvature for
// `extent` metres (negative: backwards), or, with an infinite curvature, turning in place through `extent`
// radians. With `extent` 0 it stands there: a pose.
//
// A sweep that re-steers is at a standstill: each wheel turns from its angle for the curvature
// `steered_from_per_m` straight to the one for `begin`, all in the same time.
struct Sweep {
  Stance begin;
  double extent = 0.0;
  Pose2 end_pose;  // where that leads
  bool resteers = false;
  double steered_from_per_m = 0.0;

  Sweep() = default;
  Sweep(const Stance& stance) noexcept  // NOLINT(google-explicit-constructor): a pose is one
      : begin(stance), end_pose(stance.pose) {}
  Sweep(const Stance& from, double how_far) noexcept;
  // For who knows the end, and means it to the last bit: another sweep may begin there.
  Sweep(const Stance& from, double how_far, const Pose2& to) noexcept
      : begin(from), extent(how_far), end_pose(to) {}
  static Sweep resteer(const Stance& to, double from_per_m) noexcept {
    Sweep sweep(to);
    sweep.resteers = true;
    sweep.steered_from_per_m = from_per_m;
    return sweep;
  }

  bool turns() const noexcept;  // in place
  bool is_pose() const noexcept { return extent == 0.0 && !resteers; }
  // At a fraction of the way: 0 its beginning, 1 its end.
  Pose2 pose_at(double fraction) const noexcept;
  void steering_at(const RoverGeometry& geometry, double fraction,
                   SinCos steering[kWheels]) const noexcept;
  Stance end() const noexcept { return Stance(end_pose, begin.curvature_per_m); }
  // What to divide into steps: metres that the origin moves on an arc, the outermost wheel in a turn in place, and the
  // farthest point of a wheel as it is steered.
  double length_m(const RoverGeometry& geometry) const noexcept;
};

// Beside the pose, in the frame of its heading.
struct Offset {
  double along_m = 0.0;
  double across_m = 0.0;
  double heading_rad = 0.0;
};
Pose2 moved(const Pose2& pose, const Offset& by) noexcept;

}  // namespace mlnav
