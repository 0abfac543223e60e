// What one planning cycle did: counts first, since they are the same on every machine.
#pragma once

#include <cstdint>

#include "mlnav/safety/checker.hpp"

namespace mlnav {

enum Stage : int {
  kStageCostmap,
  kStageHeuristic,  // the source of the risk map, whenever it was asked
  kStageRisk,       // pricing that map
  kStageCostToGo,
  kStageRank,
  kStageAce
};
inline constexpr int kStageCount = 6;
const char* stage_name(int stage) noexcept;

// Monotonic time in seconds, injected by the caller: the core knows no clock. Null: times stay 0.
struct Clock {
  double (*now_s)(void* context) noexcept = nullptr;
  void* context = nullptr;
};

// Adds the time from its construction to its destruction to a stage of the telemetry.
class StageTimer {
 public:
  StageTimer(const Clock& clock, double* total_s) noexcept
      : clock_(clock), total_s_(total_s), start_s_(now()) {}
  ~StageTimer() { *total_s_ += now() - start_s_; }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  double now() const noexcept {
    return clock_.now_s != nullptr ? clock_.now_s(clock_.context) : 0.0;
  }
  Clock clock_;
  double* total_s_;
  double start_s_;
};

struct Telemetry {
  std::int64_t ace_evaluations =
      0;                       // distinct sweeps put through the checker, the start's pose included
  std::int64_t ace_floor = 0;  // those of the accepted path alone, the start's pose included
  CheckWork ace_work;          // what they cost inside the checker
  bool overthink = false;      // ace_evaluations above the configured mark
  std::int64_t work = 0;       // search work, in poses looked at (see the planner's header)
  bool work_exhausted = false;    // the cycle ended on work_budget
  std::int32_t paths = 0;         // candidates
  std::int32_t paths_finite = 0;  // with a finite cost: the length of the ranking
  std::int32_t paths_tried = 0;   // popped from the final ranking (it restarts after re-ranking)
  std::int32_t chosen_rank = -1;  // place of the chosen path in it, 0 the cheapest
  bool risk_asked = false;        // the source was asked, up front or after a failure
  bool risk_requested = false;    // it was asked because the cheapest path had failed
  bool risk_refused = false;      // it had no map to give, or a bad one
  bool risk_used = false;         // a map was priced, given with the request or by the source
  std::int64_t evaluations_before_risk =
      0;  // of ace_evaluations, those made before the source was asked
  std::int64_t rejects[kReasonCount] = {};  // sweeps that were rejected, by reason bit
  double stage_s[kStageCount] = {};
  std::size_t arena_used_bytes = 0;
};

}  // namespace mlnav
