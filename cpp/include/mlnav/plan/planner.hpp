// The planner's contract: a request in, a result out, once per cycle. Planners are chosen by name and
// given a checker; every pose of a returned path has passed that checker.
//
// Ground that was never seen may be guessed for costs (PlanRequest::cost_map). Checkers never see a guess.
#pragma once

#include <cstdint>

#include "mlnav/ground/grid.hpp"
#include "mlnav/plan/telemetry.hpp"
#include "mlnav/search/keep_out.hpp"
#include "mlnav/search/risk.hpp"

namespace mlnav {

// Where a risk map comes from. The planner asks at most once a cycle, when its RiskPolicy says so, and not
// where its configuration has no room for a map (max_risk_cells 0). True: `risk` is filled in, and its values
// stay as they are until plan() returns. False: there is none. It must not call the planner, nor give its
// checker another map.
struct RiskSource {
  bool (*fill)(void* context, RiskView* risk) noexcept = nullptr;
  void* context = nullptr;
};

struct PlanRequest {
  GridView map;                           // local heightmap around the rover
  GridView cost_map;                      // optional, of the map's frame: heights for costs alone
  Pose2 pose;                             // of the rover, inside the map
  double standing_curvature_per_m = 0.0;  // its wheels stand steered for this (see Stance)
  Point2 goal;                            // inside the map or not
  double goal_tolerance_m = 1.0;
  // A risk map that is already there: recorded, or made for another planner on the same map. It is the
  // caller's input, so a bad one is refused like a bad map (a source's bad map is the heuristic's fault, and
  // planned without).
  const RiskView* risk = nullptr;
  RiskSource risk_source;        // optional heuristic, not asked where `risk` is given
  KeepOutMask keep_out;          // optional, of the map's shape: for the whole outline
  std::int64_t ace_budget = -1;  // checker calls this cycle may spend; negative: unlimited
  // Search work this cycle may spend, in poses looked at (the planner's header has the units); negative:
  // unlimited.
  std::int64_t work_budget = -1;
  Clock clock;
};
// kOk, or why no planner can plan on a request: its map, pose, goal, cost map or zones. `risk` is not looked at, since
// what is wrong with it depends on the planner. O(cells).
Status validate(const PlanRequest& request) noexcept;

enum class Outcome : std::uint8_t {
  kPath,             // commit the returned segment, then call again
  kGoalReached,      // the pose is within tolerance of the goal: nothing to do
  kNoSafePath,       // every candidate failed
  kBudgetExhausted,  // a budget ran out before a candidate passed: stay
  kStartUnsafe,      // the checker rejects the pose the rover is at (telemetry says why)
};
const char* to_string(Outcome outcome) noexcept;

// One straight piece of motion: turn in place, then drive an arc.
struct Motion {
  double turn_rad = 0.0;
  double curvature_per_m = 0.0;
  double length_m = 0.0;
};

struct PathPose {
  Pose2 pose;
  double curvature_per_m = 0.0;  // the wheels are steered for it on the way through (see Stance)
  std::int32_t pose_id = -1;     // of the planner's own numbering
};

struct PlanResult {
  static constexpr int kMaxPathPoses = 1024;
  Status status = Status::kNotInitialized;  // anything but kOk: the request was refused
  Outcome outcome = Outcome::kNoSafePath;
  Reasons start_reasons = 0;  // with kStartUnsafe
  // With kPath: what to execute now. Either turn_rad or length_m is zero.
  Motion commit;
  Pose2 commit_end;
  // The path that begins with the commitment: poses that the checker passed, in order, up to the first one
  // that stands on unknown ground. The rest of the candidate is not certified and not returned.
  std::int32_t path_index = -1;
  bool short_path = false;  // only the start of that candidate passed (see EnavConfig::short_paths)
  double path_cost = 0.0;
  std::int32_t path_pose_count = 0;
  PathPose path[kMaxPathPoses];
  Telemetry telemetry;
};

class Planner : NoCopy {
 public:
  // One cycle. Writes everything of `result`. Allocates nothing, throws nothing.
  virtual Status plan(const PlanRequest& request, PlanResult* result) noexcept = 0;
  // Forgets earlier cycles: a new traverse begins.
  virtual void reset() noexcept = 0;

 protected:
  ~Planner() = default;
};

}  // namespace mlnav
