// The certified checker against settling, and against states known in closed form.
#include "mlnav/safety/verified.hpp"
#include "verified_rig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "../src/safety/verified_work.hpp"
#include "maps.hpp"
#include "mlnav/safety/settle_checker.hpp"

namespace mlnav {

// Single boxes about points near a settled state: T, computed state by state from the links and H, against what
// the checker takes for T(box).
struct VerifiedBoxes {
  static constexpr int kN = verified::kN;
  int boxes = 0;
  int outside = 0;
  double largest_share = 0.0;  // of the image's half width

  void look(const VerifiedChecker& checker, const Stance& stance, double reach, double enclosed_m,
            double off_center, std::mt19937& rng) {
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    VerifiedChecker::Work box;
    if (!checker.find_centre(&box, stance)) return;
    for (double& q : box.q) q += off_center * unit(rng);
    if (!checker.krawczyk_image(&box, reach, enclosed_m)) return;
    ++boxes;
    for (int n = 0; n < 16; ++n) {
      VerifiedChecker::Work at = box;
      for (int j = 0; j < kN; ++j) {  // corners first
        at.q[j] += box.half[j] * (n < 8 ? (rng() % 2 == 0 ? 1.0 : -1.0) : unit(rng));
      }
      checker.set_angles(&at);
      verified::Axles<double> axles;
      verified::place_axles<true>(checker.model_.geometry, at.steering, at.turns, &axles);
      at.place(axles);
      double gap[kN];
      for (int i = 0; i < kN; ++i) {
        const Point2 place = at.wheel(i);
        const WheelHeight h = wheel_height(checker.map_, checker.settle_.footprint, place.x_m,
                                           place.y_m, at.steered[i], at.lean[i]);
        ASSERT_EQ(h.status, Status::kOk);
        gap[i] = at.q[verified::kHeight] + axles.up[i] - checker.model_.geometry.wheel_radius_m -
                 h.height_m;
      }
      for (int j = 0; j < kN; ++j) {
        double image = at.q[j];
        for (int i = 0; i < kN; ++i) image -= box.y[j][i] * gap[i];
        const double share = std::fabs(image - (box.q[j] + box.newton_step[j])) / box.image_half[j];
        outside += share > 1.0;
        largest_share = std::max(largest_share, share);
      }
    }
  }

  // Least that is added for rounding, beyond the sums of absolute values taken in 80-bit arithmetic: to where a
  // wheel can stand and how it can lean [m, rad], and to the image of a box, per metre of H's error (see the table
  // in docs/verified_ace.md). False where there is no box.
  struct Margins {
    double reach = INFINITY;
    double image = INFINITY;
  };
  static bool rounding_margins(const VerifiedChecker& checker, const Stance& stance, double reach,
                               Margins* least) {
    using Real = long double;
    VerifiedChecker::Work box;
    if (!checker.find_centre(&box, stance) || !checker.krawczyk_image(&box, reach, reach / 1.5))
      return false;
    typename std::remove_reference<decltype(box.reach)>::type moves;
    if (!checker.bound_motion(&box, &moves)) return false;
    Real spread[kN];
    for (int i = 0; i < kN; ++i) {
      Real forward = 0, left = 0, lean = 0;
      const auto most = [](const Ball& b) { return std::fabs(Real{b.m}) + b.r; };
      for (int j = 0; j < kN; ++j) {
        forward += most(box.box.d_forward[i][j]) * box.half[j];
        left += most(box.box.d_left[i][j]) * box.half[j];
        lean += most(box.box.d_lean[i][j]) * box.half[j];
      }
      least->reach = std::min({least->reach, static_cast<double>(moves.forward[i] - forward),
                               static_cast<double>(moves.left[i] - left),
                               static_cast<double>(moves.lean[i] - lean)});
      const Point2 at = box.wheel(i);
      const WheelRange range = wheel_range(checker.map_, checker.settle_.footprint, at.x_m, at.y_m,
                                           box.steered[i], box.lean[i], box.play(i));
      spread[i] = (Real{range.residual_hi_m} - range.residual_lo_m) / 2;
    }
    for (int j = 0; j < kN; ++j) {
      Real image = 0, rows = 0;
      for (int i = 0; i < kN; ++i) {
        image += std::fabs(Real{box.y[j][i]}) * spread[i];
        rows += std::fabs(Real{box.y[j][i]});
      }
      for (int k = 0; k < kN; ++k) {
        Real middle = j == k ? 1 : 0, radius = 0;
        for (int i = 0; i < kN; ++i) {
          const Real y = box.y[j][i];
          middle -= y * (Real{box.box.d_up[i][k].m} -
                         Real{box.slope_forward[i]} * box.box.d_forward[i][k].m -
                         Real{box.slope_left[i]} * box.box.d_left[i][k].m -
                         Real{box.slope_lean[i]} * box.box.d_lean[i][k].m);
          radius += std::fabs(y) * (box.box.d_up[i][k].r +
                                    std::fabs(box.slope_forward[i]) * box.box.d_forward[i][k].r +
                                    std::fabs(box.slope_left[i]) * box.box.d_left[i][k].r +
                                    std::fabs(box.slope_lean[i]) * box.box.d_lean[i][k].r);
        }
        image += (std::fabs(middle) + radius) * box.half[k];
      }
      least->image =
          std::min(least->image, static_cast<double>((box.image_half[j] - image) / rows));
    }
    return true;
  }

  // Whether the first box about a point `off` from where settling ends is a proof, by the definition; and whether
  // the checker took it for one. False where there is no box.
  static bool first_box(const VerifiedChecker& checker, const Stance& stance, const double off[kN],
                        bool* proof, bool* taken) {
    VerifiedChecker::Work work;
    if (!checker.find_centre(&work, stance)) return false;
    for (int j = 0; j < kN; ++j) work.q[j] += off[j];
    VerifiedChecker::Work box = work;
    if (!checker.krawczyk_image(&box, 1.5 * checker.config_.enclosed_m,
                                checker.config_.enclosed_m)) {
      return false;
    }
    *proof = true;
    for (int j = 0; j < kN; ++j) {
      *proof &= std::fabs(box.newton_step[j]) + box.image_half[j] < box.half[j];
    }
    work.report.inner_steps = 0;
    const bool certified = checker.certify(&work);
    *taken = certified && work.report.inner_steps == 1;
    return certified;
  }

  // Whether a pose is certified when settling ends `off` away, in one state, from where it does.
  static bool certifies_with_settling_off(const VerifiedChecker& checker, const Stance& stance,
                                          int state, double off) {
    VerifiedChecker::Work work;
    if (!checker.find_centre(&work, stance)) return false;
    work.settled[state] += off;
    return checker.certify(&work);
  }
};

namespace {

using mlnav_test::Map;

constexpr double kSettled = 1e-5;  // settling stops at 1e-6 m of residual

struct Pair {
  rig::Verified verified_own;
  VerifiedChecker& verified = verified_own.checker;
  SettleChecker settled;
  SettleModel settle_model;
  explicit Pair(const SafetyLimits& limits, const VerifiedConfig& config = {}) {
    RoverModel model;
    model.limits = limits;
    EXPECT_TRUE(verified_own.init(model, config).ok());
    EXPECT_TRUE(settled.init(model).ok());
    EXPECT_EQ(make_settle_model(model.geometry, &settle_model), Status::kOk);
  }
  void look_at(const GridView& map) {
    ASSERT_EQ(verified.set_map(map), Status::kOk);
    ASSERT_EQ(settled.set_map(map), Status::kOk);
  }
};

// Slopes, rocks, noise, a step between two cells, a ditch.
void make_ground(Map* map, int kind, std::mt19937& rng) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const GridView& v = map->view;
  const double gx = 0.3 * unit(rng);
  const double gy = 0.3 * unit(rng);
  const double noise = kind % 2 == 0 ? 0.004 : 0.02;
  map->fill([&](double x, double y) {
    return gx * (x - v.origin_x_m) + gy * (y - v.origin_y_m) + noise * unit(rng);
  });
  const double area = v.nx * v.ny * v.resolution_m * v.resolution_m;
  for (int n = 0; n < area * (kind % 3); ++n) {
    const double cx = 0.5 * v.nx * (1 + unit(rng));
    const double cy = 0.5 * v.ny * (1 + unit(rng));
    const double r = (0.06 + 0.14 * unit(rng) * unit(rng)) / v.resolution_m;
    for (int iy = std::max(0, static_cast<int>(cy - r)); iy < std::min<double>(v.ny, cy + r);
         ++iy) {
      for (int ix = std::max(0, static_cast<int>(cx - r)); ix < std::min<double>(v.nx, cx + r);
           ++ix) {
        const double r2 = r * r - (ix - cx) * (ix - cx) - (iy - cy) * (iy - cy);
        if (r2 > 0) map->at(ix, iy) += static_cast<float>(0.8 * std::sqrt(r2) * v.resolution_m);
      }
    }
  }
  if (kind % 5 == 1) {  // a step between two columns of cells
    for (int iy = 0; iy < v.ny; ++iy)
      for (int ix = v.nx / 2; ix < v.nx; ++ix) map->at(ix, iy) += 0.12F;
  }
  if (kind % 5 == 3) {  // a ditch
    const int width = static_cast<int>(0.3 / v.resolution_m) + 1;
    for (int iy = v.ny / 2; iy < std::min(v.ny, v.ny / 2 + width); ++iy)
      for (int ix = 0; ix < v.nx; ++ix) map->at(ix, iy) -= 0.15F;
  }
}

// Whether a settled state, judged, lies within what was certified.
void expect_inside(const AceReport& certified, const AceReport& settled, const char* start, int n) {
  const auto inside = [](const Bounds& outer, const Bounds& point) {
    return point.lo >= outer.lo - kSettled && point.hi <= outer.hi + kSettled;
  };
  EXPECT_TRUE(inside(certified.roll_rad, settled.roll_rad)) << start << n;
  EXPECT_TRUE(inside(certified.pitch_rad, settled.pitch_rad)) << start << n;
  EXPECT_TRUE(inside(certified.differential_rad, settled.differential_rad)) << start << n;
  EXPECT_TRUE(inside(certified.bogie_left_rad, settled.bogie_left_rad)) << start << n;
  EXPECT_TRUE(inside(certified.bogie_right_rad, settled.bogie_right_rad)) << start << n;
  EXPECT_TRUE(inside(certified.origin_z_m, settled.origin_z_m)) << start << n;
  EXPECT_LE(settled.tilt_max_rad, certified.tilt_max_rad + kSettled) << start << n;
  EXPECT_GE(settled.clearance_min_m, certified.clearance_min_m - kSettled) << start << n;
  EXPECT_LE(settled.relief_max_m, certified.relief_max_m + kSettled) << start << n;
  EXPECT_GE(settled.margin_tilt_rad, -kSettled) << start << n;
  EXPECT_GE(settled.margin_bogie_rad, -kSettled) << start << n;
  EXPECT_GE(settled.margin_differential_rad, -kSettled) << start << n;
  EXPECT_GE(settled.margin_clearance_m, -kSettled) << start << n;
  EXPECT_GE(settled.margin_relief_m, -kSettled) << start << n;
}

// No certified pose settles outside its bounds or the limits, from the nominal guess or from the bounds'
// middle; and hardly a pose that settles safely is refused.
TEST(Verified, WhatItPassesSettlesInsideBoundsAndLimits) {
  std::mt19937 rng(31);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  int passed = 0, safe = 0, refused = 0, tried = 0;
  double widest_roll = 0.0;
  for (int scene = 0; scene < 30; ++scene) {
    const double resolution = scene % 3 == 0 ? 0.1 : 0.05 + 0.15 * std::fabs(unit(rng));
    const int cells = static_cast<int>(12.0 / resolution);
    Map map(cells, cells + 5, 300 * unit(rng), 300 * unit(rng), resolution);
    make_ground(&map, scene, rng);
    Pair pair(scene % 2 == 0 ? SafetyLimits::flight_like() : SafetyLimits::enav_like());
    pair.look_at(map.view);
    for (int n = 0; n < 200; ++n) {
      ++tried;
      const Pose2 pose{map.view.origin_x_m + 6 + 3.5 * unit(rng),
                       map.view.origin_y_m + 6 + 3.5 * unit(rng), 4 * unit(rng)};
      // Straight ahead, on arcs, turning in place.
      const double curvature = n % 4 == 0 ? 0.0 : n % 4 == 1 ? INFINITY : unit(rng) / 3;
      const Stance stance{pose, curvature};
      const AceReport certified = pair.verified.report(stance);
      Reasons reasons = 0;
      ASSERT_EQ(pair.verified.is_safe(stance, &reasons), certified.safe);
      ASSERT_EQ(certified.safe, certified.reasons == 0);
      const SettledState nominal = settle(map.view, pair.settle_model, stance);
      const AceReport judged = pair.settled.judge(pose, nominal);
      safe += judged.safe;
      refused += judged.safe && !certified.safe;
      if (!certified.safe) continue;
      ++passed;
      widest_roll = std::max(widest_roll, certified.roll_rad.width());
      // Settling itself may fail to converge; it is a certified state's existence that is claimed.
      if (nominal.status == Status::kOk) {
        expect_inside(certified, judged, "nominal ", n);
        double heights[kWheels];
        for (int i = 0; i < kWheels; ++i) heights[i] = nominal.heights_m[i] + 0.002 * unit(rng);
        const SettledState again = settle(map.view, pair.settle_model, stance, heights);
        if (again.status == Status::kOk) {
          expect_inside(certified, pair.settled.judge(pose, again), "near ", n);
        }
      } else {
        EXPECT_EQ(nominal.status, Status::kNotConverged);
      }
    }
  }
  EXPECT_GT(passed, tried / 3);
  EXPECT_LE(refused, safe / 50) << refused << " of " << safe;
  EXPECT_LT(widest_roll, 2 * kDeg);
}

// On a plane of exactly representable heights the settled state has a closed form: body parallel to the
// ground, suspension at rest, z0 = z(x0, y0) + c - r N, with c the axles' height above the slope below them
// and N the length of the normal (-a, -b, 1). Far from the datum float64 rounding is more than what the ground leaves
// uncertain, and steep ground makes the first guess a poor one: the bounds hold the true state only if
// rounding and the curvature of the rover's motion are both accounted for.
TEST(Verified, BoundsHoldTheExactStateFarFromTheDatum) {
  using Real = long double;
  const RoverGeometry g;
  WheelFootprint footprint;
  ASSERT_EQ(make_footprint(g.wheel_radius_m, g.wheel_width_m, &footprint), Status::kOk);
  const double slopes[][2] = {{0.0, 0.0}, {0.125, 0.0}, {-0.25, 0.125}, {0.375, -0.25}};
  for (const double height : {0.0, 1024.0, 65536.0}) {
    for (const auto& slope : slopes) {
      for (const double origin : {0.0, 8388608.0}) {
        for (const double heading : {0.0, 0.7, 2.9, -1.3}) {
          const Real a = slope[0];
          const Real b = slope[1];
          Map map(80, 80, origin, -origin, 0.125);
          map.fill([&](double x, double y) {
            return height + slope[0] * (x - origin) + slope[1] * (y + origin);
          });
          VerifiedConfig config;
          config.enclosed_m = 1e-6;  // so small a box that rounding is all that is left
          Pair pair(SafetyLimits::flight_like(), config);
          pair.look_at(map.view);
          const double x0 = 40 * 0.125 + 0.03125;
          const double y0 = 5.0;
          const AceReport report = pair.verified.report(Stance{origin + x0, -origin + y0, heading});
          ASSERT_TRUE(report.safe) << height << ", " << slope[0] << ": " << report.reasons;

          const Real c = std::cos(static_cast<Real>(heading));
          const Real n = std::sin(static_cast<Real>(heading));
          const Real forward = a * c + b * n;
          const Real left = b * c - a * n;
          const Real roll = std::atan(left);
          const Real pitch = std::atan(forward * std::cos(roll));
          // Across the wheel every sample of a row touches alike.
          Real lift = -INFINITY;
          for (int i = 0; i < footprint.along; ++i) {
            const Real drop = footprint.drop_m[i];
            lift = std::max(lift, forward * footprint.u_m[i] + drop / std::cos(roll));
          }
          const Real z0 = height + a * x0 + b * y0 + lift -
                          static_cast<Real>(g.wheel_radius_m) * std::sqrt(1 + a * a + b * b);
          const auto holds = [](const Bounds& bounds, Real exact) {
            return static_cast<Real>(bounds.lo) <= exact && exact <= static_cast<Real>(bounds.hi);
          };
          EXPECT_TRUE(holds(report.roll_rad, roll)) << height << " " << slope[0] << " " << heading;
          EXPECT_TRUE(holds(report.pitch_rad, pitch))
              << height << " " << slope[0] << " " << heading;
          EXPECT_TRUE(holds(report.origin_z_m, z0)) << height << " " << slope[0] << " " << heading;
          EXPECT_TRUE(holds(report.differential_rad, 0.0L));
          EXPECT_TRUE(holds(report.bogie_left_rad, 0.0L));
          EXPECT_TRUE(holds(report.bogie_right_rad, 0.0L));
          // A plane leaves next to nothing uncertain.
          EXPECT_LT(report.pitch_rad.width(), 1e-5);
          EXPECT_LT(report.origin_z_m.width(), 1e-5);
        }
      }
    }
  }
}

// Whatever a box is good for: T sends all of it where the checker says.
TEST(Verified, TSendsABoxIntoItsImage) {
  std::mt19937 rng(36);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  VerifiedBoxes boxes;
  for (int scene = 0; scene < 24; ++scene) {
    Map map(120, 120, 0.0, 0.0, 0.1);
    make_ground(&map, scene, rng);
    if (scene % 4 == 3) {  // a plane: next to nothing but the rover's own motion is left uncertain
      const double slope = 0.3 * unit(rng);
      map.fill([&](double x, double) { return slope * x; });
    }
    Pair pair(SafetyLimits::enav_like());
    pair.look_at(map.view);
    for (int n = 0; n < 80; ++n) {
      const Pose2 pose{6 + 3 * unit(rng), 6 + 3 * unit(rng), 4 * unit(rng)};
      const double curvature = n % 3 == 0 ? 0.0 : n % 3 == 1 ? INFINITY : 0.5 * unit(rng);
      const double size = std::pow(10.0, -5 + 3.5 * std::fabs(unit(rng)));  // 0.01 to 30 mm
      // About the settled state, beside it, and so far from it that the box is cut to its reach.
      const double off_center = n % 4 == 0 ? 0.0 : n % 4 == 1 ? size : 8.0 * size;
      boxes.look(pair.verified, Stance{pose, curvature}, 1.5 * size, size, off_center, rng);
    }
  }
  EXPECT_GT(boxes.boxes, 1000);
  EXPECT_EQ(boxes.outside, 0);
  EXPECT_GT(boxes.largest_share,
            0.9);  // the bounds are met somewhere: the test is not an empty one
}

// The certificate is about real numbers: what float64 loses is added to every bound. 0.8 of what the argument
// asks for is demanded, wherever the rover stands and however small the box.
TEST(Verified, EveryBoundIsWidenedForRounding) {
  std::mt19937 rng(38);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  VerifiedBoxes::Margins least;
  int boxes = 0;
  for (int scene = 0; scene < 9; ++scene) {
    const double origin = scene % 3 == 0 ? 0.0 : scene % 3 == 1 ? 1e5 : 8388608.0;
    Map map(120, 120, origin, -origin, 0.125);
    make_ground(&map, scene, rng);
    Pair pair(SafetyLimits::enav_like());
    pair.look_at(map.view);
    for (int n = 0; n < 40; ++n) {
      const Pose2 pose{origin + 7 + 3 * unit(rng), -origin + 7 + 3 * unit(rng), 4 * unit(rng)};
      const double reach = std::pow(10.0, -6 + 4 * std::fabs(unit(rng)));
      boxes += VerifiedBoxes::rounding_margins(pair.verified, Stance{pose, n % 2 == 0 ? 0.0 : 0.3},
                                               reach, &least);
    }
  }
  EXPECT_GT(boxes, 150);
  EXPECT_GT(least.reach, 0.8e-8);
  EXPECT_GT(least.image, 0.8e-8);
}

// A box proves something when T sends all of it into itself, and only then.
TEST(Verified, ABoxThatIsNotSentIntoItselfIsNoProof) {
  std::mt19937 rng(40);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  int proofs = 0, others = 0;
  for (int scene = 0; scene < 6; ++scene) {
    Map map(120, 120, 0.0, 0.0, 0.1);
    make_ground(&map, scene, rng);
    Pair pair(SafetyLimits::enav_like());
    pair.look_at(map.view);
    for (int n = 0; n < 60; ++n) {
      const Pose2 pose{6 + 3 * unit(rng), 6 + 3 * unit(rng), 4 * unit(rng)};
      const double away = n % 2 == 0 ? 1e-5 : 0.01;
      double off[VerifiedBoxes::kN];
      for (double& o : off) o = away * unit(rng);
      bool proof = false, taken = false;
      if (!VerifiedBoxes::first_box(pair.verified, Stance{pose}, off, &proof, &taken)) continue;
      EXPECT_EQ(proof, taken);
      ++(proof ? proofs : others);
    }
  }
  EXPECT_GT(proofs, 20);
  EXPECT_GT(others, 20);
}

// Every limit is held against the bounds, not against a state in them: a limit that a bound is a millionth
// within is kept, and one that it is a millionth beyond is broken.
TEST(Verified, LimitsAreHeldAgainstTheBounds) {
  std::mt19937 rng(41);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  int judged = 0;
  for (int scene = 0; scene < 12; ++scene) {
    Map map(120, 120, 0.0, 0.0, 0.1);
    make_ground(&map, scene, rng);
    RoverModel model;
    model.limits = SafetyLimits::enav_like();
    model.limits.relief_max_m = 1.0;
    rig::Verified loose_own;
    VerifiedChecker& loose = loose_own.checker;
    ASSERT_TRUE(loose_own.init(model, {}).ok());
    ASSERT_EQ(loose.set_map(map.view), Status::kOk);
    for (int n = 0; n < 20; ++n) {
      const Stance stance{{6 + 3 * unit(rng), 6 + 3 * unit(rng), 4 * unit(rng)}, 0.3 * unit(rng)};
      const AceReport r = loose.report(stance);
      if (!r.safe) continue;
      ++judged;
      const auto largest = [](const Bounds& b) { return std::max(-b.lo, b.hi); };
      const SafetyLimits& l = model.limits;
      const struct {
        double SafetyLimits::* limit;
        double bound, outwards;
        Reasons reason;
      } cases[] = {
          {&SafetyLimits::tilt_max_rad, r.tilt_max_rad, 1.0, kTilt},
          {&SafetyLimits::bogie_max_rad,
           std::max(largest(r.bogie_left_rad), largest(r.bogie_right_rad)), 1.0, kBogie},
          {&SafetyLimits::differential_max_rad, largest(r.differential_rad), 1.0, kDifferential},
          {&SafetyLimits::clearance_min_m, r.clearance_min_m, -1.0, kClearance},
          {&SafetyLimits::relief_max_m, r.relief_max_m, 1.0, kRelief},
      };
      for (const auto& c : cases) {
        for (const double beyond : {-1e-6, 1e-6}) {
          RoverModel tight = model;
          tight.limits.*c.limit = c.bound - c.outwards * beyond;
          rig::Verified checker_own;
          VerifiedChecker& checker = checker_own.checker;
          if (!checker_own.init(tight, {}).ok()) continue;  // a limit of next to nothing
          ASSERT_EQ(checker.set_map(map.view), Status::kOk);
          const AceReport again = checker.report(stance);
          EXPECT_EQ(again.reasons, beyond > 0.0 ? c.reason : 0) << scene << ", " << n;
          Reasons reasons = 0;
          EXPECT_EQ(checker.is_safe(stance, &reasons), beyond < 0.0);
        }
      }
      EXPECT_EQ(r.margin_tilt_rad, l.tilt_max_rad - r.tilt_max_rad);
    }
  }
  EXPECT_GT(judged, 60);
}

// Clearance is bounded for every state within the bounds, however large the box.
TEST(Verified, ClearanceHoldsAllOverTheBounds) {
  std::mt19937 rng(42);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  VerifiedConfig wide;
  wide.enclosed_m = 0.02;
  int judged = 0;
  double largest_share = 0.0;
  for (int scene = 0; scene < 40; ++scene) {
    Map map(120, 120, 0.0, 0.0, scene % 2 == 0 ? 0.1 : 0.2);
    // Smooth, so that large boxes are certified: a slope, waves, and a peak under one part of the pan.
    const double gx = 0.35 * unit(rng), gy = 0.35 * unit(rng), height = 0.25 * std::fabs(unit(rng));
    const double r = 0.2 + 0.3 * std::fabs(unit(rng));
    const double middle = 60 * map.view.resolution_m;
    const double px = middle + 0.9 * unit(rng), py = middle + 0.7 * unit(rng);
    map.fill([&](double x, double y) {
      const double d = std::hypot(x - px, y - py) / r;
      return gx * x + gy * y + height * std::max(0.0, 1.0 - d);
    });
    RoverModel model;
    model.limits = SafetyLimits::enav_like();
    rig::Verified checker_own;
    VerifiedChecker& checker = checker_own.checker;
    ASSERT_TRUE(checker_own.init(model, wide).ok());
    ASSERT_EQ(checker.set_map(map.view), Status::kOk);
    for (int n = 0; n < 12; ++n) {
      const Pose2 pose{middle + 0.4 * unit(rng), middle + 0.4 * unit(rng), 4 * unit(rng)};
      const AceReport report = checker.report(Stance{pose});
      if (!report.safe) continue;
      ++judged;
      double lowest = INFINITY, central = 0.0;
      for (int corner = 0; corner < 27; ++corner) {
        const auto at = [](const Bounds& b, int step) { return b.lo + 0.5 * step * b.width(); };
        ChainState<double> state{};
        const SinCos roll = det_sincos(at(report.roll_rad, corner % 3));
        const SinCos pitch = det_sincos(at(report.pitch_rad, corner / 3 % 3));
        state.sin_roll = roll.sin;
        state.cos_roll = roll.cos;
        state.sin_pitch = pitch.sin;
        state.cos_pitch = pitch.cos;
        state.origin_z_m = at(report.origin_z_m, corner / 9);
        const Clearance clearance = pan_clearance(map.view, model.geometry, pose, state);
        ASSERT_EQ(clearance.status, Status::kOk);
        lowest = std::min(lowest, clearance.clearance_m);
        if (corner == 13) central = clearance.clearance_m;
      }
      EXPECT_GE(lowest, report.clearance_min_m);
      largest_share =
          std::max(largest_share, (central - lowest) / (central - report.clearance_min_m));
    }
  }
  EXPECT_GT(judged, 100);
  EXPECT_GT(largest_share, 0.7);  // and not by far
}

// Middle and radius hold every value, at the ends of what boxes may be too.
TEST(Verified, BallsHoldWhatTheyStandFor) {
  std::mt19937 rng(43);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const auto holds = [](const Ball& ball, double value) {
    return std::fabs(value - ball.m) <= ball.r * (1.0 + 1e-12) + 1e-15;
  };
  for (int n = 0; n < 4000; ++n) {
    const double angle = 3.2 * unit(rng), half = std::pow(10.0, -6 + 5 * std::fabs(unit(rng)));
    const BallSinCos b = ball_sincos(std::sin(angle), std::cos(angle), half);
    for (const double share : {-1.0, unit(rng), 1.0}) {
      EXPECT_TRUE(holds(b.sin, std::sin(angle + share * half))) << angle << " " << half;
      EXPECT_TRUE(holds(b.cos, std::cos(angle + share * half))) << angle << " " << half;
    }
    const Ball x{unit(rng), half}, y{unit(rng), 2 * half};
    for (const double s : {-1.0, 1.0}) {
      for (const double t : {-1.0, 1.0}) {
        const double u = x.m + s * x.r, v = y.m + t * y.r;
        EXPECT_TRUE(holds(x * y, u * v));
        EXPECT_TRUE(holds(x + y, u + v));
        EXPECT_TRUE(holds(x - y, u - v));
        EXPECT_TRUE(holds(-3.0 * x, -3.0 * u));
      }
    }
    const Ball sine{0.8 * unit(rng), std::min(half, 0.1)};
    for (const double s : {-1.0, unit(rng), 1.0}) {
      const double v = sine.m + s * sine.r;
      EXPECT_TRUE(holds(secant_of_sine(sine), 1.0 / std::sqrt(1.0 - v * v)));
    }
  }
}

// A pose can have several settled states. Only the one that settling ends in is worth a certificate.
TEST(Verified, TheStateThatSettlingEndsInLiesInTheBox) {
  std::mt19937 rng(39);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  int certified = 0;
  for (int scene = 0; scene < 6; ++scene) {
    Map map(120, 120, 0.0, 0.0, 0.1);
    make_ground(&map, scene, rng);
    Pair pair(SafetyLimits::enav_like());
    pair.look_at(map.view);
    for (int n = 0; n < 20; ++n) {
      const Pose2 pose{6 + 3 * unit(rng), 6 + 3 * unit(rng), 4 * unit(rng)};
      if (!VerifiedBoxes::certifies_with_settling_off(pair.verified, Stance{pose}, 0, 0.0))
        continue;
      ++certified;
      for (int state = 0; state < VerifiedBoxes::kN; ++state) {
        for (const double off : {-0.1, 0.1}) {
          EXPECT_FALSE(
              VerifiedBoxes::certifies_with_settling_off(pair.verified, Stance{pose}, state, off));
        }
      }
    }
  }
  EXPECT_GT(certified, 50);
}

// Where the one box that is tried does not prove anything, nothing is passed.
TEST(Verified, WithoutAProofThereIsNoPass) {
  std::mt19937 rng(34);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  VerifiedConfig large;
  large.enclosed_m = 0.004;  // too large a box for rocky ground, and no second try
  large.max_tries = 1;
  int unproven = 0;
  for (int scene = 0; scene < 6; ++scene) {
    Map map(120, 120, 0.0, 0.0, 0.1);
    make_ground(&map, 2 + 3 * scene, rng);
    Pair pair(SafetyLimits::enav_like(), large);
    Pair usual(SafetyLimits::enav_like());
    pair.look_at(map.view);
    usual.look_at(map.view);
    for (int n = 0; n < 60; ++n) {
      const Pose2 pose{6 + 3 * unit(rng), 6 + 3 * unit(rng), 4 * unit(rng)};
      const AceReport report = pair.verified.report(Stance{pose});
      if (report.reasons != kNotCertified) continue;
      EXPECT_EQ(report.inner_steps, 1);
      unproven += usual.verified.report(Stance{pose}).safe;  // smaller boxes do prove it
    }
  }
  EXPECT_GT(unproven, 100);
}

// The image of the first box bounds every settled state whose wheel heights are within it, not only the one
// that settling happens to find.
TEST(Verified, BoundsHoldTheSettledStatesNearBy) {
  std::mt19937 rng(35);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  VerifiedConfig config;
  config.enclosed_m = 0.01;
  int passed = 0;
  for (int scene = 0; scene < 8; ++scene) {
    Map map(120, 120, 0.0, 0.0, 0.1);
    make_ground(&map, scene, rng);
    Pair pair(SafetyLimits::enav_like(), config);
    pair.look_at(map.view);
    for (int n = 0; n < 60; ++n) {
      const Pose2 pose{6 + 3 * unit(rng), 6 + 3 * unit(rng), 4 * unit(rng)};
      const AceReport certified = pair.verified.report(Stance{pose});
      if (!certified.safe) continue;
      ++passed;
      const SettledState nominal = settle(map.view, pair.settle_model, Stance{pose});
      for (int start = 0; start < 4; ++start) {
        double heights[kWheels];
        for (int i = 0; i < kWheels; ++i) heights[i] = nominal.heights_m[i] + 0.005 * unit(rng);
        const SettledState s = settle(map.view, pair.settle_model, Stance{pose}, heights);
        if (s.status == Status::kOk) {
          expect_inside(certified, pair.settled.judge(pose, s), "near ", n);
        }
      }
    }
  }
  EXPECT_GT(passed, 200);
}

TEST(Verified, EachLimitIsSeen) {
  std::mt19937 rng(32);
  Map map(120, 120, 0.0, 0.0, 0.1);
  const auto verdict = [&](const SafetyLimits& limits) {
    Pair pair(limits);
    pair.look_at(map.view);
    return pair.verified.report(Stance{6.0, 6.0, 0.0});
  };
  SafetyLimits limits = SafetyLimits::flight_like();
  map.fill([](double x, double) { return 0.5 * x; });  // 26.6 deg
  EXPECT_EQ(verdict(limits).reasons & kTilt, kTilt);
  map.fill([](double x, double y) { return std::fabs(x - 6.0) < 0.3 && y > 6.5 ? 0.4 : 0.0; });
  EXPECT_EQ(verdict(limits).reasons & kBogie, kBogie);
  map.fill([](double x, double y) { return std::hypot(x - 6.0, y - 6.0) < 0.3 ? 0.45 : 0.0; });
  EXPECT_EQ(verdict(limits).reasons, kClearance);
  limits.clearance_min_m = 0.10;
  EXPECT_EQ(verdict(limits).reasons, 0);
  map.fill([](double x, double y) { return x > 7.2 && y > 6.0 ? 0.35 : 0.0; });
  EXPECT_EQ(verdict(limits).reasons & kRelief, kRelief);
}

TEST(Verified, UnknownGroundAnywhereUnderTheRoverIsNotSafe) {
  Map map(120, 110, -3.0, 2.0, 0.1);
  map.fill([](double x, double) { return 0.1 * x; });
  Pair pair(SafetyLimits::flight_like());
  pair.look_at(map.view);
  const Pose2 pose{3.0, 7.5, 0.4};
  ASSERT_TRUE(pair.verified.report(Stance{pose}).safe);
  const SinCos heading = det_sincos(pose.heading_rad);
  // Under a wheel, under the middle of the pan, under its corner; not a metre beside the rover.
  const struct {
    double forward, left;
    Reasons expected;
  } holes[] = {{1.185, 1.0625, kUnknown},
               {-1.075, -1.0625, kUnknown},
               {0.0, 0.0, kUnknown},
               {0.85, 0.7, kUnknown},
               {0.0, 2.3, 0}};
  for (const auto& hole : holes) {
    CellIndex cell;
    ASSERT_TRUE(cell_of(map.view, pose.x_m + hole.forward * heading.cos - hole.left * heading.sin,
                        pose.y_m + hole.forward * heading.sin + hole.left * heading.cos, &cell));
    const float known = map.at(cell.ix, cell.iy);
    map.at(cell.ix, cell.iy) = NAN;
    EXPECT_EQ(pair.verified.report(Stance{pose}).reasons, hole.expected)
        << hole.forward << ", " << hole.left;
    map.at(cell.ix, cell.iy) = known;
  }
  Reasons reasons = 0;
  EXPECT_FALSE(pair.verified.is_safe(Stance{-2.5, 7.5, 0.0}, &reasons));
  EXPECT_EQ(reasons, kBorder);
  EXPECT_FALSE(pair.verified.is_safe(Stance{NAN, 7.5, 0.0}, &reasons));
  EXPECT_EQ(reasons, kBadPose);
  EXPECT_FALSE(pair.verified.is_safe(Stance{1e300, 7.5, 0.0}, &reasons));
  EXPECT_EQ(reasons, kBorder);
  EXPECT_FALSE(pair.verified.is_safe(Stance{pose, NAN}, &reasons));
  EXPECT_EQ(reasons, kBadPose);
}

TEST(Verified, ConfigurationIsChecked) {
  VerifiedConfig config;
  config.enclosed_m = NAN;
  EXPECT_STREQ(validate(config).field, "enclosed_m");
  config = {};
  config.max_tries = 0;
  EXPECT_STREQ(validate(config).field, "max_tries");
  rig::Verified checker;
  EXPECT_EQ(checker.init({}, config).status, Status::kConfigBad);
  Arena none;
  EXPECT_EQ(checker.checker.init({}, {}, &none).status, Status::kArenaTooSmall);
}

}  // namespace
}  // namespace mlnav
