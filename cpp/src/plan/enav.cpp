#include "mlnav/plan/enav.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mlnav/assert.hpp"

namespace mlnav {
namespace {

std::size_t size_of(int n) noexcept { return static_cast<std::size_t>(n); }

CostsConfig costs_config(const EnavConfig& config) noexcept {
  CostsConfig costs;
  costs.costmap = config.costmap;
  costs.risk = config.risk;
  costs.memory_poses = config.memory_poses;
  costs.visit_cost_per_m = config.visit_cost_per_m;
  costs.visit_radius_m = config.visit_radius_m;
  costs.memory_failures = config.memory_failures;
  costs.max_map_cells = config.max_map_cells;
  costs.max_risk_cells = config.max_risk_cells;
  return costs;
}

}  // namespace

Fault validate(const EnavConfig& config) noexcept {
  const PathTreeConfig& tree = config.tree;
  Fault fault = validate(tree);
  if (!fault.ok()) return fault;
  const Range commit[] = {
      {config.commit_length_m, tree.ace_step_m, tree.arc_length_m, "commit_length_m", "m"}};
  fault = out_of_range(commit);
  if (!fault.ok()) return fault;
  fault = check_fields(config);
  if (!fault.ok()) return fault;
  const double steps = config.commit_length_m / tree.ace_step_m;
  if (!(std::fabs(steps - std::floor(steps + 0.5)) < 1e-9)) {
    return {Status::kConfigBad, "commit_length_m"};
  }
  return {};
}

std::size_t EnavPlanner::memory_required(const EnavConfig& config) noexcept {
  if (!validate(config).ok()) return 0;
  const PathTreeConfig& tree = config.tree;
  const std::size_t turns = size_of(tree.turn_count);
  const std::size_t arcs = size_of(tree.curvature_count);
  const std::size_t paths = turns * arcs * arcs;
  const std::size_t steps =
      static_cast<std::size_t>(std::floor(tree.arc_length_m / tree.ace_step_m + 0.5));
  const std::size_t poses = PathTree::kMaxTurnPoses + (turns * arcs + paths) * steps;
  return Arena::kAlignment + PathTree::memory_required(tree) + Verdicts::memory_required(poses) +
         Costs::memory_required(costs_config(config)) + Arena::cost<Branch>(turns) +
         Arena::cost<Branch>(turns * arcs) + Arena::cost<float>(paths) +
         Arena::cost<std::int32_t>(paths) + Arena::cost<OpenPose>(PlanResult::kMaxPathPoses) +
         Arena::cost<double>(turns * arcs);
}

Fault EnavPlanner::init(const EnavConfig& config, AceChecker* checker, Arena* arena) noexcept {
  ready_ = false;
  const Fault fault = validate(config);
  if (!fault.ok()) return fault;
  if (checker == nullptr) return {Status::kConfigBad, "checker"};
  const Fault tree_fault = tree_.init(config.tree, config.commit_turn_rad, arena);
  if (!tree_fault.ok()) return tree_fault;
  if (1 + tree_.turn_poses() + 2 * tree_.poses_per_arc() > PlanResult::kMaxPathPoses) {
    return {Status::kConfigBad, "ace_step_m"};
  }
  config_ = config;
  bool enough = verdicts_.init(size_of(tree_.poses()), checker, arena) == Status::kOk;
  enough &= costs_.init(costs_config(config), checker->model(), arena) == Status::kOk;
  enough &= arena->take(size_of(tree_.turns()), &turns_);
  enough &= arena->take(size_of(tree_.first_arcs()), &first_ends_);
  enough &= arena->take(size_of(tree_.paths()), &path_cost_);
  enough &= arena->take(size_of(tree_.paths()), &order_);
  enough &= arena->take(size_of(PlanResult::kMaxPathPoses), &open_);
  enough &= arena->take(size_of(tree_.first_arcs()), &short_cost_);
  if (!enough) return {Status::kArenaTooSmall, ""};
  std::fill_n(path_cost_, tree_.paths(), INFINITY);
  schedule_.init(config.risk_policy);
  arena_used_ = arena->used_bytes();
  reset();
  ready_ = true;
  return {};
}

void EnavPlanner::reset() noexcept {
  costs_.reset();
  schedule_.reset();
  last_turn_sign_ = 0;
  resolution_m_ = 0.0;
}

// ---- one cycle -----------------------------------------------------------------------------------

Status EnavPlanner::plan(const PlanRequest& request, PlanResult* result) noexcept {
  // 1. Refuse a request that cannot be planned on; earlier cycles stay as they are.
  clear(request, result);
  result->status = refuse(request);
  if (result->status != Status::kOk) return result->status;
  begin(request);

  // 2. At the goal there is nothing to do.
  if (at_goal(request.pose.x_m, request.pose.y_m)) return finish(Outcome::kGoalReached, result);

  // 3. Take the risk map that is given, or ask the heuristic for one where the schedule says so.
  RiskView risk;
  bool has_map = request.risk != nullptr;
  if (has_map) risk = *request.risk;
  if (!has_map && schedule_.up_front() && may_ask()) has_map = ask_for_risk(&risk);

  // 4. ACE where the rover stands.
  const Outcome standing = check_start(result);
  if (standing != Outcome::kPath) return finish(standing, result);

  // 5. Costs: terrain, visited poses, zones; then the price of the risk.
  build_costs();
  if (has_map) use_risk(risk);

  // 6. Cost of every candidate path, and the list of them, the cheapest first.
  rank();

  // 7. A heuristic on demand: ACE on the cheapest path; where it fails, ask for a map and rank again.
  if (!costs_.has_risk() && may_ask()) {
    if (try_paths(1, result)) return finish(Outcome::kPath, result);
    telemetry_.risk_requested = telemetry_.paths_tried > 0 && !exhausted();
    if (telemetry_.risk_requested && ask_for_risk(&risk)) {
      use_risk(risk);
      rank();
    }
  }

  // 8. ACE down the list: the first path that passes is the answer.
  if (try_paths(tree_.paths(), result)) return finish(Outcome::kPath, result);

  // 9. None passes: the cheapest start of one that does.
  if (config_.short_paths && try_short_starts(result)) return finish(Outcome::kPath, result);
  return finish(exhausted() ? Outcome::kBudgetExhausted : Outcome::kNoSafePath, result);
}

void EnavPlanner::clear(const PlanRequest& request, PlanResult* result) noexcept {
  // Field by field: the pose list is large and needs no clearing.
  result->outcome = Outcome::kNoSafePath;
  result->start_reasons = 0;
  result->commit = Motion{};
  result->commit_end = request.pose;
  result->path_index = -1;
  result->short_path = false;
  result->path_cost = 0.0;
  result->path_pose_count = 0;
  result->telemetry = Telemetry{};
}

Status EnavPlanner::refuse(const PlanRequest& request) const noexcept {
  if (!ready_) return Status::kNotInitialized;
  const GridView& map = request.map;
  Status status = validate_geometry(map);
  if (status != Status::kOk) return status;
  if (map.cells() > config_.max_map_cells) return Status::kMapTooLarge;
  if (resolution_m_ != 0.0 && map.resolution_m != resolution_m_) {
    return Status::kMapResolutionChanged;
  }
  status = validate(request);
  return status == Status::kOk && request.risk != nullptr ? costs_.check(*request.risk) : status;
}

void EnavPlanner::begin(const PlanRequest& request) noexcept {
  request_ = request;
  resolution_m_ = request.map.resolution_m;
  telemetry_ = Telemetry{};
  telemetry_.arena_used_bytes = arena_used_;
  telemetry_.paths = tree_.paths();
  work_.begin(request.work_budget);
  verdicts_.begin(request.map, request.keep_out, request.ace_budget);
  costs_.begin();
  listed_ = 0;
  std::fill_n(path_cost_, tree_.paths(), INFINITY);
}

Status EnavPlanner::finish(Outcome outcome, PlanResult* result) noexcept {
  result->outcome = outcome;
  telemetry_.ace_evaluations = verdicts_.evaluations();
  telemetry_.ace_work = verdicts_.work();
  telemetry_.overthink = telemetry_.ace_evaluations > config_.overthink_evaluations;
  telemetry_.work = work_.used();
  telemetry_.work_exhausted = work_.spent();
  std::copy_n(verdicts_.rejects(), kReasonCount, telemetry_.rejects);
  result->telemetry = telemetry_;
  MLNAV_ASSERT(telemetry_.ace_floor <= telemetry_.ace_evaluations);
  MLNAV_ASSERT(telemetry_.paths_tried <= telemetry_.paths_finite);
  MLNAV_ASSERT(request_.ace_budget < 0 || telemetry_.ace_evaluations <= request_.ace_budget);
  MLNAV_ASSERT(request_.work_budget < 0 || telemetry_.work <= request_.work_budget);
  schedule_.end_cycle(telemetry_.risk_used &&
                      (telemetry_.risk_requested || telemetry_.paths_tried > 1));
  return result->status;
}

bool EnavPlanner::at_goal(double x_m, double y_m) const noexcept {
  const double dx = x_m - request_.goal.x_m;
  const double dy = y_m - request_.goal.y_m;
  return dx * dx + dy * dy <= request_.goal_tolerance_m * request_.goal_tolerance_m;
}

Outcome EnavPlanner::check_start(PlanResult* result) noexcept {
  costs_.add_visit(request_.pose);
  const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageAce]);
  result->status = verdicts_.set_map();
  if (result->status != Status::kOk) return Outcome::kNoSafePath;
  if (request_.ace_budget == 0) return Outcome::kBudgetExhausted;
  result->start_reasons =
      verdicts_.check_start(Stance{request_.pose, request_.standing_curvature_per_m});
  return result->start_reasons == 0 ? Outcome::kPath : Outcome::kStartUnsafe;
}

void EnavPlanner::build_costs() noexcept {
  const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageCostmap]);
  costs_.build(request_.cost_map.z != nullptr ? request_.cost_map : request_.map,
               request_.keep_out);
}

bool EnavPlanner::may_ask() const noexcept {
  return request_.risk_source.fill != nullptr && config_.max_risk_cells > 0 &&
         !telemetry_.risk_asked;
}

bool EnavPlanner::ask_for_risk(RiskView* risk) noexcept {
  telemetry_.risk_asked = true;
  telemetry_.evaluations_before_risk = verdicts_.evaluations();
  bool filled;
  {
    const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageHeuristic]);
    filled = request_.risk_source.fill(request_.risk_source.context, risk);
  }
  telemetry_.risk_refused = !filled || costs_.check(*risk) != Status::kOk;
  return !telemetry_.risk_refused;
}

void EnavPlanner::use_risk(const RiskView& risk) noexcept {
  const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageRisk]);
  telemetry_.risk_used = true;
  costs_.use_risk(risk);
}

// ---- ranking -------------------------------------------------------------------------------------

void EnavPlanner::rank() noexcept {
  {
    const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageCostToGo]);
    costs_.solve(request_.goal);
  }
  const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageRank]);
  cost_paths();
  // A heap: most cycles take only its first few.
  std::make_heap(order_, order_ + listed_,
                 [this](std::int32_t a, std::int32_t b) { return costs_more(a, b); });
  telemetry_.paths_finite = listed_;
  telemetry_.paths_tried = 0;
}

bool EnavPlanner::costs_more(int path, int than) const noexcept {
  return path_cost_[path] > path_cost_[than] ||
         (path_cost_[path] == path_cost_[than] && path > than);
}

void EnavPlanner::cost_paths() noexcept {
  const int arcs = tree_.curvatures();
  listed_ = 0;
  for (int t = 0; t < tree_.turns(); ++t) {
    const double heading = request_.pose.heading_rad + config_.tree.turn_rad[t];
    const SinCos h = det_sincos(heading);
    turns_[t] = {request_.pose.x_m, request_.pose.y_m, heading, h.sin, h.cos};
    for (int a = 0; a < arcs; ++a) {
      if (!work_.spend(std::int64_t{1 + arcs} * tree_.poses_per_arc())) return;
      bool reached_goal = false;
      const double first = turn_cost(t) + arc_cost(turns_[t], a, &reached_goal);
      const Branch end = branch_end(turns_[t], a);
      first_ends_[t * arcs + a] = end;
      for (int b = 0; b < arcs; ++b) {
        const int path = (t * arcs + a) * arcs + b;
        path_cost_[path] = path_cost_from(end, b, first, reached_goal);
        if (path_cost_[path] < INFINITY) order_[listed_++] = path;
      }
    }
  }
}

double EnavPlanner::turn_cost(int turn) const noexcept {
  const double angle = config_.tree.turn_rad[turn];
  if (angle == 0.0) return 0.0;
  const int sign = angle > 0.0 ? 1 : -1;
  const double flip = sign * last_turn_sign_ < 0 ? config_.flip_cost : 0.0;
  return config_.turn_cost + config_.turn_cost_per_rad * std::fabs(angle) + flip;
}

double EnavPlanner::arc_cost(const Branch& from, int arc, bool* reached_goal) const noexcept {
  const PathTree::ArcPose* poses = tree_.arc(arc);
  double sum = 0.0;
  for (int i = 0; i < tree_.poses_per_arc(); ++i) {
    const double x = from.x_m + (from.cos * poses[i].x_m - from.sin * poses[i].y_m);
    const double y = from.y_m + (from.sin * poses[i].x_m + from.cos * poses[i].y_m);
    sum += costs_.at(x, y, from.heading_rad + poses[i].turned_rad);
    if (at_goal(x, y)) {
      *reached_goal = true;
      break;
    }
  }
  return sum * config_.tree.ace_step_m;
}

EnavPlanner::Branch EnavPlanner::branch_end(const Branch& from, int arc) const noexcept {
  const PathTree::ArcPose& p = tree_.arc(arc)[tree_.poses_per_arc() - 1];
  return {from.x_m + (from.cos * p.x_m - from.sin * p.y_m),
          from.y_m + (from.sin * p.x_m + from.cos * p.y_m), from.heading_rad + p.turned_rad,
          from.sin * p.cos + from.cos * p.sin, from.cos * p.cos - from.sin * p.sin};
}

float EnavPlanner::path_cost_from(const Branch& end, int second_arc, double first,
                                  bool reached_goal) const noexcept {
  double cost = first;
  if (!reached_goal && std::isfinite(cost)) {
    bool reached = false;
    cost += arc_cost(end, second_arc, &reached);
    if (!reached && std::isfinite(cost)) {
      const Branch last = branch_end(end, second_arc);
      cost += costs_.to_go(last.x_m, last.y_m);
    }
  }
  return static_cast<float>(cost);
}

// Failures since the ranking may have raised the price along the path. A path that holds a failed pose stays
// as it is: it is dropped at once.
bool EnavPlanner::refresh_cost(int path) noexcept {
  if (!work_.spend(path_length(turn_of(path)) + 2 * tree_.poses_per_arc())) return false;
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = path_pose_ids(path, ids);
  for (int i = 0; i < count; ++i) {
    if (verdicts_.of(ids[i]) == Verdict::kFailed) return false;
  }
  const int arcs = tree_.curvatures();
  const int first_arc = path / arcs;
  bool reached_goal = false;
  const double first = turn_cost(first_arc / arcs) +
                       arc_cost(turns_[first_arc / arcs], first_arc % arcs, &reached_goal);
  const float cost = path_cost_from(first_ends_[first_arc], path % arcs, first, reached_goal);
  if (!(cost > path_cost_[path])) return false;
  path_cost_[path] = cost;
  return true;
}

// ---- poses of candidates -------------------------------------------------------------------------

EnavPlanner::OnArc EnavPlanner::on_arc(int pose_id) const noexcept {
  MLNAV_ASSERT(pose_id >= tree_.turn_poses() && pose_id < tree_.poses());
  const int steps = tree_.poses_per_arc();
  const int arcs = tree_.curvatures();
  const int arc_pose = pose_id - tree_.turn_poses();
  int branch = arc_pose / steps;
  const bool second = branch >= tree_.first_arcs();
  if (second) branch -= tree_.first_arcs();
  const Branch* const from = second ? first_ends_ : turns_;
  return {from + branch / arcs, branch % arcs, arc_pose % steps};
}

Pose2 EnavPlanner::pose_of(int pose_id) const noexcept {
  if (pose_id < tree_.turn_poses()) {
    return {request_.pose.x_m, request_.pose.y_m,
            request_.pose.heading_rad + tree_.turn_pose_angle_rad(pose_id)};
  }
  const OnArc at = on_arc(pose_id);
  const Branch& from = *at.from;
  const PathTree::ArcPose& p = tree_.arc(at.arc)[at.step];
  return {from.x_m + (from.cos * p.x_m - from.sin * p.y_m),
          from.y_m + (from.sin * p.x_m + from.cos * p.y_m), from.heading_rad + p.turned_rad};
}

Stance EnavPlanner::stance_of(int pose_id) const noexcept {
  if (pose_id < tree_.turn_poses()) {
    return Stance{pose_of(pose_id), std::numeric_limits<double>::infinity()};  // turning in place
  }
  return Stance{pose_of(pose_id), config_.tree.curvature_per_m[on_arc(pose_id).arc]};
}

Sweep EnavPlanner::sweep_to(int pose_id) const noexcept {
  const double in_place = std::numeric_limits<double>::infinity();
  if (pose_id < tree_.turn_poses()) {
    const double to = tree_.turn_pose_angle_rad(pose_id);
    const double from = first_of_turn(pose_id) ? 0.0 : tree_.turn_pose_angle_rad(pose_id - 1);
    Pose2 begin = request_.pose;
    begin.heading_rad += from;
    return {Stance{begin, in_place}, to - from, pose_of(pose_id)};
  }
  const OnArc at = on_arc(pose_id);
  const Pose2 begin =
      at.step > 0 ? pose_of(pose_id - 1) : Pose2{at.from->x_m, at.from->y_m, at.from->heading_rad};
  return {Stance{begin, config_.tree.curvature_per_m[at.arc]}, config_.tree.ace_step_m,
          pose_of(pose_id)};
}

// The wheels turn where a turn or an arc begins.
bool EnavPlanner::resteers_before(int pose_id, Sweep* resteering) const noexcept {
  if (!verdicts_.checker().sees_steering()) return false;
  double before = request_.standing_curvature_per_m;
  if (pose_id < tree_.turn_poses()) {
    if (!first_of_turn(pose_id)) return false;
  } else {
    const OnArc at = on_arc(pose_id);
    if (at.step > 0) return false;
    const int branch =
        static_cast<int>(at.from - (pose_id < tree_.second_arc_pose(0) ? turns_ : first_ends_));
    if (pose_id >= tree_.second_arc_pose(0)) {
      before = config_.tree.curvature_per_m[branch % tree_.curvatures()];
    } else if (config_.tree.turn_rad[branch] != 0.0) {
      before = std::numeric_limits<double>::infinity();
    }
  }
  const Stance begin = sweep_to(pose_id).begin;
  const bool both_in_place = std::isinf(before) && std::isinf(begin.curvature_per_m);
  if (both_in_place || before == begin.curvature_per_m) return false;
  *resteering = Sweep::resteer(begin, before);
  return true;
}

bool EnavPlanner::may_be_committed(int pose_id) const noexcept {
  if (pose_id < tree_.turn_poses()) {
    const double angle = std::fabs(tree_.turn_pose_angle_rad(pose_id));
    return angle <= config_.commit_turn_rad + kSameAngle_rad || first_of_turn(pose_id);
  }
  if (pose_id >= tree_.second_arc_pose(0)) return false;
  const OnArc at = on_arc(pose_id);
  const double reach_m = (at.step + 1) * config_.tree.ace_step_m;
  return config_.tree.turn_rad[at.from - turns_] == 0.0 &&
         reach_m <= config_.commit_length_m + 1e-9;
}

bool EnavPlanner::first_of_turn(int pose_id) const noexcept {
  return pose_id == 0 ||
         tree_.turn_pose_angle_rad(pose_id - 1) * tree_.turn_pose_angle_rad(pose_id) < 0.0;
}

int EnavPlanner::path_pose_ids(int path, std::int32_t* ids) const noexcept {
  MLNAV_ASSERT(path >= 0 && path < tree_.paths());
  const int arcs = tree_.curvatures();
  const int first_arc = path / arcs;
  const int turn = first_arc / arcs;
  int count = 0;
  for (int i = 0; i < tree_.turn_pose_count(turn); ++i) {
    ids[count++] = tree_.turn_pose_begin(turn) + i;
  }
  const int begins[2] = {tree_.first_arc_pose(turn, first_arc % arcs), tree_.second_arc_pose(path)};
  for (const int begin : begins) {
    for (int i = 0; i < tree_.poses_per_arc(); ++i) {
      ids[count++] = begin + i;
      const Pose2 pose = pose_of(begin + i);
      if (at_goal(pose.x_m, pose.y_m)) return count;
    }
  }
  return count;
}

Verdict EnavPlanner::path_verdict(int path) const noexcept {
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = path_pose_ids(path, ids);
  const int needed = needed_poses(path, count);
  bool open = false;
  for (int i = 0; i < count; ++i) {
    if (rules_out(ids[i], i, needed)) return Verdict::kFailed;
    open |= verdicts_.of(ids[i]) == Verdict::kNotEvaluated;
  }
  return open ? Verdict::kNotEvaluated : Verdict::kPassed;
}

// Length of arc that has to be seen, in commitments: this one and the next. A rover that had seen no more
// than it drives would drive up to a hole and be unable to leave. With 1, a quarter of the traverses with
// stereo ended so (20 of 80); with 2, fewer (6 of 160); 3 takes half as many evaluations again. It counts
// after a turn too: a rover that turned towards ground it cannot enter would turn back, for ever.
constexpr double kSeenCommitments = 2.0;

int EnavPlanner::needed_poses(int path, int count) const noexcept {
  const int turning = tree_.turn_pose_count(turn_of(path));
  const double steps = kSeenCommitments * config_.commit_length_m / config_.tree.ace_step_m;
  return std::min(count, turning + static_cast<int>(std::floor(steps + 0.5)));
}

int EnavPlanner::committed_poses(int path, const std::int32_t* ids, int count) const noexcept {
  const int turning = tree_.turn_pose_count(turn_of(path));
  if (turning == 0) {
    const double steps = config_.commit_length_m / config_.tree.ace_step_m;
    return std::min(count, static_cast<int>(std::floor(steps + 0.5)));
  }
  // Up to the last checked pose that is not beyond the commitment: the turn's end, or commit_turn_rad.
  int committed = 1;
  for (int i = 0; i < turning; ++i) {
    if (std::fabs(tree_.turn_pose_angle_rad(ids[i])) <= config_.commit_turn_rad + 1e-9) {
      committed = i + 1;
    }
  }
  return committed;
}

// ---- ACE -----------------------------------------------------------------------------------------

bool EnavPlanner::pose_passes(int pose_id) noexcept {
  Verdict verdict = verdicts_.of(pose_id);
  if (verdict == Verdict::kNotEvaluated) {
    const Sweep sweep = sweep_to(pose_id);
    Sweep resteering;
    if (!config_.prove_beyond_commitment && !may_be_committed(pose_id)) {
      verdict = verdicts_.evaluate(pose_id, sweep, nullptr, sweep.end());
    } else {
      const bool resteers = resteers_before(pose_id, &resteering);
      verdict = verdicts_.evaluate(pose_id, sweep, resteers ? &resteering : nullptr, sweep);
    }
  }
  return verdict == Verdict::kPassed;
}

// A pose before the second arc is part of many candidates: its failure is worth more than that of a pose in
// one alone. 4, of the 11 of the usual tree, measured best; 1 and 11 cost more evaluations.
constexpr double kSharedFirst = 4.0;

// Order does not affect safety: no pose may rule the path out, and those before the first unseen one have
// passed. Poses beyond that one are checked as well: a known hazard there is a reason to go elsewhere.
bool EnavPlanner::path_passes(int path) noexcept {
  if (!work_.spend(path_length(turn_of(path)))) return false;
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = path_pose_ids(path, ids);
  const int needed = needed_poses(path, count);
  for (int i = 0; i < count; ++i) {
    if (rules_out(ids[i], i, needed)) return false;
  }
  const auto stays = [this](int id, int place, int least) {
    return pose_passes(id) ||
           (verdicts_.of(id) == Verdict::kUnseen && !rules_out(id, place, least));
  };
  // While a map may still be asked for, the costmap is the best guess of where the cheapest path fails; the
  // sooner it does, the fewer evaluations were in vain.
  if (!config_.riskiest_first || !(costs_.has_risk() || may_ask())) {
    for (int i = 0; i < count; ++i) {
      if (!stays(ids[i], i, needed)) return false;
    }
    return true;
  }
  OpenPose* end = open_;
  for (int i = 0; i < count; ++i) {
    if (verdicts_.of(ids[i]) != Verdict::kNotEvaluated) continue;
    const double suspicion = costs_.suspicion(pose_of(ids[i]));
    const bool shared = ids[i] < tree_.second_arc_pose(0);
    *end++ = {shared ? kSharedFirst * suspicion : suspicion, ids[i], i};
  }
  // Ids grow along a path.
  const auto later = [](const OpenPose& a, const OpenPose& b) {
    return a.suspicion < b.suspicion || (a.suspicion == b.suspicion && a.id > b.id);
  };
  std::make_heap(open_, end, later);
  while (end != open_) {
    std::pop_heap(open_, end, later);
    --end;
    MLNAV_ASSERT(end == open_ || !later(*end, *open_));
    if (stays(end->id, end->place, needed)) continue;
    // Without a verdict the budget is spent, and nothing was learnt.
    if (!verdicts_.budget_spent()) costs_.add_failure(pose_of(end->id), verdicts_.last_reasons());
    return false;
  }
  return true;
}

bool EnavPlanner::try_paths(int most, PlanResult* result) noexcept {
  const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageAce]);
  const auto later = [this](std::int32_t a, std::int32_t b) { return costs_more(a, b); };
  for (; most > 0 && listed_ > 0 && !exhausted(); --most) {
    std::pop_heap(order_, order_ + listed_, later);
    const int path = order_[--listed_];
    MLNAV_ASSERT(listed_ == 0 || !costs_more(path, order_[0]));
    if (costs_.has_risk() && config_.risk.fail_price > 0.0 && refresh_cost(path)) {
      order_[listed_++] = path;
      std::push_heap(order_, order_ + listed_, later);
      ++most;
      continue;
    }
    ++telemetry_.paths_tried;
    if (!path_passes(path)) continue;
    telemetry_.chosen_rank = telemetry_.paths_tried - 1;
    accept(path, PlanResult::kMaxPathPoses, result);
    return true;
  }
  return false;
}

// A pose without a verdict may pass or fail, until the budget is spent: then it is as good as failed.
EnavPlanner::ShortStart EnavPlanner::short_start(int first_arc) const noexcept {
  const int arcs = tree_.curvatures();
  const int turn = first_arc / arcs;
  const int turning = tree_.turn_pose_count(turn);
  const ShortStart none{INFINITY, 0, -1};
  ShortStart start = none;
  const float* costs = path_cost_ + first_arc * arcs;
  if (!std::any_of(costs, costs + arcs, [](float cost) { return cost < INFINITY; })) return none;
  const auto may_pass = [this, &start](int id) {
    const Verdict verdict = verdicts_.of(id);
    if (verdict == Verdict::kFailed || verdict == Verdict::kUnseen) return false;
    if (verdict == Verdict::kNotEvaluated && verdicts_.budget_spent()) return false;
    if (verdict == Verdict::kNotEvaluated && start.open_id < 0) start.open_id = id;
    return true;
  };
  for (int i = 0; i < turning; ++i) {
    if (!may_pass(tree_.turn_pose_begin(turn) + i)) return none;
  }
  double driven = turn_cost(turn);
  for (int i = 0; i < tree_.poses_per_arc(); ++i) {
    const int id = tree_.first_arc_pose(turn, first_arc % arcs) + i;
    if (!may_pass(id)) break;
    const Pose2 pose = pose_of(id);
    driven += config_.tree.ace_step_m * costs_.at(pose.x_m, pose.y_m, pose.heading_rad);
    const double cost = driven + costs_.to_go(pose.x_m, pose.y_m);
    // It goes on as long as poses are known to pass; from there on it may end anywhere.
    start.cost = start.open_id < 0 ? cost : std::min(start.cost, cost);
    start.poses = turning + i + 1;
  }
  return std::isfinite(start.cost) ? start : none;
}

// The cheapest start, and of equal ones the first. Only a start that can still be the cheapest has its poses
// checked, one at a time; all others are left alone.
bool EnavPlanner::try_short_starts(PlanResult* result) noexcept {
  if (exhausted()) return false;
  const StageTimer timer(request_.clock, &telemetry_.stage_s[kStageAce]);
  const int starts = tree_.first_arcs();
  for (int i = 0; i < starts; ++i) {
    if (!work_.spend(path_length(i / tree_.curvatures()))) return false;
    short_cost_[i] = short_start(i).cost;
  }
  for (;;) {
    double* const cheapest = std::min_element(short_cost_, short_cost_ + starts);
    const int first_arc = static_cast<int>(cheapest - short_cost_);
    if (!work_.spend(starts + path_length(first_arc / tree_.curvatures()))) return false;
    const ShortStart start = short_start(first_arc);
    MLNAV_ASSERT(start.cost >= *cheapest);
    if (start.cost > *cheapest) {
      *cheapest = start.cost;  // poses have failed since
      continue;
    }
    if (start.poses < 1) return false;  // there is none: all costs are infinite
    if (start.open_id >= 0) {
      pose_passes(start.open_id);
      continue;
    }
    accept(first_arc * tree_.curvatures(), start.poses, result);
    result->path_cost = start.cost;
    result->short_path = true;
    return true;
  }
}

void EnavPlanner::accept(int path, int pose_count, PlanResult* result) noexcept {
  const int arcs = tree_.curvatures();
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int whole = path_pose_ids(path, ids);
  const int committed = committed_poses(path, ids, whole);
  int count = 0;
  while (count < std::min(pose_count, whole) && verdicts_.of(ids[count]) == Verdict::kPassed) {
    ++count;
  }
  MLNAV_ASSERT(count > 0);
  result->path_index = path;
  result->path_cost = static_cast<double>(path_cost_[path]);
  result->path_pose_count = count + 1;
  result->path[0] = {request_.pose, request_.standing_curvature_per_m, -1};
  telemetry_.ace_floor = count + 1;
  for (int i = 0; i < count; ++i) {
    const Stance stance = stance_of(ids[i]);
    result->path[i + 1] = {stance.pose, stance.curvature_per_m, ids[i]};
    Sweep resteering;
    const bool proven = config_.prove_beyond_commitment || may_be_committed(ids[i]);
    if (proven && resteers_before(ids[i], &resteering)) ++telemetry_.ace_floor;
  }

  const int last = std::min(committed, count);
  result->commit_end = result->path[last].pose;
  if (last > 0 && tree_.turn_pose_count(turn_of(path)) > 0) {
    result->commit.turn_rad = tree_.turn_pose_angle_rad(ids[last - 1]);
    last_turn_sign_ = result->commit.turn_rad > 0.0 ? 1 : -1;
    return;
  }
  result->commit.curvature_per_m = config_.tree.curvature_per_m[path / arcs % arcs];
  result->commit.length_m = last * config_.tree.ace_step_m;
  last_turn_sign_ = 0;
}

}  // namespace mlnav
