// When the source of a risk map is asked: the schedule alone, and in the planner.
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

EnavConfig config_with(AskRisk ask, int persist_cycles) {
  EnavConfig config = rig::small_config();
  config.risk_policy = {ask, persist_cycles};
  return config;
}

TEST(RiskSchedule, HardGroundLastsForSoManyCycles) {
  RiskSchedule schedule;
  schedule.init({AskRisk::kOnFailure, 2});
  EXPECT_FALSE(schedule.up_front());
  const bool needed[] = {false, true, false, false, false, true, true, false, true, false, false};
  const bool then[] = {false, true, true, false, false, true, true, true, true, true, false};
  for (std::size_t i = 0; i < std::size(needed); ++i) {
    schedule.end_cycle(needed[i]);
    EXPECT_EQ(schedule.up_front(), then[i]) << i;
  }
  schedule.end_cycle(true);
  schedule.reset();
  EXPECT_FALSE(schedule.up_front());
  schedule.init({AskRisk::kOnFailure, 0});
  schedule.end_cycle(true);
  EXPECT_FALSE(schedule.up_front());
  schedule.init({AskRisk::kAlways, 0});
  EXPECT_TRUE(schedule.up_front());
}

TEST(RiskSchedule, BadPoliciesAreNamed) {
  EXPECT_TRUE(validate(RiskPolicy{}).ok());
  EnavConfig config = rig::small_config();
  config.risk_policy.persist_cycles = -1;
  EXPECT_STREQ(validate(config).field, "persist_cycles");
  config = rig::small_config();
  config.risk_policy.ask = static_cast<AskRisk>(2);
  EXPECT_STREQ(validate(config).field, "ask");
}

// Asked up front, the cycle is that of a map given with the request, to the last bit.
TEST(RiskSchedule, AlwaysAsksUpFront) {
  Random random(701);
  int used = 0;
  for (int n = 0; n < 40; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.9 * random.unit());
    Box box;
    Rig rig(&box.checker, config_with(AskRisk::kAlways, 0));
    Rig given(&box.checker);
    OnDemand source(c.map.view);
    PlanRequest request = c.request;
    PlanRequest with_map = c.request;
    request.risk_source = source.source();
    with_map.risk = &c.map.view;
    for (int cycle = 0; cycle < 3; ++cycle) {
      const PlanResult& result = rig.plan(request);
      expect_result_is_sound(request, result, rig, &box.checker);
      expect_same_bits(result, given.plan(with_map));
      const bool at_goal = result.outcome == Outcome::kGoalReached;
      EXPECT_EQ(source.asked, at_goal ? 0 : 1);
      EXPECT_EQ(result.telemetry.risk_asked, !at_goal);
      EXPECT_FALSE(result.telemetry.risk_requested);
      EXPECT_FALSE(result.telemetry.risk_refused);
      source.asked = 0;
      used += result.telemetry.risk_used ? 1 : 0;
      request.pose = with_map.pose = result.commit_end;
    }
  }
  EXPECT_GT(used, 50);
}

// No map to give, or a bad one: planned without, and not asked again in this cycle.
TEST(RiskSchedule, RefusedUpFrontItIsTheBaseline) {
  Random random(702);
  int refused = 0;
  for (int n = 0; n < 20; ++n) {
    const Case c(random, 0.8);
    Box box;
    Rig baseline(&box.checker);
    const PlanResult expected = baseline.plan(c.request);
    for (const bool willing : {false, true}) {
      OnDemand source(c.map.view);
      source.willing = willing;
      source.view.resolution_m = -1.0;
      PlanRequest request = c.request;
      request.risk_source = source.source();
      Rig rig(&box.checker, config_with(AskRisk::kAlways, 0));
      const PlanResult& result = rig.plan(request);
      expect_same_bits(result, expected);
      expect_result_is_sound(request, result, rig, &box.checker);
      EXPECT_EQ(source.asked, result.telemetry.risk_asked ? 1 : 0);
      EXPECT_EQ(result.telemetry.risk_refused, result.telemetry.risk_asked);
      refused += result.telemetry.risk_refused ? 1 : 0;
    }
  }
  EXPECT_GT(refused, 20);
}

TEST(RiskSchedule, WithoutRoomForAMapNobodyIsAsked) {
  Random random(703);
  const Case c(random, 0.8);
  for (const AskRisk ask : {AskRisk::kAlways, AskRisk::kOnFailure}) {
    EnavConfig config = config_with(ask, 3);
    config.max_risk_cells = 0;
    Box box;
    Rig rig(&box.checker, config);
    Rig baseline(&box.checker);
    OnDemand source(c.map.view);
    PlanRequest request = c.request;
    request.risk_source = source.source();
    expect_same_bits(rig.plan(request), baseline.plan(c.request));
    EXPECT_EQ(source.asked, 0);
    EXPECT_FALSE(rig.result->telemetry.risk_asked);
  }
}

// After a cycle that needed the map, it is there from the start of the next ones, and longer where they need it
// too; then it is asked for after a failure again.
TEST(RiskSchedule, OnHardGroundItIsAskedUpFront) {
  constexpr int kPersist = 2;
  Random random(704);
  int up_front = 0;
  int on_failure = 0;
  int not_asked = 0;
  for (int n = 0; n < 12; ++n) {
    const Case c(random, 0.75);
    Box box;
    Rig rig(&box.checker, config_with(AskRisk::kOnFailure, kPersist));
    OnDemand source(c.map.view);
    PlanRequest request = c.request;
    request.risk_source = source.source();
    int hard = 0;
    for (int cycle = 0; cycle < 10; ++cycle) {
      if (cycle == 7) {  // a new traverse forgets the ground
        rig.planner.reset();
        hard = 0;
      }
      source.asked = 0;
      const PlanResult& result = rig.plan(request);
      const Telemetry& t = result.telemetry;
      expect_result_is_sound(request, result, rig, &box.checker);
      if (result.outcome == Outcome::kGoalReached) break;
      EXPECT_EQ(source.asked, t.risk_asked ? 1 : 0);
      EXPECT_EQ(t.risk_asked && !t.risk_requested, hard > 0) << cycle;
      up_front += hard > 0 ? 1 : 0;
      on_failure += t.risk_requested ? 1 : 0;
      not_asked += t.risk_asked ? 0 : 1;
      const bool needed = t.risk_used && (t.risk_requested || t.paths_tried > 1);
      hard = needed ? kPersist : std::max(0, hard - 1);
      request.pose = result.commit_end;
    }
  }
  EXPECT_GT(up_front, 20);
  EXPECT_GT(on_failure, 5);
  EXPECT_GT(not_asked, 5);
}

// The heuristic's time is a stage of its own in both cases.
TEST(RiskSchedule, ItsTimeIsCounted) {
  const Terrain flat(120, 120, 0.2);
  const RiskMap map(flat, [](double, double) { return 0.1; });
  struct State {
    double now_s = 0.0;
    const RiskView* map = nullptr;
  } state;
  state.map = &map.view;
  PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0});
  request.clock = {[](void* context) noexcept { return static_cast<State*>(context)->now_s; },
                   &state};
  request.risk_source = {[](void* context, RiskView* risk) noexcept {
                           static_cast<State*>(context)->now_s += 100.0;
                           *risk = *static_cast<State*>(context)->map;
                           return true;
                         },
                         &state};
  for (const AskRisk ask : {AskRisk::kAlways, AskRisk::kOnFailure}) {
    Rig rig([](const Pose2& pose) { return pose.x_m > 13.0 ? Reasons{kTilt} : Reasons{0}; },
            config_with(ask, 0));
    const Telemetry& t = rig.plan(request).telemetry;
    EXPECT_TRUE(t.risk_used);
    EXPECT_EQ(t.risk_requested, ask == AskRisk::kOnFailure);
    EXPECT_EQ(t.stage_s[kStageHeuristic], 100.0);
  }
}

// ---- the budget of search work -------------------------------------------------------------------

TEST(WorkBudget, EndsTheCycleExactly) {
  Random random(705);
  int exhausted = 0;
  int shortened = 0;
  for (int n = 0; n < 60; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.6 + 0.4 * random.unit());
    Box box;
    EnavConfig config = rig::small_config();
    config.riskiest_first = n % 2 == 0;
    Rig rig(&box.checker, config);
    OnDemand source(c.map.view);
    PlanRequest request = c.request;
    if (n % 3 != 0) request.risk_source = source.source();
    const PlanResult full = rig.plan(request);
    if (full.outcome != Outcome::kPath && full.outcome != Outcome::kNoSafePath) continue;
    shortened += full.short_path ? 1 : 0;
    EXPECT_FALSE(full.telemetry.work_exhausted);
    const std::int64_t needed = full.telemetry.work;
    const PathTree& tree = rig.planner.tree();
    const std::int64_t ranking =
        std::int64_t{tree.first_arcs()} * (1 + tree.curvatures()) * tree.poses_per_arc();
    EXPECT_GT(needed, ranking);
    std::int64_t evaluations = 0;
    for (const std::int64_t budget : {std::int64_t{0}, std::int64_t{1}, ranking - 1, ranking,
                                      ranking + 1, (ranking + needed) / 2, needed - 1, needed,
                                      needed + 1, std::numeric_limits<std::int64_t>::max(),
                                      std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
      rig.planner.reset();
      request.work_budget = budget;
      const PlanResult& result = rig.plan(request);
      expect_result_is_sound(request, result, rig, &box.checker);
      if (budget < 0 || budget >= needed) {
        expect_same_bits(result, full);
        EXPECT_EQ(result.telemetry.work, needed);
        EXPECT_FALSE(result.telemetry.work_exhausted);
        continue;
      }
      EXPECT_EQ(result.outcome, Outcome::kBudgetExhausted);
      EXPECT_TRUE(result.telemetry.work_exhausted);
      if (budget <= ranking) {
        EXPECT_EQ(result.telemetry.ace_evaluations, 1);  // the start
      }
      EXPECT_GE(result.telemetry.ace_evaluations, evaluations);
      evaluations = result.telemetry.ace_evaluations;
      ++exhausted;
    }
  }
  EXPECT_GT(exhausted, 60);
  EXPECT_GT(shortened, 2);
}

// The checker's budget and that of the search are told apart.
TEST(WorkBudget, IsNotThatOfTheChecker) {
  const Terrain flat(120, 120, 0.2);
  Rig rig([](const Pose2&) { return Reasons{0}; });
  PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0});
  request.ace_budget = 5;
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kBudgetExhausted);
  EXPECT_FALSE(rig.result->telemetry.work_exhausted);
  request.ace_budget = -1;
  request.work_budget = 5;
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kBudgetExhausted);
  EXPECT_TRUE(rig.result->telemetry.work_exhausted);
  EXPECT_EQ(rig.result->telemetry.work, 0);
}

// On hard ground the costs of listed paths are refreshed again and again, which no budget of evaluations bounds.
TEST(WorkBudget, BoundsWhatEvaluationsDoNot) {
  const Terrain flat(120, 120, 0.2);
  Random random(706);
  const RiskMap map(flat, [&](double, double) { return 0.9 * random.unit(); });
  EnavConfig config = rig::small_config();
  config.short_paths = false;
  const Pose2 start{12.0, 12.0, 0.0};
  Rig rig(
      [&](const Pose2& pose) { return rig::same_pose(pose, start) ? Reasons{0} : Reasons{kTilt}; },
      config);
  PlanRequest request = request_on(flat, start, {20.0, 12.0});
  request.risk = &map.view;
  const Telemetry full = rig.plan(request).telemetry;
  EXPECT_GT(full.work, 10 * full.ace_evaluations);
  request.work_budget = full.work / 2;
  const Telemetry& half = rig.plan(request).telemetry;
  EXPECT_TRUE(half.work_exhausted);
  EXPECT_LE(half.work, request.work_budget);
  EXPECT_GT(half.work, request.work_budget - 200);
}

}  // namespace
}  // namespace mlnav
