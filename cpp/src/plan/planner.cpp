#include "mlnav/plan/planner.hpp"

namespace mlnav {

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
