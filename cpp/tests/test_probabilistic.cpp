// p-ACE against its definitions: Monte Carlo of the normal model, its place beside fixed_box, thresholds.
#include "mlnav/safety/probabilistic.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "test_maps.hpp"

namespace mlnav {
namespace {

constexpr std::size_t kCells = 40000;

// The checker at any thresholds, beside the fixed_box it is made of.
class Pair {
 public:
  explicit Pair(const SafetyLimits& limits, ProbabilisticConfig config = {})
      : memory_(FixedBoxChecker::memory_required(kCells)),
        box_memory_(FixedBoxChecker::memory_required(kCells)) {
    model.limits = limits;
    set(config);
    Arena arena(box_memory_.data(), box_memory_.size());
    EXPECT_TRUE(box.init(model, {}, kCells, &arena).ok());
  }
  void set(const ProbabilisticConfig& config) {
    Arena arena(memory_.data(), memory_.size());
    EXPECT_TRUE(checker.init(model, {}, config, kCells, &arena).ok());
    if (map_.nx > 0) look_at(map_);
  }
  void look_at(const GridView& map) {
    map_ = map;
    ASSERT_EQ(checker.set_map(map), Status::kOk);
    ASSERT_EQ(box.set_map(map), Status::kOk);
  }

  RoverModel model;
  ProbabilisticChecker checker;
  FixedBoxChecker box;

 private:
  maps::Memory memory_;
  maps::Memory box_memory_;
  GridView map_;
};

SafetyLimits limits_of(int n) {
  return n % 2 == 0 ? SafetyLimits::enav_like() : SafetyLimits::flight_like();
}

bool has_intervals(const AceReport& r) {
  return (r.reasons & (kBadPose | kBorder | kUnknown | kMechanical)) == 0;
}

// Slopes with rocks, where nearly every pose is near some limit.
maps::Terrain rocky_terrain(maps::Random& random) {
  maps::Terrain terrain(150, 140, 0.1, random.uniform(-300, 300), random.uniform(-300, 300));
  terrain.plane(random.uniform(-0.3, 0.3), random.uniform(-0.3, 0.3));
  return terrain.rocks(random, random.between(20, 200), 0.05, 0.3).noise(random, 0.01);
}

// Calls visit(pair, pose) at poses of many maps under both sets of limits.
template <typename Visit>
void at_many_poses(unsigned seed, int maps, int poses, Visit visit) {
  maps::Random random(seed);
  for (int n = 0; n < maps; ++n) {
    const maps::Terrain terrain = n % 4 == 0
                                      ? maps::random_terrain(random, 14.0, 0.8 * random.unit())
                                      : rocky_terrain(random);
    ASSERT_LE(terrain.view().cells(), kCells);
    Pair pair(limits_of(n));
    pair.look_at(terrain.view());
    for (int i = 0; i < poses; ++i) {
      const Point2 at = terrain.near_center(random, 0.8);
      visit(pair, Pose2{at.x_m, at.y_m, random.uniform(-9, 9)});
    }
  }
}

// The model as it reads, from fixed_box's bounds: states are drawn one by one and compared with the limits.
struct MonteCarlo {
  std::mt19937_64 random{71};
  double sigma_fraction;

  // Fractions of draws in which anything, and each limit, is exceeded.
  struct Result {
    double any = 0.0;
    double each[5] = {};
  };

  Result sample(const AceReport& box, const RoverModel& model, int draws) {
    const SafetyLimits& l = model.limits;
    const RoverGeometry& g = model.geometry;
    double rise = 0.0;  // of any corner of the pan
    for (const double x : {g.pan_rear_x_m, g.pan_front_x_m}) {
      rise = std::max(
          rise, std::fabs(x) * (std::tan(box.pitch_rad.hi) - std::tan(box.pitch_rad.lo)) +
                    g.pan_half_width_m * (std::tan(box.roll_rad.hi) - std::tan(box.roll_rad.lo)));
    }
    rise += box.origin_z_m.hi - box.origin_z_m.lo;
    Result out;
    for (int n = 0; n < draws; ++n) {
      const double bogies =
          std::max(std::fabs(draw(box.bogie_left_rad)), std::fabs(draw(box.bogie_right_rad)));
      const bool beyond[5] = {
          std::cos(draw(box.roll_rad)) * std::cos(draw(box.pitch_rad)) < std::cos(l.tilt_max_rad),
          bogies > l.bogie_max_rad, std::fabs(draw(box.differential_rad)) > l.differential_max_rad,
          draw({box.clearance_min_m, box.clearance_min_m + rise}) < l.clearance_min_m,
          box.relief_max_m > l.wheel_drop_max_m};
      for (int i = 0; i < 5; ++i) out.each[i] += beyond[i] ? 1.0 / draws : 0.0;
      out.any += std::any_of(beyond, beyond + 5, [](bool b) { return b; }) ? 1.0 / draws : 0.0;
    }
    return out;
  }

  double draw(const Bounds& b) {
    return 0.5 * (b.lo + b.hi) + sigma_fraction * (b.hi - b.lo) * normal(random);
  }
  std::normal_distribution<double> normal;
};

TEST(Probabilistic, RiskIsThatOfTheNormalModel) {
  constexpr int kDraws = 4000;
  constexpr double kRiskMax = 0.1;
  int compared = 0;
  int several = 0;
  int likeliest[5] = {};  // poses at which this limit is
  for (const double sigma_fraction : {0.13, 0.17, 0.20}) {
    MonteCarlo model{};
    model.sigma_fraction = sigma_fraction;
    at_many_poses(72, 40, 40, [&](Pair& pair, const Pose2& pose) {
      const AceReport box = pair.box.report(Stance{pose});
      if (!has_intervals(box) || pair.model.limits.wheel_drop_max_m < box.relief_max_m) return;
      pair.set({sigma_fraction, kRiskMax});
      const AceReport r = pair.checker.report(Stance{pose});
      // Beyond doubt either way is the usual case, and easy to get right.
      if (!(r.risk > 1e-3 && r.risk < 0.999)) return;
      ++compared;
      const MonteCarlo::Result expected = model.sample(box, pair.model, kDraws);
      const auto slack = [&](double risk) {
        return 5.0 * std::sqrt(std::max(risk * (1.0 - risk), 1e-3) / kDraws);
      };
      EXPECT_NEAR(r.risk, expected.any, slack(r.risk));
      EXPECT_EQ(r.safe, r.risk <= kRiskMax);
      ++likeliest[std::max_element(expected.each, expected.each + 5) - expected.each];
      // Without its reasons the pose would pass; without all of them but one it would not.
      double within = 1.0;
      double least = 1.0;
      for (int i = 0; i < 5; ++i) {
        if ((r.reasons >> i & 1) != 0) {
          least = std::min(least, expected.each[i]);
        } else {
          within *= 1.0 - expected.each[i];
        }
      }
      EXPECT_LE(1.0 - within, kRiskMax + slack(kRiskMax));
      if (!r.safe) {
        EXPECT_GE(1.0 - within * (1.0 - least), kRiskMax - slack(kRiskMax));
      }
      several += (r.reasons & (r.reasons - 1)) != 0;
    });
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(several, 20);
  for (int i = 0; i < 4; ++i) EXPECT_GT(likeliest[i], 5) << reason_name(i);
}

// Smooth slopes near the limit of tilt, where nothing else is near: against a fine sum over roll and pitch.
TEST(Probabilistic, RiskOfTiltIsTheIntegral) {
  SafetyLimits limits;
  limits.clearance_min_m = 0.01;
  limits.bogie_max_rad = limits.differential_max_rad = 40 * kDeg;
  limits.wheel_drop_max_m = 1.0;
  maps::Random random(78);
  int between = 0;
  for (int n = 0; n < 60; ++n) {
    maps::Terrain terrain(90, 90, 0.1);
    const double aspect = random.uniform(-4, 4);
    const double slope = std::tan(random.uniform(0.3, 0.5));
    terrain.plane(slope * std::cos(aspect), slope * std::sin(aspect)).noise(random, 0.02);
    Pair pair(limits);
    pair.look_at(terrain.view());
    const AceReport r =
        pair.checker.report(Stance{terrain.center_x_m(), terrain.center_y_m(), 0.0});
    const auto angle = [](const Bounds& b, double t) {
      return 0.5 * (b.lo + b.hi) + 0.17 * (b.hi - b.lo) * t;
    };
    constexpr double kStep = 0.02;
    double expected = 0.0;
    for (double t = -6.0; t <= 6.0; t += kStep) {
      const double cos_roll = std::cos(angle(r.roll_rad, t));
      for (double u = -6.0; u <= 6.0; u += kStep) {
        if (cos_roll * std::cos(angle(r.pitch_rad, u)) >= std::cos(limits.tilt_max_rad)) continue;
        expected += std::exp(-0.5 * (t * t + u * u)) * kStep * kStep / (2 * kPi);
      }
    }
    between += r.risk > 0.01 && r.risk < 0.99;
    EXPECT_NEAR(r.risk, expected, 2e-3);  // of the sum
  }
  EXPECT_GT(between, 15);
}

TEST(Probabilistic, WheelDropIsCertain) {
  int exceeded = 0;
  at_many_poses(73, 10, 100, [&](Pair& pair, const Pose2& pose) {
    const AceReport r = pair.checker.report(Stance{pose});
    if (!has_intervals(r) || r.relief_max_m <= pair.model.limits.wheel_drop_max_m) return;
    ++exceeded;
    EXPECT_EQ(r.risk, 1.0);
    EXPECT_NE(r.reasons & kRelief, 0);
  });
  EXPECT_GT(exceeded, 20);
}

TEST(Probabilistic, ThresholdsFromNothingToEverything) {
  constexpr double kThresholds[] = {0.0, 1e-6, 0.01, 0.05, 0.3, 0.7, 0.99, 1.0};
  int passed[8] = {};
  int box_passed = 0;
  int known = 0;
  at_many_poses(74, 16, 30, [&](Pair& pair, const Pose2& pose) {
    const AceReport box = pair.box.report(Stance{pose});
    bool before = false;
    for (int i = 0; i < 8; ++i) {
      pair.set({0.17, kThresholds[i]});
      const AceReport r = pair.checker.report(Stance{pose});
      EXPECT_TRUE(r.safe || !before);  // what passes, passes at every higher threshold
      before = r.safe;
      passed[i] += r.safe;
      EXPECT_TRUE(box.safe || i != 0 || !r.safe);
    }
    EXPECT_EQ(before, has_intervals(box));
    box_passed += box.safe;
    known += has_intervals(box);
    // Tails do not refuse what fixed_box passes.
    for (const ProbabilisticConfig& config :
         {ProbabilisticConfig{}, ProbabilisticConfig{0.17, 0.015},
          ProbabilisticConfig{0.20, 0.055}}) {
      pair.set(config);
      EXPECT_TRUE(pair.checker.report(Stance{pose}).safe || !box.safe);
    }
  });
  EXPECT_LT(passed[0], box_passed);
  EXPECT_GT(passed[3], box_passed);
  EXPECT_LT(passed[3], passed[5]);
  EXPECT_EQ(passed[7], known);
}

// Level ground of one height leaves intervals of no width: a state that is known for certain.
TEST(Probabilistic, LevelGroundHasNoRisk) {
  maps::Terrain level(90, 90, 0.1);
  Pair pair(SafetyLimits::flight_like(), {0.17, 0.0});
  pair.look_at(level.view());
  const Pose2 pose{level.center_x_m(), level.center_y_m(), 0.4};
  const AceReport r = pair.checker.report(Stance{pose});
  EXPECT_TRUE(r.safe);
  EXPECT_EQ(r.risk, 0.0);

  level.rock(pose.x_m, pose.y_m, 0.45);  // under the pan, which hangs at 0.60 m
  pair.set({0.17, 0.99});
  pair.look_at(level.view());
  const AceReport above_rock = pair.checker.report(Stance{pose});
  EXPECT_FALSE(above_rock.safe);
  EXPECT_EQ(above_rock.reasons, kClearance);
  EXPECT_EQ(above_rock.risk, 1.0);
}

TEST(Probabilistic, BoundsAndMarginsAreFixedBoxs) {
  int negative = 0;
  at_many_poses(75, 12, 60, [&](Pair& pair, const Pose2& pose) {
    const AceReport box = pair.box.report(Stance{pose});
    const AceReport r = pair.checker.report(Stance{pose});
    EXPECT_TRUE(std::isnan(box.risk));
    EXPECT_EQ(std::isnan(r.risk), !has_intervals(r));
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    const auto same_bounds = [&](const Bounds& a, const Bounds& b) {
      return same(a.lo, b.lo) && same(a.hi, b.hi);
    };
    EXPECT_TRUE(same_bounds(r.roll_rad, box.roll_rad));
    EXPECT_TRUE(same_bounds(r.pitch_rad, box.pitch_rad));
    EXPECT_TRUE(same_bounds(r.differential_rad, box.differential_rad));
    EXPECT_TRUE(same_bounds(r.bogie_left_rad, box.bogie_left_rad));
    EXPECT_TRUE(same_bounds(r.bogie_right_rad, box.bogie_right_rad));
    EXPECT_TRUE(same_bounds(r.origin_z_m, box.origin_z_m));
    EXPECT_TRUE(same(r.margin_tilt_rad, box.margin_tilt_rad));
    EXPECT_TRUE(same(r.margin_bogie_rad, box.margin_bogie_rad));
    EXPECT_TRUE(same(r.margin_differential_rad, box.margin_differential_rad));
    EXPECT_TRUE(same(r.margin_clearance_m, box.margin_clearance_m));
    EXPECT_TRUE(same(r.margin_relief_m, box.margin_relief_m));
    negative += r.safe && (r.margin_bogie_rad < 0.0 || r.margin_clearance_m < 0.0);
  });
  EXPECT_GT(negative, 10);
}

TEST(Probabilistic, VerdictAndReportAgree) {
  int safe = 0;
  at_many_poses(76, 12, 60, [&](Pair& pair, const Pose2& pose) {
    Reasons reasons = 0xFFFF;
    const bool verdict = pair.checker.is_safe(Stance{pose}, &reasons);
    const AceReport r = pair.checker.report(Stance{pose});
    EXPECT_EQ(verdict, r.safe);
    EXPECT_EQ(reasons, r.reasons);
    EXPECT_EQ(verdict, reasons == 0);
    // A reason is a limit that fixed_box's intervals leave.
    EXPECT_EQ(reasons & ~pair.box.report(Stance{pose}).reasons, 0);
    safe += verdict;
  });
  EXPECT_GT(safe, 100);
}

// The least likely go first.
TEST(Probabilistic, ReasonsFallAwayAsTheThresholdRises) {
  int several = 0;
  at_many_poses(77, 12, 40, [&](Pair& pair, const Pose2& pose) {
    Reasons before = 0xFFFF;
    for (const double risk_max : {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9}) {
      pair.set({0.17, risk_max});
      const AceReport r = pair.checker.report(Stance{pose});
      if (!has_intervals(r)) return;
      EXPECT_EQ(r.reasons & ~before, 0);
      EXPECT_EQ(r.reasons == 0, r.risk <= risk_max);
      before = r.reasons;
      several += (r.reasons & (r.reasons - 1)) != 0;
    }
  });
  EXPECT_GT(several, 50);
}

TEST(Probabilistic, WithoutIntervalsThatIsTheReason) {
  maps::Terrain terrain(100, 100, 0.1);
  Pair pair(SafetyLimits::enav_like(), {0.17, 1.0});
  const double x = terrain.center_x_m();
  const double y = terrain.center_y_m();
  const auto expect = [&](const Pose2& pose, Reasons expected) {
    const AceReport r = pair.checker.report(Stance{pose});
    EXPECT_FALSE(r.safe);
    EXPECT_EQ(r.reasons, expected);
    EXPECT_TRUE(std::isnan(r.risk));
    Reasons reasons = 0;
    EXPECT_FALSE(pair.checker.is_safe(Stance{pose}, &reasons));
    EXPECT_EQ(reasons, expected);
  };
  pair.look_at(terrain.view());
  EXPECT_TRUE(pair.checker.report(Stance{x, y, 0.3}).safe);
  expect({NAN, y, 0.0}, kBadPose);
  expect({x, y, 1e9}, kBadPose);
  expect({x + 4.0, y, 0.0}, kBorder);
  expect({1e300, y, 0.0}, kBorder);

  terrain.unknown_disc(x + 1.185, y + 1.0625, 0.2);  // under the front left wheel
  pair.look_at(terrain.view());
  expect({x, y, 0.0}, kUnknown);
  maps::Terrain hole(100, 100, 0.1);
  hole.unknown_disc(hole.center_x_m(), hole.center_y_m(), 0.2);  // under the pan
  pair.look_at(hole.view());
  expect({hole.center_x_m(), hole.center_y_m(), 0.0}, kUnknown);
  maps::Terrain cliff(100, 100, 0.1);
  cliff.step(cliff.center_x_m() + 0.5, cliff.center_y_m(), 0.0, 5.0);
  pair.look_at(cliff.view());
  expect({cliff.center_x_m(), cliff.center_y_m(), 0.0}, kMechanical);
}

TEST(Probabilistic, BadConfigurationIsNamed) {
  EXPECT_TRUE(validate(ProbabilisticConfig{}).ok());
  for (const double bad : {0.12, 0.21, -0.17, 0.0, double{NAN}, double{INFINITY}}) {
    EXPECT_STREQ(validate(ProbabilisticConfig{bad, 0.05}).field, "sigma_fraction") << bad;
  }
  for (const double bad : {-0.01, 1.01, double{NAN}, double{INFINITY}}) {
    EXPECT_STREQ(validate(ProbabilisticConfig{0.17, bad}).field, "risk_max") << bad;
  }
  maps::Memory memory(ProbabilisticChecker::memory_required(1000));
  const auto init = [&](const RoverModel& model, const FixedBoxConfig& boxes,
                        const ProbabilisticConfig& config, std::size_t bytes) {
    Arena arena(memory.data(), bytes);
    ProbabilisticChecker checker;
    return checker.init(model, boxes, config, 1000, &arena);
  };
  EXPECT_TRUE(init({}, {}, {}, memory.size()).ok());
  EXPECT_STREQ(init({}, {}, {0.17, 2.0}, memory.size()).field, "risk_max");
  EXPECT_STREQ(init({}, {-1.0, 0.2}, {}, memory.size()).field, "half_length_m");
  RoverModel model;
  model.limits.tilt_max_rad = -1.0;
  EXPECT_STREQ(init(model, {}, {}, memory.size()).field, "tilt_max_rad");
  EXPECT_EQ(init({}, {}, {}, 128).status, Status::kArenaTooSmall);
  ProbabilisticChecker fresh;
  GridView none;
  EXPECT_EQ(fresh.set_map(none), Status::kMapEmpty);
}

}  // namespace
}  // namespace mlnav
