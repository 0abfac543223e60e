// `enav`: the ENav-like planner (Abcouwer et al. 2021, arXiv 2011.06022: MLNav). Costs -> rank every
// candidate path -> ACE down the list with cached prefixes -> the first path that passes -> commit its first
// metre of arc or its first 30 deg of turn.
//
// A path passes when each of its poses passes, or stands on unknown ground beyond its turn and twice
// commit_length_m. Such a pose is no known hazard, and the rover looks again before it gets there; the
// returned path ends before it. Poses that reach over the map's border fail: nothing more will be seen there.
//
// A risk map enters the costs before the first ranking or, asked for on demand, after the cheapest path has
// failed: then the candidates are ranked anew, and all verdicts so far still hold.
//
// Bounds of a cycle. What depends on the map alone (costmap, cost-to-go, margin of zones, pricing of risk) is
// bounded by max_map_cells, max_risk_cells and the two memories (the margin: each coarse cell of a zone marks
// the coarse cells within the rover's inscribed radius). Checker calls are bounded by
// PlanRequest::ace_budget. The rest, the search, is counted in units of one pose looked at, for its cost or
// for its verdict, and bounded by PlanRequest::work_budget; units are taken before the work is done, so that
// Telemetry::work never exceeds the budget. With T turns, A curvatures, S poses per arc, P = T A A paths of
// at most L poses, it takes
//   T A (1 + A) S  to rank (22,176 by default with S = 12, and 55,440 with 30); at most twice a cycle
//   L              to look at a path for verdicts
//   L + 2 S        to refresh the cost of a path that is popped from the ranking (with a priced map)
//   T A            to look for the cheapest short start, and L to look at one.
// Without a budget: a path is looked at once, and refreshed once more per rejected pose at most; the cheapest
// short start is looked for at most once per pose that is checked and once per pose that a start loses. With
// N poses in the tree that is at most
//   2 T A (1 + A) S + (P + 1) L + P (N + 1) (L + 2 S) + T A L + (N + T A L) (T A + L).
#pragma once

#include "mlnav/ground/features.hpp"
#include "mlnav/plan/planner.hpp"
#include "mlnav/safety/checker.hpp"
#include "mlnav/search/budget.hpp"
#include "mlnav/search/costs.hpp"
#include "mlnav/search/path_tree.hpp"
#include "mlnav/search/risk.hpp"
#include "mlnav/search/risk_schedule.hpp"
#include "mlnav/search/verdicts.hpp"

namespace mlnav {

struct EnavConfig {
  CostmapConfig costmap;
  PathTreeConfig tree;
  RiskPricing risk;
  RiskPolicy risk_policy;
  double turn_cost = 1.0;
  double turn_cost_per_rad = 1.6;
  double commit_length_m = 1.0;
  double commit_turn_rad = 30 * kDeg;
  // The best passing start of a path: its turn and first arc, as far as its poses passed, however short. Costs no
  // evaluation where poses were checked in order. After riskiest_first it checks the poses that the choice depends
  // on; when ace_budget ends it chooses by what is known.
  bool short_paths = true;
  // With a risk map, the poses of a path are checked by falling price; while a map may still be asked for, by
  // falling cost. So a path that fails does so early. The poses that an accepted path needs are the same.
  bool riskiest_first = true;
  // What lies beyond the commitment guides only: it is proven when it is committed itself. Poses are looked at there,
  // where stretches are where the rover drives.
  bool prove_beyond_commitment = true;
  std::int64_t overthink_evaluations = 275;
  // Memory between cycles. Every pose at which a cycle began raises the cost per metre around it, for
  // paths and for cost-to-go alike, so that a pocket fills up until its way out is the cheaper one.
  int memory_poses = 256;
  double visit_cost_per_m = 0.5;
  double visit_radius_m = 0.8;
  double flip_cost = 2.0;
  // Poses on which a path failed under riskiest_first: they raise the price around them in later cycles
  // (RiskPricing::fail_price).
  int memory_failures = 1024;
  std::size_t max_map_cells = 512 * 512;
  std::size_t max_risk_cells = 16 * 160 * 160;
};
template <>
inline constexpr auto kFields<EnavConfig> = std::tuple{
    part("costmap", &EnavConfig::costmap),
    part("tree", &EnavConfig::tree),
    part("risk", &EnavConfig::risk),
    part("risk_policy", &EnavConfig::risk_policy),
    number("turn_cost", "m", &EnavConfig::turn_cost, 0.0, 1e3,
           "Of any turn in place, in metres of flat driving."),
    number("turn_cost_per_rad", "m/rad", &EnavConfig::turn_cost_per_rad, 0.0, 1e3,
           "And per radian."),
    number(
        "commit_length_m", "m", &EnavConfig::commit_length_m, 0.01, 50.0,
        "Arc that is driven before planning again; a multiple of the step between checked poses."),
    number("commit_turn_rad", "rad", &EnavConfig::commit_turn_rad, 1 * kDeg, kPi,
           "Turn that is driven before planning again."),
    flag("short_paths", &EnavConfig::short_paths,
         "When no whole path passes, drive the best start of one that did."),
    flag("riskiest_first", &EnavConfig::riskiest_first,
         "Check a path's poses from the riskiest on where there is a risk map; else from the "
         "start."),
    flag("prove_beyond_commitment", &EnavConfig::prove_beyond_commitment,
         "Put whole stretches of motion through the checker beyond the commitment too, not poses."),
    number("overthink_evaluations", "", &EnavConfig::overthink_evaluations, 1.0, 1e15,
           "A cycle with more ACE evaluations than this is an overthink."),
    number("memory_poses", "", &EnavConfig::memory_poses, 0.0, 1e5,
           "Starts of cycles that are remembered; 0 switches memory off."),
    number("visit_cost_per_m", "1/m", &EnavConfig::visit_cost_per_m, 0.0, 1e3,
           "Per remembered start of a cycle."),
    number("visit_radius_m", "m", &EnavConfig::visit_radius_m, 0.0, 10.0, "Around each of them."),
    number("flip_cost", "m", &EnavConfig::flip_cost, 0.0, 1e3,
           "Of turning against the turn committed just before."),
    number("memory_failures", "", &EnavConfig::memory_failures, 0.0, 1e5,
           "Failed poses that are remembered, to price those around them; 0: none."),
    number("max_map_cells", "cells", &EnavConfig::max_map_cells, 1.0, 1 << 26,
           "Heightmap cells that memory is reserved for."),
    number("max_risk_cells", "cells", &EnavConfig::max_risk_cells, 0.0, 1 << 28,
           "Bins x cells of a risk map that memory is reserved for."),
};
Fault validate(const EnavConfig& config) noexcept;

class EnavPlanner final : public Planner {
 public:
  // Bytes of an arena at any address; 0 for a configuration that validate() refuses.
  static std::size_t memory_required(const EnavConfig& config) noexcept;

  // `checker` is shared with the caller, who keeps it alive; plan() gives it the map of each request.
  Fault init(const EnavConfig& config, AceChecker* checker, Arena* arena) noexcept;

  Status plan(const PlanRequest& request, PlanResult* result) noexcept override;
  void reset() noexcept override;

  const PathTree& tree() const noexcept { return tree_; }
  const EnavConfig& config() const noexcept { return config_; }

  // Of the last cycle, for pictures and tests.
  float path_cost(int path) const noexcept { return path_cost_[path]; }  // +inf: not ranked
  Verdict pose_verdict(int pose_id) const noexcept { return verdicts_.of(pose_id); }
  // Ids of the poses of a path after the start, in order; at most PlanResult::kMaxPathPoses - 1.
  // A path that reaches the goal ends there.
  int path_pose_ids(int path, std::int32_t* ids) const noexcept;
  // kFailed: a pose rules the path out; kPassed: none can any more.
  Verdict path_verdict(int path) const noexcept;
  Pose2 pose_of(int pose_id) const noexcept;
  // The pose and how the wheels are steered on the way through it.
  Stance stance_of(int pose_id) const noexcept;
  // Whether a path through a pose may commit the rover to it.
  bool may_be_committed(int pose_id) const noexcept;
  // The stretch of motion that ends in a pose: what is put through the checker for it, where it may be committed.
  Sweep sweep_to(int pose_id) const noexcept;
  // Whether the wheels are steered anew before that stretch; the checker has to pass that too.
  bool resteers_before(int pose_id, Sweep* resteering) const noexcept;
  const Costmap& costmap() const noexcept { return costs_.costmap(); }
  const float* cost_to_go() const noexcept { return costs_.cost_to_go(); }
  const float* cost_with_memory() const noexcept { return costs_.cost_with_memory(); }

 private:
  // Where an arc of the tree starts.
  struct Branch {
    double x_m, y_m, heading_rad, sin, cos;
  };
  // A pose of an arc: the `step`-th of curvature index `arc` from `from`.
  struct OnArc {
    const Branch* from;
    int arc;
    int step;
  };
  // A pose of the path being checked that has no verdict yet.
  struct OpenPose {
    double suspicion;
    std::int32_t id;
    std::int32_t place;  // poses of the path before it
  };
  // The passing start of a turn and first arc, as far as it is known.
  struct ShortStart {
    double cost;  // a lower bound; exact where no pose is open
    int poses;    // an upper bound; likewise. 0: there is none
    int open_id;  // the first pose without a verdict in it, -1: none
  };

  // ---- the steps of plan() ----
  Status refuse(const PlanRequest& request) const noexcept;
  static void clear(const PlanRequest& request, PlanResult* result) noexcept;
  void begin(const PlanRequest& request) noexcept;
  Status finish(Outcome outcome, PlanResult* result) noexcept;
  // kPath: the rover stands safely; else the outcome of the cycle.
  Outcome check_start(PlanResult* result) noexcept;
  void build_costs() noexcept;
  void use_risk(const RiskView& risk) noexcept;
  // Whether the source can be asked: it was not yet, and there is room for its map.
  bool may_ask() const noexcept;
  // Asks the source; true when it gave a map that can be used.
  bool ask_for_risk(RiskView* risk) noexcept;
  // Cost-to-go, then every candidate's cost, then the list of them.
  void rank() noexcept;
  // Down the list, `most` paths at most; true when one was accepted.
  bool try_paths(int most, PlanResult* result) noexcept;
  bool try_short_starts(PlanResult* result) noexcept;
  // Nothing more can be looked at or checked.
  bool exhausted() const noexcept { return verdicts_.budget_spent() || work_.spent(); }

  // ---- costs of candidates ----
  bool at_goal(double x_m, double y_m) const noexcept;
  double turn_cost(int turn) const noexcept;
  double arc_cost(const Branch& from, int arc, bool* reached_goal) const noexcept;
  Branch branch_end(const Branch& from, int arc) const noexcept;
  // Cost of a path whose turn and first arc, ending at `end`, cost `first` and may have reached the goal.
  float path_cost_from(const Branch& end, int second_arc, double first,
                       bool reached_goal) const noexcept;
  void cost_paths() noexcept;
  // Costs a listed path again; true when it costs more than in the list, and then its cost is the new one.
  bool refresh_cost(int path) noexcept;
  bool costs_more(int path, int than) const noexcept;

  // ---- verdicts of candidates ----
  OnArc on_arc(int pose_id) const noexcept;
  bool first_of_turn(int pose_id) const noexcept;
  // Most poses that a path with this turn has after the start.
  int path_length(int turn) const noexcept {
    return tree_.turn_pose_count(turn) + 2 * tree_.poses_per_arc();
  }
  int turn_of(int path) const noexcept { return path / (tree_.curvatures() * tree_.curvatures()); }
  // Verdict of a pose, from the cache or by the checker; false also when the budget is spent.
  bool pose_passes(int pose_id) noexcept;
  bool path_passes(int path) noexcept;
  // How many of the `count` poses of a path have to pass: its turn and twice commit_length_m after it.
  int needed_poses(int path, int count) const noexcept;
  // How many of them the commitment takes in.
  int committed_poses(int path, const std::int32_t* ids, int count) const noexcept;
  // Whether a pose `place` poses after the start rules out a path whose first `needed` have to pass.
  bool rules_out(int pose_id, int place, int needed) const noexcept {
    const Verdict verdict = verdicts_.of(pose_id);
    return verdict == Verdict::kFailed || (verdict == Verdict::kUnseen && place < needed);
  }
  ShortStart short_start(int first_arc) const noexcept;
  // The first `pose_count` poses of a path become the result, or those before the first unseen one.
  void accept(int path, int pose_count, PlanResult* result) noexcept;

  EnavConfig config_;
  bool ready_ = false;  // init() succeeded
  PathTree tree_;
  Verdicts verdicts_;
  Costs costs_;
  RiskSchedule schedule_;
  std::size_t arena_used_ = 0;

  // Memory between cycles.
  int last_turn_sign_ = 0;  // of the last commitment: +1 left, -1 right, 0 an arc
  double resolution_m_ = 0.0;

  // This cycle.
  PlanRequest request_;
  Telemetry telemetry_;
  Budget work_;
  Branch* turns_ = nullptr;       // after each turn
  Branch* first_ends_ = nullptr;  // after each first arc
  float* path_cost_ = nullptr;
  std::int32_t* order_ = nullptr;  // heap of the paths that are still to be tried
  int listed_ = 0;                 // its size
  OpenPose* open_ = nullptr;
  double* short_cost_ = nullptr;  // of each turn and first arc: a lower bound
};

}  // namespace mlnav
