#include "sweep_box.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <cstdlib>
#include <cstdio>

namespace mlnav {
struct Stat { long regions[16], rounds[16], wins[16], after, winr, lossr, by[4][5], n[4][5]; ~Stat() { for (int k = 0; k < 4; ++k) for (int r = 0; r < 5; ++r) std::printf("len %d result %d: n %ld regions %ld\n", k, r, n[k][r], by[k][r]); for (int i = 0; i < 14; ++i) std::printf("round %d: %ld rounds %ld regions won %ld\n", i, rounds[i], regions[i], wins[i]); std::printf("after trapped %ld; in won boxes %ld lost %ld\n", after, winr, lossr); } };
static Stat ST;

using namespace verified;

namespace {

constexpr double kMaxHalf_m = 0.2;

constexpr double kRoom = 0.9;
constexpr int kMaxRounds = 14;
constexpr int kMaxTightened = 3;

constexpr int kMaxSplits = 13;
constexpr int kReliefSplits = 9;
static const double kSmallest_m = std::getenv("SM")?std::atof(std::getenv("SM")):0.005; static const double kRoomiest_m = std::getenv("RM")?std::atof(std::getenv("RM")):.02; static const double kTighter = std::getenv("TI")?std::atof(std::getenv("TI")):.5;
constexpr double kUnknownResidual = 1e9;

double magnitude(Ball b) noexcept { return std::fabs(b.m) + b.r; }

void turn_links(const double q[kN], Turns<double>* t) noexcept {
  const double rocker[2] = {q[kPitch] + q[kDifferentialState], q[kPitch] - q[kDifferentialState]};
  const SinCos roll = det_sincos(q[kRoll]);
  const SinCos pitch = det_sincos(q[kPitch]);
  t->sin_roll = roll.sin;
  t->cos_roll = roll.cos;
  t->sin_pitch = pitch.sin;
  t->cos_pitch = pitch.cos;
  for (int side = 0; side < 2; ++side) {
    const SinCos r = det_sincos(rocker[side]);
    const SinCos b = det_sincos(rocker[side] + q[side == 0 ? kBogieLeft : kBogieRight]);
    t->sin_rocker[side] = r.sin;
    t->cos_rocker[side] = r.cos;
    t->sin_bogie[side] = b.sin;
    t->cos_bogie[side] = b.cos;
  }
}

bool invert(const double from[kN][kN], double inverse[kN][kN]) noexcept {
  double a[kN][kN];
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) {
      a[i][j] = from[i][j];
      inverse[i][j] = i == j ? 1.0 : 0.0;
    }
  }
  for (int column = 0; column < kN; ++column) {
    int pivot = column;
    for (int i = column + 1; i < kN; ++i) {
      if (std::fabs(a[i][column]) > std::fabs(a[pivot][column])) pivot = i;
    }
    if (!(std::fabs(a[pivot][column]) > 1e-6)) return false;
    for (int j = 0; j < kN && pivot != column; ++j) {
      double x = a[pivot][j];
      a[pivot][j] = a[column][j];
      a[column][j] = x;
      x = inverse[pivot][j];
      inverse[pivot][j] = inverse[column][j];
      inverse[column][j] = x;
    }
    const double scale = 1.0 / a[column][column];
    for (int j = 0; j < kN; ++j) {
      a[column][j] *= scale;
      inverse[column][j] *= scale;
    }
    for (int i = 0; i < kN; ++i) {
      const double factor = a[i][column];
      if (i == column || factor == 0.0) continue;
      for (int j = 0; j < kN; ++j) {
        a[i][j] -= factor * a[column][j];
        inverse[i][j] -= factor * inverse[column][j];
      }
    }
  }
  return true;
}

}  // namespace

// The centre line at equal steps, and bounds of what lies between them.
struct SweepProver::Nodes {
  Pose2 pose[kNodes];
  SinCos heading[kNodes];
  SinCos steering[kN];
  double steering_half_rad = 0.0;
  double turn = 0.0;        // of the rover's heading, over the box
  double travel_m = 0.0;    // of its origin
  Point2 foot[kNodes][kN];
  double forward[kNodes][kN], left[kNodes][kN];  // the same in the heading frame
  double lean_rad[kNodes][kN];
  double s[kNodes][kN];     // S at the centre line
  double off_m[kN];         // H less S there, the largest at a few nodes
  // How far place, lean and S can be from their linear interpolation between two nodes.
  double foot_between_m = 0.0;
  double lean_between_rad = 0.0;
  double s_between_m[kN];
  // At the middle: H, the links, and slopes of feet and leans by the state.
  double height_middle_m[kN];
  Turns<double> turns;
  double d_forward[kN][kN], d_left[kN][kN], d_lean[kN][kN];
};

// Bounds over a box: of the second order of the chain, and of the wheels' reach about the centre line.
struct SweepProver::Motion {
  double rest_m[kN];  // of T, beside the residual of H: what is not linear in the box and the tube
  double forward[kN], left[kN], lean[kN];
};

void SweepProver::place_nodes(const SweepBox& box, Nodes* nodes) const noexcept {
  const double r = model_.geometry.wheel_radius_m;
  double rate[kN];
  for (int j = 0; j < kN; ++j) rate[j] = box.q_to[j] - box.q_from[j];
  double steepest = 0.0;
  for (int k = 0; k < kNodes; ++k) {
    const double t = static_cast<double>(k) / (kNodes - 1);
    double q[kN];
    for (int j = 0; j < kN; ++j) q[j] = box.q_from[j] + t * rate[j];
    Turns<double> turns;
    turn_links(q, &turns);
    Axles<double> axles;
    place_axles<false>(model_.geometry, nodes->steering, turns, &axles);
    const Pose2 pose = box.sweep.pose_at(box.from + t * (box.to - box.from));
    const SinCos h = det_sincos(pose.heading_rad);
    nodes->pose[k] = pose;
    nodes->heading[k] = h;
    for (int i = 0; i < kN; ++i) {
      const double sin = axles.sin_lean[i];
      steepest = larger(steepest, std::fabs(sin));
      const double forward = axles.forward[i] - r * sin * nodes->steering[i].sin;
      const double left = axles.left[i] + r * sin * nodes->steering[i].cos;
      const Point2 foot{pose.x_m + forward * h.cos - left * h.sin,
                        pose.y_m + forward * h.sin + left * h.cos};
      const double lean = det_asin(sin);
      const WheelTrend& g = box.trend[i];
      nodes->forward[k][i] = forward;
      nodes->left[k][i] = left;
      nodes->foot[k][i] = foot;
      nodes->lean_rad[k][i] = lean;
      nodes->s[k][i] = q[kHeight] + axles.up[i] - r - g.slope_x * (foot.x_m - g.foot.x_m) -
                       g.slope_y * (foot.y_m - g.foot.y_m) - g.slope_lean_m * (lean - g.lean_rad);
      if (k == 0) nodes->off_m[i] = 0.0;
      static const int SN = std::getenv("SN") ? std::atoi(std::getenv("SN")) : 2;
      if (k % SN == 0 && k > 0 && k < kNodes - 1) {
        const SinCos wheel = wheel_heading(h, nodes->steering[i]);
        ++work_->lookups;
        const WheelHeight w = wheel_height(map_, settle_.footprint, foot.x_m + r * sin * wheel.sin, foot.y_m - r * sin * wheel.cos,
                                           wheel, {sin, std::sqrt(1.0 - sin * sin)});
        if (w.status == Status::kOk) nodes->off_m[i] = larger(nodes->off_m[i], std::fabs(w.height_m - (q[kHeight] + axles.up[i] - r)));
      }
    }
  }
  // Second derivatives along the box. Each link is turned by angles that are linear in t, at a total rate of at
  // most `turning`, so a point at a total length `reach` of links moves with at most reach turning^2.
  const RoverGeometry& g = model_.geometry;
  const double bogie = larger(std::fabs(rate[kBogieLeft]), std::fabs(rate[kBogieRight]));
  const double turning = std::fabs(rate[kRoll]) + std::fabs(rate[kPitch]) +
                         std::fabs(rate[kDifferentialState]) + bogie + 2.0 * nodes->steering_half_rad;
  const auto length = [](double x, double z) { return std::sqrt(x * x + z * z); };
  const double front = length(g.front_x_m - g.rocker_pivot_x_m, r - g.rocker_pivot_z_m);
  const double rear = length(g.bogie_pivot_x_m - g.rocker_pivot_x_m, g.bogie_pivot_z_m - g.rocker_pivot_z_m) +
                      length(larger(-g.bogie_pivot_x_m, g.bogie_pivot_x_m - g.rear_x_m), r - g.bogie_pivot_z_m);
  const double reach = length(g.rocker_pivot_x_m, g.rocker_pivot_z_m) + larger(front, rear) +
                       larger(g.middle_y_m, larger(g.front_y_m, g.rear_y_m));
  const double step = 1.0 / (kNodes - 1);
  const double eighth = 0.125 * step * step * kWiden;
  const double all = turning + std::fabs(nodes->turn);
  const double arc = nodes->travel_m * std::fabs(nodes->turn);
  // The lean's sine has second derivative 1.42 turning^2, and 1 / cos to come from the sine to the angle.
  steepest = smaller(steepest + 0.05, 0.98);
  const double per_cos = secant_of_sine(steepest);
  const double lean_2 = 1.42 * turning * turning * per_cos +
                        2.02 * turning * turning * steepest * per_cos * per_cos * per_cos;
  const double foot_2 = (reach + 1.42 * r) * all * all + arc;
  nodes->foot_between_m = eighth * foot_2 + kAbsolute;
  nodes->lean_between_rad = eighth * lean_2 + kAbsolute;
  for (int i = 0; i < kN; ++i) {
    const WheelTrend& w = box.trend[i];
    nodes->s_between_m[i] = eighth * (reach * turning * turning + (std::fabs(w.slope_x) + std::fabs(w.slope_y)) * foot_2 +
                                      std::fabs(w.slope_lean_m) * lean_2) + kAbsolute;
  }
}

// Slopes of H at the middle give Y and the trends. Any numbers are valid.
bool SweepProver::linearize(SweepBox* box, Nodes* nodes, double kStep_m, double CL) noexcept {
  const double r = model_.geometry.wheel_radius_m;
  double q[kN];
  for (int j = 0; j < kN; ++j) q[j] = 0.5 * (box->q_from[j] + box->q_to[j]);
  turn_links(q, &nodes->turns);
  Axles<double> axles;
  place_axles<true>(model_.geometry, nodes->steering, nodes->turns, &axles);
  const Pose2 pose = box->sweep.pose_at(0.5 * (box->from + box->to));
  const SinCos h = det_sincos(pose.heading_rad);
  for (int i = 0; i < kN; ++i) {
    const SinCos wheel = wheel_heading(h, nodes->steering[i]);
    const double sin = axles.sin_lean[i];
    if (!(std::fabs(sin) < 0.9)) return false;
    const SinCos lean{sin, std::sqrt(1.0 - sin * sin)};
    const double f = axles.forward[i] - r * sin * nodes->steering[i].sin;
    const double l = axles.left[i] + r * sin * nodes->steering[i].cos;
    const Point2 foot{pose.x_m + f * h.cos - l * h.sin, pose.y_m + f * h.sin + l * h.cos};
    const auto height = [&](double forward, double left, SinCos at) {
      const double side = r * at.sin;  // the axle is this far to the right of the foot
      const double x = foot.x_m + forward * h.cos - left * h.sin + side * wheel.sin;
      const double y = foot.y_m + forward * h.sin + left * h.cos - side * wheel.cos;
      ++work_->lookups;
      const WheelHeight w = wheel_height(map_, settle_.footprint, x, y, wheel, at);
      return w.status == Status::kOk ? w.height_m : std::numeric_limits<double>::quiet_NaN();
    };
    const double kLean = 1.3 * kStep_m;
    const auto clamp = [&](double x) { return x > CL ? CL : x < -CL ? -CL : x; };
    const double slope_f = clamp((height(kStep_m, 0.0, lean) - height(-kStep_m, 0.0, lean)) / (2.0 * kStep_m));
    const double slope_l = clamp((height(0.0, kStep_m, lean) - height(0.0, -kStep_m, lean)) / (2.0 * kStep_m));
    const SinCos more{lean.sin + kLean * lean.cos, lean.cos - kLean * lean.sin};
    const SinCos less{lean.sin - kLean * lean.cos, lean.cos + kLean * lean.sin};
    const double slope_lean = (height(0.0, 0.0, more) - height(0.0, 0.0, less)) / (2.0 * kLean);
    const double middle = height(0.0, 0.0, lean);
    if (!(slope_f + slope_l + slope_lean + middle == slope_f + slope_l + slope_lean + middle)) return false;
    nodes->height_middle_m[i] = middle;
    box->trend[i].foot = foot;
    box->trend[i].lean_rad = det_asin(sin);
    box->trend[i].slope_x = slope_f * h.cos - slope_l * h.sin;
    box->trend[i].slope_y = slope_f * h.sin + slope_l * h.cos;
    box->trend[i].slope_lean_m = slope_lean;
    for (int j = 0; j < kN; ++j) {
      nodes->d_forward[i][j] = axles.d_forward[i][j];
      nodes->d_left[i][j] = axles.d_left[i][j];
      nodes->d_lean[i][j] = axles.d_lean[i][j];
      box->jacobian[i][j] = axles.d_up[i][j] - slope_f * axles.d_forward[i][j] -
                            slope_l * axles.d_left[i][j] - slope_lean * axles.d_lean[i][j];
    }
    box->chi[0][i] = slope_f;
    box->chi[1][i] = slope_l;
    box->chi[2][i] = slope_l * f - slope_f * l;
  }
  return invert(box->jacobian, box->y);
}

// For |u| <= half_m about the whole centre line. With q_m the middle, the line within `line` of it and delta = Y u,
//
//   S(q) - S(q_c) - S'(q_m) delta = S''(q_m)[line, delta] + S''(q_m)[delta, delta] / 2 + third order.
//
// A wheel hangs on three link vectors (x, z), which turn by the angles of body, rocker and bogie in the side's plane,
// and the plane turns by the roll. A link's second derivative is the link itself, turned back; written out per link
// and for the roll, the ground's slope cancels most of it. The third derivative of a link is at most
// its length times (its own turning + the roll's)^3.
bool SweepProver::bound_motion(const SweepBox& box, const Nodes& nodes, const double half_m[kN],
                               Motion* motion) const noexcept {
  const RoverGeometry& geometry = model_.geometry;
  const double r = geometry.wheel_radius_m;
  double rise[kN];
  for (int i = 0; i < kN; ++i) {
    rise[i] = half_m[i] + std::fabs(box.chi[0][i]) * box.tube.along_m +
              std::fabs(box.chi[1][i]) * box.tube.across_m + std::fabs(box.chi[2][i]) * box.tube.heading_rad;
  }
  // Angles that turn the links: roll, body, rockers, bogies. From the states, [side].
  enum Angle : int { kRolled, kBody, kRocker, kBogie_, kAngles = 4 };
  double line[2][kAngles], box_half[2][kAngles];
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0;
    const int bogie = side == 0 ? kBogieLeft : kBogieRight;
    const auto angles = [&](const auto& state, double out[kAngles]) {
      out[kRolled] = state(kRoll);
      out[kBody] = state(kPitch);
      out[kRocker] = state(kPitch) + sign * state(kDifferentialState);
      out[kBogie_] = out[kRocker] + state(bogie);
    };
    double change[kAngles];
    angles([&](int j) { return box.q_to[j] - box.q_from[j]; }, change);
    for (int a = 0; a < kAngles; ++a) {
      line[side][a] = 0.5 * std::fabs(change[a]) * kWiden + 1e-12;
      box_half[side][a] = 1e-12;
    }
    for (int i = 0; i < kN; ++i) {
      double turned[kAngles];
      angles([&](int j) { return box.y[j][i]; }, turned);
      for (int a = 0; a < kAngles; ++a) box_half[side][a] += std::fabs(turned[a]) * rise[i] * kWiden;
    }
    for (int a = 0; a < kAngles; ++a) {
      if (!(line[side][a] + box_half[side][a] < 0.5)) return false;
    }
  }
  const Turns<double>& t = nodes.turns;
  const SinCos h = nodes.heading[kNodes / 2];
  const double turn = 0.5 * std::fabs(nodes.turn) + box.tube.heading_rad;
  const auto along = [](double sin, double cos, double x, double z) { return x * cos - z * sin; };
  const auto up = [](double sin, double cos, double x, double z) { return x * sin + z * cos; };
  const auto cube = [](double x) { return x * x * x; };
  const double track[3] = {geometry.front_y_m, geometry.middle_y_m, geometry.rear_y_m};
  for (int i = 0; i < kN; ++i) {
    const int side = i / 3;
    const int place = i % 3;
    const double* const lambda = line[side];
    const double* const theta = box_half[side];
    const WheelTrend& g = box.trend[i];
    const double slope = std::fabs(g.slope_x) + std::fabs(g.slope_y);
    const double g_f = g.slope_x * h.cos + g.slope_y * h.sin;
    const double g_l = g.slope_y * h.cos - g.slope_x * h.sin;
    const SinCos& steered = nodes.steering[i];

    struct Link {
      double x, z, length;
    } link[kAngles] = {};
    link[kBody] = {along(t.sin_pitch, t.cos_pitch, geometry.rocker_pivot_x_m, geometry.rocker_pivot_z_m),
                   up(t.sin_pitch, t.cos_pitch, geometry.rocker_pivot_x_m, geometry.rocker_pivot_z_m), 0.0};
    const double rocker_x = (place == 0 ? geometry.front_x_m : geometry.bogie_pivot_x_m) - geometry.rocker_pivot_x_m;
    const double rocker_z = (place == 0 ? r : geometry.bogie_pivot_z_m) - geometry.rocker_pivot_z_m;
    link[kRocker] = {along(t.sin_rocker[side], t.cos_rocker[side], rocker_x, rocker_z),
                     up(t.sin_rocker[side], t.cos_rocker[side], rocker_x, rocker_z), 0.0};
    if (place > 0) {
      const double x = (place == 1 ? 0.0 : geometry.rear_x_m) - geometry.bogie_pivot_x_m;
      const double z = r - geometry.bogie_pivot_z_m;
      link[kBogie_] = {along(t.sin_bogie[side], t.cos_bogie[side], x, z), up(t.sin_bogie[side], t.cos_bogie[side], x, z), 0.0};
    }
    double w = 0.0;  // height in the plane
    for (int a = kBody; a < kAngles; ++a) {
      link[a].length = std::fabs(link[a].x) + std::fabs(link[a].z);
      w += link[a].z;
    }
    const double y = side == 0 ? track[place] : -track[place];
    const double above = w * t.cos_roll + y * t.sin_roll;
    const double left = y * t.cos_roll - w * t.sin_roll;
    const double level = t.cos_roll + g_l * t.sin_roll;
    const double lever = std::fabs(t.sin_roll - g_l * t.cos_roll);
    // Products of two turnings, at least one of them of the box; and of three.
    const auto two = [&](int a) { return theta[a] * (0.5 * theta[a] + lambda[a]); };
    const auto three = [&](double whole, double of_line) { return (cube(whole) - cube(of_line)) / 6.0; };
    const double rolled = lambda[kRolled] + theta[kRolled];
    double lift = 0.0, lift_line = 0.0;  // first-order changes of w
    double second = two(kRolled) * std::fabs(above - g_l * left);
    double third = std::fabs(y) * three(rolled, lambda[kRolled]);
    double second_f = 0.0, second_l = two(kRolled) * std::fabs(left);
    for (int a = kBody; a < kAngles; ++a) {
      lift += std::fabs(link[a].x) * theta[a];
      lift_line += std::fabs(link[a].x) * lambda[a];
      second += two(a) * std::fabs(g_f * link[a].x - level * link[a].z);
      second_f += two(a) * std::fabs(link[a].x);
      second_l += two(a) * std::fabs(link[a].z * t.sin_roll);
      third += link[a].length * three(lambda[a] + theta[a] + rolled, lambda[a] + lambda[kRolled]);
    }
    const double crossed = lift * (theta[kRolled] + lambda[kRolled]) + lift_line * theta[kRolled];
    second += lever * crossed;
    second_l += std::fabs(t.cos_roll) * crossed;

    // The lean, and the foot's offset r sin(lean) that comes with it, by roll and the angle of the wheel's link.
    const int own = place == 0 ? kRocker : kBogie_;
    const double sin_link = place == 0 ? t.sin_rocker[side] : t.sin_bogie[side];
    const double cos_link = place == 0 ? t.cos_rocker[side] : t.cos_bogie[side];
    double by_angle[2] = {}, radius_sin[2] = {}, radius_lean[2] = {};
    for (const bool wide : {false, true}) {
      const double half_roll = lambda[kRolled] + (wide ? theta[kRolled] : 0.0);
      const double half_link = lambda[own] + (wide ? theta[own] : 0.0);
      const BallSinCos roll = ball_sincos(t.sin_roll, t.cos_roll, half_roll);
      const BallSinCos own_link = ball_sincos(sin_link, cos_link, half_link);
      const Ball sin = sin_lean(steered, roll.sin, roll.cos, own_link.sin);
      if (!(magnitude(sin) < kSteepestSinLean)) return false;
      const Ball per_cos = secant_of_sine(sin);
      const Ball d[2] = {steered.cos * roll.cos + steered.sin * (own_link.sin * roll.sin),
                         -(steered.sin * (own_link.cos * roll.cos))};
      for (int k = 0; k < 2; ++k) {
        const Ball lean = d[k] * per_cos;
        radius_sin[k] += 0.5 * d[k].r;
        radius_lean[k] += 0.5 * lean.r;
        by_angle[k] = theta[k == 0 ? kRolled : own];
      }
    }
    double sin_2 = 0.0, lean_2 = 0.0;
    for (int k = 0; k < 2; ++k) {
      sin_2 += radius_sin[k] * by_angle[k];
      lean_2 += radius_lean[k] * by_angle[k];
    }
    const double aside = std::fabs(g_f * steered.sin - g_l * steered.cos) * r;
    second += aside * sin_2 + std::fabs(g.slope_lean_m) * lean_2;
    second_f += r * std::fabs(steered.sin) * sin_2;
    second_l += r * std::fabs(steered.cos) * sin_2;

    // First order, at the middle.
    double by_forward = 0.0, by_left = 0.0, by_lean = 0.0, residual = 0.0;
    for (int k = 0; k < kN; ++k) {
      double f = 0.0, l = 0.0, lean = 0.0, e = i == k ? 1.0 : 0.0;
      for (int j = 0; j < kN; ++j) {
        f += nodes.d_forward[i][j] * box.y[j][k];
        l += nodes.d_left[i][j] * box.y[j][k];
        lean += nodes.d_lean[i][j] * box.y[j][k];
        e -= box.jacobian[i][j] * box.y[j][k];
      }
      by_forward += std::fabs(f) * rise[k];
      by_left += std::fabs(l) * rise[k];
      by_lean += std::fabs(lean) * rise[k];
      residual += (std::fabs(e) + 1e-12) * rise[k];
    }
    third *= kWiden;
    motion->forward[i] = (by_forward + second_f + third) * kWiden + kAbsolute;
    motion->left[i] = (by_left + second_l + third) * kWiden + kAbsolute;
    motion->lean[i] = (by_lean + lean_2) * kWiden + kAbsolute;
    // The heading turns the ground's slope against the rover's frame.
    const double turned = turn + 0.5 * turn * turn;
    const double gf_r = (std::fabs(g_l) * turn + 0.5 * std::fabs(g_f) * turn * turn);
    const double gl_r = (std::fabs(g_f) * turn + 0.5 * std::fabs(g_l) * turn * turn);
    double rest = residual + second + (1.0 + slope) * third + gf_r * motion->forward[i] + gl_r * motion->left[i];
    (void)turned;
    if (box.tube.along_m > 0.0 || box.tube.across_m > 0.0 || box.tube.heading_rad > 0.0) {
      // The tube moves the foot by e_x f + e_y l and turns it about the origin: a rise of g.(e_x f + e_y l) +
      // e_h (g_l F - g_f L), of which chi has the middle's.
      double drift_f = nodes.foot_between_m, drift_l = nodes.foot_between_m;
      for (int k = 0; k < kNodes; ++k) {
        drift_f = larger(drift_f, std::fabs(nodes.forward[k][i] - nodes.forward[kNodes / 2][i]) + nodes.foot_between_m);
        drift_l = larger(drift_l, std::fabs(nodes.left[k][i] - nodes.left[kNodes / 2][i]) + nodes.foot_between_m);
      }
      const double f = std::fabs(nodes.forward[kNodes / 2][i]);
      const double l = std::fabs(nodes.left[kNodes / 2][i]);
      const double f_most = f + drift_f + motion->forward[i];
      const double l_most = l + drift_l + motion->left[i];
      const Tube& e = box.tube;
      rest += e.along_m * gf_r + e.across_m * gl_r +
              e.heading_rad * (std::fabs(g_l) * (drift_f + motion->forward[i]) + std::fabs(g_f) * (drift_l + motion->left[i]) +
                               gl_r * f_most + gf_r * l_most + 0.5 * e.heading_rad * slope * (f_most + l_most));
      motion->forward[i] += e.along_m + e.heading_rad * (l_most + 0.5 * e.heading_rad * f_most);
      motion->left[i] += e.across_m + e.heading_rad * (f_most + 0.5 * e.heading_rad * l_most);
    }
    motion->rest_m[i] = rest * kWiden + 2.0 * kAbsolute;
  }
  return true;
}

// Where a wheel's foot can be between each two nodes: rectangles in one frame, that of its way from the first node to the
// last. With the values that belong to each.
struct SweepProver::Track {
  static constexpr int kPieces = kNodes - 1;
  Point2 origin;
  SinCos along;
  struct Rectangle {
    double along_lo, along_hi, across_lo, across_hi;
  };
  Rectangle piece[kPieces];
  double lean_lo[kPieces], lean_hi[kPieces];
  double s_lo[kPieces], s_hi[kPieces];
  double heading_half_rad;  // beside the rover's turn
  Rectangle whole;
};

void SweepProver::lay_track(const SweepBox& box, const Nodes& nodes, const Motion& motion, int i,
                            Track* out) const noexcept {
  const Point2& a = nodes.foot[0][i];
  const Point2& b = nodes.foot[kNodes - 1][i];
  const double dx = b.x_m - a.x_m;
  const double dy = b.y_m - a.y_m;
  const double length = std::sqrt(dx * dx + dy * dy);
  out->origin = a;
  out->along = length > 1e-3 ? SinCos{dy / length, dx / length} : nodes.heading[kNodes / 2];
  out->heading_half_rad = box.tube.heading_rad + nodes.steering_half_rad;
  const double step = std::fabs(nodes.turn) / (kNodes - 1);
  const double turned = 0.5 * step * (motion.forward[i] + motion.left[i]);
  double p[kNodes], n[kNodes];
  for (int k = 0; k < kNodes; ++k) {
    const double x = nodes.foot[k][i].x_m - a.x_m;
    const double y = nodes.foot[k][i].y_m - a.y_m;
    p[k] = x * out->along.cos + y * out->along.sin;
    n[k] = y * out->along.cos - x * out->along.sin;
  }
  out->whole = {1e9, -1e9, 1e9, -1e9};
  for (int k = 0; k < Track::kPieces; ++k) {
    // The reach is in the rover's frame, which turns.
    const SinCos& h = nodes.heading[k];
    const double c = std::fabs(out->along.cos * h.cos + out->along.sin * h.sin);
    const double s = std::fabs(out->along.sin * h.cos - out->along.cos * h.sin);
    const double reach_p = (nodes.foot_between_m + c * motion.forward[i] + s * motion.left[i] + 2.0 * turned) * kWiden + kAbsolute;
    const double reach_n = (nodes.foot_between_m + s * motion.forward[i] + c * motion.left[i] + 2.0 * turned) * kWiden + kAbsolute;
    Track::Rectangle& r = out->piece[k];
    r = {smaller(p[k], p[k + 1]) - reach_p, larger(p[k], p[k + 1]) + reach_p,
         smaller(n[k], n[k + 1]) - reach_n, larger(n[k], n[k + 1]) + reach_n};
    out->whole = {smaller(out->whole.along_lo, r.along_lo), larger(out->whole.along_hi, r.along_hi),
                  smaller(out->whole.across_lo, r.across_lo), larger(out->whole.across_hi, r.across_hi)};
    const double lean = nodes.lean_between_rad + motion.lean[i];
    out->lean_lo[k] = smaller(nodes.lean_rad[k][i], nodes.lean_rad[k + 1][i]) - lean;
    out->lean_hi[k] = larger(nodes.lean_rad[k][i], nodes.lean_rad[k + 1][i]) + lean;
    out->s_lo[k] = smaller(nodes.s[k][i], nodes.s[k + 1][i]) - nodes.s_between_m[i];
    out->s_hi[k] = larger(nodes.s[k][i], nodes.s[k + 1][i]) + nodes.s_between_m[i];
  }
}

// What a wheel can do with its foot in a rectangle of the track, and the range of S there. False: it is never there.
bool SweepProver::part_of(const Nodes& nodes, const Track& track, int i, const double rectangle[4], WheelRegion* out,
                          double* s_lo, double* s_hi) const noexcept {
  int first = -1, last = -1;
  double lean_lo = 0.0, lean_hi = 0.0;
  double along_lo = 0.0, along_hi = 0.0, across_lo = 0.0, across_hi = 0.0;
  for (int k = 0; k < Track::kPieces; ++k) {
    const Track::Rectangle& r = track.piece[k];
    if (r.along_lo > rectangle[1] || r.along_hi < rectangle[0] || r.across_lo > rectangle[3] ||
        r.across_hi < rectangle[2]) {
      continue;
    }
    if (first < 0) {
      first = k;
      lean_lo = track.lean_lo[k];
      lean_hi = track.lean_hi[k];
      *s_lo = track.s_lo[k];
      *s_hi = track.s_hi[k];
      along_lo = r.along_lo;
      along_hi = r.along_hi;
      across_lo = r.across_lo;
      across_hi = r.across_hi;
    } else {
      lean_lo = smaller(lean_lo, track.lean_lo[k]);
      lean_hi = larger(lean_hi, track.lean_hi[k]);
      *s_lo = smaller(*s_lo, track.s_lo[k]);
      *s_hi = larger(*s_hi, track.s_hi[k]);
      along_lo = smaller(along_lo, r.along_lo);
      along_hi = larger(along_hi, r.along_hi);
      across_lo = smaller(across_lo, r.across_lo);
      across_hi = larger(across_hi, r.across_hi);
    }
    last = k + 1;
  }
  if (first < 0) return false;
  along_lo = larger(along_lo, rectangle[0]);
  along_hi = smaller(along_hi, rectangle[1]);
  across_lo = larger(across_lo, rectangle[2]);
  across_hi = smaller(across_hi, rectangle[3]);
  const double p = 0.5 * (along_lo + along_hi);
  const double n = 0.5 * (across_lo + across_hi);
  out->along = track.along;
  out->foot = {track.origin.x_m + p * track.along.cos - n * track.along.sin,
               track.origin.y_m + p * track.along.sin + n * track.along.cos};
  out->half_along_m = 0.5 * (along_hi - along_lo) * kWiden + kAbsolute;
  out->half_across_m = 0.5 * (across_hi - across_lo) * kWiden + kAbsolute;
  const int middle = (first + last) / 2;
  const double step = std::fabs(nodes.turn) / (kNodes - 1);
  out->heading = wheel_heading(nodes.heading[middle], nodes.steering[i]);
  out->half_heading_rad = step * (middle - first > last - middle ? middle - first : last - middle) +
                          track.heading_half_rad + 1e-12;
  out->lean_rad = 0.5 * (lean_lo + lean_hi);
  out->lean = det_sincos(out->lean_rad);
  out->half_lean_rad = 0.5 * (lean_hi - lean_lo) * kWiden + 1e-12;
  return true;
}

// Bound of |H less trend - S| with the foot in a rectangle of the track, refined only as far as `target_m` asks.
double SweepProver::residual(const WheelPatch& patch, const Nodes& nodes, const Track& track, int i,
                             const double rectangle[4], double target_m, int depth, const WheelSamples& among) noexcept {
  WheelRegion whole;
  double s_lo = 0.0, s_hi = 0.0;
  if (!part_of(nodes, track, i, rectangle, &whole, &s_lo, &s_hi)) return 0.0;
  ++work_->regions;
  WheelSamples left;
  const WheelTrackBounds h = patch.bound(whole, among, coarse_ ? s_lo + target_m : -1e9, &left);
  if (h.status != Status::kOk) return kUnknownResidual;
  const double found = larger(h.hi_m - s_lo, s_hi - h.lo_m);
  if (found <= target_m || depth == 0) return found;
  const double along = rectangle[1] - rectangle[0];
  const double across = rectangle[3] - rectangle[2];
  if (larger(along, across) <= 2.0 * kSmallest_m) return found;
  double a[4] = {rectangle[0], rectangle[1], rectangle[2], rectangle[3]};
  double b[4] = {rectangle[0], rectangle[1], rectangle[2], rectangle[3]};
  if (along >= across) {
    a[1] = b[0] = 0.5 * (rectangle[0] + rectangle[1]);
  } else {
    a[3] = b[2] = 0.5 * (rectangle[2] + rectangle[3]);
  }
  const double in_a = residual(patch, nodes, track, i, a, target_m, depth - 1, left);
  const double in_b = residual(patch, nodes, track, i, b, larger(in_a, target_m), depth - 1, left);
  return smaller(found, larger(in_a, in_b));
}

bool SweepProver::relief_within(const WheelPatch& patch, const Nodes& nodes, const Track& track, int i,
                                const double rectangle[4], int depth) const noexcept {
  const double limit = model_.limits.relief_max_m;
  WheelRegion whole;
  double s_lo = 0.0, s_hi = 0.0;
  if (!part_of(nodes, track, i, rectangle, &whole, &s_lo, &s_hi)) return true;
  if (patch.relief_bound_m(whole, limit) <= limit) return true;
  if (depth == 0) { if (std::getenv("DBG")) std::printf("  relief wheel %d bound %.4f half %.5f %.5f head %.5f lean %.5f rect %g %g\n", i, patch.relief_bound_m(whole, limit), whole.half_along_m, whole.half_across_m, whole.half_heading_rad, whole.half_lean_rad, rectangle[1]-rectangle[0], rectangle[3]-rectangle[2]); return false; }
  double a[4] = {rectangle[0], rectangle[1], rectangle[2], rectangle[3]};
  double b[4] = {rectangle[0], rectangle[1], rectangle[2], rectangle[3]};
  if (rectangle[1] - rectangle[0] >= rectangle[3] - rectangle[2]) {
    a[1] = b[0] = 0.5 * (rectangle[0] + rectangle[1]);
  } else {
    a[3] = b[2] = 0.5 * (rectangle[2] + rectangle[3]);
  }
  return relief_within(patch, nodes, track, i, a, depth - 1) && relief_within(patch, nodes, track, i, b, depth - 1);
}

// Limits of attitude and suspension over the image.
unsigned SweepProver::beyond_limits(const SweepBox& box) const noexcept {
  const SafetyLimits& l = model_.limits;
  const auto most = [&](int j) {
    return larger(std::fabs(box.q_from[j]), std::fabs(box.q_to[j])) + box.state_half[j];
  };
  unsigned reasons = 0;
  if (most(kDifferentialState) > l.differential_max_rad) reasons |= kDifferential;
  if (larger(most(kBogieLeft), most(kBogieRight)) > l.bogie_max_rad) reasons |= kBogie;
  // -log(cos roll cos pitch) is convex along the line, so its largest is at an end.
  const double cos_tilt_max = det_sincos(l.tilt_max_rad).cos;
  for (const double* q : {box.q_from, box.q_to}) {
    const double roll = std::fabs(q[kRoll]) + box.state_half[kRoll];
    const double pitch = std::fabs(q[kPitch]) + box.state_half[kPitch];
    if (!(roll < 1.5 && pitch < 1.5 &&
          det_sincos(roll).cos * det_sincos(pitch).cos >= cos_tilt_max + 1e-12)) {
      reasons |= kTilt;
    }
  }
  return reasons;
}

// Clearance over the image. At a fixed place in the world, the pan's plane is
// U = z + zp sec(pitch) sec(roll) + f A + l B, with A = tan(pitch) sec(roll), B = tan(roll) and (f, l) the place in the
// heading frame. Along the centre line
//   dU/dt = (z' - A travel) + (zp sec sec)' + f (A' - B turn) + l (B' + A turn).
unsigned SweepProver::pan_beyond(const SweepBox& box) const noexcept {
  const RoverGeometry& g = model_.geometry;
  const Pose2 begin = box.sweep.pose_at(box.from);
  const Pose2 end = box.sweep.pose_at(box.to);
  const double turn = end.heading_rad - begin.heading_rad;
  const double travel = box.sweep.turns() ? 0.0 : box.sweep.extent * (box.to - box.from);
  const double length = larger(std::fabs(g.pan_rear_x_m), std::fabs(g.pan_front_x_m));
  constexpr double kStretch_m = 0.06;
  const double moved = std::fabs(travel) + (length + g.pan_half_width_m) * std::fabs(turn);
  const int parts = static_cast<int>(moved / kStretch_m) + 1;
  const double half = 0.5 / parts;
  double rate[kN];
  for (int j = 0; j < kN; ++j) rate[j] = box.q_to[j] - box.q_from[j];
  for (int part = 0; part < parts; ++part) {
    const double t = (part + 0.5) / parts;
    double q[kN];
    for (int j = 0; j < kN; ++j) q[j] = box.q_from[j] + t * rate[j];
    ChainState<double> center{};
    const SinCos roll = det_sincos(q[kRoll]);
    const SinCos pitch = det_sincos(q[kPitch]);
    center.sin_roll = roll.sin;
    center.cos_roll = roll.cos;
    center.sin_pitch = pitch.sin;
    center.cos_pitch = pitch.cos;
    center.origin_z_m = q[kHeight];
    const double half_roll = half * std::fabs(rate[kRoll]) + box.state_half[kRoll];
    const double half_pitch = half * std::fabs(rate[kPitch]) + box.state_half[kPitch];
    const BallSinCos br = ball_sincos(roll.sin, roll.cos, half_roll);
    const BallSinCos bp = ball_sincos(pitch.sin, pitch.cos, half_pitch);
    const Ball sec_r = secant_of_sine(br.sin);
    const Ball sec_p = secant_of_sine(bp.sin);
    const Ball tan_r = br.sin * sec_r;
    const Ball tan_p = bp.sin * sec_p;
    const Ball a = tan_p * sec_r;
    const Ball b = tan_r;
    const Ball a_p = sec_p * sec_p * sec_r;         // derivatives
    const Ball a_r = a * tan_r;
    const Ball b_r = sec_r * sec_r;
    const Ball c_p = g.pan_height_m * (sec_p * sec_r * tan_p);
    const Ball c_r = g.pan_height_m * (sec_p * sec_r * tan_r);
    const Ball a_t = a_p * rate[kPitch] + a_r * rate[kRoll];
    const Ball b_t = b_r * rate[kRoll];
    const double lever = length + g.pan_half_width_m + g.pan_height_m;
    const Tube& tube = box.tube;
    const double widen = (lever * (half_roll + half_pitch + half * std::fabs(turn) + tube.heading_rad) +
                          half * std::fabs(travel) + tube.along_m + tube.across_m) * kWiden + kAbsolute;
    const double rim = 2.0 * (map_.resolution_m + widen);
    const double f_most = length + g.pan_height_m * magnitude(bp.sin) + rim;
    const double l_most = g.pan_half_width_m + (length + g.pan_height_m) * magnitude(br.sin) + rim;
    const double along =
        magnitude(Ball{rate[kHeight], 0.0} - a * travel) + magnitude(c_p * rate[kPitch] + c_r * rate[kRoll]) +
        f_most * magnitude(a_t - b * turn) + l_most * magnitude(b_t + a * turn);
    const double aside = box.state_half[kHeight] +
                         (magnitude(c_p) + f_most * magnitude(a_p)) * box.state_half[kPitch] +
                         (magnitude(c_r) + f_most * magnitude(a_r) + l_most * magnitude(b_r)) * box.state_half[kRoll];
    const double off = tube.along_m * magnitude(a) + tube.across_m * magnitude(b) +
                       tube.heading_rad * (f_most * magnitude(b) + l_most * magnitude(a)) * (1.0 + tube.heading_rad);
    const Pose2 pose = box.sweep.pose_at(box.from + t * (box.to - box.from));
    const Clearance clearance = pan_clearance(map_, g, pose, center, widen);
    if (clearance.status != Status::kOk) return reason_of(clearance.status);
    const double moves = (half * along + aside + off) * kWiden + kAbsolute;
    if (clearance.clearance_m - moves < model_.limits.clearance_min_m) return kClearance;
  }
  return 0;
}

// The largest box, alike in all wheels, whose attitude and suspension stay within the limits.
double SweepProver::roomiest_m(const SweepBox& box) const noexcept {
  const SafetyLimits& l = model_.limits;
  double slack[kN];
  const auto most = [&](int j) { return larger(std::fabs(box.q_from[j]), std::fabs(box.q_to[j])); };
  slack[kDifferentialState] = l.differential_max_rad - most(kDifferentialState);
  slack[kBogieLeft] = l.bogie_max_rad - most(kBogieLeft);
  slack[kBogieRight] = l.bogie_max_rad - most(kBogieRight);
  const double roll = most(kRoll), pitch = most(kPitch);
  const double tilt = std::sqrt(roll * roll + pitch * pitch);
  slack[kRoll] = slack[kPitch] = l.tilt_max_rad - tilt;
  double room = kMaxHalf_m;
  for (int j = 0; j < kHeight; ++j) {
    double sum = 0.0, taken = 0.0;
    for (int i = 0; i < kN; ++i) {
      const double y = std::fabs(box.y[j][i]);
      sum += y;
      taken += y * (std::fabs(box.chi[0][i]) * box.tube.along_m + std::fabs(box.chi[1][i]) * box.tube.across_m +
                    std::fabs(box.chi[2][i]) * box.tube.heading_rad);
    }
    room = smaller(room, (slack[j] - taken) / sum);
  }
  return room;
}

SweepProver::Result SweepProver::prove(const Sweep& sweep, const Tube& tube, const Knot& from, const Knot& to,
                                       const double* least_half_m, SweepBox* box, unsigned* reasons) noexcept {
  const double moved = std::fabs(sweep.extent) * (sweep.turns() ? 1.5 : 1.0) * (to.fraction - from.fraction);
  static const double SHORT = std::getenv("SH") ? std::atof(std::getenv("SH")) : 0.007;
  Result r = kNoBox;
  struct Try {
    double step, clamp;
  };
  for (const Try& t : {Try{0.03, 0.7}, Try{0.01, 2.0}, Try{0.003, 2.0}, Try{0.03, 0.3}}) {
    if (!(t.step == 0.03 && t.clamp == 0.7) && moved > SHORT) break;
    const int b4 = work_->regions;
    r = prove(sweep, tube, from, to, t.step, t.clamp, least_half_m, box, reasons);
    (r == kProven ? ST.winr : ST.lossr) += work_->regions - b4;
    { int k = moved > .07 ? 0 : moved > .03 ? 1 : moved > .01 ? 2 : 3; ST.by[k][r] += work_->regions - b4; ++ST.n[k][r]; }
    if (r == kProven || r == kNoGround) return r;
  }
  return r;
}

SweepProver::Result SweepProver::prove(const Sweep& sweep, const Tube& tube, const Knot& from, const Knot& to, double step_m, double clamp,
                                       const double* least_half_m, SweepBox* box, unsigned* reasons) noexcept {
  ++work_->boxes;
  box->sweep = sweep;
  box->tube = tube;
  box->from = from.fraction;
  box->to = to.fraction;
  for (int j = 0; j < kN; ++j) {
    box->q_from[j] = from.q[j];
    box->q_to[j] = to.q[j];
  }
  Nodes nodes;
  wheel_steering(model_.geometry, sweep.begin.curvature_per_m, nodes.steering);
  const double part = (to.fraction - from.fraction) * sweep.extent;
  nodes.turn = sweep.turns() ? part : part * sweep.begin.curvature_per_m;
  nodes.travel_m = sweep.turns() ? 0.0 : std::fabs(part);
  *reasons = kUnknown;
  if (!linearize(box, &nodes, step_m, clamp)) return kNoGround;
  place_nodes(*box, &nodes);

  double small[kN];
  const double apart = (nodes.travel_m + 1.3 * std::fabs(nodes.turn)) / 8.0;
  for (int i = 0; i < kN; ++i) {
    static const double SA = std::getenv("SA") ? std::atof(std::getenv("SA")) : 1.5, SB = std::getenv("SB") ? std::atof(std::getenv("SB")) : .1;
    small[i] = SA * nodes.off_m[i] + SB * step_m + SB * apart;
    if (least_half_m != nullptr) small[i] = larger(small[i], least_half_m[i]);
  }
  const double room = kRoom * roomiest_m(*box);
  double half[kN];
  bool roomy = step_m > 0.01;
  for (int i = 0; i < kN; ++i) {
    half[i] = smaller(room, kRoomiest_m);
    roomy = roomy && half[i] >= small[i];
  }
  if (!roomy) {
    for (int i = 0; i < kN; ++i) half[i] = small[i];
  }

  struct Near {
    double forward = -1.0, left = -1.0, lean = -1.0;
    WheelPatch patch;
    WheelSamples samples;
  } around[kN];
  WheelPatch patch;
  WheelSamples everything;
  everything.all_of(settle_.footprint);
  Motion motion;
  Track track;
  double need[kN];
  bool trapped = false;
  double gap_before = 0.0;
  int tightened = 0;
  *reasons = kNotCertified;
  Result result = kNoBox;
  static const int MR = std::getenv("MR") ? std::atoi(std::getenv("MR")) : kMaxRounds;
  const int most_rounds = nodes.travel_m + 1.5 * std::fabs(nodes.turn) > .007 ? MR : kMaxRounds;
  for (int round = 0; round < most_rounds; ++round) {
    ++work_->rounds;
    const int before_ = work_->regions; struct At { int b, r; const int& now; bool roomy, trapped; ~At() { ST.regions[r] += now - b; ++ST.rounds[r]; if (trapped) ST.after += now - b; } } at_{before_, round, work_->regions, roomy, trapped};
    bool fits = bound_motion(*box, nodes, half, &motion);
    bool wide = !fits;
    const double share = trapped ? kTighter : 1.0;
    static const int CO = std::getenv("CO") ? std::atoi(std::getenv("CO")) : 0;
    coarse_ = CO == 2 ? roomy : CO == 1 ? !trapped : CO == 3;
    for (int i = 0; i < kN && fits; ++i) {
      Near& near = around[i];
      if (!(motion.forward[i] <= near.forward && motion.left[i] <= near.left && motion.lean[i] <= near.lean)) {
        static const double IN = std::getenv("IN") ? std::atof(std::getenv("IN")) : 1.4;
        Motion more = motion;
        more.forward[i] *= IN;
        more.left[i] *= IN;
        more.lean[i] *= IN;
        lay_track(*box, nodes, more, i, &track);
        near.forward = -1.0;
        WheelRegion whole;
        if (!fill_patch(*box, nodes, track, i, &near.patch, &whole, reasons)) {
          if ((*reasons & kBorder) != 0) return kNoGround;
          fits = false;
          wide = true;
          break;
        }
        near.forward = more.forward[i];
        near.left = more.left[i];
        near.lean = more.lean[i];
        ++work_->regions;
        near.samples.count = 0;
        if (near.patch.bound(whole, everything, 1e9, &near.samples).status != Status::kOk) near.samples = everything;
      }
      const WheelPatch& patch = near.patch;
      lay_track(*box, nodes, motion, i, &track);
      const double rest = motion.rest_m[i];
      const double rectangle[4] = {track.whole.along_lo, track.whole.along_hi, track.whole.across_lo, track.whole.across_hi};
      static const int PARTS = std::getenv("PT") ? std::atoi(std::getenv("PT")) : 3;
      double found = 0.0;
      for (int part = 0; part < PARTS; ++part) {
        const double step = (rectangle[1] - rectangle[0]) / PARTS;
        const double piece[4] = {rectangle[0] + part * step, rectangle[0] + (part + 1) * step, rectangle[2], rectangle[3]};
        found = larger(found, residual(patch, nodes, track, i, piece, larger(found, share * half[i] - rest), kMaxSplits, near.samples));
        if (roomy && found + rest > half[i]) break;
      }
      if (found == kUnknownResidual) {
        *reasons = kUnknown;
        return kNoGround;
      }
      need[i] = (found + rest) * kWiden;
      if (need[i] > half[i]) {
        fits = false;
        if (roomy) break;
      }
      wide = wide || need[i] > kMaxHalf_m;
    }
    if (!fits) {
      if (trapped) return result;
      if (roomy) {  // a smaller box may hold fewer kinks
        roomy = false;
        for (int i = 0; i < kN; ++i) half[i] = small[i];
        continue;
      }
      if (wide) return kNoBox;
      // Each round leaves about the same share of the gap, so the rest of the way is a geometric series.
      double gap = 0.0;
      for (int i = 0; i < kN; ++i) gap = larger(gap, need[i] - half[i]);
      static const double GM = std::getenv("GM") ? std::atof(std::getenv("GM")) : 1.0, G0 = std::getenv("G0") ? std::atof(std::getenv("G0")) : .2;
      double more = G0;
      if (gap_before > 0.0 && gap < gap_before) more = larger(more, smaller(GM, gap / (gap_before - gap)));
      else if (gap_before > 0.0) more = larger(more, GM);
      gap_before = gap;
      for (int i = 0; i < kN; ++i) {
        if (need[i] > half[i]) half[i] = need[i] + more * (need[i] - half[i]) + 3e-4;
      }
      // Give up where most of the box is beyond a limit.
      box_states(box, half);
      for (double& h : box->state_half) h *= 0.7;
      const unsigned why = beyond_limits(*box);
      if (why != 0) {
        *reasons = why;
        return kBeyondLimit;
      }
      continue;
    }
    trapped = true;
    for (int i = 0; i < kN; ++i) {
      box->half_m[i] = half[i];
      box->image_m[i] = need[i];
    }
    box_states(box, need);
    unsigned why = beyond_limits(*box);
    if (why == 0) why = pan_beyond(*box);
    if (why == 0 && std::isfinite(model_.limits.relief_max_m)) why = relief_beyond(*box, nodes, &patch);
    if (why == 0) {
      *reasons = 0; ++ST.wins[round];
      return kProven;
    }
    *reasons = why;
    result = why == kRelief ? kReliefBeyond : kBeyondLimit;
    if (++tightened > kMaxTightened || least_half_m != nullptr) return result;
    for (int i = 0; i < kN; ++i) half[i] = need[i];
  }
  return result;
}

void SweepProver::box_states(SweepBox* box, const double half_m[kN]) noexcept {
  for (int j = 0; j < kN; ++j) {
    double sum = 0.0;
    for (int i = 0; i < kN; ++i) {
      sum += std::fabs(box->y[j][i]) *
             (half_m[i] + std::fabs(box->chi[0][i]) * box->tube.along_m +
              std::fabs(box->chi[1][i]) * box->tube.across_m + std::fabs(box->chi[2][i]) * box->tube.heading_rad);
    }
    box->state_half[j] = sum * kWiden + 1e-12;
  }
}

bool SweepProver::fill_patch(const SweepBox& box, const Nodes& nodes, const Track& track, int i, WheelPatch* patch,
                             WheelRegion* out, unsigned* reasons) const noexcept {
  WheelRegion& whole = *out;
  double s_lo = 0.0, s_hi = 0.0;
  const double rectangle[4] = {track.whole.along_lo, track.whole.along_hi, track.whole.across_lo, track.whole.across_hi};
  if (!part_of(nodes, track, i, rectangle, &whole, &s_lo, &s_hi)) return false;
  const double c = std::fabs(whole.along.cos), s = std::fabs(whole.along.sin);
  const double x = c * whole.half_along_m + s * whole.half_across_m;
  const double y = s * whole.half_along_m + c * whole.half_across_m;
  const double wide = whole.reach_m(settle_.footprint);  // no part reaches farther
  const Status status = patch->fill(map_, settle_.footprint, box.trend[i], {whole.foot.x_m - x, whole.foot.y_m - y},
                                    {whole.foot.x_m + x, whole.foot.y_m + y}, wide);
  if (status == Status::kOk) return true;
  *reasons = status == Status::kOutsideMap ? kBorder : kNotCertified;
  return false;
}

// Relief over all places of the image.
unsigned SweepProver::relief_beyond(const SweepBox& box, const Nodes& nodes, WheelPatch* patch) noexcept {
  Motion image;
  if (!bound_motion(box, nodes, box.image_m, &image)) return kNotCertified;
  Track track;
  for (int i = 0; i < kN; ++i) {
    unsigned reasons = 0;
    lay_track(box, nodes, image, i, &track);
    WheelRegion whole;
    if (!fill_patch(box, nodes, track, i, patch, &whole, &reasons)) return reasons;
    const double rectangle[4] = {track.whole.along_lo, track.whole.along_hi, track.whole.across_lo, track.whole.across_hi};
    if (!relief_within(*patch, nodes, track, i, rectangle, kReliefSplits)) return kRelief;
  }
  return 0;
}

}  // namespace mlnav
