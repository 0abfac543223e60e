// Sweeps: single boxes against T and settling, and `verified` on whole sweeps against the settled rover.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "../src/safety/link_bounds.hpp"
#include "../src/safety/sweep_box.hpp"
#include "maps.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"
#include "verified_rig.hpp"

namespace mlnav {

// What the prover knows of a box that it has proven.
struct SweepProbe {
  // Bounds of T over the box, refined as far as they can be.
  static bool finest_image(SweepProver* prover, const SweepBox& box, double image_m[verified::kN]) {
    SweepProver::Motion motion;
    if (!prover->come_back(box) || !prover->bound_motion(box, box.half_m, &motion)) return false;
    for (int i = 0; i < verified::kN; ++i) {
      unsigned reasons = 0;  // no room for the ground about a box that has grown as large as it may
      if (!prover->look_round(box, motion, i, true, &reasons)) return false;
      image_m[i] = prover->need(box, motion, i, 0.0);
    }
    return true;
  }
  // The centre line of a wheel between the nodes: largest share of what its track allows, of place, lean and S.
  static void look_between(SweepProver* prover, const SweepBox& box, double share[3]) {
    ASSERT_TRUE(prover->come_back(box));
    SweepProver::Motion still{};
    const auto outside = [](double lo, double hi, double lo_end, double hi_end, double value) {
      const double allowed = value > 0.5 * (lo + hi) ? hi - hi_end : lo_end - lo;
      const double off = value > 0.5 * (lo + hi) ? value - hi_end : lo_end - value;
      return allowed > 1e-7 ? off / allowed : 0.0;
    };
    for (int wheel = 0; wheel < verified::kN; ++wheel) {
      SweepProver::Track track;
      prover->lay_track(box, still, wheel, 0, SweepProver::kNodes - 1, &track);
      const SweepProver::Nodes& nodes = prover->nodes_;
      const WheelTrend& g = box.trend[wheel];
      for (int piece = 0; piece < track.pieces; ++piece) {
        for (const double part : {0.25, 0.5, 0.75}) {
          const double t = (piece + part) / track.pieces;
          double q[verified::kN];
          for (int j = 0; j < verified::kN; ++j)
            q[j] = box.q_from[j] + t * (box.q_to[j] - box.q_from[j]);
          verified::Turns<double> turns;
          turn_links(q, &turns);
          SinCos steering[kWheels];
          box.sweep.steering_at(prover->model_->geometry, box.from + t * (box.to - box.from),
                                steering);
          verified::Axles<double> axles;
          verified::place_axles<false>(prover->model_->geometry, steering, turns, &axles);
          const Pose2 pose = box.pose_at(t);
          const SinCos h = det_sincos(pose.heading_rad);
          const double r = prover->model_->geometry.wheel_radius_m, sin = axles.sin_lean[wheel];
          const double f = axles.forward[wheel] - r * sin * steering[wheel].sin;
          const double l = axles.left[wheel] + r * sin * steering[wheel].cos;
          const Point2 foot{pose.x_m + f * h.cos - l * h.sin, pose.y_m + f * h.sin + l * h.cos};
          const double lean = det_asin(sin);
          const double s =
              q[verified::kHeight] + axles.up[wheel] - r - g.slope_x * (foot.x_m - g.foot.x_m) -
              g.slope_y * (foot.y_m - g.foot.y_m) - g.slope_lean_m * (lean - g.lean_rad);
          const double x = foot.x_m - track.origin.x_m, y = foot.y_m - track.origin.y_m;
          const double n = y * track.along.cos - x * track.along.sin;
          const SweepProver::Rectangle& at = track.piece[piece];
          EXPECT_GE(n, at.across_lo);
          EXPECT_LE(n, at.across_hi);
          const Point2 &one = nodes.foot[piece][wheel], &two = nodes.foot[piece + 1][wheel];
          EXPECT_LE(std::hypot(foot.x_m - one.x_m - part * (two.x_m - one.x_m),
                               foot.y_m - one.y_m - part * (two.y_m - one.y_m)),
                    nodes.foot_between_m);
          EXPECT_GE(lean, track.lean_lo[piece]);
          EXPECT_LE(lean, track.lean_hi[piece]);
          EXPECT_GE(s, track.s_lo[piece]);
          EXPECT_LE(s, track.s_hi[piece]);
          const auto ends = [&](const double* a, const double* b, double lo, double hi,
                                double value) {
            return outside(lo, hi, std::min(*a, *b), std::max(*a, *b), value);
          };
          share[1] = std::max(share[1],
                              ends(&nodes.lean_rad[piece][wheel], &nodes.lean_rad[piece + 1][wheel],
                                   track.lean_lo[piece], track.lean_hi[piece], lean));
          share[2] = std::max(share[2], ends(&nodes.s[piece][wheel], &nodes.s[piece + 1][wheel],
                                             track.s_lo[piece], track.s_hi[piece], s));
          // The heading of the wheel, from the nearest node.
          const SinCos wheel_now = wheel_heading(h, steering[wheel]);
          const SinCos wheel_then =
              wheel_heading(nodes.heading[piece], nodes.steering[piece][wheel]);
          const double turned =
              std::fabs(det_atan2(wheel_now.sin * wheel_then.cos - wheel_now.cos * wheel_then.sin,
                                  wheel_now.cos * wheel_then.cos + wheel_now.sin * wheel_then.sin));
          EXPECT_LE(turned, track.turn_step_rad + 1e-9);
          if (track.turn_step_rad > 1e-4)
            share[0] = std::max(share[0], turned / track.turn_step_rad);
        }
      }
    }
  }
};

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
  double between[3] = {};      // of what may lie between nodes: heading, lean, S
};

// Proves boxes about random stretches and holds T, computed from the links and H point by point, against the image;
// and settled states against the bounds.
Count look_at_boxes(Kind kind, double roughness_m, const Tube& tube, double least_m,
                    std::uint32_t seed, int wanted, double offset_m = 0.0, double length_m = 0.15) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  RoverModel model;
  model.limits = {0.01, 44 * kDeg, 44 * kDeg, 44 * kDeg, 10.0, INFINITY};
  const Rig rig(model);
  Count count;
  for (int scene = 0; count.boxes < wanted && scene < 80; ++scene) {
    const Ground ground(roughness_m, rng, roughness_m == 0.0 ? 0.6 : 0.35);
    const GridView& map = ground.map.view;
    CheckWork work;
    const auto prover = std::make_unique<SweepProver>();
    prover->begin(map, rig.model, rig.settle_model, &work);
    for (int n = 0; n < 12; ++n) {
      const Sweep sweep = random_sweep(kind, length_m * (0.1 + 0.9 * std::fabs(unit(rng))), rng);
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
      if (!usable || prover->prove(sweep, by, tube, knots[0], knots[1], nullptr, least, &box,
                                   &reasons) != SweepProver::kProven) {
        continue;
      }
      double image_m[kN];
      if (!SweepProbe::finest_image(prover.get(), box, image_m)) continue;
      ++count.boxes;
      SweepProbe::look_between(prover.get(), box, count.between);
      for (int k = 0; k < 180; ++k) {  // all corners, at both ends; then points inside
        const bool corner = k < 128;
        const auto u = [&] { return corner ? (rng() % 2 == 0 ? 1.0 : -1.0) : unit(rng); };
        const double t = corner ? k / 64 : 0.5 + 0.5 * unit(rng);
        const double e[3] = {tube.along_m * u(), tube.across_m * u(), tube.heading_rad * u()};
        double inside[kN], q[kN];
        for (int i = 0; i < kN; ++i) {
          inside[i] = box.half_m[i] * (corner ? ((k >> i & 1) != 0 ? 1.0 : -1.0) : u());
        }
        for (int j = 0; j < kN; ++j) {
          q[j] = box.q_from[j] + t * (box.q_to[j] - box.q_from[j]);
          for (int i = 0; i < kN; ++i) {
            q[j] += box.y[j][i] * (inside[i] + box.chi[0][i] * e[0] + box.chi[1][i] * e[1] +
                                   box.chi[2][i] * e[2]);
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
          const WheelHeight h =
              wheel_height(map, rig.settle_model.footprint,
                           pose.x_m + axles.forward[i] * heading.cos - axles.left[i] * heading.sin,
                           pose.y_m + axles.forward[i] * heading.sin + axles.left[i] * heading.cos,
                           wheel_heading(heading, steering[i]), {sin, std::sqrt(1.0 - sin * sin)});
          const double gap =
              q[verified::kHeight] + axles.up[i] - model.geometry.wheel_radius_m - h.height_m;
          const double share = std::fabs(inside[i] - gap) / image_m[i];
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

// What the first derivatives of the linkage leave out, angle by angle and in pairs, so that each term has its turn.
TEST(LinkBounds, HoldAndAreMet) {
  const RoverGeometry geometry;
  std::mt19937 rng(5);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (const bool steers : {false, true}) {
    for (int mask = 1; mask < 16; ++mask) {
      if (__builtin_popcount(static_cast<unsigned>(mask)) > 2) continue;
      double most[4] = {};  // share of s, forward, left, lean
      for (int n = 0; n < 1500; ++n) {
        const int wheel = static_cast<int>(rng() % 6U);
        const int side = wheel / 3;
        const double sign = side == 0 ? 1.0 : -1.0;
        const double middle[kLinkAngles] = {0.4 * unit(rng), 0.4 * unit(rng), 0.4 * unit(rng),
                                            0.5 * unit(rng)};
        double line[kLinkAngles] = {}, box[kLinkAngles] = {};
        for (int a = 0; a < kLinkAngles; ++a) {
          if ((mask >> a & 1) == 0) continue;
          line[a] = n % 2 == 0 ? 0.0 : 0.1 * std::fabs(unit(rng));
          box[a] = 0.001 + 0.1 * std::fabs(unit(rng));
        }
        const double steering = unit(rng);
        const double steering_half = steers ? 0.1 * std::fabs(unit(rng)) : 0.0;
        const double g_f = 0.7 * unit(rng), g_l = 0.7 * unit(rng);
        const double kappa = n % 3 == 0 ? 0.3 * unit(rng) : 0.0;
        struct Place {
          double s, forward, left, lean;
        };
        const auto turned = [&](const double angle[kLinkAngles]) {
          verified::Turns<double> t{};
          const SinCos roll = det_sincos(angle[kRolled]), body = det_sincos(angle[kBody]);
          const SinCos rocker = det_sincos(angle[kRocker]), bogie = det_sincos(angle[kBogieLink]);
          t.sin_roll = roll.sin;
          t.cos_roll = roll.cos;
          t.sin_pitch = body.sin;
          t.cos_pitch = body.cos;
          for (int s = 0; s < 2; ++s) {
            t.sin_rocker[s] = rocker.sin;
            t.cos_rocker[s] = rocker.cos;
            t.sin_bogie[s] = bogie.sin;
            t.cos_bogie[s] = bogie.cos;
          }
          return t;
        };
        const auto place = [&](const double angle[kLinkAngles], double steer) {
          SinCos steered[kWheels];
          for (SinCos& s : steered) s = det_sincos(steer);
          verified::Axles<double> axles;
          verified::place_axles<false>(geometry, steered, turned(angle), &axles);
          const double r = geometry.wheel_radius_m, sin = axles.sin_lean[wheel];
          const double f = axles.forward[wheel] - r * sin * steered[0].sin;
          const double l = axles.left[wheel] + r * sin * steered[0].cos;
          const double lean = det_asin(sin);
          return Place{axles.up[wheel] - g_f * f - g_l * l - kappa * lean, f, l, lean};
        };
        const LinkBounds bounds = bound_links(geometry, wheel, turned(middle), det_sincos(steering),
                                              steering_half, g_f, g_l, kappa, line, box);
        ASSERT_TRUE(bounds.usable);
        SinCos steered[kWheels];
        for (SinCos& s : steered) s = det_sincos(steering);
        verified::Axles<double> at;
        verified::place_axles<true>(geometry, steered, turned(middle), &at);
        for (unsigned corner = 0; corner < 256; ++corner) {
          double from[kLinkAngles], to[kLinkAngles], delta[kLinkAngles];
          bool repeated = false;
          for (int a = 0; a < kLinkAngles; ++a) {
            repeated |= (mask >> a & 1) == 0 && (corner >> (2 * a) & 3) != 0;
            from[a] = middle[a] + line[a] * ((corner >> (2 * a) & 1) != 0 ? 1.0 : -1.0);
            delta[a] = box[a] * ((corner >> (2 * a + 1) & 1) != 0 ? 1.0 : -1.0);
            to[a] = from[a] + delta[a];
          }
          if (repeated) continue;
          const double state[kN] = {delta[kRolled],
                                    delta[kBody],
                                    sign * (delta[kRocker] - delta[kBody]),
                                    side == 0 ? delta[kBogieLink] - delta[kRocker] : 0.0,
                                    side == 1 ? delta[kBogieLink] - delta[kRocker] : 0.0,
                                    0.0};
          double up = 0.0, f = 0.0, l = 0.0, lean = 0.0;
          for (int j = 0; j < kN; ++j) {
            up += at.d_up[wheel][j] * state[j];
            f += at.d_forward[wheel][j] * state[j];
            l += at.d_left[wheel][j] * state[j];
            lean += at.d_lean[wheel][j] * state[j];
          }
          const double steer = steering + steering_half * (corner % 3 == 0   ? 1.0
                                                           : corner % 3 == 1 ? -1.0
                                                                             : 0.5);
          const Place a = place(from, steer), b = place(to, steer);
          const double rest[4] = {b.s - a.s - (up - g_f * f - g_l * l - kappa * lean),
                                  b.forward - a.forward - f, b.left - a.left - l,
                                  b.lean - a.lean - lean};
          const double bound[4] = {bounds.s_m, bounds.forward_m, bounds.left_m, bounds.lean_rad};
          for (int k = 0; k < 4; ++k) {
            ASSERT_LE(std::fabs(rest[k]), bound[k] + 1e-12) << "angles " << mask << ", value " << k;
            if (bound[k] > 1e-5) most[k] = std::max(most[k], std::fabs(rest[k]) / bound[k]);
          }
        }
      }
      EXPECT_GT(most[0], 0.9) << mask << steers;
      EXPECT_GT(most[1], 0.75) << mask << steers;
      EXPECT_GT(most[2], 0.85) << mask << steers;
      if (mask != 1 << kBody) {
        EXPECT_GT(most[3], 0.55) << mask << steers;
      }
    }
  }
}

constexpr Tube kNoTube{};
constexpr Tube kNarrow{0.01, 0.01, 0.3 * kDeg};

TEST(SweepBox, TheImageHoldsT) {
  for (const Kind kind : {kArc, kTurn, kResteer}) {
    const Count rough = look_at_boxes(kind, 0.06, kNoTube, 0.0, 7, 60);
    EXPECT_GE(rough.boxes, 60) << kind;
    EXPECT_GT(rough.largest_share, 0.6) << kind;
    EXPECT_GT(rough.settled, 100) << kind;
    EXPECT_GT(*std::max_element(rough.between, rough.between + 3), 0.7) << kind;
  }
}

// On a plane H has no residual, so that the image is the links' second order alone.
TEST(SweepBox, TheLinksSecondOrderIsBounded) {
  for (const Kind kind : {kArc, kTurn, kResteer}) {
    const Count plane = look_at_boxes(kind, 0.0, kNoTube, 0.15, 8, 80);
    EXPECT_GE(plane.boxes, 80) << kind;
    EXPECT_GT(plane.largest_share, 0.5) << kind;
    EXPECT_GT(plane.between[kind == kResteer ? 1 : 2], 0.04) << kind;
  }
}

// Nor has it one where the rover turns, but for the slope, which turns against the rover's frame.
TEST(SweepBox, TheSlopeTurnsAgainstTheRover) {
  const Count turn = look_at_boxes(kTurn, 0.0, kNoTube, 0.0, 12, 60, 0.0, 0.6);
  EXPECT_GE(turn.boxes, 60);
  EXPECT_GT(turn.largest_share, 0.7);
}

TEST(SweepBox, AWideTubeOnAPlane) {
  for (const Tube& tube : {Tube{0.15, 0.0, 0.0}, Tube{0.0, 0.15, 0.0}, Tube{0.0, 0.0, 5 * kDeg}}) {
    const Count wide = look_at_boxes(kArc, 0.0, tube, 0.0, 13, 25, 0.0, 0.02);
    EXPECT_GE(wide.boxes, 25);
    EXPECT_GT(wide.largest_share, tube.heading_rad > 0.0 ? 0.2 : 0.5);
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
  const auto prover = std::make_unique<SweepProver>();
  prover->begin(ground.map.view, rig.model, rig.settle_model, &work);
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
    if (prover->prove(sweep, {}, {}, knots[0], knots[1], nullptr, least, &box, &reasons) !=
        SweepProver::kProven)
      continue;
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
// The ground is off by up to error_m, in all cells or, `by_cell`, by a bound that each cell has of its own.
void certify_and_settle(const RoverModel& model, double error_m, std::uint32_t seed, int trials,
                        double least_share, bool by_cell = false) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const Rig rig{{model.geometry, model.limits}};
  rig::Verified checker_own;
  VerifiedChecker& checker = checker_own.checker;
  ASSERT_TRUE(checker_own.init(model, {}).ok());
  SettleChecker judge;
  ASSERT_TRUE(judge.init({model.geometry, model.limits}).ok());
  int safe = 0, certified = 0, unsafe = 0;
  for (int n = 0; n < trials; ++n) {
    const Ground known(0.1 * std::fabs(unit(rng)), rng, 0.3);
    Map truth(140, 140, 0.0, 0.0, 0.1);
    truth.z = known.map.z;
    std::vector<float> bound(truth.z.size(), static_cast<float>(error_m));
    for (std::size_t i = 0; by_cell && i < bound.size(); ++i)
      bound[i] *= i / 20 % 2 == 0 ? 1.0F : static_cast<float>(std::fabs(unit(rng)));
    for (std::size_t i = 0; i < bound.size(); ++i)
      truth.z[i] += 0.99F * bound[i] * (rng() % 2 == 0 ? 1.0F : -1.0F);
    GridView map = known.map.view;
    if (by_cell) {
      map.cell_error_m = bound.data();
    } else {
      map.height_error_m = error_m;
    }
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
        const SettledState s = rig.settled(truth.view, sweep, fraction, by,
                                           has_before && i % 3 != 0 ? before : nullptr);
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
      if (report.safe) {
        EXPECT_LE(report.tilt_max_rad, model.limits.tilt_max_rad);
        EXPECT_GE(report.clearance_min_m, model.limits.clearance_min_m);
        EXPECT_LE(report.relief_max_m, model.limits.relief_max_m);
        EXPECT_GE(report.margin_bogie_rad, 0.0);
        EXPECT_GE(report.margin_differential_rad, 0.0);
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
  certify_and_settle({RoverGeometry{}, SafetyLimits::flight_like(), {0.01, 0.01, 0.3 * kDeg}}, 0.0,
                     52, 6, 0.5);
}

TEST(VerifiedSweeps, AndOnGroundThatTheMapHasALittleWrong) {
  certify_and_settle({RoverGeometry{}, SafetyLimits::flight_like()}, 0.004, 53, 10, 0.5);
  certify_and_settle({RoverGeometry{}, SafetyLimits::flight_like()}, 0.004, 63, 10, 0.5, true);
}

// The error of one cell counts where the rover comes near it, and nowhere else.
TEST(VerifiedSweeps, ACellsErrorCountsWhereItIs) {
  Map map(140, 140, 0.0, 0.0, 0.1);
  std::vector<float> error(140 * 140, 0.0F);
  map.view.cell_error_m = error.data();
  rig::Verified own;
  ASSERT_TRUE(own.init({RoverGeometry{}, SafetyLimits::flight_like()}, {}).ok());
  const Sweep sweep{Stance{7.0, 7.0, 0.0}, 0.25};
  const auto asked = [&] {
    EXPECT_EQ(own.checker.set_map(map.view), Status::kOk);
    return own.checker.report(sweep);
  };
  const AceReport exact = asked();
  ASSERT_TRUE(exact.safe);
  error[70 * 140 + 100] = 0.2F;  // 3 m ahead
  const AceReport far = asked();
  EXPECT_EQ(far.origin_z_m.lo, exact.origin_z_m.lo);
  EXPECT_EQ(far.clearance_min_m, exact.clearance_min_m);
  error[70 * 140 + 70] = 0.05F;  // under the pan
  const AceReport under = asked();
  EXPECT_LT(under.clearance_min_m, exact.clearance_min_m - 0.049);
  error[70 * 140 + 70] = 0.0F;
  error[81 * 140 + 82] = 0.2F;  // under the left front wheel
  EXPECT_FALSE(asked().safe);
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

// The pan tips over a crest while spikes pass under it: at a fixed place its plane falls as the rover goes on.
TEST(VerifiedSweeps, ClearanceIsBoundedWhileThePanTips) {
  Map map(140, 140, 0.0, 0.0, 0.1);
  map.fill([](double x, double y) {
    const bool spike = std::fabs(y - 7.0) < 0.06 && std::fabs(x - std::round(x)) < 0.05;
    return -0.06 * (x - 7.0) * (x - 7.0) + (spike ? 0.2 : 0.0);
  });
  RoverModel model{RoverGeometry{}, SafetyLimits::flight_like()};
  const Rig rig(model);
  model.tracking = {0.0, 0.0, 0.0};
  for (const double across_m : {0.0, 0.01}) {
    model.tracking.across_m = across_m;
    model.tracking.heading_rad = 0.5 * across_m;
    rig::Verified checker_own;
    VerifiedChecker& checker = checker_own.checker;
    SettleChecker judge;
    ASSERT_TRUE(checker_own.init(model, {}).ok() && judge.init(model).ok());
    ASSERT_EQ(checker.set_map(map.view), Status::kOk);
    ASSERT_EQ(judge.set_map(map.view), Status::kOk);
    int proven = 0;
    double least_slack = INFINITY;
    for (double x = 5.0; x < 9.0; x += 0.05) {
      for (const double turn : {0.0, 0.03}) {
        const Sweep sweep = turn > 0.0 ? Sweep{Stance{Pose2{x, 7.0, -0.015}, INFINITY}, turn}
                                       : Sweep{Stance{x, 7.0, 0.0}, 0.055};
        const AceReport report = checker.report(sweep);
        if (!report.safe) continue;
        ++proven;
        double least = INFINITY;
        for (int i = 0; i <= 40; ++i) {
          const Offset by{0.0, i % 2 == 0 ? across_m : -across_m,
                          (i % 4 < 2 ? 1.0 : -1.0) * model.tracking.heading_rad};
          const Pose2 pose = moved(sweep.pose_at(i / 40.0), by);
          const SettledState s = rig.settled(map.view, sweep, i / 40.0, by);
          least = std::min(least, judge.judge(pose, s).clearance_min_m);
        }
        EXPECT_GE(least, report.clearance_min_m) << x;
        least_slack = std::min(least_slack, least - report.clearance_min_m);
      }
    }
    EXPECT_GT(proven, 100);
    EXPECT_LT(least_slack, 0.06);
  }
}

// Whatever was in its memory, and whatever it was asked before: the same answer to the bit.
TEST(VerifiedSweeps, AnswersDoNotDependOnWhatWasAskedBefore) {
  std::mt19937 rng(60);
  const Ground ground(0.06, rng);
  std::vector<unsigned char> memory(VerifiedChecker::memory_required());
  std::vector<Sweep> sweeps;
  for (int n = 0; n < 60; ++n)
    sweeps.push_back(random_sweep(static_cast<Kind>(n % kKinds), 0.25, rng));
  std::vector<AceReport> first;
  for (const int fill : {0x00, 0x41, 0xff}) {
    std::fill(memory.begin(), memory.end(), static_cast<unsigned char>(fill));
    Arena arena(memory.data(), memory.size());
    VerifiedChecker checker;
    ASSERT_TRUE(checker.init({RoverGeometry{}, SafetyLimits::flight_like()}, {}, &arena).ok());
    ASSERT_EQ(checker.set_map(ground.map.view), Status::kOk);
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      const std::size_t at = fill == 0x41 ? sweeps.size() - 1 - i : i;
      const AceReport report = checker.report(sweeps[at]);
      if (fill == 0x00) {
        first.push_back(report);
        continue;
      }
      EXPECT_EQ(report.reasons, first[at].reasons);
      EXPECT_EQ(report.ranges, first[at].ranges);
      EXPECT_EQ(report.inner_steps, first[at].inner_steps);
      if (report.safe) {
        EXPECT_EQ(report.roll_rad.lo, first[at].roll_rad.lo);
        EXPECT_EQ(report.clearance_min_m, first[at].clearance_min_m);
      }
    }
  }
}

TEST(VerifiedSweeps, WhatIsBetweenTwoSafePosesIsSeen) {
  // A ridge narrower than the spacing of poses: safe before it and beyond it, and not on it.
  Map map(140, 140, 0.0, 0.0, 0.1);
  map.fill([](double x, double) { return x > 8.35 && x < 8.45 ? 0.3 : 0.0; });
  RoverModel model{RoverGeometry{}, SafetyLimits::flight_like()};
  rig::Verified checker_own;
  VerifiedChecker& checker = checker_own.checker;
  ASSERT_TRUE(checker_own.init(model, {}).ok());
  ASSERT_EQ(checker.set_map(map.view), Status::kOk);
  Reasons reasons = 0;
  const double begin = 8.4 - model.geometry.front_x_m - 0.55;
  EXPECT_TRUE(checker.is_safe(Stance{begin, 7.0, 0.0}, &reasons));
  EXPECT_TRUE(checker.is_safe(Stance{begin + 1.1, 7.0, 0.0}, &reasons));
  EXPECT_FALSE(checker.is_safe({Stance{begin, 7.0, 0.0}, 1.1}, &reasons));
  EXPECT_EQ(reasons & ~(kRelief | kNotCertified | kBogie | kDifferential | kTilt), 0);
}

TEST(VerifiedSweeps, RefusesWhatItCannotKnow) {
  Map map(140, 140, 0.0, 0.0, 0.1);
  map.at(90, 70) = NAN;
  rig::Verified checker_own;
  VerifiedChecker& checker = checker_own.checker;
  ASSERT_TRUE(checker_own.init({RoverGeometry{}, SafetyLimits::flight_like()}, {}).ok());
  ASSERT_EQ(checker.set_map(map.view), Status::kOk);
  const auto why = [&](const Sweep& sweep) {
    Reasons reasons = 0;
    const bool safe = checker.is_safe(sweep, &reasons);
    EXPECT_EQ(safe, reasons == 0);
    EXPECT_EQ(checker.report(sweep).reasons, reasons);
    return reasons;
  };
  EXPECT_EQ(why({Stance{5.0, 7.0, 0.0}, 1.0}), 0);
  EXPECT_EQ(why({Stance{7.0, 7.0, 0.0}, 1.0}), kUnknown);   // under the belly
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
  ASSERT_TRUE(checker_own.init({RoverGeometry{}, SafetyLimits::flight_like()}, few).ok());
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
  // The front wheels go farthest.
  RoverGeometry rover;
  const WheelPlan wheels = wheel_plan(rover);
  EXPECT_DOUBLE_EQ(turn.length_m(rover), 0.4 * std::hypot(wheels.x_m[0], wheels.y_m[0]));
  rover.front_x_m += 1.0;
  EXPECT_GT(turn.length_m(rover), 0.8);
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
    for (int i = 0; i < kWheels; ++i)
      EXPECT_NEAR(at[i].sin, (fraction == 0.0 ? from : to)[i].sin, 1e-12);
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
  for (const AceChecker* checker :
       {static_cast<AceChecker*>(&boxes), static_cast<AceChecker*>(&settled)}) {
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
