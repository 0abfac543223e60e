#include "mlnav/plan/planner.hpp"

#include <cmath>

namespace mlnav {

Status validate(const PlanRequest& request) noexcept {
  const GridView& map = request.map;
  Status status = validate_geometry(map);
  if (status != Status::kOk) return status;
  const Pose2& pose = request.pose;
  if (!std::isfinite(pose.x_m) || !std::isfinite(pose.y_m) || !std::isfinite(pose.heading_rad) ||
      std::isnan(request.standing_curvature_per_m)) {
    return Status::kPoseNotFinite;
  }
  if (std::fabs(pose.heading_rad) > kMaxHeading_rad) return Status::kPoseHeadingTooLarge;
  CellIndex cell;
  if (!cell_of(map, pose.x_m, pose.y_m, &cell)) return Status::kPoseOutsideMap;
  if (!std::isfinite(request.goal.x_m) || !std::isfinite(request.goal.y_m)) {
    return Status::kGoalNotFinite;
  }
  if (!(request.goal_tolerance_m > 0.0 && std::isfinite(request.goal_tolerance_m))) {
    return Status::kGoalToleranceBad;
  }
  const GridView& guess = request.cost_map;
  if (guess.z != nullptr &&
      (guess.nx != map.nx || guess.ny != map.ny || guess.resolution_m != map.resolution_m ||
       guess.origin_x_m != map.origin_x_m || guess.origin_y_m != map.origin_y_m)) {
    return Status::kCostMapBadShape;
  }
  const KeepOutMask& zones = request.keep_out;
  if (zones.cells != nullptr && (zones.nx != map.nx || zones.ny != map.ny)) {
    return Status::kKeepOutBadShape;
  }
  status = validate(map);
  return status == Status::kOk && guess.z != nullptr ? validate(guess) : status;
}

const char* to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kPath:
      return "path";
    case Outcome::kGoalReached:
      return "goal_reached";
    case Outcome::kNoSafePath:
      return "no_safe_path";
    case Outcome::kBudgetExhausted:
      return "budget_exhausted";
    case Outcome::kStartUnsafe:
      return "start_unsafe";
  }
  return "";
}

const char* stage_name(int stage) noexcept {
  static constexpr const char* kNames[kStageCount] = {"costmap",    "heuristic", "risk",
                                                      "cost_to_go", "rank",      "ace"};
  return stage >= 0 && stage < kStageCount ? kNames[stage] : "";
}

}  // namespace mlnav
