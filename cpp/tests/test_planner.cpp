#include <limits>

#include "mlnav/safety/verified.hpp"
#include "planner_rig.hpp"
#include "verified_rig.hpp"

namespace mlnav {
namespace {

using maps::Random;
using maps::Terrain;
using rig::Box;
using rig::expect_result_is_sound;
using rig::expect_same_bits;
using rig::request_on;
using rig::Rig;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();

// ---- adversarial heuristics ----------------------------------------------------------------------

// A risk map that means harm, over (more or less) the terrain.
struct BadRisk {
  enum Kind {
    kRandom,
    kInverted,  // low where ACE rejects, high where it passes
    kAllNan,
    kInfinities,
    kNegative,
    kOverOne,
    kCertain,
    kTiny,
    kGarbage,  // any bits
    kKinds
  };

  BadRisk(Random& random, int kind, const Terrain& terrain, const AceChecker& truth) {
    const GridView map = terrain.view();
    view.bins = random.between(1, 16);
    view.nx = random.between(1, 60);
    view.ny = random.between(1, 60);
    view.resolution_m = terrain.width_m() / view.nx;
    view.origin_x_m = map.origin_x_m;
    view.origin_y_m = map.origin_y_m;
    p.resize(static_cast<std::size_t>(view.bins * view.nx * view.ny));
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = value(random, kind);
    if (kind == kInverted) invert(truth);
    // Wrong scale or place, now and then.
    if (random.chance(0.15)) view.resolution_m = random.chance(0.5) ? 1e-3 : 100.0;
    if (random.chance(0.15)) view.origin_x_m = random.chance(0.5) ? 1e300 : -1e300;
    if (random.chance(0.15)) view.origin_y_m = random.uniform(-1e4, 1e4);
    view.p = p.data();
  }
  BadRisk(const BadRisk&) = delete;

  std::vector<float> p;
  RiskView view;

 private:
  static float value(Random& random, int kind) {
    switch (kind) {
      case kRandom:
        return static_cast<float>(random.unit());
      case kAllNan:
        return kNanF;
      case kInfinities:
        return random.chance(0.5) ? kInfF : -kInfF;
      case kNegative:
        return static_cast<float>(random.uniform(-5.0, 0.0));
      case kOverOne:
        return static_cast<float>(random.uniform(1.0, 1e6));
      case kCertain:
        return 1.0F;
      case kTiny:
        return 1e-44F;
      case kGarbage: {
        const auto bits = static_cast<std::uint32_t>(random.bits());
        float out;
        std::memcpy(&out, &bits, sizeof out);
        return out;
      }
      default:
        return 0.0F;
    }
  }
  void invert(const AceChecker& truth) {
    for (int bin = 0; bin < view.bins; ++bin) {
      for (int iy = 0; iy < view.ny; ++iy) {
        for (int ix = 0; ix < view.nx; ++ix) {
          const Pose2 pose{view.origin_x_m + ix * view.resolution_m,
                           view.origin_y_m + iy * view.resolution_m, 2.0 * kPi * bin / view.bins};
          Reasons reasons;
          p[static_cast<std::size_t>((bin * view.ny + iy) * view.nx + ix)] =
              truth.is_safe(Stance{pose}, &reasons) ? 0.99F : 0.0F;
        }
      }
    }
  }
};

std::vector<std::uint8_t> random_keep_out(Random& random, const Terrain& terrain) {
  const GridView map = terrain.view();
  std::vector<std::uint8_t> mask(map.cells(), 0);
  for (int n = random.between(1, 4); n > 0; --n) {
    const Point2 at = terrain.anywhere(random);
    const double radius = random.uniform(0.3, 1.5);
    for (int iy = 0; iy < map.ny; ++iy) {
      for (int ix = 0; ix < map.nx; ++ix) {
        if (std::hypot(map.center_x_m(ix) - at.x_m, map.center_y_m(iy) - at.y_m) < radius) {
          mask[static_cast<std::size_t>(iy * map.nx + ix)] =
              static_cast<std::uint8_t>(random.chance(0.5) ? 1 : 255);
        }
      }
    }
  }
  return mask;
}

// Other trees and weights than the default.
EnavConfig random_config(Random& random) {
  EnavConfig config = rig::small_config();
  config.riskiest_first = random.chance(0.7);
  if (random.chance(0.5)) config.risk.fail_price = random.chance(0.5) ? 0.0 : random.uniform(0, 9);
  if (random.chance(0.3)) config.memory_failures = random.between(0, 9);
  if (random.chance(0.5)) return config;
  config.tree.turn_count = random.between(1, 8);
  for (int i = 0; i < config.tree.turn_count; ++i) {
    config.tree.turn_rad[i] = i == 0 ? 0.0 : random.uniform(-kPi, kPi);
  }
  config.tree.curvature_count = random.between(1, 7);
  const int steps = random.between(3, 12);
  config.tree.ace_step_m = random.uniform(0.15, 0.3);
  config.tree.arc_length_m = steps * config.tree.ace_step_m;
  config.tree.turn_step_rad = random.uniform(5 * kDeg, 40 * kDeg);
  config.commit_length_m = random.between(1, steps) * config.tree.ace_step_m;
  config.commit_turn_rad = random.uniform(2 * kDeg, kPi);
  config.memory_poses = random.between(0, 4);
  config.flip_cost = random.uniform(0.0, 5.0);
  config.overthink_evaluations = random.between(1, 100);
  config.short_paths = random.chance(0.7);
  return config;
}

// The property this planner stands for. Whatever the ground, the goal, the mask and the risk map, given or
// on demand, a returned path is safe pose by pose, without a gap, and the account of ACE is true; and the path is
// the cheapest that passes. Several cycles in a row, so that memory and hysteresis take part.
void drive_among_lies(std::uint64_t seed, AceChecker* checker, AceChecker* judge, int trials,
                      double size_m, double roughness, std::int64_t most_evaluations) {
  Random random(seed);
  int paths = 0;
  int refused = 0;
  int reordered = 0;
  int shortened = 0;
  int requested = 0;
  for (int n = 0; n < trials; ++n) {
    SCOPED_TRACE("trial " + std::to_string(n));
    const Terrain terrain = maps::random_terrain(random, size_m, roughness * random.unit());
    ASSERT_EQ(judge->set_map(terrain.view()), Status::kOk);
    Rig rig(checker, random_config(random));
    const auto keep_out = random_keep_out(random, terrain);
    // A start that passes, where one is found.
    Pose2 pose;
    for (int attempt = 0; attempt < 40; ++attempt) {
      const Point2 at = terrain.near_center(random, 0.4);
      pose = {at.x_m, at.y_m, random.uniform(-10.0, 10.0)};
      Reasons reasons;
      if (judge->is_safe(Stance{pose}, &reasons)) break;
    }
    Point2 goal = terrain.anywhere(random);
    if (random.chance(0.3)) goal = {goal.x_m + random.uniform(-60, 60), goal.y_m + 40.0};
    const BadRisk lie(random, n % BadRisk::kKinds, terrain, *judge);
    int last_turn_sign = 0;
    for (int cycle = 0; cycle < 3; ++cycle) {
      SCOPED_TRACE("cycle " + std::to_string(cycle));
      PlanRequest request = request_on(terrain, pose, goal);
      request.goal_tolerance_m = random.uniform(0.1, 1.5);
      rig::OnDemand on_demand(lie.view);
      on_demand.willing = !random.chance(0.1);
      if (random.chance(0.1)) on_demand.view.bins = 0;
      if (random.chance(0.5)) request.risk_source = on_demand.source();
      if (random.chance(request.risk_source.fill != nullptr ? 0.1 : 0.8)) request.risk = &lie.view;
      if (random.chance(0.4)) request.keep_out = {keep_out.data(), request.map.nx, request.map.ny};
      request.ace_budget = random.chance(0.2) ? random.between(0, 60) : most_evaluations;
      const PlanResult& result = rig.plan(request);
      expect_result_is_sound(request, result, rig, judge);
      if (::testing::Test::HasFatalFailure()) return;
      EXPECT_EQ(on_demand.asked, result.telemetry.risk_requested ? 1 : 0);
      requested += on_demand.asked;
      // From here on it is as if that map had been there all the time.
      if (result.telemetry.risk_used) request.risk = &lie.view;
      if (result.outcome == Outcome::kPath || result.outcome == Outcome::kNoSafePath) {
        // A short path is chosen by what is known when the budget ends.
        const bool cut =
            result.short_path && result.telemetry.ace_evaluations == request.ace_budget;
        if (most_evaluations < 0 && !cut) {
          const auto best = rig::naive_choice(request, rig.planner, judge, last_turn_sign);
          EXPECT_EQ(result.short_path, best.short_path);
          EXPECT_EQ(result.path_index >= 0, best.path >= 0);
          // Short paths are weighed at what failures made of the price (test_risk_failures.cpp).
          const bool as_it_comes =
              !result.telemetry.risk_used || rig.planner.config().risk.fail_price == 0.0;
          if (best.path >= 0 && (as_it_comes || !best.short_path)) {
            EXPECT_EQ(result.path_index, best.path);
            EXPECT_EQ(result.path_pose_count, static_cast<int>(best.poses) + 1);
            EXPECT_NEAR(result.path_cost, best.cost, 3e-3 * best.cost);
          }
          shortened += best.short_path ? 1 : 0;
        }
      }
      if (result.outcome == Outcome::kStartUnsafe) {
        EXPECT_NE(result.start_reasons, 0);
      }
      if (result.outcome != Outcome::kPath) {
        ++refused;
        break;
      }
      ++paths;
      reordered += result.telemetry.chosen_rank > 0 ? 1 : 0;
      const double turn = result.commit.turn_rad;
      last_turn_sign = turn > 0.0 ? 1 : turn < 0.0 ? -1 : 0;
      pose = result.commit_end;
    }
  }
  // The trials mean something: many paths, and many where the first choice was a bad one.
  EXPECT_GT(paths, trials / 2);
  EXPECT_GT(refused, 0);
  EXPECT_GT(reordered, trials / 8);
  EXPECT_GT(requested, trials / 8);
  if (most_evaluations < 0) {
    EXPECT_GT(shortened, trials / 20);
  }
}

TEST(PlannerSafety, NoUnsafePoseWithFixedBoxWhateverTheRiskMapSays) {
  Box checker;
  Box judge;
  drive_among_lies(101, &checker.checker, &judge.checker, 160, 14.0, 0.6, -1);
}

TEST(PlannerSafety, NoUnsafePoseWithSettlingWhateverTheRiskMapSays) {
  const RoverModel model{RoverGeometry{}, SafetyLimits::flight_like()};
  SettleChecker checker;
  SettleChecker judge;
  ASSERT_TRUE(checker.init(model).ok());
  ASSERT_TRUE(judge.init(model).ok());
  drive_among_lies(102, &checker, &judge, 72, 12.0, 0.8, 250);
}

// With the spacing of poses that it needs.
TEST(PlannerSafety, NoUnsafePoseWithTheCertifiedCheckerWhateverTheRiskMapSays) {
  const RoverModel model{RoverGeometry{}, SafetyLimits::flight_like()};
  rig::Verified checker_own;
  VerifiedChecker& checker = checker_own.checker;
  rig::Verified judge_own;
  VerifiedChecker& judge = judge_own.checker;
  ASSERT_TRUE(checker_own.init(model, {}).ok());
  ASSERT_TRUE(judge_own.init(model, {}).ok());
  drive_among_lies(103, &checker, &judge, 40, 12.0, 0.8, 250);
}

// ---- the choice ----------------------------------------------------------------------------------

// Ranking against the definition, path by path: costs, turns, hysteresis, risk, cost-to-go, goal.
TEST(PlannerRanking, CostsAreTheDefinedOnes) {
  Random random(7);
  int compared = 0;
  for (int n = 0; n < 12; ++n) {
    const Terrain terrain = maps::random_terrain(random, 14.0, 0.4);
    Box box;
    EnavConfig config = rig::small_config();
    config.risk.fail_price = 0.0;
    Rig rig(&box.checker, config);
    const Point2 at = terrain.near_center(random, 0.2);
    Pose2 pose{at.x_m, at.y_m, random.uniform(-4.0, 4.0)};
    const Point2 goal = terrain.near_center(random, n % 3 == 2 ? 8.0 : 0.8);
    box.checker.set_map(terrain.view());
    const BadRisk risk(random, BadRisk::kRandom, terrain, box.checker);
    int last_turn_sign = 0;
    for (int cycle = 0; cycle < 3; ++cycle) {
      PlanRequest request = request_on(terrain, pose, goal);
      request.goal_tolerance_m = 0.5;
      if (n % 2 == 0) request.risk = &risk.view;
      const PlanResult& result = rig.plan(request);
      if (result.outcome == Outcome::kStartUnsafe || result.outcome == Outcome::kGoalReached) break;
      int finite = 0;
      for (int path = 0; path < rig.planner.tree().paths(); ++path) {
        const double expected =
            rig::naive_cost(request, rig.planner, path,
                            rig::naive_path(request, rig.planner.config(), path), last_turn_sign);
        const double cost = static_cast<double>(rig.planner.path_cost(path));
        if (std::isfinite(expected)) {
          ASSERT_NEAR(cost, expected, 3e-3 * expected) << "path " << path << " of trial " << n;
          ++finite;
        } else {
          ASSERT_EQ(cost, kInf) << path;
        }
        ++compared;
      }
      EXPECT_EQ(result.telemetry.paths_finite, finite);
      rig::expect_cost_to_go(request, rig.planner, request.risk);
      if (result.outcome != Outcome::kPath) break;
      last_turn_sign = result.commit.turn_rad > 0.0 ? 1 : result.commit.turn_rad < 0.0 ? -1 : 0;
      pose = result.commit_end;
    }
  }
  EXPECT_GT(compared, 20000);
}

// Nothing to tell left from right, or one path from the next: the smallest index of the cheapest.
TEST(PlannerRanking, TiesGoToTheSmallerIndex) {
  const Terrain flat(120, 120, 0.2);
  // The goal's disc takes in every first arc's end after one step: many paths of exactly one cost.
  Rig rig([](const Pose2&) { return Reasons{0}; });
  PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {12.4, 12.0});
  request.goal_tolerance_m = 0.2;
  const PlanResult& result = rig.plan(request);
  ASSERT_EQ(result.outcome, Outcome::kPath);
  int ties = 0;
  for (int path = 0; path < rig.planner.tree().paths(); ++path) {
    const float cost = rig.planner.path_cost(path);
    EXPECT_GE(cost, rig.planner.path_cost(result.path_index));
    if (cost == rig.planner.path_cost(result.path_index)) {
      ++ties;
      EXPECT_GE(path, result.path_index);
    }
  }
  EXPECT_GE(ties, 11);
}

TEST(PlannerRanking, TheWayAheadIsStraightOnFlatGround) {
  const Terrain flat(120, 100, 0.2, -30.0, 55.0);
  Box box;
  Rig rig(&box.checker);
  const double x = flat.center_x_m();
  const double y = flat.center_y_m();
  for (const double heading : {0.0, 0.5 * kPi, kPi, -0.5 * kPi, 0.5 * kPi + 20 * kPi}) {
    rig.planner.reset();
    const Point2 goal{x + 8.0 * std::cos(heading), y + 8.0 * std::sin(heading)};
    const PlanResult& result = rig.plan(request_on(flat, {x, y, heading}, goal));
    ASSERT_EQ(result.outcome, Outcome::kPath);
    EXPECT_LT(result.path_index, 11) << heading;  // no turn, first arc straight
    EXPECT_EQ(result.telemetry.chosen_rank, 0);
    EXPECT_EQ(result.telemetry.ace_evaluations, 25);
    EXPECT_EQ(result.telemetry.ace_floor, 25);
    EXPECT_EQ(result.commit.length_m, 1.0);
    EXPECT_NEAR(result.commit_end.x_m, x + std::cos(heading), 1e-9);
    EXPECT_NEAR(result.commit_end.y_m, y + std::sin(heading), 1e-9);
  }
}

TEST(PlannerRanking, AGoalBehindIsTurnedTo) {
  const Terrain flat(120, 100, 0.2);
  Box box;
  Rig rig(&box.checker);
  const double x = flat.center_x_m();
  const double y = flat.center_y_m();
  for (const double side : {1.0, -1.0}) {
    rig.planner.reset();
    const PlanResult& result = rig.plan(request_on(flat, {x, y, 0.0}, {x, y + side * 9.0}));
    ASSERT_EQ(result.outcome, Outcome::kPath);
    EXPECT_NEAR(result.commit.turn_rad, side * 30 * kDeg, 1e-9);
    EXPECT_EQ(result.commit.length_m, 0.0);
    EXPECT_NEAR(result.commit_end.heading_rad, side * 30 * kDeg, 1e-9);
  }
}

// A heuristic that knows something is listened to: risk on one side sends the rover to the other.
TEST(PlannerRanking, RiskIsAvoided) {
  const Terrain flat(120, 120, 0.2);
  Box box;
  Rig rig(&box.checker);
  const double x = flat.center_x_m();
  const double y = flat.center_y_m();
  std::vector<float> p(120 * 120, 0.0F);
  RiskView risk{p.data(), 1, 120, 120, 0.0, 0.0, 0.2};
  for (const double side : {1.0, -1.0}) {
    rig.planner.reset();
    for (int iy = 0; iy < 120; ++iy) {
      for (int ix = 0; ix < 120; ++ix) {
        // Across the straight way ahead, and on one side of it.
        const double dy = (0.2 * iy - y) * side;
        p[static_cast<std::size_t>(iy * 120 + ix)] =
            0.2 * ix > x + 1.5 && dy > -0.4 && dy < 3.0 ? 0.9F : 0.0F;
      }
    }
    PlanRequest request = request_on(flat, {x, y, 0.0}, {x + 9.0, y});
    request.risk = &risk;
    const PlanResult& result = rig.plan(request);
    ASSERT_EQ(result.outcome, Outcome::kPath);
    EXPECT_GT(result.path_index, 0);
    const Pose2& end = result.path[result.path_pose_count - 1].pose;
    EXPECT_LT((end.y_m - y) * side, -0.4);
  }
}

// Risk priced at a heading: high along x, none along y.
TEST(PlannerRanking, RiskIsReadAtTheHeading) {
  const Terrain flat(120, 120, 0.2);
  Box box;
  std::vector<float> p(2 * 4 * 25 * 25, 0.0F);
  for (int bin = 0; bin < 4; bin += 2) {
    for (int i = 0; i < 625; ++i) p[static_cast<std::size_t>(bin * 625 + i)] = 0.9F;
  }
  const RiskView risk{p.data(), 4, 25, 25, 0.5, 0.5, 1.0};
  const double x = flat.center_x_m();
  const double y = flat.center_y_m();
  EnavConfig config = rig::small_config();
  config.memory_poses = 0;
  config.risk.weight_per_m = 10.0;
  double cost[2];
  for (const int along_y : {0, 1}) {
    Rig rig(&box.checker, config);
    PlanRequest request = request_on(flat, {x, y, along_y * 0.5 * kPi},
                                     along_y ? Point2{x, y + 4.0} : Point2{x + 4.0, y});
    request.goal_tolerance_m = 0.5;
    request.risk = &risk;
    rig.plan(request);
    cost[along_y] = static_cast<double>(rig.planner.path_cost(0));
  }
  EXPECT_NEAR(cost[1], 3.5, 1e-5);  // flat ground, to the edge of the goal
  EXPECT_NEAR(cost[0], 3.5 * (1.0 + 10.0 * std::log(10.0)), 0.2);
}

TEST(PlannerRanking, RiskWithoutInformationIsNoRisk) {
  Random random(9);
  for (int n = 0; n < 6; ++n) {
    const Terrain terrain = maps::random_terrain(random, 14.0, 0.3);
    Box box;
    EnavConfig config = rig::small_config();
    config.risk.fail_price = 0.0;  // its failures would be information
    Rig rig(&box.checker, config);
    const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), 0.3};
    PlanRequest request = request_on(terrain, pose, terrain.near_center(random, 0.9));
    const PlanResult plain = rig.plan(request);
    std::vector<float> p(8 * 40 * 40, n % 2 == 0 ? kNanF : -kInfF);
    const GridView map = terrain.view();
    const RiskView risk{p.data(), 8, 40, 40, map.origin_x_m, map.origin_y_m, 0.35};
    request.risk = &risk;
    rig.planner.reset();
    const PlanResult& lied_to = rig.plan(request);
    EXPECT_EQ(plain.path_index, lied_to.path_index);
    EXPECT_EQ(plain.path_cost, lied_to.path_cost);
    EXPECT_EQ(plain.telemetry.ace_evaluations, lied_to.telemetry.ace_evaluations);
  }
}

// ---- outcomes ------------------------------------------------------------------------------------

TEST(PlannerOutcome, GoalReachedWithoutAsking) {
  const Terrain flat(80, 80, 0.2);
  Box box;
  Rig rig(&box.checker);
  PlanRequest request = request_on(flat, {8.0, 8.0, 0.0}, {8.75, 9.0});  // 1.25 m
  request.goal_tolerance_m = 1.25;
  const PlanResult& at = rig.plan(request);
  EXPECT_EQ(at.outcome, Outcome::kGoalReached);
  EXPECT_EQ(at.telemetry.ace_evaluations, 0);
  EXPECT_TRUE(rig.spy.poses.empty());
  EXPECT_EQ(at.commit.length_m, 0.0);
  EXPECT_EQ(at.commit.turn_rad, 0.0);
  request.goal_tolerance_m = 1.249;
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kPath);
}

TEST(PlannerOutcome, APathThatReachesTheGoalEndsThere) {
  const Terrain flat(120, 120, 0.2, 5.0, -9.0);
  Box box;
  const double x = flat.center_x_m();
  const double y = flat.center_y_m();
  for (const double distance : {0.5, 1.0, 2.1, 3.0, 4.4, 5.9}) {
    Rig rig(&box.checker);
    PlanRequest request = request_on(flat, {x, y, 0.4}, {});
    request.goal = {x + distance * std::cos(0.4), y + distance * std::sin(0.4)};
    request.goal_tolerance_m = 0.3;
    const PlanResult& result = rig.plan(request);
    ASSERT_EQ(result.outcome, Outcome::kPath);
    expect_result_is_sound(request, result, rig, &box.checker);
    EXPECT_TRUE(rig::within(result.path[result.path_pose_count - 1].pose, request));
    // The first pose of the straight line that is within the tolerance.
    EXPECT_EQ(result.path_pose_count - 1, std::ceil((distance - 0.3) / 0.25 - 1e-9));
    EXPECT_EQ(result.commit.length_m, std::min(1.0, 0.25 * (result.path_pose_count - 1)));
  }
}

TEST(PlannerOutcome, NoSafePathWhenEveryCandidateFails) {
  const Terrain flat(120, 120, 0.2);
  const Pose2 start{12.0, 12.0, 0.0};
  Rig rig([&](const Pose2& pose) -> Reasons {
    return rig::same_pose(pose, start) ? 0 : kBogie | kTilt;
  });
  const PlanRequest request = request_on(flat, start, {20.0, 12.0});
  const PlanResult& result = rig.plan(request);
  EXPECT_EQ(result.outcome, Outcome::kNoSafePath);
  EXPECT_EQ(result.path_pose_count, 0);
  EXPECT_EQ(result.telemetry.paths_tried, 1694);
  EXPECT_EQ(result.telemetry.chosen_rank, -1);
  // The start, the first pose of the 11 arcs ahead, and the first turning pose of either side.
  EXPECT_EQ(result.telemetry.ace_evaluations, 14);
  EXPECT_EQ(rig.spy.repeated(), 0U);
  EXPECT_EQ(result.telemetry.rejects[0], 13);  // tilt
  EXPECT_EQ(result.telemetry.rejects[1], 13);  // bogie
  EXPECT_EQ(result.telemetry.rejects[2], 0);
}

// Only the last pose of every second arc fails: all poses are asked for, each once.
TEST(PlannerOutcome, AFullSweepAsksForEveryPoseOnce) {
  const Terrain flat(150, 150, 0.2);
  const Pose2 start{15.0, 15.0, 0.0};
  EnavConfig config = rig::small_config();
  config.short_paths = false;
  Rig* planner_of = nullptr;
  Rig rig(
      [&](const Pose2& pose) -> Reasons {
        const PathTree& tree = planner_of->planner.tree();
        if (std::hypot(pose.x_m - start.x_m, pose.y_m - start.y_m) < 2.2) return 0;
        for (int path = 0; path < tree.paths(); ++path) {
          const int last = tree.second_arc_pose(path) + tree.poses_per_arc() - 1;
          const Pose2 end = planner_of->planner.pose_of(last);
          if (rig::same_pose(end, pose)) return kRelief;
        }
        return 0;
      },
      config);
  planner_of = &rig;
  const PlanResult& result = rig.plan(request_on(flat, start, {1000.0, 15.0}));
  EXPECT_EQ(result.outcome, Outcome::kNoSafePath);
  EXPECT_EQ(result.telemetry.ace_evaluations, 1 + rig.planner.tree().turn_poses() + 22176);
  EXPECT_EQ(result.telemetry.rejects[4], 1694);
  EXPECT_TRUE(result.telemetry.overthink);
}

TEST(PlannerOutcome, StartUnsafeSaysWhy) {
  const Terrain flat(120, 120, 0.2);
  Rig rig([](const Pose2&) -> Reasons { return kClearance | kRelief; });
  const PlanResult& result = rig.plan(request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0}));
  EXPECT_EQ(result.outcome, Outcome::kStartUnsafe);
  EXPECT_EQ(result.start_reasons, kClearance | kRelief);
  EXPECT_EQ(result.telemetry.ace_evaluations, 1);
  EXPECT_EQ(result.telemetry.rejects[3], 1);
  EXPECT_EQ(result.telemetry.rejects[4], 1);
  EXPECT_EQ(result.path_pose_count, 0);

  // Too close to the border to tell, with a real checker.
  Box box;
  Rig real(&box.checker);
  const PlanResult& border = real.plan(request_on(flat, {0.1, 12.0, 0.0}, {20.0, 12.0}));
  EXPECT_EQ(border.outcome, Outcome::kStartUnsafe);
  EXPECT_EQ(border.start_reasons, kBorder);
}

// A checker that says no and does not say why is believed all the same.
TEST(PlannerOutcome, ARejectionWithoutAReasonIsARejection) {
  class Mute final : public AceChecker {
   public:
    Status set_map(const GridView&) noexcept override { return Status::kOk; }
    bool check(const Sweep& sweep, Reasons* reasons, CheckWork*) const noexcept override {
      *reasons = 0;
      return start_passes && sweep.is_pose() && sweep.begin.pose.x_m == 12.0;
    }
    AceReport report(const Sweep&) const noexcept override { return {}; }
    const RoverModel& model() const noexcept override { return model_; }
    bool start_passes = false;

   private:
    RoverModel model_;
  };
  const Terrain flat(120, 120, 0.2);
  Mute mute;
  Rig rig(&mute);
  const PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0});
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kStartUnsafe);
  EXPECT_NE(rig.result->start_reasons, 0);
  mute.start_passes = true;
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kNoSafePath);
}

TEST(PlannerOutcome, AFaultOfTheCheckersMapIsHandedOn) {
  class Small final : public AceChecker {
   public:
    Status set_map(const GridView&) noexcept override { return Status::kMapTooLarge; }
    bool check(const Sweep&, Reasons* reasons, CheckWork*) const noexcept override {
      ADD_FAILURE() << "asked without a map";
      *reasons = 0;
      return true;
    }
    AceReport report(const Sweep&) const noexcept override { return {}; }
    const RoverModel& model() const noexcept override { return model_; }

   private:
    RoverModel model_;
  };
  const Terrain flat(120, 120, 0.2);
  Small small;
  Rig rig(&small);
  EXPECT_EQ(rig.plan(request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0})).status,
            Status::kMapTooLarge);
  EXPECT_NE(rig.result->outcome, Outcome::kPath);
}

// The budget is a number of calls, and the plan is the same to the last one of them.
TEST(PlannerOutcome, BudgetEndsTheCycleExactly) {
  Random random(21);
  int exhausted = 0;
  for (int n = 0; n < 20; ++n) {
    const Terrain terrain = maps::random_terrain(random, 14.0, 0.6);
    Box box;
    Rig rig(&box.checker);
    const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), random.uniform(-3, 3)};
    PlanRequest request = request_on(terrain, pose, terrain.anywhere(random));
    const PlanResult full = rig.plan(request);
    if (full.outcome != Outcome::kPath && full.outcome != Outcome::kNoSafePath) continue;
    const std::int64_t needed = full.telemetry.ace_evaluations;
    for (const std::int64_t budget :
         {std::int64_t{0}, std::int64_t{1}, needed / 2, needed - 1, needed, needed + 1, needed * 9,
          std::numeric_limits<std::int64_t>::max(), std::int64_t{-7},
          std::numeric_limits<std::int64_t>::min()}) {
      rig.planner.reset();
      request.ace_budget = budget;
      const PlanResult& result = rig.plan(request);
      expect_result_is_sound(request, result, rig, &box.checker);
      if (budget < 0 || budget >= needed) {
        EXPECT_EQ(result.outcome, full.outcome);
        EXPECT_EQ(result.path_index, full.path_index);
        EXPECT_EQ(result.telemetry.ace_evaluations, needed);
      } else {
        EXPECT_EQ(result.outcome, Outcome::kBudgetExhausted);
        EXPECT_EQ(result.telemetry.ace_evaluations, budget);
        ++exhausted;
      }
    }
  }
  EXPECT_GT(exhausted, 40);
}

TEST(PlannerOutcome, OverthinkCountsFromTheMark) {
  const Terrain flat(120, 120, 0.2);
  for (const std::int64_t mark : {24, 25, 26}) {
    EnavConfig config = rig::small_config();
    config.overthink_evaluations = mark;
    Rig rig([](const Pose2&) { return Reasons{0}; }, config);
    const PlanResult& result = rig.plan(request_on(flat, {8.0, 12.0, 0.0}, {20.0, 12.0}));
    ASSERT_EQ(result.telemetry.ace_evaluations, 25);
    EXPECT_EQ(result.telemetry.overthink, mark < 25);
  }
}

TEST(PlannerOutcome, AGoalOutsideTheMapIsDrivenTowards) {
  const Terrain flat(160, 160, 0.15, -4.0, 17.0);
  Box box;
  for (int direction = 0; direction < 8; ++direction) {
    Rig rig(&box.checker);
    const double bearing = direction * kPi / 4.0;
    const Point2 goal{flat.center_x_m() + 500.0 * std::cos(bearing),
                      flat.center_y_m() + 500.0 * std::sin(bearing)};
    Pose2 pose{flat.center_x_m(), flat.center_y_m(), 1.0};
    for (int cycle = 0; cycle < 9; ++cycle) {
      const PlanRequest request = request_on(flat, pose, goal);
      const PlanResult& result = rig.plan(request);
      ASSERT_EQ(result.outcome, Outcome::kPath) << direction << " " << cycle;
      expect_result_is_sound(request, result, rig, &box.checker);
      pose = result.commit_end;
    }
    // Six turns of 30 deg at most, then straight on.
    const double forward = (pose.x_m - flat.center_x_m()) * std::cos(bearing) +
                           (pose.y_m - flat.center_y_m()) * std::sin(bearing);
    EXPECT_GT(forward, 1.8) << direction;
  }
}

// ---- keep-out ------------------------------------------------------------------------------------

TEST(PlannerKeepOut, NoPieceOfAPathTouchesIt) {
  const Terrain flat(150, 150, 0.2, 100.0, -50.0);
  const GridView map = flat.view();
  Box box;
  Rig rig(&box.checker);
  const double x = flat.center_x_m();
  const double y = flat.center_y_m();
  // A bar across the way.
  std::vector<std::uint8_t> mask(map.cells(), 0);
  for (int iy = 0; iy < map.ny; ++iy) {
    for (int ix = 0; ix < map.nx; ++ix) {
      const double dx = map.center_x_m(ix) - x;
      const double dy = map.center_y_m(iy) - y;
      mask[static_cast<std::size_t>(iy * map.nx + ix)] =
          dx > 2.5 && dx < 3.5 && std::fabs(dy) < 1.6;
    }
  }
  PlanRequest request = request_on(flat, {x, y, 0.0}, {x + 9.0, y});
  const PlanResult free = rig.plan(request);
  EXPECT_LT(free.path_index, 11);  // straight
  rig.planner.reset();
  request.keep_out = {mask.data(), request.map.nx, request.map.ny};
  const PlanResult& result = rig.plan(request);
  ASSERT_EQ(result.outcome, Outcome::kPath);
  EXPECT_GE(result.path_index, 11);
  expect_result_is_sound(request, result, rig, &box.checker);
}

// It leaves room to turn on the spot and for nothing else.
TEST(PlannerKeepOut, AClosedRingHoldsTheRover) {
  const Terrain flat(150, 150, 0.2);
  const GridView map = flat.view();
  Rig rig([](const Pose2&) { return Reasons{0}; });
  std::vector<std::uint8_t> mask(map.cells(), 0);
  for (int iy = 0; iy < map.ny; ++iy) {
    for (int ix = 0; ix < map.nx; ++ix) {
      const double d = std::hypot(map.center_x_m(ix) - 15.0, map.center_y_m(iy) - 15.0);
      mask[static_cast<std::size_t>(iy * map.nx + ix)] = d > 2.6 && d < 2.8;
    }
  }
  PlanRequest request = request_on(flat, {15.0, 15.0, 0.0}, {25.0, 15.0});
  request.keep_out = {mask.data(), request.map.nx, request.map.ny};
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kNoSafePath);
}

TEST(PlannerKeepOut, AStartInsideIsUnsafeWithoutAsking) {
  const Terrain flat(150, 150, 0.2);
  Box box;
  Rig rig(&box.checker);
  std::vector<std::uint8_t> mask(150 * 150, 0);
  mask[75 * 150 + 75] = 1;  // the cell at (15, 15)
  PlanRequest request = request_on(flat, {15.05, 14.95, 0.0}, {25.0, 15.0});
  request.keep_out = {mask.data(), request.map.nx, request.map.ny};
  const PlanResult& result = rig.plan(request);
  EXPECT_EQ(result.outcome, Outcome::kStartUnsafe);
  EXPECT_EQ(result.start_reasons, kKeepOutZone);
  EXPECT_TRUE(rig.spy.poses.empty());
  EXPECT_EQ(result.telemetry.ace_evaluations, 0);
  EXPECT_EQ(result.telemetry.rejects[10], 1);
}

TEST(PlannerKeepOut, AMaskOfAnotherShapeIsRefused) {
  const Terrain flat(150, 140, 0.2);
  Box box;
  Rig rig(&box.checker);
  const std::vector<std::uint8_t> mask(150 * 150, 0);
  PlanRequest request = request_on(flat, {15.0, 14.0, 0.0}, {25.0, 15.0});
  for (const auto& [nx, ny] : {std::pair{140, 150}, {150, 139}, {149, 140}, {0, 0}, {-150, -140}}) {
    request.keep_out = {mask.data(), nx, ny};
    EXPECT_EQ(rig.plan(request).status, Status::kKeepOutBadShape) << nx << " x " << ny;
    EXPECT_TRUE(rig.spy.poses.empty());
  }
  request.keep_out = {mask.data(), 150, 140};
  EXPECT_EQ(rig.plan(request).outcome, Outcome::kPath);
}

// ---- bad input -----------------------------------------------------------------------------------

TEST(PlannerStatus, EachFaultHasItsName) {
  struct Case {
    const char* name;
    Status status;
    void (*spoil)(PlanRequest*, RiskView*);
  };
  const Case cases[] = {
      {"no map", Status::kMapEmpty, [](PlanRequest* r, RiskView*) { r->map.z = nullptr; }},
      {"nx 0", Status::kMapEmpty, [](PlanRequest* r, RiskView*) { r->map.nx = 0; }},
      {"ny < 0", Status::kMapEmpty, [](PlanRequest* r, RiskView*) { r->map.ny = -5; }},
      {"huge", Status::kMapTooLarge,
       [](PlanRequest* r, RiskView*) {
         r->map.nx = std::numeric_limits<int>::max();
         r->map.ny = std::numeric_limits<int>::max();
       }},
      {"wide", Status::kMapTooLarge,
       [](PlanRequest* r, RiskView*) { r->map.nx = std::numeric_limits<int>::max(); }},
      {"resolution 0", Status::kMapBadResolution,
       [](PlanRequest* r, RiskView*) { r->map.resolution_m = 0.0; }},
      {"resolution < 0", Status::kMapBadResolution,
       [](PlanRequest* r, RiskView*) { r->map.resolution_m = -0.2; }},
      {"resolution NaN", Status::kMapBadResolution,
       [](PlanRequest* r, RiskView*) { r->map.resolution_m = kNan; }},
      {"resolution inf", Status::kMapBadResolution,
       [](PlanRequest* r, RiskView*) { r->map.resolution_m = kInf; }},
      {"resolution 1e-9", Status::kMapBadResolution,
       [](PlanRequest* r, RiskView*) { r->map.resolution_m = 1e-9; }},
      {"resolution changed", Status::kMapResolutionChanged,
       [](PlanRequest* r, RiskView*) { r->map.resolution_m = 0.25; }},
      {"origin NaN", Status::kMapBadOrigin,
       [](PlanRequest* r, RiskView*) { r->map.origin_x_m = kNan; }},
      {"origin 1e9", Status::kMapBadOrigin,
       [](PlanRequest* r, RiskView*) { r->map.origin_y_m = 1e9; }},
      {"x NaN", Status::kPoseNotFinite, [](PlanRequest* r, RiskView*) { r->pose.x_m = kNan; }},
      {"y inf", Status::kPoseNotFinite, [](PlanRequest* r, RiskView*) { r->pose.y_m = -kInf; }},
      {"heading NaN", Status::kPoseNotFinite,
       [](PlanRequest* r, RiskView*) { r->pose.heading_rad = kNan; }},
      {"heading 1e9", Status::kPoseHeadingTooLarge,
       [](PlanRequest* r, RiskView*) { r->pose.heading_rad = 1e9; }},
      {"heading -1e9", Status::kPoseHeadingTooLarge,
       [](PlanRequest* r, RiskView*) { r->pose.heading_rad = -1e9; }},
      {"west of the map", Status::kPoseOutsideMap,
       [](PlanRequest* r, RiskView*) { r->pose.x_m = -0.11; }},
      {"on the far edge", Status::kPoseOutsideMap,
       [](PlanRequest* r, RiskView*) { r->pose.x_m = 0.2 * 119.5; }},
      {"very far", Status::kPoseOutsideMap, [](PlanRequest* r, RiskView*) { r->pose.y_m = 1e300; }},
      {"goal NaN", Status::kGoalNotFinite, [](PlanRequest* r, RiskView*) { r->goal.x_m = kNan; }},
      {"goal inf", Status::kGoalNotFinite, [](PlanRequest* r, RiskView*) { r->goal.y_m = kInf; }},
      {"tolerance 0", Status::kGoalToleranceBad,
       [](PlanRequest* r, RiskView*) { r->goal_tolerance_m = 0.0; }},
      {"tolerance NaN", Status::kGoalToleranceBad,
       [](PlanRequest* r, RiskView*) { r->goal_tolerance_m = kNan; }},
      {"tolerance inf", Status::kGoalToleranceBad,
       [](PlanRequest* r, RiskView*) { r->goal_tolerance_m = kInf; }},
      {"risk without data", Status::kRiskBadShape,
       [](PlanRequest* r, RiskView* v) { v->p = nullptr, r->risk = v; }},
      {"risk without bins", Status::kRiskBadShape,
       [](PlanRequest* r, RiskView* v) { v->bins = 0, r->risk = v; }},
      {"risk too large", Status::kRiskBadShape,
       [](PlanRequest* r, RiskView* v) { v->bins = 1 << 20, r->risk = v; }},
      {"risk far too large", Status::kRiskBadShape,
       [](PlanRequest* r, RiskView* v) {
         v->nx = v->ny = v->bins = std::numeric_limits<int>::max();
         r->risk = v;
       }},
      {"risk resolution NaN", Status::kRiskBadShape,
       [](PlanRequest* r, RiskView* v) { v->resolution_m = kNan, r->risk = v; }},
  };
  const Terrain flat(120, 120, 0.2);
  const std::vector<float> p(100, 0.1F);
  Box box;
  Rig rig(&box.checker);
  Rig untroubled(&box.checker);
  PlanRequest good = request_on(flat, {8.0, 12.0, 0.3}, {20.0, 15.0});
  ASSERT_EQ(rig.plan(good).outcome, Outcome::kPath);
  ASSERT_EQ(untroubled.plan(good).outcome, Outcome::kPath);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    PlanRequest request = good;
    RiskView risk{p.data(), 1, 10, 10, 0.0, 0.0, 1.0};
    c.spoil(&request, &risk);
    std::memset(static_cast<void*>(rig.result.get()), 0x5a, sizeof(PlanResult));
    const PlanResult& result = rig.plan(request);
    EXPECT_STREQ(to_string(result.status), to_string(c.status));
    EXPECT_NE(result.outcome, Outcome::kPath);
    EXPECT_NE(result.outcome, Outcome::kGoalReached);
    EXPECT_EQ(result.commit.turn_rad, 0.0);
    EXPECT_EQ(result.commit.length_m, 0.0);
    EXPECT_EQ(result.path_pose_count, 0);
    EXPECT_EQ(result.telemetry.ace_evaluations, 0);
    EXPECT_TRUE(rig.spy.poses.empty());
  }
  // A refused request leaves no trace: the next plan is that of a planner that never saw one.
  const PlanResult& after = rig.plan(good);
  const PlanResult& other = untroubled.plan(good);
  EXPECT_EQ(after.path_index, other.path_index);
  EXPECT_EQ(after.path_cost, other.path_cost);
}

TEST(PlannerStatus, BadHeights) {
  Box box;
  Rig rig(&box.checker);
  const auto status_of = [&](const Terrain& terrain) {
    rig.planner.reset();
    const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), 0.0};
    return rig.plan(request_on(terrain, pose, {50.0, 50.0})).status;
  };
  Terrain terrain(120, 120, 0.2);
  terrain.at(3, 119) = kInfF;
  EXPECT_EQ(status_of(terrain), Status::kMapBadHeight);
  terrain.at(3, 119) = -kInfF;
  EXPECT_EQ(status_of(terrain), Status::kMapBadHeight);
  terrain.at(3, 119) = 2e5F;
  EXPECT_EQ(status_of(terrain), Status::kMapBadHeight);
  terrain.at(3, 119) = kNanF;
  EXPECT_EQ(status_of(terrain), Status::kOk);
  for (float& z : terrain.z) z = kNanF;
  EXPECT_EQ(status_of(terrain), Status::kMapAllUnknown);

  Terrain single(1, 1, 0.2);
  EXPECT_EQ(status_of(single), Status::kOk);
  EXPECT_EQ(rig.result->outcome, Outcome::kStartUnsafe);
  Terrain row(300, 1, 0.2);
  EXPECT_EQ(status_of(row), Status::kOk);
  EXPECT_EQ(rig.result->start_reasons, kBorder);
  Terrain column(1, 300, 0.2);
  EXPECT_EQ(status_of(column), Status::kOk);
  EXPECT_EQ(rig.result->start_reasons, kBorder);
}

TEST(PlannerStatus, StartOrGoalOnUnknownGround) {
  Terrain terrain(120, 120, 0.2);
  terrain.unknown_disc(12.0, 12.0, 1.5);
  Box box;
  Rig rig(&box.checker);
  const PlanResult& start = rig.plan(request_on(terrain, {12.0, 12.0, 0.0}, {20.0, 12.0}));
  EXPECT_EQ(start.outcome, Outcome::kStartUnsafe);
  EXPECT_EQ(start.start_reasons, kUnknown);
  // A goal there is driven towards; unseen ground is not driven on.
  const PlanRequest request = request_on(terrain, {6.0, 12.0, 0.0}, {12.0, 12.0});
  const PlanResult& goal = rig.plan(request);
  EXPECT_EQ(goal.outcome, Outcome::kPath);
  expect_result_is_sound(request, goal, rig, &box.checker);
}

TEST(PlannerStatus, TheResolutionMayChangeWithANewTraverse) {
  const Terrain coarse(120, 120, 0.2);
  const Terrain fine(150, 150, 0.15);
  Box box;
  Rig rig(&box.checker);
  const Pose2 pose{10.0, 10.0, 0.0};
  EXPECT_EQ(rig.plan(request_on(coarse, pose, {20.0, 12.0})).status, Status::kOk);
  EXPECT_EQ(rig.plan(request_on(fine, pose, {20.0, 12.0})).status, Status::kMapResolutionChanged);
  EXPECT_EQ(rig.plan(request_on(coarse, pose, {20.0, 12.0})).status, Status::kOk);
  rig.planner.reset();
  EXPECT_EQ(rig.plan(request_on(fine, pose, {20.0, 12.0})).status, Status::kOk);
  // A request that was refused for another reason does not fix the resolution.
  rig.planner.reset();
  EXPECT_EQ(rig.plan(request_on(fine, {1e6, 0.0, 0.0}, {20.0, 12.0})).status,
            Status::kPoseOutsideMap);
  EXPECT_EQ(rig.plan(request_on(coarse, pose, {20.0, 12.0})).status, Status::kOk);
}

TEST(PlannerStatus, HeadingsOfManyTurnsPlanAsTheirRemainder) {
  Random random(31);
  const Terrain terrain = maps::random_terrain(random, 14.0, 0.3);
  Box box;
  Rig rig(&box.checker);
  const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), 0.7};
  const Point2 goal = terrain.near_center(random, 0.9);
  const PlanResult near = rig.plan(request_on(terrain, pose, goal));
  for (const double turns : {1.0, -3.0, 1000.0, -159000.0}) {
    rig.planner.reset();
    const Pose2 far{pose.x_m, pose.y_m, pose.heading_rad + turns * 2.0 * kPi};
    const PlanResult& result = rig.plan(request_on(terrain, far, goal));
    EXPECT_EQ(result.status, Status::kOk);
    EXPECT_EQ(result.path_index, near.path_index) << turns;
    EXPECT_EQ(result.telemetry.ace_evaluations, near.telemetry.ace_evaluations);
  }
}

TEST(PlannerStatus, BeforeInitNothingIsPlanned) {
  EnavPlanner planner;
  planner.reset();
  const Terrain flat(120, 120, 0.2);
  PlanResult result;
  EXPECT_EQ(planner.plan(request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0}), &result),
            Status::kNotInitialized);
  EXPECT_EQ(result.status, Status::kNotInitialized);
}

// ---- configuration and memory --------------------------------------------------------------------

TEST(PlannerConfig, ValidateNamesTheField) {
  EXPECT_TRUE(validate(EnavConfig{}).ok());
  struct Case {
    const char* field;
    void (*spoil)(EnavConfig*, double);
    double values[5];
  };
  const Case cases[] = {
      {"weight_per_m",
       [](EnavConfig* c, double v) { c->risk.weight_per_m = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"to_go_fraction",
       [](EnavConfig* c, double v) { c->risk.to_go_fraction = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"fail_price",
       [](EnavConfig* c, double v) { c->risk.fail_price = v; },
       {kNan, kInf, -kInf, -1.0, 1001.0}},
      {"turn_cost",
       [](EnavConfig* c, double v) { c->turn_cost = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"turn_cost_per_rad",
       [](EnavConfig* c, double v) { c->turn_cost_per_rad = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"commit_length_m",
       [](EnavConfig* c, double v) { c->commit_length_m = v; },
       {kNan, 0.0, 0.3, 3.25, -1.0}},
      {"commit_turn_rad",
       [](EnavConfig* c, double v) { c->commit_turn_rad = v; },
       {kNan, 0.0, -0.5, 3.2, kInf}},
      {"overthink_evaluations",
       [](EnavConfig* c, double v) { c->overthink_evaluations = static_cast<std::int64_t>(v); },
       {0, -1, -275, -1e9, -2}},
      {"memory_poses",
       [](EnavConfig* c, double v) { c->memory_poses = static_cast<int>(v); },
       {-1, -256, 1e8, 2e9, 100001}},
      {"memory_failures",
       [](EnavConfig* c, double v) { c->memory_failures = static_cast<int>(v); },
       {-1, -1024, 1e8, 2e9, 100001}},
      {"visit_cost_per_m",
       [](EnavConfig* c, double v) { c->visit_cost_per_m = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"visit_radius_m",
       [](EnavConfig* c, double v) { c->visit_radius_m = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"flip_cost",
       [](EnavConfig* c, double v) { c->flip_cost = v; },
       {kNan, kInf, -kInf, -1.0, 1e9}},
      {"max_map_cells",
       [](EnavConfig* c, double v) { c->max_map_cells = static_cast<std::size_t>(v); },
       {0, 1e12, 1e18, 1e9, 1e10}},
      {"max_risk_cells",
       [](EnavConfig* c, double v) { c->max_risk_cells = static_cast<std::size_t>(v); },
       {1e12, 1e18, 1e9, 1e10, 1e11}},
      // Of the parts.
      {"turn_count",
       [](EnavConfig* c, double v) { c->tree.turn_count = static_cast<int>(v); },
       {0, -1, 65, 1e9, -1e9}},
      {"ace_step_m",
       [](EnavConfig* c, double v) { c->tree.ace_step_m = v; },
       {kNan, 0.0, -1.0, 0.26, kInf}},
      {"coarsening",
       [](EnavConfig* c, double v) { c->costmap.coarsening = static_cast<int>(v); },
       {0, -1, 1e6, -4, 2e9}},
      {"patch_half_width_m",
       [](EnavConfig* c, double v) { c->costmap.patch_half_width_m = v; },
       {kNan, kInf, -1.0, -kInf, 1e9}},
      {"tilt_scale_rad",
       [](EnavConfig* c, double v) { c->costmap.tilt_scale_rad = v; },
       {kNan, 0.0, -1.0, -kInf, kInf}},
      {"roughness_scale_m",
       [](EnavConfig* c, double v) { c->costmap.roughness_scale_m = v; },
       {kNan, 0.0, -1.0, -kInf, kInf}},
      {"tilt_limit_rad",
       [](EnavConfig* c, double v) { c->costmap.tilt_limit_rad = v; },
       {kNan, 0.0, -1.0, 3.0, kInf}},
      {"unknown_cost",
       [](EnavConfig* c, double v) { c->costmap.unknown_cost = v; },
       {kNan, 0.0, -1.0, -kInf, kInf}},
  };
  maps::Memory memory(1 << 20);
  Box box;
  for (const Case& c : cases) {
    for (const double value : c.values) {
      EnavConfig config = rig::small_config();
      c.spoil(&config, value);
      const Fault fault = validate(config);
      EXPECT_EQ(fault.status, Status::kConfigBad) << c.field << " = " << value;
      EXPECT_STREQ(fault.field, c.field) << value;
      // Such a configuration has no size, and planners refuse it by the same name.
      EXPECT_EQ(EnavPlanner::memory_required(config), 0U) << c.field << " = " << value;
      Arena arena(memory.data(), memory.size());
      EnavPlanner planner;
      EXPECT_STREQ(planner.init(config, &box.checker, &arena).field, c.field);
      PlanResult result;
      EXPECT_EQ(planner.plan({}, &result), Status::kNotInitialized);
    }
  }
}

TEST(PlannerConfig, ACheckerIsNeeded) {
  const EnavConfig config = rig::small_config();
  maps::Memory memory(EnavPlanner::memory_required(config));
  Arena arena(memory.data(), memory.size());
  EnavPlanner planner;
  EXPECT_STREQ(planner.init(config, nullptr, &arena).field, "checker");
}

TEST(PlannerConfig, PathsOfMorePosesThanAResultHoldsAreRefused) {
  EnavConfig config = rig::small_config();
  config.tree.turn_count = 2;
  config.tree.turn_rad[1] = kPi;
  config.tree.turn_step_rad = 1 * kDeg;
  config.tree.arc_length_m = 2.56;
  config.tree.ace_step_m = 0.01;
  config.commit_length_m = 1.0;
  config.tree.curvature_count = 2;
  maps::Memory memory(EnavPlanner::memory_required(config));
  Arena arena(memory.data(), memory.size());
  EnavPlanner planner;
  Box box;
  const Fault fault = planner.init(config, &box.checker, &arena);
  if (fault.ok()) {
    EXPECT_LE(1 + planner.tree().turn_poses() + 2 * planner.tree().poses_per_arc(),
              PlanResult::kMaxPathPoses);
  } else {
    EXPECT_EQ(fault.status, Status::kConfigBad);
  }
}

// memory_required() is enough at any address, and nothing less is taken for enough.
TEST(PlannerConfig, TheArenaIsSizedExactly) {
  EnavConfig config = rig::small_config();
  config.max_map_cells = 120 * 120;
  config.max_risk_cells = 16 * 400;
  const std::size_t bytes = EnavPlanner::memory_required(config);
  std::vector<unsigned char> memory(bytes + 256);
  Box box;
  const Terrain flat(120, 120, 0.2);
  const std::vector<float> p(16 * 400, 0.2F);
  const RiskView risk{p.data(), 16, 20, 20, 0.0, 0.0, 1.2};
  PlanRequest request = request_on(flat, {8.0, 12.0, 0.3}, {20.0, 15.0});
  request.risk = &risk;
  PlanResult result;
  for (std::size_t shift = 0; shift < 64; shift += 7) {
    Arena arena(memory.data() + shift, bytes);
    EnavPlanner planner;
    ASSERT_TRUE(planner.init(config, &box.checker, &arena).ok()) << shift;
    EXPECT_LE(arena.used_bytes(), bytes);
    EXPECT_EQ(planner.plan(request, &result), Status::kOk);
    EXPECT_EQ(result.outcome, Outcome::kPath);
  }
  // Every size below: refused, or it works without touching what lies behind (ASan watches).
  int refused = 0;
  for (std::size_t size = 0; size < bytes; size += 1 + bytes / 301) {
    std::vector<unsigned char> small(size);
    Arena arena(small.data(), size);
    EnavPlanner planner;
    const Fault fault = planner.init(config, &box.checker, &arena);
    if (fault.ok()) {
      EXPECT_EQ(planner.plan(request, &result), Status::kOk);
      EXPECT_EQ(result.outcome, Outcome::kPath);
    } else {
      EXPECT_EQ(fault.status, Status::kArenaTooSmall);
      EXPECT_EQ(planner.plan(request, &result), Status::kNotInitialized);
      ++refused;
    }
  }
  EXPECT_GT(refused, 290);
}

// Maps of every shape fit the memory reserved for their number of cells: they get the costs that a
// planner with room to spare gives them.
TEST(PlannerConfig, AnyShapeFitsTheReservedCells) {
  EnavConfig config = rig::small_config();
  config.costmap.coarsening = 1;
  config.memory_poses = 3;
  Rig roomy([](const Pose2&) { return Reasons{0}; }, config);
  config.max_map_cells = 2000;
  config.max_risk_cells = 0;
  Rig rig([](const Pose2&) { return Reasons{0}; }, config);
  Random random(71);
  for (const auto& [nx, ny] : {std::pair{2000, 1},
                               {1, 2000},
                               {1000, 2},
                               {2, 1000},
                               {3, 666},
                               {44, 45},
                               {45, 44},
                               {400, 5},
                               {1, 1},
                               {40, 50}}) {
    rig.planner.reset();
    roomy.planner.reset();
    Terrain terrain(nx, ny, 0.4);
    terrain.noise(random, 0.1);
    const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), 0.0};
    const PlanRequest request = request_on(terrain, pose, {1e4, 1e4});
    EXPECT_EQ(rig.plan(request).status, Status::kOk);
    EXPECT_EQ(roomy.plan(request).status, Status::kOk);
    for (int path = 0; path < rig.planner.tree().paths(); ++path) {
      ASSERT_EQ(rig.planner.path_cost(path), roomy.planner.path_cost(path)) << nx << " x " << ny;
    }
  }
  const Terrain over(2001, 1, 0.2);
  EXPECT_EQ(rig.plan(request_on(over, {1.0, 0.0, 0.0}, {1e4, 1e4})).status, Status::kMapTooLarge);
}

// ---- memory between cycles -----------------------------------------------------------------------

// Cells within the radius of a pose at which a cycle began cost more, once for each of them.
void expect_visits(const Rig& rig, const std::vector<Pose2>& visits) {
  const EnavConfig& config = rig.planner.config();
  const Costmap& costmap = rig.planner.costmap();
  int raised = 0;
  for (int iy = 0; iy < costmap.grid.ny; ++iy) {
    for (int ix = 0; ix < costmap.grid.nx; ++ix) {
      int near = 0;
      bool on_edge = false;
      for (const Pose2& v : visits) {
        const double d =
            std::hypot(costmap.grid.origin_x_m + ix * costmap.grid.resolution_m - v.x_m,
                       costmap.grid.origin_y_m + iy * costmap.grid.resolution_m - v.y_m);
        near += d <= config.visit_radius_m ? 1 : 0;
        on_edge |= std::fabs(d - config.visit_radius_m) < 1e-9;
      }
      if (on_edge) continue;
      const int cell = iy * costmap.grid.nx + ix;
      EXPECT_NEAR(rig.planner.cost_with_memory()[cell],
                  static_cast<double>(costmap.cost_per_m[cell]) + near * config.visit_cost_per_m,
                  1e-5)
          << ix << " " << iy;
      raised += near > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(raised > 0, !visits.empty());
}

TEST(PlannerMemory, VisitedGroundCostsMore) {
  const Terrain flat(120, 100, 0.2, -71.0, 33.0);
  EnavConfig config = rig::small_config();
  config.memory_poses = 3;
  Rig rig([](const Pose2&) { return Reasons{0}; }, config);
  std::vector<Pose2> visits;
  Random random(1);
  for (int n = 0; n < 7; ++n) {
    const Point2 at = flat.near_center(random, 0.9);
    visits.push_back({at.x_m, at.y_m, 0.0});
    if (n == 2) visits.back() = visits[1];  // the same place again
    rig.plan(request_on(flat, visits.back(), {flat.center_x_m() + 200.0, flat.center_y_m()}));
    if (visits.size() > 3) visits.erase(visits.begin());  // the oldest is forgotten
    expect_visits(rig, visits);
  }
  rig.planner.reset();
  rig.plan(request_on(flat, visits.back(), {flat.center_x_m() + 200.0, flat.center_y_m()}));
  expect_visits(rig, {visits.back()});

  config.memory_poses = 0;
  Rig without([](const Pose2&) { return Reasons{0}; }, config);
  without.plan(request_on(flat, visits.back(), {flat.center_x_m() + 200.0, flat.center_y_m()}));
  without.plan(request_on(flat, visits.back(), {flat.center_x_m() + 200.0, flat.center_y_m()}));
  expect_visits(without, {});
}

// The map moves with the rover; what was visited stays where it was, also when it is off the map.
TEST(PlannerMemory, VisitsStayInTheWorld) {
  EnavConfig config = rig::small_config();
  Rig rig([](const Pose2&) { return Reasons{0}; }, config);
  const Terrain here(80, 80, 0.2, 0.0, 0.0);
  const Terrain moved(80, 80, 0.2, 2.4, -1.6);
  const Terrain far(80, 80, 0.2, 5000.0, -9e6);
  const Point2 goal{7.0, 100.0};
  rig.plan(request_on(here, {8.0, 8.0, 0.0}, goal));
  rig.plan(request_on(moved, {9.0, 8.0, 0.0}, goal));
  expect_visits(rig, {{8.0, 8.0, 0.0}, {9.0, 8.0, 0.0}});
  rig.plan(request_on(far, {5008.0, -9e6 + 8.0, 0.0}, goal));
  expect_visits(rig, {{5008.0, -9e6 + 8.0, 0.0}});
}

// A pocket that the costmap does not see, 12 m across and 5 m deep: ACE alone rejects its walls, and the
// goal lies behind it. With memory the rover finds its way round; without, it stays in there.
TEST(PlannerMemory, APocketIsLeft) {
  const Terrain flat(160, 160, 0.2);
  const auto walls = [](const Pose2& pose) -> Reasons {
    const double dx = pose.x_m - 16.0;
    const double dy = std::fabs(pose.y_m - 16.0);
    const bool back = dx > 0.0 && dx < 1.0 && dy < 6.0;
    const bool sides = dx > -5.0 && dx < 1.0 && dy > 5.5 && dy < 6.0;
    return back || sides ? kRelief : 0;
  };
  for (const int memory_poses : {256, 0}) {
    EnavConfig config = rig::small_config();
    config.memory_poses = memory_poses;
    config.visit_cost_per_m = 0.5;
    Rig rig(walls, config);
    Pose2 pose{9.0, 16.3, 0.0};
    int cycles = 0;
    for (; cycles < 180; ++cycles) {
      const PlanResult& result = rig.plan(request_on(flat, pose, {26.0, 16.0}));
      if (result.outcome != Outcome::kPath) break;
      pose = result.commit_end;
      pose.heading_rad = wrap_angle(pose.heading_rad);
    }
    if (memory_poses > 0) {
      EXPECT_EQ(rig.result->outcome, Outcome::kGoalReached);
    } else {
      EXPECT_EQ(cycles, 180);
      EXPECT_LT(pose.x_m, 17.0);
    }
  }
}

TEST(PlannerMemory, PlanningFromOnePlaceCostsMoreEachTime) {
  const Terrain flat(120, 120, 0.2);
  Box box;
  Rig rig(&box.checker);
  const PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0});
  double last = 0.0;
  for (int n = 0; n < 5; ++n) {
    rig.plan(request);
    const double cost = static_cast<double>(rig.planner.path_cost(0));
    EXPECT_GT(cost, last);
    last = cost;
  }
}

// Turning back against the turn just committed costs `flip_cost`, and nothing else does.
TEST(PlannerMemory, TurningBackCostsAFlip) {
  const Terrain flat(150, 150, 0.2);
  EnavConfig without = rig::small_config();
  without.flip_cost = 0.0;
  EnavConfig with = without;
  with.flip_cost = 3.0;
  for (const double side : {1.0, -1.0}) {
    Rig a([](const Pose2&) { return Reasons{0}; }, without);
    Rig b([](const Pose2&) { return Reasons{0}; }, with);
    Pose2 pose{15.0, 15.0, 0.0};
    const PlanRequest first = request_on(flat, pose, {15.0, 15.0 + side * 12.0});
    a.plan(first);
    b.plan(first);
    ASSERT_EQ(a.result->path_index, b.result->path_index);
    ASSERT_GT(b.result->commit.turn_rad * side, 0.0);
    pose = b.result->commit_end;
    const PlanRequest second = request_on(flat, pose, {15.0, 15.0 + side * 12.0});
    a.plan(second);
    b.plan(second);
    const auto expect_flip = [&](double cost_of_opposite) {
      for (int path = 0; path < 1694; ++path) {
        const double turn = with.tree.turn_rad[path / 121];
        const float extra = b.planner.path_cost(path) - a.planner.path_cost(path);
        EXPECT_NEAR(extra, turn * side < 0.0 ? cost_of_opposite : 0.0, 1e-4) << path;
      }
    };
    expect_flip(3.0);
    // Once an arc was driven, either way is as good as the other.
    const PlanRequest ahead = request_on(
        flat, pose,
        {pose.x_m + 9.0 * std::cos(pose.heading_rad), pose.y_m + 9.0 * std::sin(pose.heading_rad)});
    a.plan(ahead);
    b.plan(ahead);
    ASSERT_GT(a.result->commit.length_m, 0.0);
    ASSERT_GT(b.result->commit.length_m, 0.0);
    a.plan(ahead);
    b.plan(ahead);
    expect_flip(0.0);
  }
}

// ---- determinism ---------------------------------------------------------------------------------

TEST(PlannerDeterminism, SameInputSameBitsAfterResetAndInOtherMemory) {
  Random random(41);
  for (int n = 0; n < 8; ++n) {
    const Terrain terrain = maps::random_terrain(random, 14.0, 0.5);
    Box box;
    Box other_box;
    box.checker.set_map(terrain.view());
    const BadRisk risk(random, BadRisk::kRandom, terrain, box.checker);
    const Point2 goal = terrain.anywhere(random);
    const double heading = random.uniform(-4, 4);
    const auto traverse = [&](Rig& rig) {
      std::vector<PlanResult> results;
      Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), heading};
      for (int cycle = 0; cycle < 4; ++cycle) {
        PlanRequest request = request_on(terrain, pose, goal);
        request.risk = &risk.view;
        results.push_back(rig.plan(request));
        pose = results.back().commit_end;
      }
      return results;
    };
    Rig rig(&box.checker);
    Rig other(&other_box.checker);
    const auto first = traverse(rig);
    rig.planner.reset();
    const auto again = traverse(rig);
    // Another planner in other memory, used for something else before.
    other.plan(request_on(terrain, {terrain.center_x_m() + 0.3, terrain.center_y_m(), 2.0}, goal));
    other.planner.reset();
    const auto elsewhere = traverse(other);
    for (std::size_t i = 0; i < first.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same_bits(first[i], again[i]);
      expect_same_bits(first[i], elsewhere[i]);
    }
  }
}

TEST(PlannerDeterminism, AMapMovedByWholeMetresGivesTheSamePlan) {
  Random random(43);
  for (int n = 0; n < 10; ++n) {
    // A resolution and poses that are moved without rounding.
    const double origin_x = random.between(-20, 20);
    const double origin_y = random.between(-20, 20);
    Terrain terrain(110, 90, 0.125, origin_x, origin_y);
    terrain.hills(random, 0.3, 8.0).rocks(random, 12, 0.1, 0.3);
    const Pose2 pose{origin_x + 6.5 + random.between(-8, 8) / 8.0, origin_y + 5.25, 0.25 * n};
    const Point2 goal{origin_x + random.between(0, 13), origin_y + random.between(0, 11)};
    Box box;
    Rig rig(&box.checker);
    const PlanResult here = rig.plan(request_on(terrain, pose, goal));
    for (const auto& [dx, dy] : {std::pair{64.0, -32.0}, {-3.0, 1000.0}, {4e6, -4e6}}) {
      Terrain moved(110, 90, 0.125, origin_x + dx, origin_y + dy);
      moved.z = terrain.z;
      rig.planner.reset();
      const Pose2 there{pose.x_m + dx, pose.y_m + dy, pose.heading_rad};
      const PlanResult& result = rig.plan(request_on(moved, there, {goal.x_m + dx, goal.y_m + dy}));
      EXPECT_EQ(result.outcome, here.outcome);
      EXPECT_EQ(result.path_index, here.path_index);
      EXPECT_EQ(result.telemetry.ace_evaluations, here.telemetry.ace_evaluations);
      EXPECT_EQ(result.telemetry.paths_tried, here.telemetry.paths_tried);
      EXPECT_NEAR(result.path_cost, here.path_cost, 1e-4);
      EXPECT_NEAR(result.commit_end.x_m - dx, here.commit_end.x_m, 1e-8);
      EXPECT_NEAR(result.commit_end.y_m - dy, here.commit_end.y_m, 1e-8);
    }
  }
}

// ---- telemetry -----------------------------------------------------------------------------------

TEST(PlannerTelemetry, StagesAreTimedByTheInjectedClock) {
  const Terrain flat(120, 120, 0.2);
  Box box;
  Rig rig(&box.checker);
  const std::vector<float> p(100, 0.1F);
  const RiskView risk{p.data(), 1, 10, 10, 0.0, 0.0, 2.4};
  PlanRequest request = request_on(flat, {8.0, 12.0, 0.3}, {20.0, 15.0});
  request.risk = &risk;
  const PlanResult& untimed = rig.plan(request);
  for (const double s : untimed.telemetry.stage_s) EXPECT_EQ(s, 0.0);
  // A clock that ticks once a look: each stage is entered and left, so each takes time.
  double ticks = 0.0;
  request.clock = {[](void* context) noexcept { return *static_cast<double*>(context) += 1.0; },
                   &ticks};
  const PlanResult& timed = rig.plan(request);
  double total = 0.0;
  for (int stage = 0; stage < kStageCount; ++stage) {
    const double s = timed.telemetry.stage_s[stage];
    EXPECT_EQ(s > 0.0, stage != kStageHeuristic) << stage_name(stage);  // nobody was asked
    total += s;
  }
  EXPECT_LE(total, ticks);
  for (int stage = 0; stage < kStageCount; ++stage) EXPECT_STRNE(stage_name(stage), "");
  EXPECT_STREQ(stage_name(-1), "");
  EXPECT_STREQ(stage_name(kStageCount), "");
}

TEST(PlannerTelemetry, RejectsAddUp) {
  Random random(51);
  int rejected = 0;
  for (int n = 0; n < 10; ++n) {
    const Terrain terrain = maps::random_terrain(random, 14.0, 0.9);
    Box box;
    Rig rig(&box.checker);
    const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), 0.1};
    const PlanResult& result = rig.plan(request_on(terrain, pose, terrain.anywhere(random)));
    std::int64_t expected[kReasonCount] = {};
    for (const Pose2& seen : rig.spy.poses) {
      Reasons reasons = 0;
      box.checker.is_safe(Stance{seen}, &reasons);
      for (int bit = 0; bit < kReasonCount; ++bit) expected[bit] += (reasons >> bit) & 1;
      rejected += reasons != 0 ? 1 : 0;
    }
    for (int bit = 0; bit < kReasonCount; ++bit) {
      EXPECT_EQ(result.telemetry.rejects[bit], expected[bit]) << reason_name(bit);
    }
  }
  EXPECT_GT(rejected, 50);
}

// The checker is asked about the rover as it will stand: wheels steered for the arc, or for turning in place.
TEST(PlannerTelemetry, StancesAreSteeredForTheMotion) {
  const Terrain flat(160, 160, 0.1);
  Box box;
  Rig rig(&box.checker);
  PlanRequest request = request_on(flat, {8.0, 8.0, 0.0}, {2.0, 8.0});  // behind: it has to turn
  request.standing_curvature_per_m = 0.2;
  const PlanResult& result = rig.plan(request);
  ASSERT_EQ(result.outcome, Outcome::kPath);
  ASSERT_NE(result.commit.turn_rad, 0.0);
  EXPECT_EQ(result.path[0].curvature_per_m, 0.2);
  const PathTreeConfig& tree = rig.planner.config().tree;
  const int arcs = tree.curvature_count;
  const int steps = rig.planner.tree().poses_per_arc();
  const int turning = rig.planner.tree().turn_pose_count(result.path_index / (arcs * arcs));
  ASSERT_GT(result.path_pose_count, turning + 2);
  for (int i = 1; i < result.path_pose_count; ++i) {
    const double curvature = result.path[i].curvature_per_m;
    if (i <= turning) {
      EXPECT_TRUE(std::isinf(curvature));
    } else {
      const bool second = i > turning + steps;
      const int arc = second ? result.path_index % arcs : result.path_index / arcs % arcs;
      EXPECT_EQ(curvature, tree.curvature_per_m[arc]);
    }
  }
  request.standing_curvature_per_m = NAN;
  EXPECT_EQ(rig.planner.plan(request, rig.result.get()), Status::kPoseNotFinite);
}

TEST(PlannerTelemetry, VerdictsAreThoseOfThePosesAskedFor) {
  Random random(53);
  const Terrain terrain = maps::random_terrain(random, 14.0, 0.6);
  Box box;
  Rig rig(&box.checker);
  const Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), 0.1};
  rig.plan(request_on(terrain, pose, terrain.anywhere(random)));
  int evaluated = 0;
  for (int id = 0; id < rig.planner.tree().poses(); ++id) {
    const Verdict verdict = rig.planner.pose_verdict(id);
    if (verdict == Verdict::kNotEvaluated) continue;
    ++evaluated;
    Reasons reasons;
    EXPECT_EQ(verdict == Verdict::kPassed,
              box.checker.is_safe(rig.planner.stance_of(id), &reasons));
  }
  EXPECT_EQ(evaluated + 1, rig.result->telemetry.ace_evaluations);
}

TEST(PlannerTelemetry, OutcomesHaveNames) {
  EXPECT_STREQ(to_string(Outcome::kPath), "path");
  EXPECT_STREQ(to_string(Outcome::kGoalReached), "goal_reached");
  EXPECT_STREQ(to_string(Outcome::kNoSafePath), "no_safe_path");
  EXPECT_STREQ(to_string(Outcome::kBudgetExhausted), "budget_exhausted");
  EXPECT_STREQ(to_string(Outcome::kStartUnsafe), "start_unsafe");
}

}  // namespace
}  // namespace mlnav
