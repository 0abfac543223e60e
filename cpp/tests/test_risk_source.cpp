// Risk on demand, and the order in which poses are put through the checker once there is a risk map.
// That no pose leaves the planner unchecked, whatever the map says, is in test_planner.cpp, for maps on
// demand as well.
#include <limits>

#include "planner_rig.hpp"

namespace mlnav {
namespace {

using maps::Random;
using maps::Terrain;
using rig::Box;
using rig::Case;
using rig::expect_result_is_sound;
using rig::expect_same_bits;
using rig::OnDemand;
using rig::request_on;
using rig::Rig;
using rig::RiskMap;

// Price of each pose of a list, as the planner reads it.
std::vector<double> prices(const RiskView& risk, const std::vector<Pose2>& poses) {
  std::vector<float> price(static_cast<std::size_t>(risk.bins * risk.nx * risk.ny));
  price_risk(risk, price.data());
  std::vector<double> out;
  for (const Pose2& pose : poses) {
    out.push_back(sample_price(risk, price.data(), pose.x_m, pose.y_m, pose.heading_rad));
  }
  return out;
}

// Failures teach nothing here: what they do is in test_risk_failures.cpp.
EnavConfig config_with(bool riskiest_first) {
  EnavConfig config = rig::small_config();
  config.riskiest_first = riskiest_first;
  config.risk.fail_price = 0.0;
  config.memory_failures = 0;
  return config;
}

// What decides when a pose is asked for, the highest first: price, or cost. One that many candidates share
// counts four times (kSharedFirst in enav.cpp).
double rank_of(double price, bool shared) { return shared ? 4.0 * price : price; }

void expect_same_choice(const PlanResult& result, const PlanResult& expected) {
  EXPECT_EQ(result.outcome, expected.outcome);
  EXPECT_EQ(result.path_index, expected.path_index);
  EXPECT_EQ(result.short_path, expected.short_path);
  EXPECT_EQ(result.path_cost, expected.path_cost);
  EXPECT_EQ(result.path_pose_count, expected.path_pose_count);
  EXPECT_TRUE(rig::same_pose(result.commit_end, expected.commit_end));
  EXPECT_EQ(result.telemetry.chosen_rank, expected.telemetry.chosen_rank);
  EXPECT_EQ(result.telemetry.ace_floor, expected.telemetry.ace_floor);
}

// ---- when the source is asked --------------------------------------------------------------------

// Once, when the cheapest path has failed, and never else. Where it has no map to give, or a bad one, the
// cycle is the baseline's: to the last bit when poses are asked for along the path, and else but for what
// the cheapest path was asked for.
TEST(RiskSource, IsAskedOnceWhenTheCheapestPathFailed) {
  Random random(301);
  int asked = 0;
  int left_alone = 0;
  for (int n = 0; n < 60; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.7 * random.unit());
    Box box;
    Rig baseline(&box.checker);
    const PlanResult expected = baseline.plan(c.request);
    const std::vector<Pose2> poses = baseline.spy.poses;
    const bool first_failed = expected.telemetry.paths_tried > 1 || expected.short_path;
    for (const int trial : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
      const int kind = trial % 6;
      const bool along = trial < 6;
      OnDemand on_demand(c.map.view);
      RiskView& view = on_demand.view;
      if (kind == 0) on_demand.willing = false;
      if (kind == 1) view.p = nullptr;
      if (kind == 2) view.nx = -view.nx;
      if (kind == 3) view.resolution_m = std::numeric_limits<double>::quiet_NaN();
      if (kind == 4) view.origin_y_m = std::numeric_limits<double>::infinity();
      if (kind == 5) view.bins = 16 * 100 * 100 / (view.nx * view.ny) + 1;  // too many cells
      PlanRequest request = c.request;
      request.risk_source = on_demand.source();
      Rig rig(&box.checker, along ? config_with(false) : rig::small_config());
      const PlanResult& result = rig.plan(request);
      expect_result_is_sound(request, result, rig, &box.checker);
      EXPECT_EQ(on_demand.asked, first_failed ? 1 : 0);
      EXPECT_EQ(result.telemetry.risk_requested, first_failed);
      EXPECT_EQ(result.telemetry.risk_refused, first_failed);
      EXPECT_FALSE(result.telemetry.risk_used);
      asked += on_demand.asked;
      if (!along) {
        expect_same_choice(result, expected);
        EXPECT_EQ(result.telemetry.paths_tried, expected.telemetry.paths_tried);
        continue;
      }
      expect_same_bits(result, expected);
      ASSERT_EQ(rig.spy.poses.size(), poses.size());
      for (std::size_t i = 0; i < poses.size(); ++i) {
        EXPECT_TRUE(rig::same_pose(rig.spy.poses[i], poses[i]));
      }
      left_alone += expected.outcome == Outcome::kPath ? 1 - on_demand.asked : 0;
    }
  }
  EXPECT_GT(asked, 60);
  EXPECT_GT(left_alone, 60);
}

TEST(RiskSource, IsNotAskedWhereItWouldNotHelp) {
  const Terrain flat(120, 120, 0.2);
  const RiskMap map(flat, [](double, double) { return 0.3; });
  const Pose2 start{12.0, 12.0, 0.0};
  const auto nothing_but_the_start = [&](const Pose2& pose) -> Reasons {
    return rig::same_pose(pose, start) ? 0 : kBogie;
  };
  const auto asked = [&](PlanRequest request, Outcome outcome,
                         const rig::SpyChecker::Verdict& verdict) {
    OnDemand on_demand(map.view);
    request.risk_source = on_demand.source();
    Rig rig(verdict);
    EXPECT_EQ(rig.plan(request).outcome, outcome);
    return on_demand.asked;
  };
  const PlanRequest request = request_on(flat, start, {20.0, 12.0});
  EXPECT_EQ(asked(request, Outcome::kNoSafePath, nothing_but_the_start), 1);

  PlanRequest given = request;
  given.risk = &map.view;
  EXPECT_EQ(asked(given, Outcome::kNoSafePath, nothing_but_the_start), 0);
  PlanRequest poor = request;
  poor.ace_budget = 5;  // gone within the cheapest path
  EXPECT_EQ(asked(poor, Outcome::kBudgetExhausted, [](const Pose2&) { return Reasons{0}; }), 0);
  PlanRequest there = request;
  there.goal = {12.5, 12.0};
  EXPECT_EQ(asked(there, Outcome::kGoalReached, nothing_but_the_start), 0);
  EXPECT_EQ(asked(request, Outcome::kStartUnsafe, [](const Pose2&) { return Reasons{kTilt}; }), 0);
  // No candidate stays on the map: there is no cheapest path.
  const Terrain tiny(10, 10, 0.2);
  EXPECT_EQ(asked(request_on(tiny, {0.9, 0.9, 0.0}, {20.0, 1.0}), Outcome::kNoSafePath,
                  [](const Pose2&) { return Reasons{0}; }),
            0);
}

// Once it is there it ranks as if it had been there from the start, and what the checker said before
// still holds.
TEST(RiskSource, ChoosesWhatTheSameMapGivenUpFrontChooses) {
  Random random(302);
  int used = 0;
  int shortened = 0;
  for (int n = 0; n < 80; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.5 + 0.5 * random.unit());
    Box box;
    const EnavConfig config = config_with(n % 2 == 0);
    Rig baseline(&box.checker, config);
    baseline.plan(c.request);
    OnDemand source(c.map.view);
    PlanRequest on_demand = c.request;
    on_demand.risk_source = source.source();
    Rig late(&box.checker, config);
    const PlanResult& result = late.plan(on_demand);
    expect_result_is_sound(on_demand, result, late, &box.checker);
    const Telemetry& t = result.telemetry;
    if (!t.risk_used) continue;
    ++used;
    // Up to the question it is the baseline's cycle, but for the order along the cheapest path.
    const bool along = !config.riskiest_first;
    if (along) {
      ASSERT_LE(t.evaluations_before_risk, static_cast<std::int64_t>(baseline.spy.poses.size()));
    }
    for (std::size_t i = 0; along && i < static_cast<std::size_t>(t.evaluations_before_risk); ++i) {
      EXPECT_TRUE(rig::same_pose(late.spy.poses[i], baseline.spy.poses[i]));
    }
    PlanRequest up_front = c.request;
    up_front.risk = &c.map.view;
    Rig early(&box.checker, config);
    const PlanResult& expected = early.plan(up_front);
    expect_result_is_sound(up_front, expected, early, &box.checker);
    EXPECT_TRUE(expected.telemetry.risk_used);
    EXPECT_FALSE(expected.telemetry.risk_requested);
    expect_same_choice(result, expected);
    EXPECT_EQ(t.paths_finite, expected.telemetry.paths_finite);
    EXPECT_EQ(t.paths_tried, expected.telemetry.paths_tried);
    for (int path = 0; path < late.planner.tree().paths(); ++path) {
      ASSERT_EQ(late.planner.path_cost(path), early.planner.path_cost(path)) << path;
    }
    shortened += result.short_path ? 1 : 0;
  }
  EXPECT_GT(used, 30);
  EXPECT_GT(shortened, 3);
}

// The next cycle starts without the map of this one.
TEST(RiskSource, IsForgottenAfterTheCycle) {
  Random random(303);
  int used = 0;
  for (int n = 0; n < 20; ++n) {
    const Case c(random, 0.7);
    Box box;
    Rig rig(&box.checker);
    OnDemand source(c.map.view);
    PlanRequest on_demand = c.request;
    on_demand.risk_source = source.source();
    used += rig.plan(on_demand).telemetry.risk_used ? 1 : 0;
    rig.planner.reset();
    Rig other(&box.checker);
    const PlanResult& result = rig.plan(c.request);
    EXPECT_FALSE(result.telemetry.risk_used);
    expect_same_bits(result, other.plan(c.request));
  }
  EXPECT_GT(used, 5);
}

// While there is no map yet, the costs of the ground say where the cheapest path is likely to fail.
TEST(RiskSource, TheCheapestPathIsAskedForByFallingCost) {
  Random random(309);
  int used = 0;
  for (int n = 0; n < 60; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.3 + 0.6 * random.unit());
    Box box;
    Rig rig(&box.checker);
    OnDemand source(c.map.view);
    PlanRequest request = c.request;
    request.risk_source = source.source();
    const Telemetry& t = rig.plan(request).telemetry;
    if (t.evaluations_before_risk < 3) continue;
    ++used;
    const PathTree& tree = rig.planner.tree();
    const CoarseGrid& grid = rig.planner.costmap().grid;
    double last = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < static_cast<std::size_t>(t.evaluations_before_risk); ++i) {
      const Pose2& pose = rig.spy.poses[i];
      const double ix = std::floor((pose.x_m - grid.origin_x_m) / grid.resolution_m + 0.5);
      const double iy = std::floor((pose.y_m - grid.origin_y_m) / grid.resolution_m + 0.5);
      const double cost = static_cast<double>(
          rig.planner.cost_with_memory()[static_cast<int>(iy) * grid.nx + static_cast<int>(ix)]);
      int id = 0;
      while (id < tree.poses() && !rig::same_pose(rig.planner.pose_of(id), pose)) ++id;
      ASSERT_LT(id, tree.poses());
      const double rank = rank_of(cost, id < tree.second_arc_pose(0));
      EXPECT_LE(rank, last);
      last = rank;
    }
    // It was the last of them that failed.
    ASSERT_FALSE(rig.spy.failed.empty());
    const Pose2& at = rig.spy.poses[static_cast<std::size_t>(t.evaluations_before_risk - 1)];
    EXPECT_TRUE(std::any_of(rig.spy.failed.begin(), rig.spy.failed.end(),
                            [&at](const Pose2& pose) { return rig::same_pose(pose, at); }));
  }
  EXPECT_GT(used, 15);
}

// A budget ends the cycle exactly, wherever in it: before the question, after it, among short paths.
TEST(RiskSource, BudgetsAreKept) {
  Random random(304);
  int exhausted = 0;
  int shortened = 0;
  for (int n = 0; n < 24; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.6 + 0.4 * random.unit());
    Box box;
    Rig rig(&box.checker, n % 2 == 0 ? rig::small_config() : config_with(n % 4 != 3));
    OnDemand source(c.map.view);
    PlanRequest request = c.request;
    if (n % 3 == 2) {
      request.risk = &c.map.view;
    } else {
      request.risk_source = source.source();
    }
    const PlanResult full = rig.plan(request);
    if (full.outcome != Outcome::kPath && full.outcome != Outcome::kNoSafePath) continue;
    const std::int64_t needed = full.telemetry.ace_evaluations;
    const std::int64_t before = full.telemetry.evaluations_before_risk;
    for (const std::int64_t budget : {std::int64_t{1}, before - 1, before, before + 1, needed / 2,
                                      needed - 2, needed - 1, needed, needed + 1}) {
      if (budget < 1) continue;
      rig.planner.reset();
      request.ace_budget = budget;
      const PlanResult& result = rig.plan(request);
      expect_result_is_sound(request, result, rig, &box.checker);
      if (budget >= needed) {
        expect_same_bits(result, full);
      } else if (result.outcome == Outcome::kPath) {
        EXPECT_TRUE(result.short_path);
        EXPECT_EQ(result.telemetry.ace_evaluations, budget);
        ++shortened;
      } else {
        EXPECT_EQ(result.outcome, Outcome::kBudgetExhausted);
        EXPECT_EQ(result.telemetry.ace_evaluations, budget);
        ++exhausted;
      }
    }
  }
  EXPECT_GT(exhausted, 40);
  EXPECT_GT(shortened, 0);
}

// ---- riskiest first ------------------------------------------------------------------------------

TEST(RiskiestFirst, PosesAreAskedForByFallingPrice) {
  const Terrain flat(120, 120, 0.2);
  Random random(305);
  for (int n = 0; n < 10; ++n) {
    const RiskMap map(flat, [&](double, double) { return random.between(0, 4) / 5.0; });
    PlanRequest request = request_on(flat, {12.0, 12.0, 0.6 * n}, {20.0, 12.0});
    request.risk = &map.view;
    Rig rig([](const Pose2&) { return Reasons{0}; });
    const PlanResult& result = rig.plan(request);
    ASSERT_EQ(result.outcome, Outcome::kPath);
    EXPECT_EQ(result.telemetry.ace_evaluations, result.telemetry.ace_floor);
    const int second_arcs = rig.planner.tree().second_arc_pose(0);
    // The start comes before all.
    const std::vector<Pose2> poses(rig.spy.poses.begin() + 1, rig.spy.poses.end());
    std::vector<double> rank = prices(map.view, poses);
    const auto place = [&](const Pose2& pose) {
      return std::find_if(result.path, result.path + result.path_pose_count,
                          [&](const PathPose& p) { return rig::same_pose(p.pose, pose); });
    };
    for (std::size_t i = 0; i < poses.size(); ++i) {
      rank[i] = rank_of(rank[i], place(poses[i])->pose_id < second_arcs);
    }
    for (std::size_t i = 1; i < poses.size(); ++i) {
      EXPECT_GE(rank[i - 1], rank[i]);
      if (rank[i - 1] == rank[i]) {
        EXPECT_LT(place(poses[i - 1]), place(poses[i]));
      }
    }
    EXPECT_GT(rank.front(), rank.back());
  }
}

// Without a price there is nothing to go by: along the path, as without a map.
TEST(RiskiestFirst, WithoutAPriceTheOrderIsAlongThePath) {
  Random random(306);
  for (int n = 0; n < 20; ++n) {
    const Case c(random, 0.8 * random.unit());
    const RiskMap nothing(c.terrain, [](double, double) { return 0.0; });
    Box box;
    Rig baseline(&box.checker, config_with(false));
    Rig rig(&box.checker, config_with(true));
    PlanRequest request = c.request;
    request.risk = &nothing.view;
    const PlanResult& expected = baseline.plan(c.request);
    expect_same_bits(rig.plan(request), expected);
    ASSERT_EQ(rig.spy.poses.size(), baseline.spy.poses.size());
    for (std::size_t i = 0; i < rig.spy.poses.size(); ++i) {
      EXPECT_TRUE(rig::same_pose(rig.spy.poses[i], baseline.spy.poses[i]));
    }
  }
}

TEST(RiskiestFirst, TheChoiceIsTheSame) {
  Random random(307);
  int paths = 0;
  int shortened = 0;
  for (int n = 0; n < 80; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.4 + 0.6 * random.unit());
    Box box;
    Rig in_order(&box.checker, config_with(false));
    Rig by_price(&box.checker, config_with(true));
    PlanRequest request = c.request;
    request.risk = &c.map.view;
    const PlanResult& expected = in_order.plan(request);
    const PlanResult& result = by_price.plan(request);
    expect_result_is_sound(request, result, by_price, &box.checker);
    expect_same_choice(result, expected);
    paths += result.outcome == Outcome::kPath ? 1 : 0;
    shortened += result.short_path ? 1 : 0;
  }
  EXPECT_GT(paths, 30);
  EXPECT_GT(shortened, 3);
}

// A map that is right about a wall across the way: every path through it costs one evaluation, that of
// the pose in the wall.
TEST(RiskiestFirst, WhereTheMapIsRightAPathFailsAtOnce) {
  const Terrain flat(150, 150, 0.2);
  const auto wall = [](double x) { return x > 17.0 && x < 17.5; };
  const RiskMap map(flat, [&](double x, double) { return wall(x) ? 0.1 : 0.0; });
  std::int64_t evaluations[2];
  for (const bool riskiest_first : {false, true}) {
    EnavConfig config = config_with(riskiest_first);
    config.tree.turn_count = 1;  // all ways lead ahead
    config.short_paths = false;
    Rig rig([&](const Pose2& pose) { return wall(pose.x_m) ? Reasons{kRelief} : Reasons{0}; },
            config);
    PlanRequest request = request_on(flat, {15.0, 15.0, 0.0}, {40.0, 15.0});
    request.risk = &map.view;
    const PlanResult& result = rig.plan(request);
    EXPECT_EQ(result.outcome, Outcome::kNoSafePath);
    evaluations[riskiest_first ? 1 : 0] = result.telemetry.ace_evaluations;
  }
  EXPECT_EQ(evaluations[1], 1 + 11);  // the start, and each first arc where it meets the wall
  EXPECT_GE(evaluations[0], 1 + 11 * 9);
}

// What is known to have failed is not paid for again: not by the other paths that share it, wherever in
// them it lies.
TEST(RiskiestFirst, APathWithAFailedPoseIsDroppedUnseen) {
  const Terrain flat(120, 120, 0.2);
  const Pose2 start{12.0, 12.0, 0.0};
  // Highest far away, so that the poses near the start, which fail, come last.
  const RiskMap map(flat, [&](double x, double y) {
    return 0.01 + 0.05 * std::hypot(x - start.x_m, y - start.y_m);
  });
  EnavConfig config = rig::small_config();
  Rig rig(
      [&](const Pose2& pose) -> Reasons {
        const double away = std::hypot(pose.x_m - start.x_m, pose.y_m - start.y_m);
        return away > 0.1 && away < 0.4 ? kRelief : 0;
      },
      config);
  PlanRequest request = request_on(flat, start, {20.0, 12.0});
  request.risk = &map.view;
  const PlanResult& result = rig.plan(request);
  expect_result_is_sound(request, result, rig, &rig.spy);
  EXPECT_EQ(result.outcome, Outcome::kNoSafePath);
  // One path of each first arc is looked at; its ten companions fall with it.
  EXPECT_EQ(result.telemetry.rejects[4], rig.planner.tree().first_arcs());
  EXPECT_LE(result.telemetry.ace_evaluations,
            1 + rig.planner.tree().turn_poses() + 24 * rig.planner.tree().first_arcs());
}

// Short paths are chosen as ever, but poses that cannot change the choice stay unasked.
TEST(RiskiestFirst, AShortPathAsksForLittle) {
  Random random(308);
  std::int64_t open = 0;
  int shortened = 0;
  for (int n = 0; n < 120; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.8 + 0.2 * random.unit());
    Box box;
    PlanRequest request = c.request;
    request.risk = &c.map.view;
    EnavConfig without = config_with(true);
    without.short_paths = false;
    Rig none(&box.checker, without);
    const std::int64_t before = none.plan(request).telemetry.ace_evaluations;
    Rig rig(&box.checker, config_with(true));
    const PlanResult& result = rig.plan(request);
    if (!result.short_path) continue;
    ++shortened;
    const rig::NaiveChoice best = rig::naive_choice(request, rig.planner, &box.checker, 0);
    EXPECT_EQ(result.path_index, best.path);
    EXPECT_EQ(result.path_pose_count, static_cast<int>(best.poses) + 1);
    open += result.telemetry.ace_evaluations - before;
  }
  EXPECT_GT(shortened, 5);
  EXPECT_LT(open, 100 * shortened);
}

// ---- telemetry -----------------------------------------------------------------------------------

// With a clock that ticks once a look, every stretch of a stage takes one tick; were one inside another, it
// would take more.
TEST(RiskSource, StagesDoNotOverlap) {
  const Terrain flat(120, 120, 0.2);
  const RiskMap map(flat, [](double x, double) { return 0.02 * x; });
  struct Looks {
    double count = 0.0;
    const RiskView* map = nullptr;
  } looks;
  looks.map = &map.view;
  PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0});
  request.clock = {
      [](void* context) noexcept { return static_cast<Looks*>(context)->count += 1.0; }, &looks};
  // A source that takes a hundred ticks.
  request.risk_source = {[](void* context, RiskView* risk) noexcept {
                           static_cast<Looks*>(context)->count += 100.0;
                           *risk = *static_cast<Looks*>(context)->map;
                           return true;
                         },
                         &looks};
  for (const bool on_demand : {true, false}) {
    if (!on_demand) request.risk = &map.view;
    looks.count = 0.0;
    Rig rig([](const Pose2& pose) { return pose.x_m > 13.0 ? Reasons{kTilt} : Reasons{0}; });
    const PlanResult& result = rig.plan(request);
    ASSERT_TRUE(result.telemetry.risk_used);
    double total = 0.0;
    for (const double s : result.telemetry.stage_s) total += s;
    const double asked = on_demand ? 100.0 : 0.0;
    EXPECT_EQ(total, 0.5 * (looks.count - asked) + asked);
    const double* s = result.telemetry.stage_s;
    EXPECT_EQ(s[kStageHeuristic], on_demand ? 101.0 : 0.0);
    EXPECT_EQ(s[kStageCostmap], 1.0);
    EXPECT_EQ(s[kStageRisk], 1.0);
    EXPECT_EQ(s[kStageCostToGo], on_demand ? 2.0 : 1.0);
    EXPECT_EQ(s[kStageRank], on_demand ? 2.0 : 1.0);
  }
}

}  // namespace
}  // namespace mlnav
