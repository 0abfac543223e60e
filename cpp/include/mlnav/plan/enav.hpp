// `enav`: the ENav-like planner. costs -> rank every candidate -> ACE down the list with cached
// prefixes -> the first path that passes -> commit its first metre of arc or its first 30 deg of turn.
//
// A path passes when each of its poses does, or stands on unknown ground beyond its turn and twice commit_length_m.
// Such a pose is no known hazard, and the rover looks again before it gets there; the returned path ends before it.
// Poses that reach over the map's border fail: nothing more will be seen there.
//
// A risk map enters the costs before the first ranking or, from a source that is asked on demand, once the
// cheapest path has failed: then the candidates are ranked anew, and all verdicts so far still hold.
#pragma once

#include "mlnav/ground/features.hpp"
#include "mlnav/plan/planner.hpp"
#include "mlnav/safety/checker.hpp"
#include "mlnav/search/cost_to_go.hpp"
#include "mlnav/search/path_tree.hpp"
#include "mlnav/search/risk.hpp"

namespace mlnav {

struct EnavConfig {
  CostmapConfig costmap;
  PathTreeConfig tree;
  RiskPricing risk;
  double turn_cost = 1.0;          // of any turn in place, in metres of flat driving
  double turn_cost_per_rad = 1.6;  // and per radian
  double commit_length_m = 1.0;    // a multiple of ace_step_m, at most one arc
  double commit_turn_rad = 30 * kDeg;
  // When no whole path passes, the best passing start of one may still be driven: turn and first arc, as
  // far as its poses passed, however short. Costs no evaluation where poses were looked at in order; after
  // riskiest_first it asks for those that the choice hangs on, or chooses by what is known when the budget
  // ends.
  bool short_paths = true;
  // With a risk map, the poses of a path are put through the checker by falling price, and while one may
  // still be asked for by falling cost, so that a path that fails does so early; the set that an accepted
  // path needs is the same.
  bool riskiest_first = true;
  std::int64_t overthink_evaluations = 275;
  // Memory between cycles. Every pose at which a cycle began raises the cost per metre around it, for
  // paths and for cost-to-go alike, so that a pocket fills up until its way out is the cheaper one.
  int memory_poses = 256;         // remembered (ring); 0 switches memory off
  double visit_cost_per_m = 0.5;  // per remembered visit
  double visit_radius_m = 0.8;
  double flip_cost = 2.0;  // turning against the turn committed just before
  // Poses on which a path failed riskiest_first: they raise the price around them in later cycles
  // (RiskPricing::fail_price).
  int memory_failures = 1024;  // remembered (ring); 0: none
  // Sizes that memory is reserved for.
  std::size_t max_map_cells = 512 * 512;
  std::size_t max_risk_cells = 16 * 160 * 160;  // bins x cells
};
template <>
inline constexpr auto kFields<EnavConfig> = std::tuple{
    part("costmap", &EnavConfig::costmap),
    part("tree", &EnavConfig::tree),
    part("risk", &EnavConfig::risk),
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

  // Inspection of the last cycle, for pictures and tests.
  float path_cost(int path) const noexcept { return path_cost_[path]; }  // +inf: not ranked
  // kUnseen: failed, and for unknown ground alone.
  enum Verdict : std::uint8_t { kNotEvaluated, kPassed, kFailed, kUnseen };
  Verdict pose_verdict(int pose_id) const noexcept {
    return static_cast<Verdict>(verdict_[pose_id]);
  }
  // Ids of the poses of a path after the start, in order; at most PlanResult::kMaxPathPoses - 1.
  // A path that reaches the goal ends there.
  int path_pose_ids(int path, std::int32_t* ids) const noexcept;
  // kFailed: some pose rules the path out; kPassed: none can any more.
  Verdict path_verdict(int path) const noexcept;
  Pose2 pose_of(int pose_id) const noexcept;
  // The pose and how the wheels are steered on the way through it.
  Stance stance_of(int pose_id) const noexcept;
  const Costmap& costmap() const noexcept { return costmap_; }
  const float* cost_to_go() const noexcept { return cost_to_go_; }
  const float* cost_with_memory() const noexcept { return cost_with_memory_; }

 private:
  // Where a branch of the tree starts.
  struct Branch {
    double x_m, y_m, heading_rad, sin, cos;
  };
  // A pose at which an earlier cycle began.
  struct Visit {
    double x_m, y_m;
  };
  // A pose that failed.
  struct Failure {
    Pose2 pose;
    std::uint64_t only_in;  // the cycle that it counts in, or kEver
  };
  static constexpr std::uint64_t kEver = 0;
  // A pose of the path in hand that has no verdict yet.
  struct OpenPose {
    double price;
    std::int32_t id;
    std::int32_t place;  // poses of the path before it
  };
  // The passing start of a turn and first arc, as far as it is known.
  struct ShortStart {
    double cost;  // at least; exactly, where nothing is open
    int poses;    // at most; likewise. 0: there is none
    int open_id;  // the first pose on which it hangs, -1: none
  };

  Status refuse(const PlanRequest& request) const noexcept;
  Status refuse_risk(const RiskView& risk) const noexcept;
  void remember(const Pose2& pose) noexcept;
  void add_visits() noexcept;
  void build_costs(Telemetry* telemetry) noexcept;
  void use_risk(const RiskView& risk, Telemetry* telemetry) noexcept;
  void add_zone_margin() noexcept;
  // Whether the outline touches a zone on the way to a pose from the one before it, or there.
  bool enters_zone(int pose_id) const noexcept;
  double typical_cost_per_m() const noexcept;
  // Cost-to-go, then every candidate's cost, then the list of them.
  void rank(Telemetry* telemetry) noexcept;
  void cost_paths(Telemetry* telemetry) noexcept;
  float path_cost_from(const Branch& end, int second_arc, double first,
                       bool reached_goal) const noexcept;
  bool grew(int path) noexcept;
  bool costs_more(int path, int than) const noexcept;
  double arc_cost(const Branch& from, int arc, bool* reached_goal) const noexcept;
  double cost_at(double x_m, double y_m, double heading_rad) const noexcept;
  Branch branch_end(const Branch& from, int arc) const noexcept;
  bool at_goal(double x_m, double y_m) const noexcept;
  // Verdict of a pose, from the cache or by the checker; false also when the budget is spent.
  bool pose_passes(int pose_id, Telemetry* telemetry) noexcept;
  bool path_passes(int path, Telemetry* telemetry) noexcept;
  // How many of the `count` poses of a path have to pass: its turn and the first commit_length_m after it.
  int needed_poses(int path, int count) const noexcept;
  // How many of them the commitment takes in.
  int committed_poses(int path, const std::int32_t* ids, int count) const noexcept;
  // Whether a pose `place` poses after the start rules out a path whose first `needed` have to pass.
  bool rules_out(int pose_id, int place, int needed) const noexcept {
    return verdict_[pose_id] == kFailed || (verdict_[pose_id] == kUnseen && place < needed);
  }
  void learn_failure(const Pose2& pose) noexcept;
  bool ask_for_risk(Telemetry* telemetry) noexcept;
  void choose(PlanResult* result) noexcept;
  // Down the list, `most` paths at most; true when one was accepted.
  bool search(int most, PlanResult* result) noexcept;
  ShortStart short_start(int first_arc) const noexcept;
  bool search_short(PlanResult* result) noexcept;
  double turn_cost(int turn) const noexcept;
  // The first `pose_count` poses of a path become the result, or those before the first unseen one.
  void accept(int path, int pose_count, PlanResult* result) noexcept;

  EnavConfig config_;
  AceChecker* checker_ = nullptr;
  RoverOutline outline_;
  PathTree tree_;
  std::size_t arena_used_ = 0;

  // Memory between cycles.
  Visit* visits_ = nullptr;
  int visit_count_ = 0;
  int visit_next_ = 0;
  Failure* failures_ = nullptr;
  int failure_count_ = 0;
  int failure_next_ = 0;
  std::uint64_t cycle_ = kEver;
  int last_turn_sign_ = 0;  // of the last commitment: +1 left, -1 right, 0 an arc
  double resolution_m_ = 0.0;

  // This cycle.
  PlanRequest request_;
  RiskView risk_;
  bool has_risk_ = false;
  bool budget_spent_ = false;
  Reasons last_reasons_ = 0;  // of the pose that was asked about last
  Costmap costmap_{};
  double* scratch_ = nullptr;
  float* cost_with_memory_ = nullptr;
  std::uint8_t* beside_zone_ = nullptr;  // coarse cells that the rover's origin cannot be in
  float* extra_to_go_ = nullptr;
  float* cost_to_go_ = nullptr;
  CostToGoScratch to_go_scratch_;
  float* price_ = nullptr;
  Branch* turns_ = nullptr;       // after each turn
  Branch* first_ends_ = nullptr;  // after each first arc
  float* path_cost_ = nullptr;
  std::int32_t* order_ = nullptr;  // heap of what is left of the ranked list
  int listed_ = 0;
  OpenPose* open_ = nullptr;
  double* short_cost_ = nullptr;  // of each turn and first arc, at least
  std::uint8_t* verdict_ = nullptr;
};

}  // namespace mlnav
