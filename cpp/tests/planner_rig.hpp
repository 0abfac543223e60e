// What planner tests share: a planner with its memory, checkers that count or obey a script, and the
// properties that every returned path must have.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "test_maps.hpp"

namespace mlnav::rig {

inline constexpr std::size_t kMaxCells = 220 * 220;

inline RoverModel enav_like_model() { return {RoverGeometry{}, SafetyLimits::enav_like()}; }

// A real checker with the memory it needs.
class Box {
 public:
  explicit Box(const RoverModel& model = enav_like_model())
      : memory_(FixedBoxChecker::memory_required(kMaxCells)),
        arena_(memory_.data(), memory_.size()) {
    EXPECT_TRUE(checker.init(model, {}, kMaxCells, &arena_).ok());
  }
  FixedBoxChecker checker;

 private:
  maps::Memory memory_;
  Arena arena_;
};

// Records every call, by the pose that the sweep ends in. The verdict comes from `verdict` if set, else from the checker behind.
class SpyChecker final : public AceChecker {
 public:
  using Verdict = std::function<Reasons(const Pose2&)>;
  explicit SpyChecker(AceChecker* behind) : behind_(behind) {}
  explicit SpyChecker(Verdict verdict) : verdict_(std::move(verdict)) {}

  Status set_map(const GridView& map) noexcept override {
    ++maps_set;
    return behind_ != nullptr ? behind_->set_map(map) : Status::kOk;
  }
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override {
    const Pose2 pose = sweep.end().pose;
    if (sweep.resteers) {
      ++resteerings;
    } else {
      poses.push_back(pose);
    }
    bool safe;
    if (behind_ != nullptr) {
      safe = behind_->check(sweep, reasons, work);
    } else {
      *reasons = verdict_(pose);
      safe = *reasons == 0;
    }
    if (!safe) failed.push_back(pose);
    return safe;
  }
  AceReport report(const Sweep& sweep) const noexcept override {
    ++reports;
    if (behind_ != nullptr) return behind_->report(sweep);
    AceReport out;
    out.reasons = verdict_(sweep.end().pose);
    out.safe = out.reasons == 0;
    return out;
  }
  bool sees_steering() const noexcept override {
    return behind_ != nullptr && behind_->sees_steering();
  }
  const RoverModel& model() const noexcept override {
    return behind_ != nullptr ? behind_->model() : model_;
  }

  // Poses looked at more than once since the last clear().
  std::size_t repeated() const {
    std::set<std::tuple<double, double, double>> distinct;
    for (const Pose2& p : poses) distinct.insert({p.x_m, p.y_m, p.heading_rad});
    return poses.size() - distinct.size();
  }
  void clear() {
    poses.clear();
    failed.clear();
    resteerings = 0;
  }

  mutable std::vector<Pose2> poses;
  mutable std::vector<Pose2> failed;  // of these
  mutable int resteerings = 0;        // not among them
  mutable int reports = 0;
  int maps_set = 0;

 private:
  AceChecker* behind_ = nullptr;
  Verdict verdict_;
  RoverModel model_;
};

inline EnavConfig small_config() {
  EnavConfig config;
  config.max_map_cells = kMaxCells;
  config.max_risk_cells = 16 * 100 * 100;
  config.risk_policy.persist_cycles = 0;  // each cycle asks for itself
  return config;
}

class Rig {
 public:
  explicit Rig(AceChecker* behind, const EnavConfig& config = small_config())
      : spy(behind), memory_(EnavPlanner::memory_required(config)) {
    start(config);
  }
  explicit Rig(SpyChecker::Verdict verdict, const EnavConfig& config = small_config())
      : spy(std::move(verdict)), memory_(EnavPlanner::memory_required(config)) {
    start(config);
  }
  Rig(const Rig&) = delete;

  const PlanResult& plan(const PlanRequest& request) {
    spy.clear();
    planner.plan(request, result.get());
    return *result;
  }

  SpyChecker spy;
  EnavPlanner planner;
  std::unique_ptr<PlanResult> result = std::make_unique<PlanResult>();

 private:
  void start(const EnavConfig& config) {
    arena_ = Arena(memory_.data(), memory_.size());
    const Fault fault = planner.init(config, &spy, &arena_);
    EXPECT_TRUE(fault.ok()) << fault.field;
  }
  maps::Memory memory_;
  Arena arena_;
};

// A risk map on demand, or the lack of one, that counts how often it is asked.
struct OnDemand {
  explicit OnDemand(const RiskView& map) : view(map) {}
  RiskSource source() {
    const auto fill = [](void* context, RiskView* risk) noexcept {
      OnDemand& self = *static_cast<OnDemand*>(context);
      ++self.asked;
      if (self.willing) *risk = self.view;
      return self.willing;
    };
    return {fill, this};
  }

  RiskView view;
  bool willing = true;
  int asked = 0;
};

inline PlanRequest request_on(const maps::Terrain& terrain, Pose2 pose, Point2 goal) {
  PlanRequest request;
  request.map = terrain.view();
  request.pose = pose;
  request.goal = goal;
  return request;
}

// A risk map over a whole terrain, from a function of x and y.
struct RiskMap {
  template <typename Risk>
  RiskMap(const maps::Terrain& terrain, Risk risk) {
    const GridView map = terrain.view();
    for (int iy = 0; iy < map.ny; ++iy) {
      for (int ix = 0; ix < map.nx; ++ix) {
        p.push_back(static_cast<float>(risk(map.center_x_m(ix), map.center_y_m(iy))));
      }
    }
    view = {p.data(), 1, map.nx, map.ny, map.origin_x_m, map.origin_y_m, map.resolution_m};
  }
  RiskMap(const RiskMap&) = delete;  // `view` points into `p`
  std::vector<float> p;
  RiskView view;
};

// Ground, a start on it, a goal, and a map that knows no more of it than chance does.
struct Case {
  Case(maps::Random& random, double roughness)
      : terrain(maps::random_terrain(random, 14.0, roughness)),
        map(terrain, [&](double, double) { return random.chance(0.7) ? 0.0 : random.unit(); }),
        request(request_on(terrain,
                           {terrain.center_x_m(), terrain.center_y_m(), random.uniform(-4, 4)},
                           terrain.anywhere(random))) {}
  maps::Terrain terrain;
  RiskMap map;
  PlanRequest request;
};

inline bool within(const Pose2& pose, const PlanRequest& request) {
  return std::hypot(pose.x_m - request.goal.x_m, pose.y_m - request.goal.y_m) <=
         request.goal_tolerance_m;
}

inline bool same_pose(const Pose2& a, const Pose2& b) {
  return a.x_m == b.x_m && a.y_m == b.y_m && a.heading_rad == b.heading_rad;
}

// Whether the rover touches a zone on its way from one pose of a path to the next, or there. Headings as the
// planner counts them, not wrapped.
inline bool kept_out(const PlanRequest& request, const RoverOutline& outline, double ace_step_m,
                     const Pose2& from, const Pose2& to) {
  const double turned = to.heading_rad - from.heading_rad;
  Pose2 middle{from.x_m, from.y_m, from.heading_rad + 0.5 * turned};
  if (from.x_m == to.x_m && from.y_m == to.y_m) {
    return touches(request.keep_out, request.map, middle, swept_by_turn(outline, turned));
  }
  const double curvature = turned / ace_step_m;
  middle = along_arc(from, curvature, 0.5 * ace_step_m);
  return touches(request.keep_out, request.map, middle,
                 swept_by_arc(outline, curvature, ace_step_m));
}

// The most search work that a cycle can take, by the formula in enav.hpp.
inline std::int64_t most_work(const EnavPlanner& planner) {
  const PathTree& tree = planner.tree();
  const std::int64_t turns = tree.turns(), arcs = tree.curvatures(), steps = tree.poses_per_arc();
  const std::int64_t paths = tree.paths(), poses = tree.poses(), first_arcs = tree.first_arcs();
  const std::int64_t length = tree.turn_poses() + 2 * steps;
  return 2 * turns * arcs * (1 + arcs) * steps + (paths + 1) * length +
         paths * (poses + 1) * (length + 2 * steps) + first_arcs * length +
         (poses + first_arcs * length) * (first_arcs + length);
}

// What holds for every result, whatever the request. `judge` is the same kind of checker as the
// planner's, but another one, so that nothing the planner did can have touched it.
inline void expect_result_is_sound(const PlanRequest& request, const PlanResult& result,
                                   const Rig& rig, AceChecker* judge) {
  const EnavConfig& config = rig.planner.config();
  const Telemetry& t = result.telemetry;
  ASSERT_EQ(result.status, Status::kOk) << to_string(result.status);

  // The account of ACE is true: every call counted, none made twice, the budget kept.
  EXPECT_EQ(t.ace_evaluations,
            static_cast<std::int64_t>(rig.spy.poses.size()) + rig.spy.resteerings);
  EXPECT_EQ(rig.spy.repeated(), 0U) << "a pose was evaluated twice in one cycle";
  EXPECT_EQ(rig.spy.reports, 0);
  if (request.ace_budget >= 0) {
    EXPECT_LE(t.ace_evaluations, request.ace_budget);
  }
  EXPECT_EQ(t.overthink, t.ace_evaluations > config.overthink_evaluations);
  EXPECT_EQ(t.paths, rig.planner.tree().paths());
  EXPECT_LE(t.paths_finite, t.paths);
  EXPECT_LE(t.paths_tried, t.paths_finite);
  if (request.work_budget >= 0) {
    EXPECT_LE(t.work, request.work_budget);
  }
  EXPECT_LE(t.work, most_work(rig.planner));
  EXPECT_TRUE(!t.work_exhausted || result.outcome == Outcome::kBudgetExhausted);
  EXPECT_FALSE(t.risk_used && t.risk_refused);
  if (t.risk_requested) {
    EXPECT_TRUE(t.risk_asked);
    EXPECT_NE(t.risk_used, t.risk_refused);
    EXPECT_GE(t.evaluations_before_risk, 1);
    EXPECT_LE(t.evaluations_before_risk, t.ace_evaluations);
  } else {
    EXPECT_EQ(t.evaluations_before_risk, 0);
  }
  if (t.risk_asked) {
    EXPECT_EQ(request.risk, nullptr);
    EXPECT_NE(request.risk_source.fill, nullptr);
  } else {
    EXPECT_FALSE(t.risk_refused);
    EXPECT_TRUE(!t.risk_used || request.risk != nullptr);
  }

  if (result.outcome != Outcome::kPath) {
    EXPECT_FALSE(result.short_path);
    EXPECT_EQ(result.commit.turn_rad, 0.0);
    EXPECT_EQ(result.commit.length_m, 0.0);
    EXPECT_TRUE(same_pose(result.commit_end, request.pose));
    EXPECT_EQ(result.path_pose_count, 0);
    EXPECT_EQ(result.path_index, -1);
    EXPECT_EQ(t.chosen_rank, -1);
    EXPECT_EQ(t.ace_floor, 0);
    return;
  }

  // Every pose passes the checker, and none is kept out.
  const int count = result.path_pose_count;
  ASSERT_GE(count, 2);
  ASSERT_LE(count, PlanResult::kMaxPathPoses);
  ASSERT_EQ(judge->set_map(request.map), Status::kOk);
  const RoverOutline outline = rover_outline(judge->model());
  int resteerings = 0;
  for (int i = 0; i < count; ++i) {
    const PathPose& here = result.path[i];
    Sweep sweep = Stance{here.pose, here.curvature_per_m};
    if (i > 0) {
      sweep = rig.planner.sweep_to(here.pose_id);
      ASSERT_TRUE(same_pose(sweep.begin.pose, result.path[i - 1].pose));
      ASSERT_TRUE(same_pose(sweep.end().pose, here.pose));
      ASSERT_EQ(sweep.begin.curvature_per_m, here.curvature_per_m);
      Sweep resteering;
      const bool resteers = rig.planner.resteers_before(here.pose_id, &resteering);
      ASSERT_EQ(resteers, judge->sees_steering() &&
                              here.curvature_per_m != result.path[i - 1].curvature_per_m);
      if (resteers) {
        ASSERT_TRUE(judge->report(resteering).safe) << "re-steering before " << i;
        ++resteerings;
      }
    }
    const AceReport report = judge->report(sweep);
    ASSERT_TRUE(report.safe) << "sweep " << i << " of " << count << ", reasons " << report.reasons;
    ASSERT_EQ(report.reasons, 0);
    const double step = config.tree.ace_step_m;
    const Pose2& from = result.path[std::max(i - 1, 0)].pose;
    ASSERT_FALSE(i > 0 && kept_out(request, outline, step, from, result.path[i].pose));
  }

  // It starts where the rover is and goes on without a gap: first turning, then along arcs.
  ASSERT_TRUE(same_pose(result.path[0].pose, request.pose));
  double widest_curvature = 0.0;
  for (int i = 0; i < config.tree.curvature_count; ++i) {
    widest_curvature = std::fmax(widest_curvature, std::fabs(config.tree.curvature_per_m[i]));
  }
  bool driving = false;
  for (int i = 1; i < count; ++i) {
    const Pose2& a = result.path[i - 1].pose;
    const Pose2& b = result.path[i].pose;
    const double moved = std::hypot(b.x_m - a.x_m, b.y_m - a.y_m);
    const double turned = std::fabs(b.heading_rad - a.heading_rad);
    if (moved == 0.0) {
      EXPECT_FALSE(driving) << "turns in place after it has driven";
      EXPECT_GT(turned, 0.0);
      EXPECT_LE(turned, config.tree.turn_step_rad + 1e-9);
    } else {
      driving = true;
      EXPECT_LE(moved, config.tree.ace_step_m + 1e-9);
      EXPECT_LE(turned, widest_curvature * config.tree.ace_step_m + 1e-9);
      // It drives the way it points: along the chord, at the mean of both headings.
      const double mean = 0.5 * (a.heading_rad + b.heading_rad);
      EXPECT_NEAR(b.x_m - a.x_m, moved * std::cos(mean), 1e-9);
      EXPECT_NEAR(b.y_m - a.y_m, moved * std::sin(mean), 1e-9);
    }
    // A path that reaches the goal ends there.
    if (i + 1 < count) {
      EXPECT_FALSE(driving && within(b, request)) << "it goes on from the goal";
    }
  }

  // What is committed is a checked pose of this path, and the motion leads there.
  EXPECT_TRUE((result.commit.turn_rad == 0.0) != (result.commit.length_m == 0.0));
  EXPECT_GE(result.commit.length_m, 0.0);
  EXPECT_LE(result.commit.length_m, config.commit_length_m + 1e-12);
  EXPECT_LE(std::fabs(result.commit.turn_rad), config.commit_turn_rad + 1e-8);
  const bool ends_on_path =
      std::any_of(result.path + 1, result.path + count,
                  [&](const PathPose& p) { return same_pose(p.pose, result.commit_end); });
  EXPECT_TRUE(ends_on_path);
  Pose2 end = request.pose;
  end.heading_rad += result.commit.turn_rad;
  end = along_arc(end, result.commit.curvature_per_m, result.commit.length_m);
  EXPECT_NEAR(end.x_m, result.commit_end.x_m, 1e-9);
  EXPECT_NEAR(end.y_m, result.commit_end.y_m, 1e-9);
  EXPECT_NEAR(end.heading_rad, result.commit_end.heading_rad, 1e-9);

  EXPECT_EQ(t.ace_floor, count + resteerings);
  EXPECT_LE(t.ace_floor, t.ace_evaluations);
  EXPECT_TRUE(std::isfinite(result.path_cost));
  if (result.short_path) {
    EXPECT_TRUE(config.short_paths);
    EXPECT_EQ(t.chosen_rank, -1);
    EXPECT_EQ(t.paths_tried, t.paths_finite);
  } else {
    EXPECT_EQ(t.chosen_rank, t.paths_tried - 1);
    EXPECT_EQ(result.path_cost, static_cast<double>(rig.planner.path_cost(result.path_index)));
  }
}

inline void expect_same_bits(const PlanResult& a, const PlanResult& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.outcome, b.outcome);
  EXPECT_EQ(a.start_reasons, b.start_reasons);
  EXPECT_EQ(a.path_index, b.path_index);
  EXPECT_EQ(a.short_path, b.short_path);
  EXPECT_EQ(std::memcmp(&a.path_cost, &b.path_cost, sizeof(double)), 0);
  EXPECT_EQ(std::memcmp(&a.commit, &b.commit, sizeof(Motion)), 0);
  EXPECT_TRUE(same_pose(a.commit_end, b.commit_end));
  ASSERT_EQ(a.path_pose_count, b.path_pose_count);
  for (int i = 0; i < a.path_pose_count; ++i) {
    EXPECT_TRUE(same_pose(a.path[i].pose, b.path[i].pose));
    EXPECT_EQ(a.path[i].pose_id, b.path[i].pose_id);
  }
  EXPECT_EQ(a.telemetry.ace_evaluations, b.telemetry.ace_evaluations);
  EXPECT_EQ(a.telemetry.paths_tried, b.telemetry.paths_tried);
  EXPECT_EQ(a.telemetry.paths_finite, b.telemetry.paths_finite);
  EXPECT_EQ(a.telemetry.chosen_rank, b.telemetry.chosen_rank);
  EXPECT_EQ(std::memcmp(a.telemetry.rejects, b.telemetry.rejects, sizeof a.telemetry.rejects), 0);
}

// ---- the same plan, the slow way ----

// The poses of a path after the start, from its definition.
inline std::vector<Pose2> naive_path(const PlanRequest& request, const EnavConfig& config,
                                     int path) {
  const PathTreeConfig& tree = config.tree;
  const int arcs = tree.curvature_count;
  const double turn = tree.turn_rad[path / (arcs * arcs)];
  std::vector<double> angles;
  const double sign = turn < 0.0 ? -1.0 : 1.0;
  for (int i = 1; i * tree.turn_step_rad <= std::fabs(turn) + 1e-9; ++i) {
    angles.push_back(i * tree.turn_step_rad);
  }
  if (config.commit_turn_rad <= std::fabs(turn) + 1e-9) angles.push_back(config.commit_turn_rad);
  for (int t = 0; t < tree.turn_count; ++t) {
    const double other = sign * tree.turn_rad[t];
    if (other > 0.0 && other <= std::fabs(turn) + 1e-9) angles.push_back(other);
  }
  std::sort(angles.begin(), angles.end());
  std::vector<Pose2> poses;
  double last = 0.0;
  for (const double angle : angles) {
    if (angle < last + 1e-8) continue;
    last = angle;
    poses.push_back({request.pose.x_m, request.pose.y_m, request.pose.heading_rad + sign * angle});
  }
  Pose2 from = request.pose;
  from.heading_rad += turn;
  for (const int arc : {path / arcs % arcs, path % arcs}) {
    const double curvature = tree.curvature_per_m[arc];
    for (int i = 1; i * tree.ace_step_m <= tree.arc_length_m + 1e-9; ++i) {
      poses.push_back(along_arc(from, curvature, i * tree.ace_step_m));
      if (within(poses.back(), request)) return poses;
    }
    from = poses.back();
  }
  return poses;
}

// Price of the risk map at a pose, from its definition.
inline double naive_price(const RiskView& risk, const Pose2& pose) {
  const double gx = std::floor((pose.x_m - risk.origin_x_m) / risk.resolution_m + 0.5);
  const double gy = std::floor((pose.y_m - risk.origin_y_m) / risk.resolution_m + 0.5);
  if (!(gx >= 0 && gy >= 0 && gx < risk.nx && gy < risk.ny)) return 0.0;
  const auto price = [&](int bin) {
    const int cell = static_cast<int>(gy) * risk.nx + static_cast<int>(gx);
    return risk_price(risk.p[bin * risk.nx * risk.ny + cell]);
  };
  double at = std::fmod(pose.heading_rad / (2.0 * kPi) * risk.bins, risk.bins);
  if (at < 0.0) at += risk.bins;
  const int bin = static_cast<int>(at) % risk.bins;
  const double rest = at - std::floor(at);
  return (1.0 - rest) * price(bin) + rest * price((bin + 1) % risk.bins);
}

// A risk map's price, raised around poses that failed.
class LearnedPrice {
 public:
  LearnedPrice(const RiskView& risk, const std::vector<Pose2>& failed, double by)
      : map(static_cast<std::size_t>(risk.bins * risk.nx * risk.ny)), risk_(risk) {
    price_risk(risk, map.data());
    for (const Pose2& pose : failed) raise_price(risk, map.data(), pose, by);
  }
  double operator()(const Pose2& pose) const {
    return sample_price(risk_, map.data(), pose.x_m, pose.y_m, pose.heading_rad);
  }
  std::vector<float> map;

 private:
  RiskView risk_;
};

// Price at a pose. An empty one: of the request's risk map, as it comes.
using Price = std::function<double(const Pose2&)>;

// Dijkstra over what driving costs: the costmap with the memory on it and, of the risk, its share.
// `price` is the whole price map of that risk; nullptr: as it comes.
inline void expect_cost_to_go(const PlanRequest& request, const EnavPlanner& planner,
                              const RiskView* risk_map, const float* price = nullptr) {
  const CoarseGrid& grid = planner.costmap().grid;
  const auto cells = static_cast<std::size_t>(grid.cells());
  std::vector<float> extra(cells, 0.0F);
  std::vector<float> to_go(cells);
  std::vector<std::int32_t> heap(cells);
  std::vector<std::int32_t> position(cells);
  if (risk_map != nullptr) {
    const LearnedPrice unchanged(*risk_map, {}, 0.0);
    coarse_price(*risk_map, price != nullptr ? price : unchanged.map.data(), grid, extra.data());
    const RiskPricing& pricing = planner.config().risk;
    for (float& e : extra) e *= static_cast<float>(pricing.weight_per_m * pricing.to_go_fraction);
  }
  // Beyond the map it goes on at the mean cost of what can be driven inside.
  double sum = 0.0;
  int drivable = 0;
  for (std::size_t i = 0; i < cells; ++i) {
    const double cost = static_cast<double>(planner.cost_with_memory()[i] + extra[i]);
    if (!std::isfinite(cost)) continue;
    sum += cost;
    ++drivable;
  }
  solve_cost_to_go(grid, planner.cost_with_memory(), extra.data(), request.goal, sum / drivable,
                   {heap.data(), position.data()}, to_go.data());
  for (std::size_t i = 0; i < cells; ++i) {
    if (std::isfinite(to_go[i])) {
      ASSERT_NEAR(planner.cost_to_go()[i], to_go[i], 1e-4F * to_go[i]) << i;
    } else {
      ASSERT_EQ(planner.cost_to_go()[i], to_go[i]) << i;
    }
  }
}

// Cost of driving these poses of a path and on to the goal, from the maps the planner shows, by the
// definition in enav.hpp. `last_turn_sign` is that of the commitment before.
inline double naive_cost(const PlanRequest& request, const EnavPlanner& planner, int path,
                         const std::vector<Pose2>& poses, int last_turn_sign,
                         const Price& price = {}) {
  const EnavConfig& config = planner.config();
  const CoarseGrid& grid = planner.costmap().grid;
  const int arcs = config.tree.curvature_count;
  const double turn = config.tree.turn_rad[path / (arcs * arcs)];
  double cost = 0.0;
  if (turn != 0.0) {
    cost += config.turn_cost + config.turn_cost_per_rad * std::fabs(turn);
    if (turn * last_turn_sign < 0.0) cost += config.flip_cost;
  }
  for (const Pose2& pose : poses) {
    if (pose.x_m == request.pose.x_m && pose.y_m == request.pose.y_m) continue;  // turning
    const double gx = std::floor((pose.x_m - grid.origin_x_m) / grid.resolution_m + 0.5);
    const double gy = std::floor((pose.y_m - grid.origin_y_m) / grid.resolution_m + 0.5);
    if (!(gx >= 0 && gy >= 0 && gx < grid.nx && gy < grid.ny)) return INFINITY;
    double per_m = static_cast<double>(
        planner.cost_with_memory()[static_cast<int>(gy) * grid.nx + static_cast<int>(gx)]);
    if (price) {
      per_m += config.risk.weight_per_m * price(pose);
    } else if (request.risk != nullptr) {
      per_m += config.risk.weight_per_m * naive_price(*request.risk, pose);
    }
    cost += per_m * config.tree.ace_step_m;
  }
  if (within(poses.back(), request)) return cost;
  return cost + sample_cost_to_go(grid, planner.cost_to_go(), poses.back().x_m, poses.back().y_m);
}

// What the planner must choose, by trying everything.
struct NaiveChoice {
  int path = -1;
  bool short_path = false;
  std::size_t poses = 0;  // after the start
  double cost = INFINITY;
};

// The first path by (cost, index) all of whose poses pass. Where none does, the cheapest passing start
// of one that has a finite cost: its turn, and as much of its first arc as passes.
inline NaiveChoice naive_choice(const PlanRequest& request, const EnavPlanner& planner,
                                AceChecker* judge, int last_turn_sign, const Price& price = {}) {
  const EnavConfig& config = planner.config();
  EXPECT_EQ(judge->set_map(request.map), Status::kOk);
  const RoverOutline outline = rover_outline(judge->model());
  const auto reasons_at = [&](const std::vector<Pose2>& poses, std::size_t i) {
    const Pose2& from = i == 0 ? request.pose : poses[i - 1];
    const bool turns = from.x_m == poses[i].x_m && from.y_m == poses[i].y_m;
    const double turned = poses[i].heading_rad - from.heading_rad;
    const Sweep sweep = turns ? Sweep{Stance{from, INFINITY}, turned, poses[i]}
                              : Sweep{Stance{from, turned / config.tree.ace_step_m},
                                      config.tree.ace_step_m, poses[i]};
    Reasons reasons = 0;
    if (kept_out(request, outline, config.tree.ace_step_m, from, poses[i])) {
      reasons = kKeepOutZone;
    } else if (!judge->is_safe(sweep, &reasons) && reasons == 0) {
      reasons = kBadPose;
    }
    return reasons;
  };
  // How many poses of a path pass one after the other.
  const auto passing = [&](const std::vector<Pose2>& poses) {
    std::size_t count = 0;
    while (count < poses.size() && reasons_at(poses, count) == 0) ++count;
    return count;
  };
  // Whether each pose passes, or is unseen and beyond turn and commitment.
  const auto whole = [&](const std::vector<Pose2>& poses) {
    const auto turning = std::count_if(poses.begin(), poses.end(), [&](const Pose2& p) {
      return p.x_m == request.pose.x_m && p.y_m == request.pose.y_m;
    });
    const auto needed = static_cast<std::size_t>(
        turning + std::lround(2.0 * config.commit_length_m / config.tree.ace_step_m));
    for (std::size_t i = 0; i < poses.size(); ++i) {
      const Reasons reasons = reasons_at(poses, i);
      if (reasons != 0 && !(reasons == kUnknown && i >= needed)) return false;
    }
    return true;
  };
  std::vector<int> order;
  for (int path = 0; path < planner.tree().paths(); ++path) {
    if (std::isfinite(planner.path_cost(path))) order.push_back(path);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return planner.path_cost(a) < planner.path_cost(b); });
  for (const int path : order) {
    const std::vector<Pose2> poses = naive_path(request, config, path);
    if (whole(poses)) {
      return {path, false, passing(poses), static_cast<double>(planner.path_cost(path))};
    }
  }
  NaiveChoice best;
  if (!config.short_paths) return best;
  const int arcs = config.tree.curvature_count;
  std::sort(order.begin(), order.end());
  int last_first_arc = -1;
  for (const int path : order) {
    if (path / arcs == last_first_arc) continue;
    last_first_arc = path / arcs;
    std::vector<Pose2> poses = naive_path(request, config, path);
    const auto turning = std::count_if(poses.begin(), poses.end(), [&](const Pose2& p) {
      return p.x_m == request.pose.x_m && p.y_m == request.pose.y_m;
    });
    const auto first_arc_end = std::lround(config.tree.arc_length_m / config.tree.ace_step_m);
    const auto failed = static_cast<std::ptrdiff_t>(passing(poses));
    poses.resize(static_cast<std::size_t>(std::min(failed, turning + first_arc_end)));
    if (static_cast<long>(poses.size()) <= turning) continue;
    const double cost = naive_cost(request, planner, path, poses, last_turn_sign, price);
    if (cost < best.cost) best = {path / arcs * arcs, true, poses.size(), cost};
  }
  return best;
}

}  // namespace mlnav::rig
