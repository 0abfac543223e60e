// The tree of candidate paths: a turn in place, an arc, and a second arc (ENav: 14 x 11 x 11 = 1,694 paths, 3
// m each arc, ACE every 0.25 m; its sets of turns and curvatures are not published, these are ours). Paths
// share prefixes: with the default sets and ENav's spacing the tree has 14 * 11 * 12 + 14 * 121 * 12 = 22,176
// distinct poses on arcs, and 29 distinct poses of turning in place (every 10 deg to +160 and to -130 deg)
// besides the start.
#pragma once

#include <cstdint>

#include "mlnav/assert.hpp"
#include "mlnav/fields.hpp"
#include "mlnav/math.hpp"
#include "mlnav/rover/arc.hpp"
#include "mlnav/status.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

struct PathTreeConfig {
  static constexpr int kMaxTurns = 64;
  static constexpr int kMaxCurvatures = 64;
  int turn_count = 14;
  // Closed under subtracting 30 deg, the part of a turn that is committed: the rest of a turn is again a
  // candidate. So a rover that is half way round does not lose its candidate and turn back.
  double turn_rad[kMaxTurns] = {0.0,         10 * kDeg,  -10 * kDeg,  20 * kDeg,  -20 * kDeg,
                                40 * kDeg,   -40 * kDeg, 70 * kDeg,   -70 * kDeg, 100 * kDeg,
                                -100 * kDeg, 130 * kDeg, -130 * kDeg, 160 * kDeg};
  int curvature_count = 11;
  double curvature_per_m[kMaxCurvatures] = {0.0,       1 / 15.0, -1 / 15.0, 2 / 15.0,
                                            -2 / 15.0, 3 / 15.0, -3 / 15.0, 4 / 15.0,
                                            -4 / 15.0, 5 / 15.0, -5 / 15.0};
  double arc_length_m = 3.0;
  // ENav's. Any is safe: a checker is asked about the whole stretch between two poses. Short ones fail one by one,
  // and long ones cost fewer evaluations.
  double ace_step_m = 0.25;
  double turn_step_rad = 10 * kDeg;
};
inline constexpr double kSameAngle_rad = 1e-9;  // angles closer than this are one
template <>
inline constexpr auto kFields<PathTreeConfig> = std::tuple{
    list("turn_rad", "rad", &PathTreeConfig::turn_rad, &PathTreeConfig::turn_count, "turn_count",
         -kPi - kSameAngle_rad, kPi + kSameAngle_rad, "Turns in place at the start of a path."),
    list("curvature_per_m", "1/m", &PathTreeConfig::curvature_per_m,
         &PathTreeConfig::curvature_count, "curvature_count", -2.0, 2.0,
         "Of the arcs; left positive."),
    number("arc_length_m", "m", &PathTreeConfig::arc_length_m, 0.01, 50.0),
    number("ace_step_m", "m", &PathTreeConfig::ace_step_m, 0.01, 1.0,
           "Length of the stretches of an arc that are checked one by one; divides arc_length_m."),
    number("turn_step_rad", "rad", &PathTreeConfig::turn_step_rad, 1 * kDeg, 45 * kDeg,
           "Largest angle of a turn in place that is checked in one."),
};
Fault validate(const PathTreeConfig& config) noexcept;

// Indices: turn t, first arc a, second arc b; path = (t * A + a) * A + b. Ties go to the smaller index, so
// the sets list the simplest choices first.
class PathTree : NoCopy {
 public:
  static constexpr int kMaxTurnPoses = 1024;  // of both sides together
  // Bytes of an aligned arena; 0 for a configuration that validate() refuses.
  static std::size_t memory_required(const PathTreeConfig& config) noexcept;
  Fault init(const PathTreeConfig& config, double commit_turn_rad, Arena* arena) noexcept;

  int turns() const noexcept { return config_.turn_count; }
  int curvatures() const noexcept { return config_.curvature_count; }
  int poses_per_arc() const noexcept { return poses_per_arc_; }
  int paths() const noexcept { return turns() * curvatures() * curvatures(); }
  int first_arcs() const noexcept { return turns() * curvatures(); }
  // Distinct poses besides the start: of turning in place, and along arcs.
  int turn_poses() const noexcept { return left_count_ + right_count_; }
  int arc_poses() const noexcept { return (first_arcs() + paths()) * poses_per_arc_; }
  int poses() const noexcept { return turn_poses() + arc_poses(); }

  const PathTreeConfig& config() const noexcept { return config_; }

  // Pose ids: [0, turn_poses()) while turning (left ones first, each side by growing angle), then
  // first arcs, then second arcs, `poses_per_arc` each.
  int turn_pose_begin(int turn) const noexcept;  // the first pose on the side of this turn
  int turn_pose_count(int turn) const noexcept;  // how many of them it passes, its end included
  int first_arc_pose(int turn, int arc) const noexcept {
    MLNAV_ASSERT(turn >= 0 && turn < turns() && arc >= 0 && arc < curvatures());
    return turn_poses() + (turn * curvatures() + arc) * poses_per_arc_;
  }
  int second_arc_pose(int path) const noexcept {
    MLNAV_ASSERT(path >= 0 && path < paths());
    return turn_poses() + (first_arcs() + path) * poses_per_arc_;
  }

  // Angle of a turning pose relative to the start heading.
  double turn_pose_angle_rad(int pose_id) const noexcept;

  // Poses along an arc of curvature index `arc` that starts at the origin with heading +x, and the sine and
  // cosine of their headings, so that a cycle needs no trigonometry for them.
  struct ArcPose {
    double x_m, y_m, turned_rad;
    double sin, cos;
  };
  const ArcPose* arc(int arc) const noexcept {
    MLNAV_ASSERT(arc >= 0 && arc < curvatures());
    return arcs_ + arc * poses_per_arc_;
  }

 private:
  PathTreeConfig config_;
  int poses_per_arc_ = 0;
  int left_count_ = 0;
  int right_count_ = 0;
  double* turn_angle_ = nullptr;  // left ascending, then right by growing |angle|
  ArcPose* arcs_ = nullptr;
};

}  // namespace mlnav
