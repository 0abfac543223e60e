// Sweeps: single boxes against T and settling, and `verified` on whole sweeps against the settled rover.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "../src/safety/sweep_box.hpp"
#include "maps.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"

namespace mlnav {
namespace {

using mlnav_test::Map;
using verified::kN;

constexpr double kSettled = 1e-5;  // settling stops at 1e-6 m of residual

enum Kind { kArc, kTurn, kResteer, kKinds };

struct Ground {
  Map map{140, 140, 0.0, 0.0, 0.1};

  // Roughness 0: a plane. Else noise, and rocks of up to twice that height.
  Ground(double roughness_m, std::mt19937& rng, double slope = 0.35) {
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    const double gx = slope * unit(rng), gy = slope * unit(rng);
    map.fill([&](double x, double y) { return gx * x + gy * y + 0.1 * roughness_m * unit(rng); });
    for (int n = 0; roughness_m > 0.0 && n < 220; ++n) {
      const int cx = static_cast<int>(rng() % 140U), cy = static_cast<int>(rng() % 140U);
      const double r = 1.0 + 1.5 * std::fabs(unit(rng));
      const double height = 2.0 * roughness_m * std::fabs(unit(rng));
      for (int iy = std::max(0, cy - 3); iy < std::min(140, cy + 4); ++iy) {
        for (int ix = std::max(0, cx - 3); ix < std::min(140, cx + 4); ++ix) {
          const double d2 = (ix - cx) * (ix - cx) + (iy - cy) * (iy - cy);
          if (d2 < r * r) {
            map.at(ix, iy) += static_cast<float>(height * std::sqrt(1.0 - d2 / (r * r)));
          }
        }
      }
    }
  }
};

Sweep random_sweep(Kind kind, double length_m, std::mt19937& rng) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const Pose2 pose{7.0 + 3.0 * unit(rng), 7.0 + 3.0 * unit(rng), 3.0 * unit(rng)};
  const double way = rng() % 2 == 0 ? length_m : -length_m;
  if (kind == kArc) return {Stance{pose, unit(rng) / 3.0}, way};
  if (kind == kTurn) return {Stance{pose, INFINITY}, way / 1.5};
  const double to = unit(rng) / 3.0;
  return Sweep::resteer(Stance{pose, to}, rng() % 3 == 0 ? INFINITY : to + length_m * unit(rng));
}

struct Rig {
  RoverModel model;
  SettleModel settle_model;
  SettleChecker judge;
  explicit Rig(const RoverModel& m = {}) : model(m) {
    EXPECT_EQ(make_settle_model(model.geometry, &settle_model), Status::kOk);
    EXPECT_TRUE(judge.init(model).ok());
  }
  SettledState settled(const GridView& map, const Sweep& sweep, double fraction, const Offset& by,
                       const double* start = nullptr) const {
    SinCos steering[kWheels];
    sweep.steering_at(model.geometry, fraction, steering);
    return settle(map, settle_model, moved(sweep.pose_at(fraction), by), steering, start);
  }
};

void state_of(const ChainState<double>& s, double q[kN]) {
  q[verified::kRoll] = s.roll_rad;
  q[verified::kPitch] = s.pitch_rad;
  q[verified::kDifferentialState] = s.differential_rad;
  q[verified::kBogieLeft] = s.bogie_left_rad;
  q[verified::kBogieRight] = s.bogie_right_rad;
  q[verified::kHeight] = s.origin_z_m;
}

struct Count {
  int boxes = 0, tried = 0, settled = 0;
  double largest_share = 0.0;  // of |T| in its image
};

// Proves boxes about random stretches and holds T, computed from the links and H point by point, against the image;
// and settled states against the bounds.
Count look_at_boxes(Kind kind, double roughness_m, const Tube& tube, double least_m, std::uint32_t seed,
                    int wanted, double offset_m = 0.0) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  RoverModel model;
  model.limits.relief_max_m = INFINITY;
  model.limits.clearance_min_m = 0.01;
  const Rig rig(model);
  Count count;
  for (int scene = 0; count.boxes < wanted && scene < 40; ++scene) {
    const Ground ground(roughness_m, rng);
    const GridView& map = ground.map.view;
    CheckWork work;
    const auto prover = std::make_unique<SweepProver>(map, rig.model, rig.settle_model, &work);
    for (int n = 0; n < 12; ++n) {
      const Sweep sweep = random_sweep(kind, 0.01 + 0.14 * std::fabs(unit(rng)), rng);
      const Offset by{offset_m * unit(rng), offset_m * unit(rng), offset_m * unit(rng)};
      Knot knots[2];
      bool usable = true;
      for (const int end : {0, 1}) {
        knots[end].fraction = end;
        const SettledState s = rig.settled(map, sweep, end, by);
        usable = usable && s.status == Status::kOk;
        state_of(s.state, knots[end].q);
      }
      ++count.tried;
      SweepBox box;
      unsigned reasons = 0;
      double least[kN];
      for (double& half : least) half = least_m * std::fabs(unit(rng));
      if (!usable || prover->prove(sweep, by, tube, knots[0], knots[1], least, &box, &reasons) !=
                         SweepProver::kProven) {
        continue;
      }
      ++count.boxes;
      for (int k = 0; k < 120; ++k) {
        const auto u = [&] { return k % 3 != 2 ? (rng() % 2 == 0 ? 1.0 : -1.0) : unit(rng); };
        const double t = k % 4 == 0 ? 0.5 + 0.5 * u() : 0.5 + 0.5 * unit(rng);
        const double e[3] = {tube.along_m * u(), tube.across_m * u(), tube.heading_rad * u()};
        double inside[kN], q[kN];
        for (int i = 0; i < kN; ++i) inside[i] = box.half_m[i] * u();
        for (int j = 0; j < kN; ++j) {
          q[j] = box.q_from[j] + t * (box.q_to[j] - box.q_from[j]);
          for (int i = 0; i < kN; ++i) {
            q[j] += box.y[j][i] *
                    (inside[i] + box.chi[0][i] * e[0] + box.chi[1][i] * e[1] + box.chi[2][i] * e[2]);
          }
        }
        SinCos steering[kWheels];
        sweep.steering_at(model.geometry, t, steering);
        verified::Turns<double> turns;
        turn_links(q, &turns);
        verified::Axles<double> axles;
        verified::place_axles<false>(model.geometry, steering, turns, &axles);
        const Pose2 pose = moved(box.pose_at(t), {e[0], e[1], e[2]});
        const SinCos heading = det_sincos(pose.heading_rad);
        for (int i = 0; i < kN; ++i) {
          const double sin = axles.sin_lean[i];
          const WheelHeight h = wheel_height(
              map, rig.settle_model.footprint,
              pose.x_m + axles.forward[i] * heading.cos - axles.left[i] * heading.sin,
              pose.y_m + axles.forward[i] * heading.sin + axles.left[i] * heading.cos,
              wheel_heading(heading, steering[i]), {sin, std::sqrt(1.0 - sin * sin)});
          const double gap = q[verified::kHeight] + axles.up[i] - model.geometry.wheel_radius_m - h.height_m;
          const double share = std::fabs(inside[i] - gap) / box.image_m[i];
          EXPECT_LE(share, 1.0) << "wheel " << i << " at " << t;
          count.largest_share = std::max(count.largest_share, share);
          EXPECT_LE(box.image_m[i], box.half_m[i]);
        }
        if (k % 10 != 0) continue;
        const SettledState s = settle(map, rig.settle_model, pose, steering);
        if (s.status != Status::kOk) continue;
        ++count.settled;
        double state[kN];
        state_of(s.state, state);
        for (int j = 0; j < kN; ++j) {
          const double middle = box.q_from[j] + t * (box.q_to[j] - box.q_from[j]);
          EXPECT_LE(std::fabs(state[j] - middle), box.state_half[j] + kSettled) << "state " << j;
        }
      }
    }
  }
  return count;
}

constexpr Tube kNoTube{};
constexpr Tube kNarrow{0.01, 0.01, 0.3 * kDeg};

TEST(SweepBox, TheImageHoldsT) {
  for (const Kind kind : {kArc, kTurn, kResteer}) {
    const Count rough = look_at_boxes(kind, 0.06, kNoTube, 0.0, 7, 60);
    EXPECT_GE(rough.boxes, 60) << kind;
    EXPECT_GT(rough.largest_share, 0.6) << kind;
    EXPECT_GT(rough.settled, 100) << kind;
  }
}

// On a plane H has no residual, so that the image is the links' second order alone.
TEST(SweepBox, TheLinksSecondOrderIsBounded) {
  for (const Kind kind : {kArc, kTurn, kResteer}) {
    const Count plane = look_at_boxes(kind, 0.0, kNoTube, 0.12, 8, 60);
    EXPECT_GE(plane.boxes, 60) << kind;
    EXPECT_GT(plane.largest_share, 0.4) << kind;
  }
}

TEST(SweepBox, TheTubeIsInTheImage) {
  for (const Kind kind : {kArc, kTurn, kResteer}) {
    for (const double roughness_m : {0.0, 0.03}) {
      const Count tube = look_at_boxes(kind, roughness_m, kNarrow, 0.0, 9, 25);
      EXPECT_GE(tube.boxes, 25) << kind;
      EXPECT_GT(tube.largest_share, 0.2) << kind;
    }
  }
}

TEST(SweepBox, PartsOfATubeAreBesideTheWay) {
  for (const Kind kind : {kArc, kTurn, kResteer}) {
    const Count beside = look_at_boxes(kind, 0.04, {0.004, 0.004, 0.1 * kDeg}, 0.0, 10, 25, 0.08);
    EXPECT_GE(beside.boxes, 25) << kind;
  }
}

// What a box may not leave out: it must hold what it is told to.
TEST(SweepBox, HoldsAtLeastWhatIsAsked) {
  std::mt19937 rng(11);
  const Ground ground(0.03, rng);
  const Rig rig;
  CheckWork work;
  const auto prover = std::make_unique<SweepProver>(ground.map.view, rig.model, rig.settle_model, &work);
  int proven = 0;
  for (int n = 0; n < 40; ++n) {
    const Sweep sweep = random_sweep(kArc, 0.05, rng);
    Knot knots[2];
    for (const int end : {0, 1}) {
      knots[end].fraction = end;
      state_of(rig.settled(ground.map.view, sweep, end, {}).state, knots[end].q);
    }
    const double least[kN] = {0.03, 0.001, 0.02, 0.025, 0.0, 0.03};
    SweepBox box;
    unsigned reasons = 0;
    if (prover->prove(sweep, {}, {}, knots[0], knots[1], least, &box, &reasons) != SweepProver::kProven) continue;
    ++proven;
    for (int i = 0; i < kN; ++i) EXPECT_GE(box.half_m[i], least[i]);
    // Settled states are in the image, the image of the image, and so on.
    double half_m[kN];
    std::copy_n(box.image_m, kN, half_m);
    for (int image = 0; image < 3; ++image) prover->map_at(box, true, half_m);
    for (int i = 0; i < kN; ++i) EXPECT_LE(half_m[i], box.image_m[i]);
    const SettledState end = rig.settled(ground.map.view, sweep, 1.0, {}, nullptr);
    double q[kN];
    state_of(end.state, q);
    for (int i = 0; i < kN; ++i) {
      double u = 0.0;
      for (int j = 0; j < kN; ++j) u += box.jacobian[i][j] * (q[j] - box.q_to[j]);
      EXPECT_LE(std::fabs(u), half_m[i] + kSettled);
    }
  }
  EXPECT_GT(proven, 10);
}

// ---- whole sweeps --------------------------------------------------------------------------------

bool inside(const Bounds& outer, double value) {
  return value >= outer.lo - kSettled && value <= outer.hi + kSettled;
}

void expect_inside(const AceReport& proven, const AceReport& settled) {
  EXPECT_TRUE(inside(proven.roll_rad, settled.roll_rad.lo));
  EXPECT_TRUE(inside(proven.pitch_rad, settled.pitch_rad.lo));
  EXPECT_TRUE(inside(proven.differential_rad, settled.differential_rad.lo));
  EXPECT_TRUE(inside(proven.bogie_left_rad, settled.bogie_left_rad.lo));
  EXPECT_TRUE(inside(proven.bogie_right_rad, settled.bogie_right_rad.lo));
  EXPECT_TRUE(inside(proven.origin_z_m, settled.origin_z_m.lo));
  EXPECT_LE(settled.tilt_max_rad, proven.tilt_max_rad + kSettled);
  EXPECT_GE(settled.clearance_min_m, proven.clearance_min_m - kSettled);
  EXPECT_LE(settled.relief_max_m, proven.relief_max_m + kSettled);
  EXPECT_GE(settled.margin_tilt_rad, -kSettled);
  EXPECT_GE(settled.margin_bogie_rad, -kSettled);
  EXPECT_GE(settled.margin_differential_rad, -kSettled);
  EXPECT_GE(settled.margin_clearance_m, -kSettled);
  EXPECT_GE(settled.margin_relief_m, -kSettled);
}

// Settles the rover all along certified sweeps, in the tube, from the nominal guess and from the state before.
void certify_and_settle(const RoverModel& model, double error_m, std::uint32_t seed, int trials,
                        double least_share) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const Rig rig{{model.geometry, model.limits}};
  VerifiedChecker checker;
  ASSERT_TRUE(checker.init(model, {}).ok());
  SettleChecker judge;
  ASSERT_TRUE(judge.init({model.geometry, model.limits}).ok());
  int safe = 0, certified = 0, unsafe = 0;
  for (int n = 0; n < trials; ++n) {
    const Ground known(0.1 * std::fabs(unit(rng)), rng, 0.3);
    Map truth(140, 140, 0.0, 0.0, 0.1);
    truth.z = known.map.z;
    for (float& z : truth.z) z += static_cast<float>(0.99 * error_m * (rng() % 2 == 0 ? 1.0 : -1.0));
    GridView map = known.map.view;
    map.height_error_m = error_m;
    ASSERT_EQ(checker.set_map(map), Status::kOk);
    ASSERT_EQ(judge.set_map(truth.view), Status::kOk);
    for (int k = 0; k < 12; ++k) {
      const Sweep sweep = random_sweep(static_cast<Kind>(k % kKinds), 0.25, rng);
      const AceReport report = checker.report(sweep);
      Reasons reasons = 0;
      ASSERT_EQ(checker.is_safe(sweep, &reasons), report.safe);
      ASSERT_EQ(report.safe, report.reasons == 0);
      const Tube& tube = model.tracking;
      bool all = true;
      double before[kWheels];
      bool has_before = false;
      for (int i = 0; i <= 60; ++i) {
        const auto u = [&] { return i % 2 == 0 ? (rng() % 2 == 0 ? 1.0 : -1.0) : unit(rng); };
        const Offset by{tube.along_m * u(), tube.across_m * u(), tube.heading_rad * u()};
        const double fraction = i / 60.0;
        const SettledState s =
            rig.settled(truth.view, sweep, fraction, by, has_before && i % 3 != 0 ? before : nullptr);
        if (s.status == Status::kOk) {
          std::copy_n(s.heights_m, kWheels, before);
          has_before = true;
        }
        const AceReport judged = judge.judge(moved(sweep.pose_at(fraction), by), s);
        all = all && judged.safe;
        if (report.safe) {
          ASSERT_EQ(s.status, Status::kOk);
          expect_inside(report, judged);
        }
      }
      safe += all;
      unsafe += !all;
      certified += report.safe;
      EXPECT_TRUE(all || !report.safe);
    }
  }
  EXPECT_GT(unsafe, 0);
  EXPECT_GE(certified, static_cast<int>(least_share * safe)) << certified << " of " << safe;
}

TEST(VerifiedSweeps, TheSettledRoverStaysInsideBoundsAndLimitsAllAlong) {
  certify_and_settle({RoverGeometry{}, SafetyLimits::flight_like()}, 0.0, 51, 40, 0.93);
}

TEST(VerifiedSweeps, AndInItsTube) {
  certify_and_settle({RoverGeometry{}, SafetyLimits::flight_like(), {0.01, 0.01, 0.3 * kDeg}}, 0.0, 52, 6, 0.5);
}

TEST(VerifiedSweeps, AndOnGroundThatTheMapHasALittleWrong) {
  certify_and_settle({RoverGeometry{}, SafetyLimits::flight_like()}, 0.004, 53, 20, 0.5);
}

TEST(VerifiedSweeps, AndForOtherRovers) {
  RoverGeometry g;
  g.wheel_radius_m = 0.15;
  g.wheel_width_m = 0.2;
  g.front_x_m = 0.7;
  g.rear_x_m = -0.6;
  g.front_y_m = g.rear_y_m = 0.5;
  g.middle_y_m = 0.6;
  g.rocker_pivot_x_m = 0.1;
  g.rocker_pivot_z_m = 0.5;
  g.bogie_pivot_x_m = -0.25;
  g.bogie_pivot_z_m = 0.35;
  g.pan_rear_x_m = -0.5;
  g.pan_front_x_m = 0.5;
  g.pan_half_width_m = 0.3;
  g.pan_height_m = 0.4;
  SafetyLimits limits = SafetyLimits::flight_like();
  limits.clearance_min_m = 0.1;
  limits.relief_max_m = 0.15;
  certify_and_settle({g, limits}, 0.0, 54, 20, 0.85);
}

TEST(VerifiedSweeps, WhatIsBetweenTwoSafePosesIsSeen) {
  // A ridge narrower than the spacing of poses: safe before it and beyond it, and not on it.
  Map map(140, 140, 0.0, 0.0, 0.1);
  map.fill([](double x, double) { return x > 8.35 && x < 8.45 ? 0.3 : 0.0; });
  RoverModel model{RoverGeometry{}, SafetyLimits::flight_like()};
  VerifiedChecker checker;
  ASSERT_TRUE(checker.init(model, {}).ok());
  ASSERT_EQ(checker.set_map(map.view), Status::kOk);
  Reasons reasons = 0;
  const double begin = 8.4 - model.geometry.front_x_m - 0.55;
  EXPECT_TRUE(checker.is_safe(Stance{begin, 7.0, 0.0}, &reasons));
  EXPECT_TRUE(checker.is_safe(Stance{begin + 1.1, 7.0, 0.0}, &reasons));
  EXPECT_FALSE(checker.is_safe({Stance{begin, 7.0, 0.0}, 1.1}, &reasons));
  EXPECT_NE(reasons & (kRelief | kNotCertified | kBogie), 0);
}

TEST(VerifiedSweeps, RefusesWhatItCannotKnow) {
  Map map(140, 140, 0.0, 0.0, 0.1);
  map.at(90, 70) = NAN;
  VerifiedChecker checker;
  ASSERT_TRUE(checker.init({RoverGeometry{}, SafetyLimits::flight_like()}, {}).ok());
  ASSERT_EQ(checker.set_map(map.view), Status::kOk);
  const auto why = [&](const Sweep& sweep) {
    Reasons reasons = 0;
    const bool safe = checker.is_safe(sweep, &reasons);
    EXPECT_EQ(safe, reasons == 0);
    EXPECT_EQ(checker.report(sweep).reasons, reasons);
    return reasons;
  };
  EXPECT_EQ(why({Stance{5.0, 7.0, 0.0}, 1.0}), 0);
  EXPECT_EQ(why({Stance{7.0, 7.0, 0.0}, 1.0}), kUnknown);  // under the belly
  EXPECT_EQ(why({Stance{6.5, 8.06, 0.0}, 1.5}), kUnknown);  // a wheel runs over it
  EXPECT_EQ(why({Stance{2.0, 7.0, 0.0}, -1.0}), kBorder);
  EXPECT_EQ(why({Stance{5.0, 7.0, 0.0}, -1.0}), 0);
  EXPECT_EQ(why({Stance{5.0, 7.0, 0.0}, NAN}), kBadPose);
  EXPECT_EQ(why({Stance{5.0, 7.0, 0.0}, 1e9}), kBadPose);
  EXPECT_EQ(why({Stance{Pose2{5.0, 7.0, 0.0}, NAN}, 1.0}), kBadPose);
  EXPECT_EQ(why(Sweep::resteer(Stance{5.0, 7.0, 0.0}, NAN)), kBadPose);
  EXPECT_EQ(why(Sweep::resteer(Stance{5.0, 7.0, 0.0}, INFINITY)), 0);
  EXPECT_EQ(why({Stance{Pose2{5.0, 7.0, 0.0}, INFINITY}, 2.0}), 0);
  // Few boxes do not do for a long way.
  VerifiedConfig few;
  few.max_boxes = 3;
  ASSERT_TRUE(checker.init({RoverGeometry{}, SafetyLimits::flight_like()}, few).ok());
  ASSERT_EQ(checker.set_map(map.view), Status::kOk);
  EXPECT_EQ(why({Stance{4.0, 7.0, 0.0}, 1.0}), kNotCertified);
  EXPECT_EQ(why({Stance{4.0, 7.0, 0.0}, 0.3}), 0);
}

// ---- all checkers ----------------------------------------------------------------------------------

TEST(Sweeps, EndWhereTheyLead) {
  const Sweep arc{Stance{Pose2{1.0, 2.0, 0.5}, 0.2}, 1.5};
  const Pose2 end = along_arc({1.0, 2.0, 0.5}, 0.2, 1.5);
  EXPECT_EQ(arc.end().pose.x_m, end.x_m);
  EXPECT_EQ(arc.pose_at(0.0).x_m, 1.0);
  EXPECT_EQ(arc.pose_at(1.0).y_m, end.y_m);
  EXPECT_EQ(arc.length_m({}), 1.5);
  const Sweep turn{Stance{Pose2{1.0, 2.0, 0.5}, INFINITY}, -0.4};
  EXPECT_TRUE(turn.turns());
  EXPECT_DOUBLE_EQ(turn.end().pose.heading_rad, 0.1);
  EXPECT_EQ(turn.pose_at(0.5).x_m, 1.0);
  EXPECT_DOUBLE_EQ(turn.length_m({}), 0.6);
  const Pose2 given{7.0, 8.0, 9.0};
  const Sweep told{Stance{}, 1.0, given};
  EXPECT_EQ(told.pose_at(1.0).x_m, 7.0);
  EXPECT_TRUE(Sweep(Stance{}).is_pose());
  const Sweep steering = Sweep::resteer(Stance{Pose2{}, 0.2}, INFINITY);
  EXPECT_FALSE(steering.is_pose());
  SinCos from[kWheels], to[kWheels], at[kWheels];
  wheel_steering({}, INFINITY, from);
  wheel_steering({}, 0.2, to);
  for (const double fraction : {0.0, 1.0}) {
    steering.steering_at({}, fraction, at);
    for (int i = 0; i < kWheels; ++i) EXPECT_NEAR(at[i].sin, (fraction == 0.0 ? from : to)[i].sin, 1e-12);
  }
  EXPECT_GT(steering.length_m({}), 0.3);
}

TEST(Sweeps, CheckersOfPosesLookAllAlong) {
  // A wall that only the middle of the way meets.
  Map map(140, 140, 0.0, 0.0, 0.1);
  map.fill([](double x, double y) { return x > 6.9 && x < 7.1 && y > 8.0 && y < 8.4 ? 0.6 : 0.0; });
  const RoverModel model{RoverGeometry{}, SafetyLimits::enav_like()};
  std::vector<char> memory(FixedBoxChecker::memory_required(140 * 140));
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker boxes;
  SettleChecker settled;
  ASSERT_TRUE(boxes.init(model, {}, 140 * 140, &arena).ok());
  ASSERT_TRUE(settled.init(model).ok());
  ASSERT_EQ(boxes.set_map(map.view), Status::kOk);
  ASSERT_EQ(settled.set_map(map.view), Status::kOk);
  const Sweep across{Stance{4.0, 7.0, 0.0}, 6.0};
  for (const AceChecker* checker : {static_cast<AceChecker*>(&boxes), static_cast<AceChecker*>(&settled)}) {
    Reasons reasons = 0;
    CheckWork work;
    EXPECT_TRUE(checker->is_safe(across.begin, &reasons));
    EXPECT_TRUE(checker->is_safe(across.end(), &reasons));
    EXPECT_FALSE(checker->check(across, &reasons, &work));
    EXPECT_GT(work.boxes, 3);
    const AceReport report = checker->report(across);
    EXPECT_FALSE(report.safe);
    EXPECT_GT(report.reasons, 0);
    EXPECT_TRUE(checker->report({Stance{4.0, 6.0, 0.0}, 6.0}).safe);
  }
}

}  // namespace
}  // namespace mlnav
