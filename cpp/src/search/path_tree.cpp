#include "mlnav/search/path_tree.hpp"

#include <cmath>

namespace mlnav {
namespace {

constexpr int kMaxPosesPerArc = 256;
constexpr int kMaxSidePoses = PathTree::kMaxTurnPoses / 2;

// Poses per arc, or 0 if the step does not divide the arc.
int steps_of(double length_m, double step_m) noexcept {
  const double steps = std::floor(length_m / step_m + 0.5);
  return std::fabs(steps * step_m - length_m) < 1e-9 ? static_cast<int>(steps) : 0;
}

// Every |angle| to check on one side (sign +-1), ascending: multiples of the step up to the widest turn, the
// end of each turn, and the angle to which a turn is committed. Returns their number.
int collect_turn_angles(const PathTreeConfig& config, double commit_turn_rad, double sign,
                        double angles[kMaxSidePoses]) noexcept {
  double widest = 0.0;
  for (int t = 0; t < config.turn_count; ++t) {
    const double angle = sign * config.turn_rad[t];
    if (angle > widest) widest = angle;
  }
  int count = 0;
  const auto add = [&](double angle) {
    if (!(angle > kSameAngle_rad) || angle > widest + kSameAngle_rad) return;
    int at = 0;
    while (at < count && angles[at] < angle - kSameAngle_rad) ++at;
    if (at < count && angles[at] <= angle + kSameAngle_rad) return;
    if (count == kMaxSidePoses) return;
    for (int i = count; i > at; --i) angles[i] = angles[i - 1];
    angles[at] = angle;
    ++count;
  };
  for (int t = 0; t < config.turn_count; ++t) add(sign * config.turn_rad[t]);
  add(commit_turn_rad);
  const int steps = static_cast<int>(widest / config.turn_step_rad);
  for (int i = 1; i <= steps; ++i) add(i * config.turn_step_rad);
  return count;
}

}  // namespace

Fault validate(const PathTreeConfig& config) noexcept {
  const Fault fault = check_fields(config);
  if (!fault.ok()) return fault;
  const int steps = steps_of(config.arc_length_m, config.ace_step_m);
  if (steps < 1 || steps > kMaxPosesPerArc) return {Status::kConfigBad, "ace_step_m"};
  return {};
}

std::size_t PathTree::memory_required(const PathTreeConfig& config) noexcept {
  if (!validate(config).ok()) return 0;
  const std::size_t arcs =
      static_cast<std::size_t>(config.curvature_count) *
      static_cast<std::size_t>(steps_of(config.arc_length_m, config.ace_step_m));
  return Arena::cost<double>(PathTree::kMaxTurnPoses) + Arena::cost<ArcPose>(arcs);
}

Fault PathTree::init(const PathTreeConfig& config, double commit_turn_rad, Arena* arena) noexcept {
  const Fault fault = validate(config);
  if (!fault.ok()) return fault;
  config_ = config;
  poses_per_arc_ = steps_of(config.arc_length_m, config.ace_step_m);
  turn_angle_ = arena->take<double>(PathTree::kMaxTurnPoses);
  arcs_ = arena->take<ArcPose>(static_cast<std::size_t>(config.curvature_count) *
                               static_cast<std::size_t>(poses_per_arc_));
  if (turn_angle_ == nullptr || arcs_ == nullptr) return {Status::kArenaTooSmall, ""};

  left_count_ = collect_turn_angles(config, commit_turn_rad, 1.0, turn_angle_);
  right_count_ = collect_turn_angles(config, commit_turn_rad, -1.0, turn_angle_ + left_count_);
  for (int i = 0; i < right_count_; ++i) {
    turn_angle_[left_count_ + i] = -turn_angle_[left_count_ + i];
  }

  for (int a = 0; a < config.curvature_count; ++a) {
    for (int i = 0; i < poses_per_arc_; ++i) {
      const double s = config.ace_step_m * (i + 1);
      const Pose2 end = along_arc({}, config.curvature_per_m[a], s);
      const SinCos turned = det_sincos(end.heading_rad);
      arcs_[a * poses_per_arc_ + i] = {end.x_m, end.y_m, end.heading_rad, turned.sin, turned.cos};
    }
  }
  return {};
}

int PathTree::turn_pose_begin(int turn) const noexcept {
  MLNAV_ASSERT(turn >= 0 && turn < turns());
  return config_.turn_rad[turn] < 0.0 ? left_count_ : 0;
}

int PathTree::turn_pose_count(int turn) const noexcept {
  const double angle = config_.turn_rad[turn];
  const int begin = turn_pose_begin(turn);
  const int end = angle < 0.0 ? left_count_ + right_count_ : left_count_;
  int count = 0;
  while (begin + count < end &&
         std::fabs(turn_angle_[begin + count]) <= std::fabs(angle) + kSameAngle_rad) {
    ++count;
  }
  return count;
}

double PathTree::turn_pose_angle_rad(int pose_id) const noexcept {
  MLNAV_ASSERT(pose_id >= 0 && pose_id < turn_poses());
  return turn_angle_[pose_id];
}

}  // namespace mlnav
