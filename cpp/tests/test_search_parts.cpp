// Verdicts and costs as a planner of its own uses them: without a tree.
#include <limits>

#include "mlnav/search/costs.hpp"
#include "mlnav/search/verdicts.hpp"
#include "planner_rig.hpp"

namespace mlnav {
namespace {

using maps::Random;
using maps::Terrain;
using rig::SpyChecker;

// Verdicts of up to `poses` poses, with the memory they need and not a byte more.
class Book {
 public:
  Book(AceChecker* checker, int poses)
      : memory_(Arena::kAlignment + Verdicts::memory_required(static_cast<std::size_t>(poses))),
        arena_(memory_.data(), memory_.size()) {
    EXPECT_EQ(verdicts.init(static_cast<std::size_t>(poses), checker, &arena_), Status::kOk);
  }
  Verdicts verdicts;

 private:
  maps::Memory memory_;
  Arena arena_;
};

// A metre straight on, up to the pose at (x, y).
Sweep up_to(double x, double y) { return {Stance{x - 1.0, y, 0.0}, 1.0}; }

TEST(Verdicts, EachPoseIsAskedForOnceACycle) {
  const Terrain flat(100, 100, 0.2);
  SpyChecker spy([](const Pose2& pose) -> Reasons {
    if (pose.x_m > 14.0) return kUnknown | kTilt;
    if (pose.x_m > 12.0) return kUnknown;
    return pose.x_m > 10.0 ? kRelief : 0;
  });
  Book book(&spy, 7);
  Verdicts& verdicts = book.verdicts;
  const struct {
    int id;
    double x_m;
    Verdict verdict;
  } poses[] = {{6, 9.0, Verdict::kPassed},
               {0, 11.0, Verdict::kFailed},
               {3, 13.0, Verdict::kUnseen},   // for unknown ground alone
               {2, 15.0, Verdict::kFailed}};  // and tilted as well
  for (int cycle = 0; cycle < 2; ++cycle) {
    spy.clear();
    verdicts.begin(flat.view(), {}, -1);
    EXPECT_EQ(verdicts.set_map(), Status::kOk);
    for (int id = 0; id < 7; ++id) EXPECT_EQ(verdicts.of(id), Verdict::kNotEvaluated);
    EXPECT_EQ(verdicts.check_start(Stance{8.0, 8.0, 0.0}), 0);
    for (const auto& p : poses) {
      EXPECT_EQ(verdicts.evaluate(p.id, up_to(p.x_m, 8.0)), p.verdict);
      EXPECT_EQ(verdicts.of(p.id), p.verdict);
    }
    EXPECT_EQ(verdicts.last_reasons(), kUnknown | kTilt);
    EXPECT_EQ(verdicts.of(1), Verdict::kNotEvaluated);
    EXPECT_EQ(verdicts.evaluations(), 5);
    EXPECT_EQ(spy.poses.size(), 5U);
    EXPECT_FALSE(verdicts.budget_spent());
    std::int64_t expected[kReasonCount] = {};
    expected[0] = 1;  // tilt
    expected[4] = 1;  // relief
    expected[6] = 2;  // unknown
    for (int bit = 0; bit < kReasonCount; ++bit) EXPECT_EQ(verdicts.rejects()[bit], expected[bit]);
  }
  EXPECT_EQ(spy.maps_set, 2);
}

TEST(Verdicts, ARejectionWithoutAReasonIsOne) {
  class Mute final : public AceChecker {
   public:
    Status set_map(const GridView&) noexcept override { return Status::kOk; }
    bool check(const Sweep&, Reasons* reasons, CheckWork*) const noexcept override {
      *reasons = 0;
      return false;
    }
    AceReport report(const Sweep&) const noexcept override { return {}; }
    const RoverModel& model() const noexcept override { return model_; }

   private:
    RoverModel model_;
  };
  const Terrain flat(100, 100, 0.2);
  Mute mute;
  Book book(&mute, 1);
  book.verdicts.begin(flat.view(), {}, -1);
  EXPECT_EQ(book.verdicts.check_start(Stance{8.0, 8.0, 0.0}), kBadPose);
  EXPECT_EQ(book.verdicts.evaluate(0, up_to(8.0, 8.0)), Verdict::kFailed);
}

TEST(Verdicts, TheBudgetIsExact) {
  const Terrain flat(100, 100, 0.2);
  SpyChecker spy([](const Pose2&) { return Reasons{0}; });
  Book book(&spy, 10);
  Verdicts& verdicts = book.verdicts;
  for (const int budget : {0, 1, 4, 10, 11}) {
    spy.clear();
    verdicts.begin(flat.view(), {}, budget);
    for (int id = 0; id < 10; ++id) {
      EXPECT_EQ(verdicts.budget_spent(), id > budget);
      const Verdict verdict = verdicts.evaluate(id, up_to(8.0, 8.0));
      EXPECT_EQ(verdict, id < budget ? Verdict::kPassed : Verdict::kNotEvaluated);
      EXPECT_EQ(verdicts.of(id), verdict);
    }
    EXPECT_EQ(verdicts.budget_spent(), budget < 10);
    EXPECT_EQ(verdicts.evaluations(), std::min(budget, 10));
    EXPECT_EQ(spy.poses.size(), static_cast<std::size_t>(std::min(budget, 10)));
  }
}

// A zone is met on the way, where neither pose touches it; it costs no evaluation and is told apart from one.
TEST(Verdicts, ZonesAreMetOnTheWay) {
  const Terrain flat(300, 300, 0.1);
  SpyChecker spy([](const Pose2&) { return Reasons{0}; });
  Book book(&spy, 4);
  Verdicts& verdicts = book.verdicts;
  std::vector<std::uint8_t> cells(300 * 300, 0);
  cells[150 * 300 + 150] = 1;  // at (15, 15)
  verdicts.begin(flat.view(), {cells.data(), 300, 300}, 0);
  // An arc of 6 m that goes round the zone's side: its ends are well away from it.
  const Pose2 start{12.0, 15.0, 0.0};
  const Pose2 end = along_arc(start, 0.0, 6.0);
  EXPECT_FALSE(touches({cells.data(), 300, 300}, flat.view(), end, rover_outline(spy.model())));
  EXPECT_EQ(verdicts.evaluate(0, {Stance{start}, 6.0}), Verdict::kFailed);
  EXPECT_EQ(verdicts.last_reasons(), kKeepOutZone);
  EXPECT_EQ(verdicts.rejects()[10], 1);
  // Turning in place beside it, so that the front passes over it half way.
  const double reach = rover_outline(spy.model()).front_m;
  const Pose2 beside{15.0, 15.0 - reach, 0.0};
  const Stance turning{beside, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(verdicts.evaluate(1, {turning, kPi}), Verdict::kFailed);
  // Where it is clear, the budget of none is spent.
  EXPECT_FALSE(verdicts.budget_spent());
  EXPECT_EQ(verdicts.evaluate(2, up_to(5.0, 5.0)), Verdict::kNotEvaluated);
  EXPECT_TRUE(verdicts.budget_spent());
  EXPECT_EQ(verdicts.evaluations(), 0);
  EXPECT_EQ(verdicts.check_start(Stance{15.0, 15.0, 0.0}), kKeepOutZone);
}

TEST(Verdicts, MemoryIsSizedExactly) {
  SpyChecker spy([](const Pose2&) { return Reasons{0}; });
  for (const std::size_t poses : {std::size_t{1}, std::size_t{64}, std::size_t{1000}}) {
    const std::size_t bytes = Verdicts::memory_required(poses);
    alignas(Arena::kAlignment) static unsigned char memory[1024];
    Verdicts verdicts;
    Arena arena(memory, bytes);
    EXPECT_EQ(verdicts.init(poses, &spy, &arena), Status::kOk);
    Arena small(memory, bytes - Arena::kAlignment);
    EXPECT_EQ(verdicts.init(poses, &spy, &small), Status::kArenaTooSmall);
  }
}

// ---- a planner of its own ------------------------------------------------------------------------

// The smallest planner that is one: straight lines of 4 m in twelve directions, the cheapest that passes.
class Star final : public Planner {
 public:
  static constexpr int kRays = 12;
  static constexpr int kSteps = 16;
  static constexpr double kStep_m = 0.25;

  static CostsConfig costs_config() {
    CostsConfig config;
    config.max_map_cells = rig::kMaxCells;
    config.max_risk_cells = 100 * 100;
    config.memory_poses = 8;
    config.visit_cost_per_m = 0.5;
    config.visit_radius_m = 0.8;
    config.memory_failures = 8;
    return config;
  }
  static std::size_t memory_required() {
    return Arena::kAlignment + Verdicts::memory_required(kRays * kSteps) +
           Costs::memory_required(costs_config());
  }
  Status init(AceChecker* checker, Arena* arena) {
    const Status status = verdicts.init(kRays * kSteps, checker, arena);
    return status == Status::kOk ? costs.init(costs_config(), checker->model(), arena) : status;
  }
  void reset() noexcept override { costs.reset(); }

  Status plan(const PlanRequest& request, PlanResult* result) noexcept override {
    *result = PlanResult{};
    result->status = validate(request);
    if (result->status != Status::kOk) return result->status;
    verdicts.begin(request.map, request.keep_out, request.ace_budget);
    costs.begin();
    costs.add_visit(request.pose);
    result->status = verdicts.set_map();
    if (result->status != Status::kOk) return result->status;
    costs.build(request.map, request.keep_out);
    if (request.risk != nullptr) costs.use_risk(*request.risk);
    costs.solve(request.goal);
    double cost[kRays];
    for (int ray = 0; ray < kRays; ++ray) {
      const Pose2 start = start_of(request, ray);
      cost[ray] = 0.0;
      for (int i = 0; i < kSteps; ++i) {
        const Pose2 p = along_arc(start, 0.0, kStep_m * (i + 1));
        cost[ray] += kStep_m * costs.at(p.x_m, p.y_m, p.heading_rad);
        if (i + 1 == kSteps) cost[ray] += costs.to_go(p.x_m, p.y_m);
      }
    }
    result->outcome = Outcome::kNoSafePath;
    for (int tries = 0; tries < kRays; ++tries) {
      const int ray = static_cast<int>(std::min_element(cost, cost + kRays) - cost);
      if (!(cost[ray] < INFINITY)) break;
      cost[ray] = INFINITY;
      if (!passes(start_of(request, ray), ray)) continue;
      result->outcome = Outcome::kPath;
      result->path_index = ray;
      break;
    }
    result->telemetry.ace_evaluations = verdicts.evaluations();
    return Status::kOk;
  }

  Verdicts verdicts;
  Costs costs;

 private:
  static Pose2 start_of(const PlanRequest& request, int ray) {
    return {request.pose.x_m, request.pose.y_m, 2.0 * kPi * ray / kRays};
  }
  bool passes(const Pose2& start, int ray) {
    for (int i = 0; i < kSteps; ++i) {
      const Sweep step{Stance{along_arc(start, 0.0, kStep_m * i)}, kStep_m};
      const Verdict verdict = verdicts.evaluate(ray * kSteps + i, step);
      if (verdict == Verdict::kPassed) continue;
      costs.add_failure(step.end().pose, verdicts.last_reasons());
      return false;
    }
    return true;
  }
};

TEST(SecondPlanner, SharesVerdictsAndCosts) {
  const Terrain flat(150, 150, 0.2);
  maps::Memory memory(Star::memory_required());
  Arena arena(memory.data(), memory.size());
  SpyChecker spy([](const Pose2& pose) -> Reasons { return pose.x_m > 17.0 ? kTilt : 0; });
  Star star;
  ASSERT_EQ(star.init(&spy, &arena), Status::kOk);
  PlanResult result;
  PlanRequest request = rig::request_on(flat, {15.0, 15.0, 0.0}, {25.0, 15.0});
  ASSERT_EQ(star.plan(request, &result), Status::kOk);
  EXPECT_EQ(result.outcome, Outcome::kPath);
  // East and the rays beside it meet the wall; those at 60 deg end before it.
  EXPECT_TRUE(result.path_index == 2 || result.path_index == 10) << result.path_index;
  EXPECT_EQ(result.telemetry.ace_evaluations, static_cast<std::int64_t>(spy.poses.size()));
  EXPECT_EQ(star.verdicts.rejects()[0], 3);

  // Zones north and south leave the way back.
  std::vector<std::uint8_t> zone(150 * 150, 0);
  for (int iy = 0; iy < 150; ++iy) {
    for (int ix = 0; ix < 150; ++ix) zone[iy * 150 + ix] = std::abs(iy - 75) > 12 ? 1 : 0;
  }
  request.keep_out = {zone.data(), 150, 150};
  star.reset();
  ASSERT_EQ(star.plan(request, &result), Status::kOk);
  EXPECT_EQ(result.path_index, 6);
  request.goal_tolerance_m = 0.0;
  EXPECT_EQ(star.plan(request, &result), Status::kGoalToleranceBad);
}

TEST(Costs, VisitsRiskAndFailuresAddUp) {
  const Terrain flat(150, 150, 0.2);
  maps::Memory memory(Arena::kAlignment + Costs::memory_required(Star::costs_config()));
  Arena arena(memory.data(), memory.size());
  Costs costs;
  const CostsConfig config = Star::costs_config();
  ASSERT_EQ(costs.init(config, RoverModel{}, &arena), Status::kOk);
  const Pose2 at{15.0, 15.0, 0.0};
  const auto cost = [&] { return costs.at(at.x_m, at.y_m, at.heading_rad); };
  const auto begin = [&] {
    costs.begin();
    costs.build(flat.view(), {});
  };
  begin();
  EXPECT_EQ(cost(), 1.0);
  EXPECT_EQ(costs.at(-1.0, 15.0, 0.0), INFINITY);
  EXPECT_FALSE(costs.has_risk());
  EXPECT_EQ(costs.suspicion(at), 1.0);
  costs.solve({25.0, 15.0});
  EXPECT_NEAR(costs.to_go(15.0, 15.0), 10.0, 0.5);
  EXPECT_LT(costs.to_go(20.0, 15.0), costs.to_go(15.0, 15.0));

  costs.add_visit(at);
  costs.add_visit(at);
  begin();
  EXPECT_EQ(cost(), 2.0);
  costs.reset();
  begin();
  EXPECT_EQ(cost(), 1.0);

  const rig::RiskMap map(Terrain(30, 30, 1.0), [](double, double) { return 0.5; });
  EXPECT_EQ(costs.check(map.view), Status::kOk);
  RiskView too_large = map.view;
  too_large.bins = 100;
  EXPECT_EQ(costs.check(too_large), Status::kRiskBadShape);
  costs.use_risk(map.view);
  const double priced = 1.0 + config.risk.weight_per_m * risk_price(0.5F);
  EXPECT_NEAR(cost(), priced, 1e-5);
  EXPECT_NEAR(costs.suspicion(at), risk_price(0.5F), 1e-6);
  // Unknown ground may be seen from elsewhere: its failure counts in this cycle alone.
  const double raised = config.risk.weight_per_m * config.risk.fail_price;
  costs.add_failure(at, kUnknown);
  EXPECT_NEAR(cost(), priced + raised, 1e-5);
  begin();
  costs.use_risk(map.view);
  EXPECT_NEAR(cost(), priced, 1e-5);
  costs.add_failure(at, kTilt);
  begin();
  EXPECT_EQ(cost(), 1.0);  // of the ground: without a map nothing is raised
  costs.use_risk(map.view);
  EXPECT_NEAR(cost(), priced + raised, 1e-5);
}

TEST(Costs, MemoryIsSizedExactly) {
  const CostsConfig config = Star::costs_config();
  const std::size_t bytes = Arena::kAlignment + Costs::memory_required(config);
  maps::Memory memory(bytes);
  Costs costs;
  Arena arena(memory.data(), bytes);
  EXPECT_EQ(costs.init(config, RoverModel{}, &arena), Status::kOk);
  Arena small(memory.data(), bytes - 2 * Arena::kAlignment);
  EXPECT_EQ(costs.init(config, RoverModel{}, &small), Status::kArenaTooSmall);
}

}  // namespace
}  // namespace mlnav
