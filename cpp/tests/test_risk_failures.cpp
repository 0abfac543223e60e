// What a failure teaches: it raises the price around its pose, in this cycle and in later ones. That no pose
// leaves the planner unchecked, whatever it has learned, is in test_planner.cpp.
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
using rig::LearnedPrice;
using rig::OnDemand;
using rig::request_on;
using rig::Rig;
using rig::RiskMap;

EnavConfig config_with(double fail_price, int memory_failures = 1024) {
  EnavConfig config = rig::small_config();
  config.risk.fail_price = fail_price;
  config.memory_failures = memory_failures;
  return config;
}

// Nothing but failures is remembered from cycle to cycle, and none but those of whole paths is made.
EnavConfig forgetful_config(int memory_failures = 1024) {
  EnavConfig config = config_with(1.5, memory_failures);
  config.memory_poses = 0;
  config.flip_cost = 0.0;
  config.short_paths = false;
  return config;
}

void expect_same_costs(const Rig& a, const Rig& b) {
  for (int path = 0; path < a.planner.tree().paths(); ++path) {
    ASSERT_EQ(a.planner.path_cost(path), b.planner.path_cost(path)) << path;
  }
}

void expect_same_poses(const Rig& a, const Rig& b) {
  ASSERT_EQ(a.spy.poses.size(), b.spy.poses.size());
  for (std::size_t i = 0; i < a.spy.poses.size(); ++i) {
    ASSERT_TRUE(rig::same_pose(a.spy.poses[i], b.spy.poses[i])) << i;
  }
}

// Of a path, as the planner has it.
std::vector<Pose2> poses_of(const EnavPlanner& planner, int path) {
  std::int32_t ids[PlanResult::kMaxPathPoses];
  const int count = planner.path_pose_ids(path, ids);
  std::vector<Pose2> poses;
  for (int i = 0; i < count; ++i) poses.push_back(planner.pose_of(ids[i]));
  return poses;
}

bool holds_a_failure(const EnavPlanner& planner, int path) {
  return planner.path_verdict(path) == Verdict::kFailed;
}

// Poses that failed and teach something: not those that are unseen and beyond the commitment, which rule no
// path out.
std::vector<Pose2> failures_of(const Rig& rig) {
  const PathTree& tree = rig.planner.tree();
  const EnavConfig& config = rig.planner.config();
  std::vector<Pose2> out;
  for (const Pose2& pose : rig.spy.failed) {
    int id = 0;
    while (id < tree.poses() && !rig::same_pose(rig.planner.pose_of(id), pose)) ++id;
    if (id < tree.poses() && rig.planner.pose_verdict(id) == Verdict::kUnseen) {
      const int arc_pose = id - tree.turn_poses();
      const bool committed = arc_pose < tree.first_arcs() * tree.poses_per_arc() &&
                             arc_pose % tree.poses_per_arc() <
                                 std::lround(2.0 * config.commit_length_m / config.tree.ace_step_m);
      if (!committed) continue;
    }
    out.push_back(pose);
  }
  return out;
}

double cost_at_price(const PlanRequest& request, const EnavPlanner& planner, int path,
                     const LearnedPrice& price) {
  return rig::naive_cost(request, planner, path, poses_of(planner, path), 0, price);
}

// Every path costs, at this price, what the planner says; and so does the way to the goal.
void expect_costs_at(const PlanRequest& request, const Rig& rig, const RiskView& risk,
                     const LearnedPrice& price) {
  rig::expect_cost_to_go(request, rig.planner, &risk, price.map.data());
  for (int path = 0; path < rig.planner.tree().paths(); ++path) {
    const double expected = cost_at_price(request, rig.planner, path, price);
    ASSERT_NEAR(static_cast<double>(rig.planner.path_cost(path)), expected, 1e-5 * expected)
        << path;
  }
}

// ---- within a cycle ------------------------------------------------------------------------------

TEST(RiskFailures, WithoutAnyNothingChanges) {
  const Terrain flat(120, 120, 0.2);
  Random random(401);
  for (int n = 0; n < 10; ++n) {
    const RiskMap map(flat, [&](double, double) { return random.unit(); });
    Rig without([](const Pose2&) { return Reasons{0}; }, config_with(0.0, 0));
    Rig with([](const Pose2&) { return Reasons{0}; });
    Pose2 pose{12.0, 12.0, 0.6 * n};
    for (int cycle = 0; cycle < 4; ++cycle) {
      PlanRequest request = request_on(flat, pose, {20.0, 12.0});
      request.risk = &map.view;
      expect_same_bits(with.plan(request), without.plan(request));
      expect_same_poses(with, without);
      expect_same_costs(with, without);
      pose = with.result->commit_end;
    }
  }
}

// The cost of each path is worked out anew before it is tried. Where no price has changed, that is the same
// to the last bit: nothing is put back, and the order stands. A price raised by nothing shows it, on every
// path that is tried.
TEST(RiskFailures, AnUnchangedPriceGivesTheSameCostToTheLastBit) {
  Random random(402);
  int tried = 0;
  for (int n = 0; n < 60; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.5 + 0.5 * random.unit());
    Box box;
    Rig without(&box.checker, config_with(0.0, 0));
    Rig with(&box.checker, config_with(1e-300));
    OnDemand source(c.map.view);
    Pose2 pose = c.request.pose;
    for (int cycle = 0; cycle < 3; ++cycle) {
      PlanRequest request = c.request;
      request.pose = pose;
      if (n % 2 == 0) {
        request.risk = &c.map.view;
      } else {
        request.risk_source = source.source();
      }
      expect_same_bits(with.plan(request), without.plan(request));
      expect_same_poses(with, without);
      expect_same_costs(with, without);
      if (with.result->telemetry.risk_used) tried += with.result->telemetry.paths_tried;
      pose = with.result->commit_end;
    }
  }
  EXPECT_GT(tried, 20000);
}

// A failure where the map is not: there is nothing to raise.
TEST(RiskFailures, BesideTheMapTheyChangeNothing) {
  Random random(403);
  int failed = 0;
  for (int n = 0; n < 20; ++n) {
    const Case c(random, 0.8);
    RiskView far = c.map.view;
    far.origin_x_m += 1000.0;
    Box box;
    Rig without(&box.checker, config_with(0.0));
    Rig with(&box.checker);
    PlanRequest request = c.request;
    request.risk = &far;
    expect_same_bits(with.plan(request), without.plan(request));
    expect_same_poses(with, without);
    expect_same_costs(with, without);
    failed += static_cast<int>(with.spy.failed.size());
  }
  EXPECT_GT(failed, 100);
}

// Level ground, a map that knows nothing, and something across the straight way that only the checker sees.
// All paths that pass the cell where the first one failed come after those that do not.
TEST(RiskFailures, PathsBesideAFailureComeLater) {
  const Terrain flat(120, 120, 0.2);
  const std::vector<float> p(24 * 24, 0.0F);
  const RiskView risk{p.data(), 1, 24, 24, 0.0, 0.0, 1.0};
  const auto cell = [](const Pose2& pose) {
    return std::pair{std::floor(pose.x_m + 0.5), std::floor(pose.y_m + 0.5)};
  };
  const auto across = [](const Pose2& pose) -> Reasons {
    return std::hypot(pose.x_m - 14.1, pose.y_m - 12.0) < 0.35 ? kRelief : 0;
  };
  int looked_beside[2];
  std::int64_t evaluations[2];
  for (const int learns : {0, 1}) {
    Rig rig(across, config_with(learns == 1 ? 1.5 : 0.0));
    PlanRequest request = request_on(flat, {12.0, 12.0, 0.0}, {20.0, 12.0});
    request.risk = &risk;
    const PlanResult& result = rig.plan(request);
    ASSERT_EQ(result.outcome, Outcome::kPath);
    EXPECT_FALSE(result.short_path);
    rig::SpyChecker judge(across);
    expect_result_is_sound(request, result, rig, &judge);
    ASSERT_FALSE(rig.spy.failed.empty());
    const auto there = cell(rig.spy.failed[0]);
    looked_beside[learns] =
        static_cast<int>(std::count_if(rig.spy.failed.begin(), rig.spy.failed.end(),
                                       [&](const Pose2& pose) { return cell(pose) == there; }));
    evaluations[learns] = result.telemetry.ace_evaluations;
    for (int i = 1; learns == 1 && i < result.path_pose_count; ++i) {
      EXPECT_NE(cell(result.path[i].pose), there);
    }
  }
  EXPECT_GE(looked_beside[0], 3);
  EXPECT_EQ(looked_beside[1], 1);
  EXPECT_LT(evaluations[1], evaluations[0]);
}

// The lazily found order is that of the final prices: no path that was left untried is cheaper at them than
// the accepted one; and among those as they were listed, it is the first that passes.
TEST(RiskFailures, NoUntriedPathIsCheaperThanTheAcceptedOne) {
  Random random(404);
  int accepted = 0;
  int other = 0;
  int grown = 0;
  int none = 0;
  for (int n = 0; n < 120; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.4 + 0.6 * random.unit());
    // Cells and headings as wide as a network's, so that a failure has paths beside it.
    std::vector<float> p(4 * 30 * 30);
    for (float& value : p) value = static_cast<float>(random.uniform(0.0, 0.5));
    const RiskView risk{p.data(), 4, 30, 30, c.map.view.origin_x_m, c.map.view.origin_y_m, 0.5};
    Box box;
    EnavConfig config = config_with(n % 3 == 0 ? 1.5 : 20.0, n % 5 == 0 ? 4 : 1024);
    config.short_paths = false;
    Rig rig(&box.checker, config);
    OnDemand source(risk);
    PlanRequest request = c.request;
    if (n % 2 == 0) {
      request.risk = &risk;
    } else {
      request.risk_source = source.source();
    }
    const PlanResult& result = rig.plan(request);
    expect_result_is_sound(request, result, rig, &box.checker);
    if (!result.telemetry.risk_used) continue;
    // All that failed and ruled a path out is priced; each once.
    const LearnedPrice price(risk, failures_of(rig), config.risk.fail_price);
    config.risk.fail_price = 0.0;
    Rig unlearned(&box.checker, config);
    const PlanResult& before = unlearned.plan(request);
    const auto at = [&](int path) { return cost_at_price(request, rig.planner, path, price); };
    if (result.outcome == Outcome::kPath) {
      ++accepted;
      EXPECT_NEAR(result.path_cost, at(result.path_index), 1e-5 * result.path_cost);
      other += result.path_index != before.path_index ? 1 : 0;
    } else {
      EXPECT_EQ(result.outcome, Outcome::kNoSafePath);
      EXPECT_EQ(before.outcome, Outcome::kNoSafePath);
      ++none;
    }
    for (int path = 0; path < rig.planner.tree().paths(); ++path) {
      const float listed = rig.planner.path_cost(path);
      if (!std::isfinite(listed)) continue;
      if (holds_a_failure(rig.planner, path)) continue;
      ASSERT_EQ(result.outcome, Outcome::kPath) << "a path was left untried";
      if (path == result.path_index) continue;
      const double final = at(path);
      ASSERT_GE(final, (1.0 - 1e-5) * result.path_cost) << path;
      // As listed it is no dearer than it is, and later than the accepted one.
      ASSERT_LE(static_cast<double>(listed), (1.0 + 1e-5) * final) << path;
      const double cost = static_cast<double>(listed);
      ASSERT_TRUE(cost > result.path_cost || (cost == result.path_cost && path > result.path_index))
          << path;
      grown += listed > unlearned.planner.path_cost(path) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(other, 10);
  EXPECT_GT(grown, 100);
  EXPECT_GT(none, 3);
}

// The search for a short path teaches nothing more, and weighs by what is known by then.
TEST(RiskFailures, AShortPathIsWeighedAtTheFinalPrices) {
  Random random(405);
  int shortened = 0;
  for (int n = 0; n < 150; ++n) {
    SCOPED_TRACE(n);
    const Case c(random, 0.8 + 0.2 * random.unit());
    Box box;
    PlanRequest request = c.request;
    request.risk = &c.map.view;
    Rig rig(&box.checker);
    const PlanResult& result = rig.plan(request);
    expect_result_is_sound(request, result, rig, &box.checker);
    if (!result.short_path) continue;
    ++shortened;
    // What was learned is what a planner without it learns.
    EnavConfig config = rig::small_config();
    config.short_paths = false;
    Rig whole(&box.checker, config);
    whole.plan(request);
    const LearnedPrice price(c.map.view, failures_of(whole), config.risk.fail_price);
    const rig::NaiveChoice best = rig::naive_choice(request, rig.planner, &box.checker, 0, price);
    EXPECT_TRUE(best.short_path);
    EXPECT_EQ(result.path_index, best.path);
    EXPECT_EQ(result.path_pose_count, static_cast<int>(best.poses) + 1);
    EXPECT_NEAR(result.path_cost, best.cost, 1e-5 * best.cost);
  }
  EXPECT_GT(shortened, 5);
}

// ---- from cycle to cycle -------------------------------------------------------------------------

// Rubble that only the checker sees, and only while it is there.
struct Rubble {
  bool there = true;
  Reasons reasons = kRelief;
  rig::SpyChecker::Verdict verdict() {
    return [this](const Pose2& pose) -> Reasons {
      const double x = pose.x_m - 12.0;
      const double y = pose.y_m - 12.0;
      if (!there || std::hypot(x, y) < 0.9) return 0;
      return std::sin(7.0 * x) * std::cos(9.0 * y) > 0.2 ? reasons : Reasons{0};
    };
  }
};

class RiskFailuresRemembered : public ::testing::Test {
 protected:
  RiskFailuresRemembered()
      : flat_(120, 120, 0.2),
        map_(flat_, [](double x, double y) { return 0.2 + 0.2 * std::sin(x) * std::cos(y); }),
        request_(request_on(flat_, {12.0, 12.0, 0.3}, {20.0, 15.0})) {
    request_.risk = &map_.view;
  }
  // The last `most` of them.
  static std::vector<Pose2> last_of(const std::vector<Pose2>& poses, std::size_t most) {
    return {poses.end() - static_cast<std::ptrdiff_t>(std::min(most, poses.size())), poses.end()};
  }
  Terrain flat_;
  RiskMap map_;
  PlanRequest request_;
};

// In the next cycle every remembered failure raises the price once, for paths and for the way beyond them;
// and in the one after that no more than once.
TEST_F(RiskFailuresRemembered, RaiseThePriceOfLaterCyclesOnceEach) {
  Rubble rubble;
  Rig rig(rubble.verdict(), forgetful_config());
  rig.plan(request_);
  const std::vector<Pose2> learned = rig.spy.failed;
  ASSERT_GT(learned.size(), 5U);
  rubble.there = false;
  const LearnedPrice price(map_.view, learned, 1.5);
  for (int cycle = 0; cycle < 3; ++cycle) {
    SCOPED_TRACE(cycle);
    EXPECT_EQ(rig.plan(request_).telemetry.paths_tried, 1);
    expect_costs_at(request_, rig, map_.view, price);
  }
  // They change it.
  Rig fresh(rubble.verdict(), forgetful_config());
  fresh.plan(request_);
  int dearer = 0;
  for (int path = 0; path < fresh.planner.tree().paths(); ++path) {
    EXPECT_GE(rig.planner.path_cost(path), fresh.planner.path_cost(path));
    dearer += rig.planner.path_cost(path) > fresh.planner.path_cost(path) + 1.0F ? 1 : 0;
  }
  EXPECT_GT(dearer, 300);
}

// They are places in the world: the map may have moved.
TEST_F(RiskFailuresRemembered, StayInTheWorld) {
  Rubble rubble;
  Rig rig(rubble.verdict(), forgetful_config());
  rig.plan(request_);
  const std::vector<Pose2> learned = rig.spy.failed;
  rubble.there = false;
  for (const double away : {1.4, 5000.0, 0.0}) {
    const Terrain moved(120, 120, 0.2, away, -away);
    const RiskMap map(moved, [](double x, double) { return 0.2 + 0.1 * std::sin(x); });
    PlanRequest request = request_on(moved, {12.0 + away, 12.0 - away, -0.5}, {20.0 + away, 12.0});
    request.risk = &map.view;
    rig.plan(request);
    expect_costs_at(request, rig, map.view, LearnedPrice(map.view, learned, 1.5));
  }
}

// On demand as well: what failed in earlier cycles, and the pose on which the cheapest path failed just now,
// once each.
TEST_F(RiskFailuresRemembered, AndThoseBeforeTheQuestionCountOnceEach) {
  bool rubble = true;
  int passes = 0;  // poses that pass before the next failure
  Rubble real;
  const rig::SpyChecker::Verdict real_verdict = real.verdict();
  Rig rig(
      [&](const Pose2& pose) -> Reasons {
        if (rubble) return real_verdict(pose);
        return passes-- == 0 ? kRelief : 0;
      },
      forgetful_config());
  OnDemand source(map_.view);
  PlanRequest request = request_;
  request.risk = nullptr;
  request.risk_source = source.source();
  rig.plan(request);
  ASSERT_EQ(source.asked, 1);
  std::vector<Pose2> learned = rig.spy.failed;
  ASSERT_GT(learned.size(), 5U);
  rubble = false;
  for (int cycle = 0; cycle < 4; ++cycle) {
    SCOPED_TRACE(cycle);
    passes = 3 + cycle;
    const PlanResult& result = rig.plan(request);
    EXPECT_EQ(source.asked, 2 + cycle);
    ASSERT_EQ(rig.spy.failed.size(), 1U);
    learned.push_back(rig.spy.failed[0]);
    ASSERT_EQ(result.outcome, Outcome::kPath);
    expect_costs_at(request, rig, map_.view, LearnedPrice(map_.view, learned, 1.5));
  }
}

TEST_F(RiskFailuresRemembered, AreForgottenByResetAndWithoutMemory) {
  Rubble rubble;
  Rig rig(rubble.verdict(), forgetful_config());
  Rig without(rubble.verdict(), forgetful_config(0));
  Rig fresh(rubble.verdict(), forgetful_config());
  const PlanResult first = rig.plan(request_);
  // Within the cycle it learns all the same.
  expect_same_bits(without.plan(request_), first);
  expect_same_costs(without, rig);
  // Once more, and as ever.
  rig.planner.reset();
  expect_same_bits(rig.plan(request_), first);
  expect_same_bits(without.plan(request_), first);
  rig.planner.reset();
  rubble.there = false;
  rig.plan(request_);
  without.plan(request_);
  fresh.plan(request_);
  expect_same_costs(rig, fresh);
  expect_same_costs(without, fresh);
}

// The ring holds the last so many, however many there are, in one cycle or over many.
TEST_F(RiskFailuresRemembered, AreTheLastSoMany) {
  for (const int most : {1, 3, 7, 64}) {
    SCOPED_TRACE(most);
    Rubble rubble;
    Rig rig(rubble.verdict(), forgetful_config(most));
    std::vector<Pose2> learned;
    for (int cycle = 0; cycle < 12; ++cycle) {
      SCOPED_TRACE(cycle);
      rubble.there = cycle % 2 == 0;
      PlanRequest request = request_;
      request.pose.heading_rad = 0.4 * cycle;
      rig.plan(request);
      if (rubble.there) {
        learned.insert(learned.end(), rig.spy.failed.begin(), rig.spy.failed.end());
        continue;
      }
      ASSERT_TRUE(rig.spy.failed.empty());
      const auto last = last_of(learned, static_cast<std::size_t>(most));
      expect_costs_at(request, rig, map_.view, LearnedPrice(map_.view, last, 1.5));
    }
    EXPECT_GT(learned.size(), 20U);
  }
}

// A pose that nobody looked at, since the budget was spent, has not failed.
TEST_F(RiskFailuresRemembered, AreNotThoseTheBudgetLeftOpen) {
  for (const bool on_demand : {false, true}) {
    Rubble rubble;
    rubble.there = false;
    Rig rig(rubble.verdict(), forgetful_config());
    Rig fresh(rubble.verdict(), forgetful_config());
    OnDemand source(map_.view);
    PlanRequest poor = request_;
    if (on_demand) {
      poor.risk = nullptr;
      poor.risk_source = source.source();
    }
    for (const int budget : {1, 2, 5, 17}) {
      poor.ace_budget = budget;
      ASSERT_EQ(rig.plan(poor).outcome, Outcome::kBudgetExhausted);
    }
    EXPECT_EQ(source.asked, 0);
    expect_same_bits(rig.plan(request_), fresh.plan(request_));
    expect_same_costs(rig, fresh);
  }
}

// What could not be seen from here may be seen from there: it is no failure of the ground.
TEST_F(RiskFailuresRemembered, AreNotThoseOfWhatWasNotSeen) {
  for (const int bits : {0 + kUnknown, 0 + kBorder, kUnknown | kBorder, kUnknown | kRelief}) {
    SCOPED_TRACE(bits);
    const auto reasons = static_cast<Reasons>(bits);
    Rubble rubble;
    rubble.reasons = reasons;
    Rig rig(rubble.verdict(), forgetful_config());
    Rig fresh(rubble.verdict(), forgetful_config());
    rig.plan(request_);
    ASSERT_GT(rig.spy.failed.size(), 5U);
    rubble.there = false;
    rig.plan(request_);
    fresh.plan(request_);
    int dearer = 0;
    for (int path = 0; path < fresh.planner.tree().paths(); ++path) {
      dearer += rig.planner.path_cost(path) > fresh.planner.path_cost(path) ? 1 : 0;
    }
    EXPECT_EQ(dearer > 0, (reasons & kRelief) != 0);
  }
}

// The same place again and again, at the highest price: dear, but a number.
TEST_F(RiskFailuresRemembered, MayAddUpWithoutEnd) {
  EnavConfig config = forgetful_config();
  config.risk.fail_price = 1e3;
  config.risk.weight_per_m = 1e6;
  Rubble rubble;
  Rig rig(rubble.verdict(), config);
  rig::SpyChecker judge(rubble.verdict());
  for (int cycle = 0; cycle < 60; ++cycle) {
    const PlanResult& result = rig.plan(request_);
    expect_result_is_sound(request_, result, rig, &judge);
    for (int path = 0; path < rig.planner.tree().paths(); ++path) {
      ASSERT_TRUE(std::isfinite(rig.planner.path_cost(path)));
    }
  }
}

TEST(RiskFailures, TheSameTraverseTwiceLearnsTheSame) {
  Random random(406);
  std::size_t failed = 0;
  for (int n = 0; n < 8; ++n) {
    const Case c(random, 0.6 + 0.3 * random.unit());
    Box box;
    Box other_box;
    OnDemand source(c.map.view);
    std::vector<std::vector<float>> costs;
    const auto traverse = [&](Rig& rig) {
      costs.emplace_back();
      std::vector<PlanResult> results;
      PlanRequest request = c.request;
      for (int cycle = 0; cycle < 6; ++cycle) {
        request.risk = cycle % 2 == 0 ? &c.map.view : nullptr;
        request.risk_source = source.source();
        results.push_back(rig.plan(request));
        failed += rig.spy.failed.size();
        for (int path = 0; path < rig.planner.tree().paths(); ++path) {
          costs.back().push_back(rig.planner.path_cost(path));
        }
        request.pose = results.back().commit_end;
      }
      return results;
    };
    Rig rig(&box.checker);
    Rig other(&other_box.checker);
    const auto first = traverse(rig);
    rig.planner.reset();
    const auto again = traverse(rig);
    const auto elsewhere = traverse(other);
    EXPECT_EQ(costs[0], costs[1]);
    EXPECT_EQ(costs[0], costs[2]);
    for (std::size_t i = 0; i < first.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same_bits(first[i], again[i]);
      expect_same_bits(first[i], elsewhere[i]);
    }
  }
  EXPECT_GT(failed, 100U);
}

}  // namespace
}  // namespace mlnav
