#include "mlnav/plan/enav.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace mlnav {
namespace {

std::size_t size_of(int n) noexcept { return static_cast<std::size_t>(n); }

// Coarse cells a map of this many cells can have, whatever its shape: ceil(n / k) <= n.
std::size_t max_coarse_cells(const EnavConfig& config) noexcept { return config.max_map_cells; }

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

namespace {

// The scratch of build_costmap depends on the map's shape; the worst shape of a given area is one
// cell wide.
std::size_t max_costmap_scratch(const EnavConfig& config) noexcept {
  const int longest = static_cast<int>(config.max_map_cells);
  return std::max(costmap_scratch_doubles(longest, 1, config.costmap.coarsening),
                  costmap_scratch_doubles(1, longest, config.costmap.coarsening));
}

}  // namespace

std::size_t EnavPlanner::memory_required(const EnavConfig& config) noexcept {
  if (!validate(config).ok()) return 0;
  const PathTreeConfig& tree = config.tree;
  const std::size_t turns = size_of(tree.turn_count);
  const std::size_t arcs = size_of(tree.curvature_count);
  const std::size_t paths = turns * arcs * arcs;
  const std::size_t steps =
      static_cast<std::size_t>(std::floor(tree.arc_length_m / tree.ace_step_m + 0.5));
  const std::size_t poses = PathTree::kMaxTurnPoses + (turns * arcs + paths) * steps;
  const std::size_t coarse = max_coarse_cells(config);
  return Arena::kAlignment + PathTree::memory_required(tree) +
         Arena::cost<Visit>(size_of(config.memory_poses)) +
         Arena::cost<Failure>(size_of(config.memory_failures)) + 6 * Arena::cost<float>(coarse) +
         Arena::cost<std::uint8_t>(coarse) + 2 * Arena::cost<std::int32_t>(coarse) +
         Arena::cost<double>(max_costmap_scratch(config)) +
         Arena::cost<float>(config.max_risk_cells) + Arena::cost<Branch>(turns) +
         Arena::cost<Branch>(turns * arcs) + Arena::cost<float>(paths) +
         Arena::cost<std::int32_t>(paths) + Arena::cost<OpenPose>(PlanResult::kMaxPathPoses) +
         Arena::cost<double>(turns * arcs) + Arena::cost<std::uint8_t>(poses);
}

Fault EnavPlanner::init(const EnavConfig& config, AceChecker* checker, Arena* arena) noexcept {
  checker_ = nullptr;
  const Fault fault = validate(config);
  if (!fault.ok()) return fault;
  if (checker == nullptr) return {Status::kConfigBad, "checker"};
  const Fault tree_fault = tree_.init(config.tree, config.commit_turn_rad, arena);
  if (!tree_fault.ok()) return tree_fault;
  if (1 + tree_.turn_poses() + 2 * tree_.poses_per_arc() > PlanResult::kMaxPathPoses) {
    return {Status::kConfigBad, "ace_step_m"};
  }
  config_ = config;
  const std::size_t coarse = max_coarse_cells(config);
  // A small block may still find room where a large one before it did not: all are looked at.
  bool enough = true;
  const auto take = [arena, &enough](auto** to, std::size_t count) noexcept {
    *to = arena->take<std::remove_reference_t<decltype(**to)>>(count);
    enough &= *to != nullptr;
  };
  take(&visits_, size_of(config.memory_poses));
  take(&failures_, size_of(config.memory_failures));
  take(&costmap_.cost_per_m, coarse);
  take(&costmap_.tilt_rad, coarse);
  take(&costmap_.roughness_m, coarse);
  take(&cost_with_memory_, coarse);
  take(&beside_zone_, coarse);
  take(&extra_to_go_, coarse);
  take(&cost_to_go_, coarse);
  take(&to_go_scratch_.heap, coarse);
  take(&to_go_scratch_.position, coarse);
  take(&scratch_, max_costmap_scratch(config));
  take(&price_, config.max_risk_cells);
  take(&turns_, size_of(tree_.turns()));
  take(&first_ends_, size_of(tree_.first_arcs()));
  take(&path_cost_, size_of(tree_.paths()));
  take(&order_, size_of(tree_.paths()));
  take(&open_, size_of(PlanResult::kMaxPathPoses));
  take(&short_cost_, size_of(tree_.first_arcs()));
  take(&verdict_, size_of(tree_.poses()));
  if (!enough) return {Status::kArenaTooSmall, ""};
  std::memset(verdict_, 0, size_of(tree_.poses()));
  for (int i = 0; i < tree_.paths(); ++i) path_cost_[i] = INFINITY;
  arena_used_ = arena->used_bytes();
  checker_ = checker;
  outline_ = rover_outline(checker->model());
  reset();
  return {};
}

void EnavPlanner::reset() noexcept {
  visit_count_ = 0;
  visit_next_ = 0;
  failure_count_ = 0;
  failure_next_ = 0;
  last_turn_sign_ = 0;
  resolution_m_ = 0.0;
}

Status EnavPlanner::refuse(const PlanRequest& request) const noexcept {
  if (checker_ == nullptr) return Status::kNotInitialized;
  const GridView& map = request.map;
  Status status = validate_geometry(map);
  if (status != Status::kOk) return status;
  if (map.cells() > config_.max_map_cells) return Status::kMapTooLarge;
  if (resolution_m_ != 0.0 && map.resolution_m != resolution_m_) {
    return Status::kMapResolutionChanged;
  }
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
  if (request.risk != nullptr) {
    status = refuse_risk(*request.risk);
    if (status != Status::kOk) return status;
  }
  status = validate(map);
  return status == Status::kOk && guess.z != nullptr ? validate(guess) : status;
}

Status EnavPlanner::refuse_risk(const RiskView& risk) const noexcept {
  const Status status = validate(risk);
  if (status != Status::kOk) return status;
  const std::size_t cells = size_of(risk.nx) * size_of(risk.ny);
  return cells > config_.max_risk_cells / size_of(risk.bins) ? Status::kRiskBadShape : Status::kOk;
}

bool EnavPlanner::at_goal(double x_m, double y_m) const noexcept {
  const double dx = x_m - request_.goal.x_m;
  const double dy = y_m - request_.goal.y_m;
  return dx * dx + dy * dy <= request_.goal_tolerance_m * request_.goal_tolerance_m;
}

Status EnavPlanner::plan(const PlanRequest& request, PlanResult* result) noexcept {
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
  result->status = refuse(request);
  if (result->status != Status::kOk) return result->status;

  request_ = request;
  ++cycle_;
  resolution_m_ = request.map.resolution_m;
  has_risk_ = false;
  budget_spent_ = false;
  Telemetry& telemetry = result->telemetry;
  telemetry.arena_used_bytes = arena_used_;
  telemetry.paths = tree_.paths();
  for (int i = 0; i < tree_.paths(); ++i) path_cost_[i] = INFINITY;
  std::memset(verdict_, kNotEvaluated, size_of(tree_.poses()));

  if (at_goal(request.pose.x_m, request.pose.y_m)) {
    result->outcome = Outcome::kGoalReached;
    return Status::kOk;
  }
  remember(request.pose);

  {
    const StageTimer timer(request.clock, &telemetry.stage_s[kStageAce]);
    result->status = checker_->set_map(request.map);
    if (result->status != Status::kOk) return result->status;
    if (request.ace_budget == 0) {
      result->outcome = Outcome::kBudgetExhausted;
      return Status::kOk;
    }
    Reasons reasons = 0;
    if (touches(request.keep_out, request.map, request.pose, outline_)) {
      reasons = kKeepOutZone;
    } else {
      ++telemetry.ace_evaluations;
      const Stance start{request.pose, request.standing_curvature_per_m};
      if (!checker_->is_safe(start, &reasons) && reasons == 0) reasons = kBadPose;
    }
    if (reasons != 0) {
      for (int bit = 0; bit < kReasonCount; ++bit) telemetry.rejects[bit] += (reasons >> bit) & 1;
      result->start_reasons = reasons;
      result->outcome = Outcome::kStartUnsafe;
      return Status::kOk;
    }
  }
  build_costs(&telemetry);
  if (request.risk != nullptr) use_risk(*request.risk, &telemetry);
  rank(&telemetry);
  choose(result);
  telemetry.overthink = telemetry.ace_evaluations > config_.overthink_evaluations;
  return Status::kOk;
}

// ---- costs ---------------------------------------------------------------------------------------

void EnavPlanner::remember(const Pose2& pose) noexcept {
  if (config_.memory_poses == 0) return;
  visits_[visit_next_] = {pose.x_m, pose.y_m};
  visit_next_ = (visit_next_ + 1) % config_.memory_poses;
  if (visit_count_ < config_.memory_poses) ++visit_count_;
}

// Where the rover has been costs more: dithering in a pocket fills the pocket until leaving is cheaper.
void EnavPlanner::add_visits() noexcept {
  const CoarseGrid& grid = costmap_.grid;
  const double radius = config_.visit_radius_m / grid.resolution_m;
  for (int i = 0; i < visit_count_; ++i) {
    const double cx = (visits_[i].x_m - grid.origin_x_m) / grid.resolution_m;
    const double cy = (visits_[i].y_m - grid.origin_y_m) / grid.resolution_m;
    // Clamped as doubles: the map may have moved far away from an old visit.
    const int x0 = static_cast<int>(std::clamp(std::ceil(cx - radius), 0.0, grid.nx * 1.0));
    const int x1 = static_cast<int>(std::clamp(std::floor(cx + radius), -1.0, grid.nx - 1.0));
    const int y0 = static_cast<int>(std::clamp(std::ceil(cy - radius), 0.0, grid.ny * 1.0));
    const int y1 = static_cast<int>(std::clamp(std::floor(cy + radius), -1.0, grid.ny - 1.0));
    for (int y = y0; y <= y1; ++y) {
      for (int x = x0; x <= x1; ++x) {
        const double dx = x - cx;
        const double dy = y - cy;
        if (dx * dx + dy * dy > radius * radius) continue;
        cost_with_memory_[y * grid.nx + x] += static_cast<float>(config_.visit_cost_per_m);
      }
    }
  }
}

void EnavPlanner::build_costs(Telemetry* telemetry) noexcept {
  const StageTimer timer(request_.clock, &telemetry->stage_s[kStageCostmap]);
  const GridView& heights = request_.cost_map.z != nullptr ? request_.cost_map : request_.map;
  build_costmap(heights, request_.keep_out.cells, config_.costmap, scratch_, &costmap_);
  const int cells = costmap_.grid.cells();
  for (int i = 0; i < cells; ++i) cost_with_memory_[i] = costmap_.cost_per_m[i];
  add_visits();
  add_zone_margin();
}

// Per metre where the rover's origin has no room beside a zone. Cost-to-go then leads round gaps that are too
// narrow. It is not infinite: cells are coarse, and a start, a goal or the only way may lie just beside a zone.
constexpr float kBesideZone_per_m = 20.0F;

void EnavPlanner::add_zone_margin() noexcept {
  const CoarseGrid& grid = costmap_.grid;
  std::memset(beside_zone_, 0, size_of(grid.cells()));
  const KeepOutMask& zones = request_.keep_out;
  if (zones.cells == nullptr) return;
  const int k = config_.costmap.coarsening;
  const double radius = outline_.inscribed_m() / grid.resolution_m;
  const int reach = static_cast<int>(std::min(radius, 1.0 * std::max(grid.nx, grid.ny)));
  int last = -1;  // a coarse cell holds many cells: most of them are done already
  for (int iy = 0; iy < zones.ny; ++iy) {
    const std::uint8_t* const row = zones.cells + size_of(iy) * size_of(zones.nx);
    for (int ix = 0; ix < zones.nx; ++ix) {
      if (row[ix] == 0) continue;
      const int cx = ix / k;
      const int cy = iy / k;
      const int cell = cy * grid.nx + cx;
      constexpr std::uint8_t kSpread = 2;
      if (cell == last || beside_zone_[cell] == kSpread) continue;
      last = cell;
      for (int y = std::max(cy - reach, 0); y <= std::min(cy + reach, grid.ny - 1); ++y) {
        for (int x = std::max(cx - reach, 0); x <= std::min(cx + reach, grid.nx - 1); ++x) {
          const double dx = x - cx;
          const double dy = y - cy;
          std::uint8_t& beside = beside_zone_[y * grid.nx + x];
          if (beside == 0 && dx * dx + dy * dy <= radius * radius) beside = 1;
        }
      }
      beside_zone_[cell] = kSpread;
    }
  }
  for (int i = 0; i < grid.cells(); ++i) {
    if (beside_zone_[i] != 0) cost_with_memory_[i] += kBesideZone_per_m;
  }
}

void EnavPlanner::use_risk(const RiskView& risk, Telemetry* telemetry) noexcept {
  const StageTimer timer(request_.clock, &telemetry->stage_s[kStageRisk]);
  telemetry->risk_used = has_risk_ = true;
  risk_ = risk;
  price_risk(risk_, price_);
  for (int i = 0; i < failure_count_; ++i) {
    const Failure& failure = failures_[i];
    if (failure.only_in == kEver || failure.only_in == cycle_) {
      raise_price(risk_, price_, failure.pose, config_.risk.fail_price);
    }
  }
  coarse_price(risk_, price_, costmap_.grid, extra_to_go_);
  const float weight = static_cast<float>(config_.risk.weight_per_m * config_.risk.to_go_fraction);
  const int cells = costmap_.grid.cells();
  for (int i = 0; i < cells; ++i) extra_to_go_[i] *= weight;
}

// What lies beyond the map is taken to cost what the map costs on average: were it cheaper, the nearest
// way off the map would beat the way to the goal, and the more so the more risk or slope adds inside.
double EnavPlanner::typical_cost_per_m() const noexcept {
  double sum = 0.0;
  int count = 0;
  for (int i = 0; i < costmap_.grid.cells(); ++i) {
    double cost = static_cast<double>(cost_with_memory_[i]);
    if (has_risk_) cost += static_cast<double>(extra_to_go_[i]);
    if (!std::isfinite(cost) || beside_zone_[i] != 0) continue;
    sum += cost;
    ++count;
  }
  return count > 0 ? sum / count : 1.0;
}

// ---- ranking -------------------------------------------------------------------------------------

// Cost per metre at a pose; +inf outside the costmap.
double EnavPlanner::cost_at(double x_m, double y_m, double heading_rad) const noexcept {
  const CoarseGrid& grid = costmap_.grid;
  const double gx = (x_m - grid.origin_x_m) / grid.resolution_m + 0.5;
  const double gy = (y_m - grid.origin_y_m) / grid.resolution_m + 0.5;
  if (!(gx >= 0.0 && gy >= 0.0 && gx < grid.nx && gy < grid.ny)) return INFINITY;
  const int cell = static_cast<int>(gy) * grid.nx + static_cast<int>(gx);
  double cost = static_cast<double>(cost_with_memory_[cell]);
  if (has_risk_) {
    cost += config_.risk.weight_per_m * sample_price(risk_, price_, x_m, y_m, heading_rad);
  }
  return cost;
}

double EnavPlanner::arc_cost(const Branch& from, int arc, bool* reached_goal) const noexcept {
  const PathTree::ArcPose* poses = tree_.arc(arc);
  double sum = 0.0;
  for (int i = 0; i < tree_.poses_per_arc(); ++i) {
    const double x = from.x_m + (from.cos * poses[i].x_m - from.sin * poses[i].y_m);
    const double y = from.y_m + (from.sin * poses[i].x_m + from.cos * poses[i].y_m);
    sum += cost_at(x, y, from.heading_rad + poses[i].turned_rad);
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

double EnavPlanner::turn_cost(int turn) const noexcept {
  const double angle = config_.tree.turn_rad[turn];
  if (angle == 0.0) return 0.0;
  const int sign = angle > 0.0 ? 1 : -1;
  const double flip = sign * last_turn_sign_ < 0 ? config_.flip_cost : 0.0;
  return config_.turn_cost + config_.turn_cost_per_rad * std::fabs(angle) + flip;
}

void EnavPlanner::rank(Telemetry* telemetry) noexcept {
  {
    const StageTimer timer(request_.clock, &telemetry->stage_s[kStageCostToGo]);
    solve_cost_to_go(costmap_.grid, cost_with_memory_, has_risk_ ? extra_to_go_ : nullptr,
                     request_.goal, typical_cost_per_m(), to_go_scratch_, cost_to_go_);
  }
  const StageTimer timer(request_.clock, &telemetry->stage_s[kStageRank]);
  cost_paths(telemetry);
  // A heap: most cycles take only its first few.
  listed_ = telemetry->paths_finite;
  std::make_heap(order_, order_ + listed_,
                 [this](std::int32_t a, std::int32_t b) { return costs_more(a, b); });
  telemetry->paths_tried = 0;
}

bool EnavPlanner::costs_more(int path, int than) const noexcept {
  return path_cost_[path] > path_cost_[than] ||
         (path_cost_[path] == path_cost_[than] && path > than);
}

// Cost of a path whose turn and first arc, ending at `end`, cost `first` and may have reached the goal.
float EnavPlanner::path_cost_from(const Branch& end, int second_arc, double first,
                                  bool reached_goal) const noexcept {
  double cost = first;
  if (!reached_goal && std::isfinite(cost)) {
    bool reached = false;
    cost += arc_cost(end, second_arc, &reached);
    if (!reached && std::isfinite(cost)) {
      const Branch last = branch_end(end, second_arc);
      cost += sample_cost_to_go(costmap_.grid, cost_to_go_, last.x_m, last.y_m);
    }
  }
  return static_cast<float>(cost);
}

void EnavPlanner::cost_paths(Telemetry* telemetry) noexcept {
  const int arcs = tree_.curvatures();
  int ranked = 0;
  for (int t = 0; t < tree_.turns(); ++t) {
    const double turn = config_.tree.turn_rad[t];
    const double heading = request_.pose.heading_rad + turn;
    const SinCos h = det_sincos(heading);
    turns_[t] = {request_.pose.x_m, request_.pose.y_m, heading, h.sin, h.cos};
    for (int a = 0; a < arcs; ++a) {
      bool done = false;
      const double first = turn_cost(t) + arc_cost(turns_[t], a, &done);
      const Branch end = branch_end(turns_[t], a);
      first_ends_[t * arcs + a] = end;
      for (int b = 0; b < arcs; ++b) {
        const int path = (t * arcs + a) * arcs + b;
        path_cost_[path] = path_cost_from(end, b, first, done);
        if (path_cost_[path] < INFINITY) order_[ranked++] = path;
      }
    }
  }
  telemetry->paths_finite = ranked;
}

// ---- ACE -----------------------------------------------------------------------------------------

Pose2 EnavPlanner::pose_of(int pose_id) const noexcept {
  if (pose_id < tree_.turn_poses()) {
    return {request_.pose.x_m, request_.pose.y_m,
            request_.pose.heading_rad + tree_.turn_pose_angle_rad(pose_id)};
  }
  const int steps = tree_.poses_per_arc();
  const int arc_pose = pose_id - tree_.turn_poses();
  int branch = arc_pose / steps;
  const int step = arc_pose % steps;
  const bool second = branch >= tree_.first_arcs();
  if (second) branch -= tree_.first_arcs();
  const int arcs = tree_.curvatures();
  const Branch& from = second ? first_ends_[branch / arcs] : turns_[branch / arcs];
  const PathTree::ArcPose& p = tree_.arc(branch % arcs)[step];
  return {from.x_m + (from.cos * p.x_m - from.sin * p.y_m),
          from.y_m + (from.sin * p.x_m + from.cos * p.y_m), from.heading_rad + p.turned_rad};
}

Stance EnavPlanner::stance_of(int pose_id) const noexcept {
  if (pose_id < tree_.turn_poses()) {
    return {pose_of(pose_id), std::numeric_limits<double>::infinity()};  // turning in place
  }
  const int branch = (pose_id - tree_.turn_poses()) / tree_.poses_per_arc();
  const bool second = branch >= tree_.first_arcs();
  const int arc = (second ? branch - tree_.first_arcs() : branch) % tree_.curvatures();
  return {pose_of(pose_id), config_.tree.curvature_per_m[arc]};
}

int EnavPlanner::path_pose_ids(int path, std::int32_t* ids) const noexcept {
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

bool EnavPlanner::enters_zone(int pose_id) const noexcept {
  if (request_.keep_out.cells == nullptr) return false;
  const Pose2& start = request_.pose;
  if (pose_id < tree_.turn_poses()) {
    const double to = tree_.turn_pose_angle_rad(pose_id);
    const double before = pose_id > 0 ? tree_.turn_pose_angle_rad(pose_id - 1) : 0.0;
    const double from = before * to > 0.0 ? before : 0.0;  // the first on its side: from the start
    return touches(request_.keep_out, request_.map,
                   {start.x_m, start.y_m, start.heading_rad + 0.5 * (from + to)},
                   swept_by_turn(outline_, to - from));
  }
  const int steps = tree_.poses_per_arc();
  int branch = (pose_id - tree_.turn_poses()) / steps;
  const int step = (pose_id - tree_.turn_poses()) % steps;
  const bool second = branch >= tree_.first_arcs();
  if (second) branch -= tree_.first_arcs();
  const int arcs = tree_.curvatures();
  const Branch& from = second ? first_ends_[branch / arcs] : turns_[branch / arcs];
  const double curvature = config_.tree.curvature_per_m[branch % arcs];
  const double length = config_.tree.ace_step_m;
  return touches(
      request_.keep_out, request_.map,
      along_arc(Pose2{from.x_m, from.y_m, from.heading_rad}, curvature, (step + 0.5) * length),
      swept_by_arc(outline_, curvature, length));
}

EnavPlanner::Verdict EnavPlanner::path_verdict(int path) const noexcept {
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = path_pose_ids(path, ids);
  const int needed = needed_poses(path, count);
  bool open = false;
  for (int i = 0; i < count; ++i) {
    if (rules_out(ids[i], i, needed)) return kFailed;
    open |= verdict_[ids[i]] == kNotEvaluated;
  }
  return open ? kNotEvaluated : kPassed;
}

// Arc that has to be seen, in commitments: this one and the next. A rover that saw no more than what it drives
// would drive up against a hole, and find itself unable to leave. With 1 a quarter of traverses with stereo ended so
// (20 of 80), with 2 fewer (6 of 160); 3 takes half as many evaluations again. It counts after a turn too: a rover that turned towards
// ground it cannot enter would turn back, for ever.
constexpr double kSeenCommitments = 2.0;

int EnavPlanner::needed_poses(int path, int count) const noexcept {
  const int turning = tree_.turn_pose_count(path / (tree_.curvatures() * tree_.curvatures()));
  const double steps = kSeenCommitments * config_.commit_length_m / config_.tree.ace_step_m;
  return std::min(count, turning + static_cast<int>(std::floor(steps + 0.5)));
}

int EnavPlanner::committed_poses(int path, const std::int32_t* ids, int count) const noexcept {
  const int turning = tree_.turn_pose_count(path / (tree_.curvatures() * tree_.curvatures()));
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

bool EnavPlanner::pose_passes(int pose_id, Telemetry* telemetry) noexcept {
  if (verdict_[pose_id] != kNotEvaluated) return verdict_[pose_id] == kPassed;
  Reasons reasons = 0;
  if (enters_zone(pose_id)) {
    reasons = kKeepOutZone;
  } else {
    if (request_.ace_budget >= 0 && telemetry->ace_evaluations >= request_.ace_budget) {
      budget_spent_ = true;
      return false;
    }
    ++telemetry->ace_evaluations;
    if (!checker_->is_safe(stance_of(pose_id), &reasons) && reasons == 0)
      reasons = kBadPose;  // never trust silence
  }
  verdict_[pose_id] = reasons == 0 ? kPassed : reasons == kUnknown ? kUnseen : kFailed;
  last_reasons_ = reasons;
  for (int bit = 0; bit < kReasonCount; ++bit) telemetry->rejects[bit] += (reasons >> bit) & 1;
  return reasons == 0;
}

// A pose before the second arc stands in many candidates: its failure is worth more than that of a pose
// in one alone. 4 of the 11 of the usual tree measured best; 1 and 11 cost more evaluations.
constexpr double kSharedFirst = 4.0;

// Order does not affect safety: no pose may rule the path out, and those before the first unseen one have
// passed. Poses beyond that one are asked for as well: a hazard that is known there is a reason to go elsewhere.
bool EnavPlanner::path_passes(int path, Telemetry* telemetry) noexcept {
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = path_pose_ids(path, ids);
  const int needed = needed_poses(path, count);
  for (int i = 0; i < count; ++i) {
    if (rules_out(ids[i], i, needed)) return false;
  }
  const auto stays = [this, telemetry](int id, int place, int least) {
    return pose_passes(id, telemetry) || (verdict_[id] == kUnseen && !rules_out(id, place, least));
  };
  // While a map may still be asked for, what the costmap says is the best guess there is of where the
  // cheapest path fails; the sooner it does, the less was in vain.
  const bool may_ask = request_.risk_source.fill != nullptr && !telemetry->risk_requested;
  if (!config_.riskiest_first || !(has_risk_ || may_ask)) {
    for (int i = 0; i < count; ++i) {
      if (!stays(ids[i], i, needed)) return false;
    }
    return true;
  }
  OpenPose* end = open_;
  for (int i = 0; i < count; ++i) {
    if (verdict_[ids[i]] != kNotEvaluated) continue;
    const Pose2 pose = pose_of(ids[i]);
    const double price = has_risk_
                             ? sample_price(risk_, price_, pose.x_m, pose.y_m, pose.heading_rad)
                             : cost_at(pose.x_m, pose.y_m, pose.heading_rad);
    *end++ = {ids[i] < tree_.second_arc_pose(0) ? kSharedFirst * price : price, ids[i], i};
  }
  // Ids grow along a path.
  const auto later = [](const OpenPose& a, const OpenPose& b) {
    return a.price < b.price || (a.price == b.price && a.id > b.id);
  };
  std::make_heap(open_, end, later);
  while (end != open_) {
    std::pop_heap(open_, end, later);
    --end;
    if (stays(end->id, end->place, needed)) continue;
    if (!budget_spent_) learn_failure(pose_of(end->id));  // else it has no verdict
    return false;
  }
  return true;
}

// One failure says more about the poses beside it than the map did, in the cycles to come as well: the
// ground ahead of the rover is the same. But what failed for want of sight may be seen from elsewhere, and a
// zone's edge says nothing about the ground: those are of this cycle alone.
void EnavPlanner::learn_failure(const Pose2& pose) noexcept {
  if (has_risk_) raise_price(risk_, price_, pose, config_.risk.fail_price);
  if (config_.memory_failures == 0) return;
  constexpr unsigned kNotOfTheGround = kUnknown | kBorder | kKeepOutZone;
  failures_[failure_next_] = {pose, (last_reasons_ & ~kNotOfTheGround) == 0 ? cycle_ : kEver};
  failure_next_ = (failure_next_ + 1) % config_.memory_failures;
  if (failure_count_ < config_.memory_failures) ++failure_count_;
}

// True when there is a map now, and it is priced.
bool EnavPlanner::ask_for_risk(Telemetry* telemetry) noexcept {
  telemetry->risk_requested = true;
  telemetry->evaluations_before_risk = telemetry->ace_evaluations;
  RiskView risk;
  bool filled;
  {
    const StageTimer timer(request_.clock, &telemetry->stage_s[kStageHeuristic]);
    filled = request_.risk_source.fill(request_.risk_source.context, &risk);
  }
  telemetry->risk_refused = !filled || refuse_risk(risk) != Status::kOk;
  if (!telemetry->risk_refused) use_risk(risk, telemetry);
  return !telemetry->risk_refused;
}

void EnavPlanner::choose(PlanResult* result) noexcept {
  Telemetry& telemetry = result->telemetry;
  const bool may_ask = !has_risk_ && request_.risk_source.fill != nullptr;
  if (may_ask) {
    if (search(1, result)) return;
    if (telemetry.paths_tried > 0 && !budget_spent_ && ask_for_risk(&telemetry)) rank(&telemetry);
  }
  if (!budget_spent_) {
    if (search(tree_.paths(), result)) return;
    if (!budget_spent_ && config_.short_paths && search_short(result)) return;
  }
  result->outcome = budget_spent_ ? Outcome::kBudgetExhausted : Outcome::kNoSafePath;
}

// Whether verdicts since the ranking made a path dearer; its cost is the new one then. A path that holds a
// failed pose stays as it is: it is dropped at once.
bool EnavPlanner::grew(int path) noexcept {
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = path_pose_ids(path, ids);
  for (int i = 0; i < count; ++i) {
    if (verdict_[ids[i]] == kFailed) return false;
  }
  const int arcs = tree_.curvatures();
  const int first_arc = path / arcs;
  bool done = false;
  const double first =
      turn_cost(first_arc / arcs) + arc_cost(turns_[first_arc / arcs], first_arc % arcs, &done);
  const float cost = path_cost_from(first_ends_[first_arc], path % arcs, first, done);
  if (!(cost > path_cost_[path])) return false;
  path_cost_[path] = cost;
  return true;
}

bool EnavPlanner::search(int most, PlanResult* result) noexcept {
  Telemetry& telemetry = result->telemetry;
  const StageTimer timer(request_.clock, &telemetry.stage_s[kStageAce]);
  for (; most > 0 && listed_ > 0 && !budget_spent_; --most) {
    std::pop_heap(order_, order_ + listed_,
                  [this](std::int32_t a, std::int32_t b) { return costs_more(a, b); });
    const int path = order_[--listed_];
    if (has_risk_ && config_.risk.fail_price > 0.0 && grew(path)) {
      order_[listed_++] = path;
      std::push_heap(order_, order_ + listed_,
                     [this](std::int32_t a, std::int32_t b) { return costs_more(a, b); });
      ++most;
      continue;
    }
    ++telemetry.paths_tried;
    if (!path_passes(path, &telemetry)) continue;
    telemetry.chosen_rank = telemetry.paths_tried - 1;
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
    if (verdict_[id] == kFailed || verdict_[id] == kUnseen) return false;
    if (verdict_[id] == kNotEvaluated && budget_spent_) return false;
    if (verdict_[id] == kNotEvaluated && start.open_id < 0) start.open_id = id;
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
    driven += config_.tree.ace_step_m * cost_at(pose.x_m, pose.y_m, pose.heading_rad);
    const double cost = driven + sample_cost_to_go(costmap_.grid, cost_to_go_, pose.x_m, pose.y_m);
    // It goes on as long as poses are known to pass; from there on it may end anywhere.
    start.cost = start.open_id < 0 ? cost : std::min(start.cost, cost);
    start.poses = turning + i + 1;
  }
  return std::isfinite(start.cost) ? start : none;
}

// The cheapest start, and of equal ones the first. What can still become the cheapest is asked for, a pose
// at a time; all others are left alone.
bool EnavPlanner::search_short(PlanResult* result) noexcept {
  Telemetry& telemetry = result->telemetry;
  const StageTimer timer(request_.clock, &telemetry.stage_s[kStageAce]);
  double* const end = short_cost_ + tree_.first_arcs();
  for (int i = 0; i < tree_.first_arcs(); ++i) short_cost_[i] = short_start(i).cost;
  for (;;) {
    double* const cheapest = std::min_element(short_cost_, end);
    const int first_arc = static_cast<int>(cheapest - short_cost_);
    const ShortStart start = short_start(first_arc);
    if (start.cost > *cheapest) {
      *cheapest = start.cost;  // verdicts have come in since
      continue;
    }
    if (start.poses < 1) return false;  // there is none, nor a dearer one
    if (start.open_id >= 0) {
      pose_passes(start.open_id, &telemetry);
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
  const int turn = path / (arcs * arcs);
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int whole = path_pose_ids(path, ids);
  const int committed = committed_poses(path, ids, whole);
  int count = 0;
  while (count < std::min(pose_count, whole) && verdict_[ids[count]] == kPassed) ++count;
  result->outcome = Outcome::kPath;
  result->path_index = path;
  result->path_cost = static_cast<double>(path_cost_[path]);
  result->path_pose_count = count + 1;
  result->path[0] = {request_.pose, request_.standing_curvature_per_m, -1};
  for (int i = 0; i < count; ++i) {
    const Stance stance = stance_of(ids[i]);
    result->path[i + 1] = {stance.pose, stance.curvature_per_m, ids[i]};
  }
  result->telemetry.ace_floor = count + 1;

  const int last = std::min(committed, count);
  result->commit_end = result->path[last].pose;
  if (last > 0 && tree_.turn_pose_count(turn) > 0) {
    result->commit.turn_rad = tree_.turn_pose_angle_rad(ids[last - 1]);
    last_turn_sign_ = result->commit.turn_rad > 0.0 ? 1 : -1;
    return;
  }
  result->commit.curvature_per_m = config_.tree.curvature_per_m[path / arcs % arcs];
  result->commit.length_m = last * config_.tree.ace_step_m;
  last_turn_sign_ = 0;
}

}  // namespace mlnav
