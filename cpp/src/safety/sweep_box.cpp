#include "sweep_box.hpp"

#include "link_bounds.hpp"

#include <cmath>
#include <initializer_list>

namespace mlnav {

using namespace verified;

namespace {

// Any value of these gives valid proofs; they were chosen by the share of safe ways that is proven, and the time.
constexpr double kMaxHalf_m = 0.2;     // of a box that is worth trying
constexpr int kMaxRounds = 3;          // boxes tried for one stretch,
constexpr int kMaxRoundsShort = 10;    // and for one that is not bisected any more
constexpr double kGrown = 1.2;         // a box so much larger and beyond a limit is given up
constexpr int kMaxTightened = 3;       // images taken of images, to come within the limits
constexpr double kTighter = 0.5;       // share of the box that an image is refined to then
constexpr double kShort_m = 0.007;     // of a stretch
constexpr int kParts = 3;              // of a wheel's track that are bounded at first
constexpr double kSmallest_m = 0.005;  // half a side of the smallest parts
constexpr int kReliefSplits = 9;
constexpr double kReachAhead = 1.25;  // ground and samples are prepared for boxes so much larger
constexpr double kUnknownResidual = 1e9;
constexpr double kNear_m = 1.5;  // from the rover's origin: there the map's error is looked up

double magnitude(Ball b) noexcept { return std::fabs(b.m) + b.r; }

}  // namespace

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

// |A B|, summed along rows with weights: what `half` about B's coordinates can be in A's.
void carry(const double a[kN][kN], const double b[kN][kN], const double half[kN],
           double out[kN]) noexcept {
  for (int i = 0; i < kN; ++i) {
    out[i] = 0.0;
    for (int j = 0; j < kN; ++j) {
      double m = 0.0;
      for (int k = 0; k < kN; ++k) m += a[i][k] * b[k][j];
      out[i] += (std::fabs(m) + 1e-12) * half[j];
    }
    out[i] = out[i] * kWiden + 1e-12;
  }
}

void SweepProver::begin(const GridView& map, const RoverModel& model, const SettleModel& settle,
                        CheckWork* work) noexcept {
  map_ = map;
  model_ = &model;
  settle_ = &settle;
  work_ = work;
  every_sample_.all_of(settle.footprint);
}

void SweepProver::steer(const SweepBox& box) noexcept {
  Nodes& nodes = nodes_;
  const double part = (box.to - box.from) * box.sweep.extent;
  nodes.turn = box.sweep.turns() ? part : part * box.sweep.begin.curvature_per_m;
  nodes.travel_m = box.sweep.turns() ? 0.0 : std::fabs(part);
  nodes.steering_half_rad = 0.0;
  for (int k = 0; k < kNodes; ++k) {
    if (k > 0 && !box.sweep.resteers) {
      for (int i = 0; i < kN; ++i) nodes.steering[k][i] = nodes.steering[0][i];
      continue;
    }
    const double t = static_cast<double>(k) / (kNodes - 1);
    box.sweep.steering_at(model_->geometry, box.from + t * (box.to - box.from), nodes.steering[k]);
  }
  if (!box.sweep.resteers) return;
  for (int i = 0; i < kN; ++i) {
    const SinCos& a = nodes.steering[0][i];
    const SinCos& b = nodes.steering[kNodes - 1][i];
    const double turned =
        std::fabs(det_atan2(b.sin * a.cos - b.cos * a.sin, b.cos * a.cos + b.sin * a.sin));
    nodes.steering_half_rad = larger(nodes.steering_half_rad, 0.5 * turned * kWiden + 1e-12);
  }
}

void SweepProver::place_nodes(const SweepBox& box) noexcept {
  Nodes* const nodes = &nodes_;
  const double r = model_->geometry.wheel_radius_m;
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
    const SinCos* const steering = nodes->steering[k];
    place_axles<false>(model_->geometry, steering, turns, &axles);
    const Pose2 pose = box.pose_at(t);
    const SinCos h = det_sincos(pose.heading_rad);
    nodes->pose[k] = pose;
    nodes->heading[k] = h;
    for (int i = 0; i < kN; ++i) {
      const double sin = axles.sin_lean[i];
      steepest = larger(steepest, std::fabs(sin));
      const double forward = axles.forward[i] - r * sin * steering[i].sin;
      const double left = axles.left[i] + r * sin * steering[i].cos;
      const Point2 foot{pose.x_m + forward * h.cos - left * h.sin,
                        pose.y_m + forward * h.sin + left * h.cos};
      const double lean = det_asin(sin);
      nodes->forward[k][i] = forward;
      nodes->left[k][i] = left;
      nodes->foot[k][i] = foot;
      nodes->lean_rad[k][i] = lean;
      nodes->height_m[k][i] = q[kHeight] + axles.up[i] - r;
    }
  }
  // Second derivatives along the box. Each link is turned by angles that are linear in t, at a total rate of at
  // most `turning`, so a point at a total length `reach` of links moves with at most reach turning^2.
  const RoverGeometry& g = model_->geometry;
  const double bogie = larger(std::fabs(rate[kBogieLeft]), std::fabs(rate[kBogieRight]));
  const double steered = 2.0 * nodes->steering_half_rad;
  const double turning = std::fabs(rate[kRoll]) + std::fabs(rate[kPitch]) +
                         std::fabs(rate[kDifferentialState]) + bogie + steered;
  const auto length = [](double x, double z) { return std::sqrt(x * x + z * z); };
  const double front = length(g.front_x_m - g.rocker_pivot_x_m, r - g.rocker_pivot_z_m);
  const double rear =
      length(g.bogie_pivot_x_m - g.rocker_pivot_x_m, g.bogie_pivot_z_m - g.rocker_pivot_z_m) +
      length(larger(-g.bogie_pivot_x_m, g.bogie_pivot_x_m - g.rear_x_m), r - g.bogie_pivot_z_m);
  const double reach = length(g.rocker_pivot_x_m, g.rocker_pivot_z_m) + larger(front, rear) +
                       larger(g.middle_y_m, larger(g.front_y_m, g.rear_y_m));
  const double step = 1.0 / (kNodes - 1);
  const double eighth = 0.125 * step * step * kWiden;
  const double all = turning + std::fabs(nodes->turn) + steered;
  const double arc =
      (nodes->travel_m +
       (std::fabs(box.offset.along_m) + std::fabs(box.offset.across_m)) * std::fabs(nodes->turn)) *
      std::fabs(nodes->turn);
  // The lean's sine has second derivative 1.42 turning^2, and 1 / cos to come from the sine to the angle.
  steepest = smaller(steepest + 0.05, 0.98);
  const double per_cos = secant_of_sine(steepest);
  const double lean_2 = 1.42 * turning * turning * per_cos +
                        2.02 * turning * turning * steepest * per_cos * per_cos * per_cos;
  const double foot_2 = (reach + 1.42 * r) * all * all + arc;
  nodes->foot_between_m = eighth * foot_2 + kAbsolute;
  nodes->lean_between_rad = eighth * lean_2 + kAbsolute;
  nodes->height_between_m = eighth * reach * turning * turning + kAbsolute;
}

// S at the nodes: heights less the trends.
void SweepProver::detrend(const SweepBox& box) noexcept {
  Nodes* const nodes = &nodes_;
  for (int i = 0; i < kN; ++i) {
    const WheelTrend& g = box.trend[i];
    for (int k = 0; k < kNodes; ++k) {
      const Point2& foot = nodes->foot[k][i];
      nodes->s[k][i] = nodes->height_m[k][i] - g.slope_x * (foot.x_m - g.foot.x_m) -
                       g.slope_y * (foot.y_m - g.foot.y_m) -
                       g.slope_lean_m * (nodes->lean_rad[k][i] - g.lean_rad);
    }
    nodes->s_between_m[i] = nodes->height_between_m +
                            (std::fabs(g.slope_x) + std::fabs(g.slope_y)) * nodes->foot_between_m +
                            std::fabs(g.slope_lean_m) * nodes->lean_between_rad;
  }
}

// How far the centre line is from the ground at a few nodes: a first guess of the box.
void SweepProver::sample_line(const SweepBox& box) noexcept {
  const double r = model_->geometry.wheel_radius_m;
  for (int i = 0; i < kN; ++i) {
    nodes_.off_m[i] = 0.0;
    for (int k = 2; k < kNodes - 1; k += 2) {
      const SinCos lean = det_sincos(nodes_.lean_rad[k][i]);
      const SinCos wheel = wheel_heading(nodes_.heading[k], nodes_.steering[k][i]);
      const Point2& foot = nodes_.foot[k][i];
      const WheelTrend& g = box.trend[i];
      ++work_->lookups;
      const WheelHeight w =
          wheel_height(map_, settle_->footprint, foot.x_m + r * lean.sin * wheel.sin,
                       foot.y_m - r * lean.sin * wheel.cos, wheel, lean);
      if (w.status != Status::kOk) continue;
      const double h = w.height_m - g.slope_x * (foot.x_m - g.foot.x_m) -
                       g.slope_y * (foot.y_m - g.foot.y_m) -
                       g.slope_lean_m * (nodes_.lean_rad[k][i] - g.lean_rad);
      nodes_.off_m[i] = larger(nodes_.off_m[i], std::fabs(h - nodes_.s[k][i]));
    }
  }
}

// Slopes of H at the middle give Y and the trends, by differences over +-step_m; along the way of a foot, the slope of the
// centre line serves. Any numbers are valid.
bool SweepProver::linearize(SweepBox* box, double step_m, double steepest) noexcept {
  constexpr double kChord_m = 0.05;
  const double r = model_->geometry.wheel_radius_m;
  constexpr int kMiddle = kNodes / 2;
  const SinCos h = nodes_.heading[kMiddle];
  for (int i = 0; i < kN; ++i) {
    const SinCos wheel = wheel_heading(h, nodes_.steering[kMiddle][i]);
    const double lean_rad = nodes_.lean_rad[kMiddle][i];
    const SinCos lean = det_sincos(lean_rad);
    if (!(std::fabs(lean.sin) < 0.9)) return false;
    const Point2 foot = nodes_.foot[kMiddle][i];
    const double f = nodes_.forward[kMiddle][i];
    const double l = nodes_.left[kMiddle][i];
    const auto height = [&](double dx, double dy, SinCos at) {
      const double side = r * at.sin;  // the axle is this far to the right of the foot
      ++work_->lookups;
      const WheelHeight w = wheel_height(map_, settle_->footprint, foot.x_m + dx + side * wheel.sin,
                                         foot.y_m + dy - side * wheel.cos, wheel, at);
      if (w.status != Status::kOk) ground_ = w.status;
      return w.height_m;
    };
    const auto slope = [&](double along_x, double along_y) {
      const double x = step_m * along_x, y = step_m * along_y;
      const double found = (height(x, y, lean) - height(-x, -y, lean)) / (2.0 * step_m);
      return found > steepest ? steepest : found < -steepest ? -steepest : found;
    };
    const double lean_step = 1.3 * step_m;
    const SinCos more{lean.sin + lean_step * lean.cos, lean.cos - lean_step * lean.sin};
    const SinCos less{lean.sin - lean_step * lean.cos, lean.cos + lean_step * lean.sin};
    const double slope_lean = (height(0.0, 0.0, more) - height(0.0, 0.0, less)) / (2.0 * lean_step);
    double way_x = nodes_.foot[kNodes - 1][i].x_m - nodes_.foot[0][i].x_m;
    double way_y = nodes_.foot[kNodes - 1][i].y_m - nodes_.foot[0][i].y_m;
    const double way = std::sqrt(way_x * way_x + way_y * way_y);
    const bool chord = way > kChord_m;
    if (chord) {
      way_x /= way;
      way_y /= way;
    } else {
      way_x = h.cos;
      way_y = h.sin;
    }
    const double leaned = nodes_.lean_rad[kNodes - 1][i] - nodes_.lean_rad[0][i];
    const double along =
        chord ? (nodes_.height_m[kNodes - 1][i] - nodes_.height_m[0][i] - slope_lean * leaned) / way
              : slope(way_x, way_y);
    const double across = slope(-way_y, way_x);
    if (ground_ != Status::kOk) return false;
    WheelTrend& g = box->trend[i];
    g.foot = foot;
    g.lean_rad = lean_rad;
    g.slope_x = along * way_x - across * way_y;
    g.slope_y = along * way_y + across * way_x;
    g.slope_lean_m = slope_lean;
    const double slope_f = g.slope_x * h.cos + g.slope_y * h.sin;
    const double slope_l = g.slope_y * h.cos - g.slope_x * h.sin;
    box->chi[0][i] = slope_f;
    box->chi[1][i] = slope_l;
    box->chi[2][i] = slope_l * f - slope_f * l;
  }
  return true;
}

// The links and their derivatives at the middle.
bool SweepProver::differentiate(const SweepBox& box) noexcept {
  double q[kN];
  for (int j = 0; j < kN; ++j) q[j] = 0.5 * (box.q_from[j] + box.q_to[j]);
  turn_links(q, &nodes_.turns);
  Axles<double> axles;
  place_axles<true>(model_->geometry, nodes_.steering[kNodes / 2], nodes_.turns, &axles);
  for (int i = 0; i < kN; ++i) {
    if (!(std::fabs(axles.sin_lean[i]) < 0.9)) return false;
    for (int j = 0; j < kN; ++j) {
      nodes_.d_forward[i][j] = axles.d_forward[i][j];
      nodes_.d_left[i][j] = axles.d_left[i][j];
      nodes_.d_lean[i][j] = axles.d_lean[i][j];
      nodes_.d_up[i][j] = axles.d_up[i][j];
    }
  }
  return true;
}

bool SweepProver::precondition(SweepBox* box) const noexcept {
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) {
      box->jacobian[i][j] = nodes_.d_up[i][j] - box->chi[0][i] * nodes_.d_forward[i][j] -
                            box->chi[1][i] * nodes_.d_left[i][j] -
                            box->trend[i].slope_lean_m * nodes_.d_lean[i][j];
    }
  }
  return invert(box->jacobian, box->y);
}

void SweepProver::place(const Sweep& sweep, const Offset& offset, const Tube& tube,
                        const Knot& from, const Knot& to, SweepBox* box) noexcept {
  box->sweep = sweep;
  box->offset = offset;
  box->tube = tube;
  box->from = from.fraction;
  box->to = to.fraction;
  for (int j = 0; j < kN; ++j) {
    box->q_from[j] = from.q[j];
    box->q_to[j] = to.q[j];
  }
  steer(*box);
  place_nodes(*box);
}

bool SweepProver::stand(const Sweep& sweep, const Offset& offset, const Tube& tube, const Knot& at,
                        double step_m, SweepBox* box) noexcept {
  constexpr double kSteepest = 2.0;
  ground_ = Status::kOk;
  place(sweep, offset, tube, at, at, box);
  return linearize(box, step_m, kSteepest) && prepare(*box) && precondition(box);
}

bool SweepProver::prepare(const SweepBox& box) noexcept {
  if (!differentiate(box)) return false;
  detrend(box);
  for (Near& near : near_) near.forward = -1.0;
  return true;
}

bool SweepProver::come_back(const SweepBox& box) noexcept {
  steer(box);
  place_nodes(box);
  return prepare(box);
}

// For |u| <= half_m about the whole centre line.
bool SweepProver::bound_motion(const SweepBox& box, const double half_m[kN],
                               Motion* motion) const noexcept {
  const Nodes& nodes = nodes_;
  const RoverGeometry& geometry = model_->geometry;
  double rise[kN];
  for (int i = 0; i < kN; ++i) {
    rise[i] = half_m[i] + std::fabs(box.chi[0][i]) * box.tube.along_m +
              std::fabs(box.chi[1][i]) * box.tube.across_m +
              std::fabs(box.chi[2][i]) * box.tube.heading_rad;
  }
  // Of the links, from the states, [side].
  double line[2][kLinkAngles], box_half[2][kLinkAngles];
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0;
    const int bogie = side == 0 ? kBogieLeft : kBogieRight;
    const auto angles = [&](const auto& state, double out[kLinkAngles]) {
      out[kRolled] = state(kRoll);
      out[kBody] = state(kPitch);
      out[kRocker] = state(kPitch) + sign * state(kDifferentialState);
      out[kBogieLink] = out[kRocker] + state(bogie);
    };
    double change[kLinkAngles];
    angles([&](int j) { return box.q_to[j] - box.q_from[j]; }, change);
    for (int a = 0; a < kLinkAngles; ++a) {
      line[side][a] = 0.5 * std::fabs(change[a]) * kWiden + 1e-12;
      box_half[side][a] = 1e-12;
    }
    for (int i = 0; i < kN; ++i) {
      double turned[kLinkAngles];
      angles([&](int j) { return box.y[j][i]; }, turned);
      for (int a = 0; a < kLinkAngles; ++a)
        box_half[side][a] += std::fabs(turned[a]) * rise[i] * kWiden;
    }
    for (int a = 0; a < kLinkAngles; ++a) {
      if (!(line[side][a] + box_half[side][a] < 0.5)) return false;
    }
  }
  const SinCos h = nodes.heading[kNodes / 2];
  const double turn = 0.5 * std::fabs(nodes.turn) + box.tube.heading_rad;
  for (int i = 0; i < kN; ++i) {
    const int side = i / 3;
    const WheelTrend& g = box.trend[i];
    const double slope = std::fabs(g.slope_x) + std::fabs(g.slope_y);
    const double g_f = g.slope_x * h.cos + g.slope_y * h.sin;
    const double g_l = g.slope_y * h.cos - g.slope_x * h.sin;
    const LinkBounds curved =
        bound_links(geometry, i, nodes.turns, nodes.steering[kNodes / 2][i],
                    nodes.steering_half_rad, g_f, g_l, g.slope_lean_m, line[side], box_half[side]);
    if (!curved.usable) return false;

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
    motion->forward[i] = (by_forward + curved.forward_m) * kWiden + kAbsolute;
    motion->left[i] = (by_left + curved.left_m) * kWiden + kAbsolute;
    motion->lean[i] = (by_lean + curved.lean_rad) * kWiden + kAbsolute;
    // The heading turns the ground's slope against the rover's frame.
    const double gf_r = (std::fabs(g_l) * turn + 0.5 * std::fabs(g_f) * turn * turn);
    const double gl_r = (std::fabs(g_f) * turn + 0.5 * std::fabs(g_l) * turn * turn);
    double rest = residual + curved.s_m + gf_r * motion->forward[i] + gl_r * motion->left[i];
    if (box.tube.along_m > 0.0 || box.tube.across_m > 0.0 || box.tube.heading_rad > 0.0) {
      // The tube moves the foot by e_x f + e_y l and turns it about the origin: a rise of g.(e_x f + e_y l) +
      // e_h (g_l F - g_f L), of which chi has the middle's.
      double drift_f = nodes.foot_between_m, drift_l = nodes.foot_between_m;
      for (int k = 0; k < kNodes; ++k) {
        drift_f = larger(drift_f, std::fabs(nodes.forward[k][i] - nodes.forward[kNodes / 2][i]) +
                                      nodes.foot_between_m);
        drift_l = larger(drift_l, std::fabs(nodes.left[k][i] - nodes.left[kNodes / 2][i]) +
                                      nodes.foot_between_m);
      }
      const double f = std::fabs(nodes.forward[kNodes / 2][i]);
      const double l = std::fabs(nodes.left[kNodes / 2][i]);
      const double f_most = f + drift_f + motion->forward[i];
      const double l_most = l + drift_l + motion->left[i];
      const Tube& e = box.tube;
      rest += e.along_m * gf_r + e.across_m * gl_r +
              e.heading_rad * (std::fabs(g_l) * (drift_f + motion->forward[i]) +
                               std::fabs(g_f) * (drift_l + motion->left[i]) + gl_r * f_most +
                               gf_r * l_most + 0.5 * e.heading_rad * slope * (f_most + l_most));
      motion->forward[i] += e.along_m + e.heading_rad * (l_most + 0.5 * e.heading_rad * f_most);
      motion->left[i] += e.across_m + e.heading_rad * (f_most + 0.5 * e.heading_rad * l_most);
    }
    motion->rest_m[i] = rest * kWiden + 2.0 * kAbsolute;
  }
  return true;
}

void SweepProver::lay_track(const SweepBox& box, const Motion& motion, int i, int first_node,
                            int last_node, Track* out) const noexcept {
  const Nodes& nodes = nodes_;
  const Point2& a = nodes.foot[0][i];
  const Point2& b = nodes.foot[kNodes - 1][i];
  const double dx = b.x_m - a.x_m;
  const double dy = b.y_m - a.y_m;
  const double length = std::sqrt(dx * dx + dy * dy);
  out->origin = a;
  out->along = length > 1e-3 ? SinCos{dy / length, dx / length} : nodes.heading[kNodes / 2];
  out->heading_half_rad = box.tube.heading_rad + 1e-12;
  const double step = std::fabs(nodes.turn) / (kNodes - 1);
  out->turn_step_rad = step + 2.0 * nodes.steering_half_rad / (kNodes - 1);
  out->pieces = first_node == last_node ? 1 : last_node - first_node;
  double p[kNodes], n[kNodes];
  for (int k = first_node; k <= last_node; ++k) {
    const double x = nodes.foot[k][i].x_m - a.x_m;
    const double y = nodes.foot[k][i].y_m - a.y_m;
    p[k] = x * out->along.cos + y * out->along.sin;
    n[k] = y * out->along.cos - x * out->along.sin;
  }
  out->whole = {1e9, -1e9, 1e9, -1e9};
  for (int piece = 0; piece < out->pieces; ++piece) {
    const int k = first_node + piece;
    const int next = k < last_node ? k + 1 : k;
    out->node[piece] = k;
    out->node[piece + 1] = next;
    // The reach is in the rover's frame, which turns.
    const SinCos& h = nodes.heading[k];
    const double c = std::fabs(out->along.cos * h.cos + out->along.sin * h.sin);
    const double s = std::fabs(out->along.sin * h.cos - out->along.cos * h.sin);
    const double turned = next == k ? 0.0 : step * (motion.forward[i] + motion.left[i]);
    const double between = next == k ? 0.0 : nodes.foot_between_m;
    const double reach_p =
        (between + c * motion.forward[i] + s * motion.left[i] + turned) * kWiden + kAbsolute;
    const double reach_n =
        (between + s * motion.forward[i] + c * motion.left[i] + turned) * kWiden + kAbsolute;
    Rectangle& r = out->piece[piece];
    r = {smaller(p[k], p[next]) - reach_p, larger(p[k], p[next]) + reach_p,
         smaller(n[k], n[next]) - reach_n, larger(n[k], n[next]) + reach_n};
    out->whole = {smaller(out->whole.along_lo, r.along_lo), larger(out->whole.along_hi, r.along_hi),
                  smaller(out->whole.across_lo, r.across_lo),
                  larger(out->whole.across_hi, r.across_hi)};
    const double lean = (next == k ? 1e-12 : nodes.lean_between_rad) + motion.lean[i];
    const double s_off = next == k ? kAbsolute : nodes.s_between_m[i];
    out->lean_lo[piece] = smaller(nodes.lean_rad[k][i], nodes.lean_rad[next][i]) - lean;
    out->lean_hi[piece] = larger(nodes.lean_rad[k][i], nodes.lean_rad[next][i]) + lean;
    out->s_lo[piece] = smaller(nodes.s[k][i], nodes.s[next][i]) - s_off;
    out->s_hi[piece] = larger(nodes.s[k][i], nodes.s[next][i]) + s_off;
  }
}

// What a wheel can do with its foot in a rectangle of the track, and the range of S there. False: it is never there.
bool SweepProver::part_of(const Track& track, int i, const Rectangle& within, WheelRegion* out,
                          double* s_lo, double* s_hi) const noexcept {
  int first = -1, last = -1;
  double lean_lo = 1e9, lean_hi = -1e9;
  Rectangle part{1e9, -1e9, 1e9, -1e9};
  *s_lo = 1e9;
  *s_hi = -1e9;
  for (int k = 0; k < track.pieces; ++k) {
    const Rectangle& r = track.piece[k];
    if (r.along_lo > within.along_hi || r.along_hi < within.along_lo ||
        r.across_lo > within.across_hi || r.across_hi < within.across_lo) {
      continue;
    }
    if (first < 0) first = k;
    last = k + 1;
    lean_lo = smaller(lean_lo, track.lean_lo[k]);
    lean_hi = larger(lean_hi, track.lean_hi[k]);
    *s_lo = smaller(*s_lo, track.s_lo[k]);
    *s_hi = larger(*s_hi, track.s_hi[k]);
    part = {smaller(part.along_lo, r.along_lo), larger(part.along_hi, r.along_hi),
            smaller(part.across_lo, r.across_lo), larger(part.across_hi, r.across_hi)};
  }
  if (first < 0) return false;
  part = {larger(part.along_lo, within.along_lo), smaller(part.along_hi, within.along_hi),
          larger(part.across_lo, within.across_lo), smaller(part.across_hi, within.across_hi)};
  const double p = 0.5 * (part.along_lo + part.along_hi);
  const double n = 0.5 * (part.across_lo + part.across_hi);
  out->along = track.along;
  out->foot = {track.origin.x_m + p * track.along.cos - n * track.along.sin,
               track.origin.y_m + p * track.along.sin + n * track.along.cos};
  out->half_along_m = 0.5 * (part.along_hi - part.along_lo) * kWiden + kAbsolute;
  out->half_across_m = 0.5 * (part.across_hi - part.across_lo) * kWiden + kAbsolute;
  const int middle = (first + last) / 2;
  const int node = track.node[middle];
  const int farthest = track.node[last] - track.node[first] == 0 ? 0
                       : middle - first > last - middle          ? middle - first
                                                                 : last - middle;
  out->heading = wheel_heading(nodes_.heading[node], nodes_.steering[node][i]);
  out->half_heading_rad = (track.turn_step_rad * farthest + track.heading_half_rad) * kWiden;
  out->lean_rad = 0.5 * (lean_lo + lean_hi);
  out->lean = det_sincos(out->lean_rad);
  out->half_lean_rad = 0.5 * (lean_hi - lean_lo) * kWiden + 1e-12;
  return true;
}

// Prepares ground and samples about a wheel, somewhat farther than it reaches.
bool SweepProver::look_round(const SweepBox& box, const Motion& motion, int i, bool choose,
                             unsigned* reasons) noexcept {
  Near& near = near_[i];
  if (motion.forward[i] <= near.forward && motion.left[i] <= near.left &&
      motion.lean[i] <= near.lean)
    return true;
  near.forward = -1.0;
  Motion more;
  more.forward[i] = kReachAhead * motion.forward[i];
  more.left[i] = kReachAhead * motion.left[i];
  more.lean[i] = kReachAhead * motion.lean[i];
  lay_track(box, more, i, 0, kNodes - 1, &track_);
  WheelRegion whole;
  double s_lo = 0.0, s_hi = 0.0;
  if (!part_of(track_, i, track_.whole, &whole, &s_lo, &s_hi)) return false;
  const Status status = near.patch.fill(map_, settle_->footprint, box.trend[i], whole,
                                        track_.turn_step_rad, &scratch_);
  if (status != Status::kOk) {
    *reasons = status == Status::kOutsideMap ? kBorder : kNotCertified;
    return false;
  }
  near.forward = more.forward[i];
  near.left = more.left[i];
  near.lean = more.lean[i];
  near.found_m = kUnknownResidual;
  near.samples = every_sample_;
  if (!choose) return true;
  ++work_->ranges;
  const WheelTrackBounds h = near.patch.bound(whole, every_sample_, true, &left_[0]);
  if (h.status != Status::kOk) return true;  // parts of the region may be known
  near.found_m = larger(h.hi_m - s_lo, s_hi - h.lo_m);
  near.samples = left_[0];
  return true;
}

namespace {

// Two halves of a rectangle, cut across its longer side.
template <typename Rectangle>
void halve(const Rectangle& whole, Rectangle* a, Rectangle* b) noexcept {
  *a = *b = whole;
  if (whole.along_hi - whole.along_lo >= whole.across_hi - whole.across_lo) {
    a->along_hi = b->along_lo = 0.5 * (whole.along_lo + whole.along_hi);
  } else {
    a->across_hi = b->across_lo = 0.5 * (whole.across_lo + whole.across_hi);
  }
}

}  // namespace

// Bound of |H less trend - S| with the foot in a rectangle of the track, refined only as far as `target_m` asks. A
// rectangle is bounded whole and, if that is too much, by its halves; they are looked at one after the other, and
// each gets the samples that the whole has left. No part has more than any rectangle that holds it.
double SweepProver::residual(const Near& near, const Track& track, int i, const Rectangle& at,
                             double target_m) noexcept {
  struct Open {
    Rectangle at;
    int depth;
    double most_m;  // found for a rectangle that holds it
  };
  Open open[kMaxSplits + 2];
  int count = 0;
  open[count++] = {at, 0, kUnknownResidual};
  double worst = 0.0;
  while (count > 0) {
    const Open part = open[--count];
    WheelRegion region;
    double s_lo = 0.0, s_hi = 0.0;
    if (!part_of(track, i, part.at, &region, &s_lo, &s_hi)) continue;
    ++work_->ranges;
    const WheelSamples& among = part.depth == 0 ? near.samples : left_[part.depth - 1];
    const WheelTrackBounds h = near.patch.bound(region, among, false, &left_[part.depth]);
    if (h.status != Status::kOk) return kUnknownResidual;
    const double found = smaller(part.most_m, larger(h.hi_m - s_lo, s_hi - h.lo_m));
    const double side =
        larger(part.at.along_hi - part.at.along_lo, part.at.across_hi - part.at.across_lo);
    if (found <= larger(target_m, worst) || part.depth == kMaxSplits || side <= 2.0 * kSmallest_m) {
      worst = larger(worst, found);
      continue;
    }
    Open a{part.at, part.depth + 1, found}, b = a;
    halve(part.at, &a.at, &b.at);
    open[count++] = b;
    open[count++] = a;
  }
  return worst;
}

// Half of the box that wheel i needs: a bound of |T_i| over it, refined only as far as `target_m` asks.
double SweepProver::need(const SweepBox& box, const Motion& motion, int i,
                         double target_m) noexcept {
  lay_track(box, motion, i, 0, kNodes - 1, &track_);
  const double rest = motion.rest_m[i];
  if (near_[i].found_m + rest <= target_m / kWiden) return (near_[i].found_m + rest) * kWiden;
  double found = 0.0;
  Rectangle part = track_.whole;
  for (int k = 0; k < kParts; ++k) {
    const double step = (track_.whole.along_hi - track_.whole.along_lo) / kParts;
    part.along_lo = track_.whole.along_lo + k * step;
    part.along_hi = k == kParts - 1 ? track_.whole.along_hi : part.along_lo + step;
    const double target = larger(found, target_m / kWiden - rest);
    found = larger(found, residual(near_[i], track_, i, part, target));
  }
  return (found + rest) * kWiden;
}

// Largest relief along the track, refined only as far as the limit asks; more than the limit as soon as a part has.
double SweepProver::relief_bound_m(const Near& near, const Track& track, int i) const noexcept {
  const double limit = model_->limits.relief_max_m;
  struct Open {
    Rectangle at;
    int depth;
  };
  Open open[kReliefSplits + 2];
  int count = 0;
  open[count++] = {track.whole, 0};
  double worst = 0.0;
  while (count > 0 && worst <= limit) {
    const Open part = open[--count];
    WheelRegion region;
    double s_lo = 0.0, s_hi = 0.0;
    if (!part_of(track, i, part.at, &region, &s_lo, &s_hi)) continue;
    const double found = near.patch.relief_bound_m(region, limit);
    if (found <= limit || part.depth == kReliefSplits) {
      worst = larger(worst, found);
      continue;
    }
    Open a{part.at, part.depth + 1}, b = a;
    halve(part.at, &a.at, &b.at);
    open[count++] = b;
    open[count++] = a;
  }
  return worst;
}

// Limits of attitude and suspension over a share of the image.
unsigned SweepProver::beyond_limits(const SweepBox& box, double share) const noexcept {
  const SafetyLimits& l = model_->limits;
  const auto most = [&](int j) {
    return larger(std::fabs(box.q_from[j]), std::fabs(box.q_to[j])) + share * box.state_half[j];
  };
  unsigned reasons = 0;
  if (most(kDifferentialState) > l.differential_max_rad) reasons |= kDifferential;
  if (larger(most(kBogieLeft), most(kBogieRight)) > l.bogie_max_rad) reasons |= kBogie;
  // -log(cos roll cos pitch) is convex along the line, so its largest is at an end.
  const double cos_tilt_max = det_sincos(l.tilt_max_rad).cos;
  for (const double* q : {box.q_from, box.q_to}) {
    const double roll = std::fabs(q[kRoll]) + share * box.state_half[kRoll];
    const double pitch = std::fabs(q[kPitch]) + share * box.state_half[kPitch];
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
//   dU/dt = (z' - A forward - B left) + (zp sec sec)' + f (A' - B turn) + l (B' + A turn),
// where the origin moves at (forward, left) in that frame.
unsigned SweepProver::pan_beyond(SweepBox* out) const noexcept {
  const SweepBox& box = *out;
  out->clearance_m = INFINITY;
  const RoverGeometry& g = model_->geometry;
  const double turn = nodes_.turn;
  const double travel = box.sweep.turns() ? 0.0 : box.sweep.extent * (box.to - box.from);
  const SinCos aside = det_sincos(box.offset.heading_rad);
  const double way_forward = travel - turn * box.offset.across_m;
  const double way_left = turn * box.offset.along_m;
  const double moved_forward = way_forward * aside.cos + way_left * aside.sin;
  const double moved_left = way_left * aside.cos - way_forward * aside.sin;
  const double length = larger(std::fabs(g.pan_rear_x_m), std::fabs(g.pan_front_x_m));
  constexpr double kStretch_m = 0.06;
  const double shift = std::fabs(moved_forward) + std::fabs(moved_left);
  const double moved = shift + (length + g.pan_half_width_m) * std::fabs(turn);
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
    const Ball a_p = sec_p * sec_p * sec_r;  // derivatives
    const Ball a_r = a * tan_r;
    const Ball b_r = sec_r * sec_r;
    const Ball c_p = g.pan_height_m * (sec_p * sec_r * tan_p);
    const Ball c_r = g.pan_height_m * (sec_p * sec_r * tan_r);
    const Ball a_t = a_p * rate[kPitch] + a_r * rate[kRoll];
    const Ball b_t = b_r * rate[kRoll];
    const double lever = length + g.pan_half_width_m + g.pan_height_m;
    const Tube& tube = box.tube;
    const double widen =
        (lever * (half_roll + half_pitch + half * std::fabs(turn) + tube.heading_rad) +
         half * shift + tube.along_m + tube.across_m) *
            kWiden +
        kAbsolute;
    const double rim = 2.0 * (map_.resolution_m + widen);
    const double f_most = length + g.pan_height_m * magnitude(bp.sin) + rim;
    const double l_most = g.pan_half_width_m + (length + g.pan_height_m) * magnitude(br.sin) + rim;
    const double along = magnitude(Ball{rate[kHeight], 0.0} - a * moved_forward - b * moved_left) +
                         magnitude(c_p * rate[kPitch] + c_r * rate[kRoll]) +
                         f_most * magnitude(a_t - b * turn) + l_most * magnitude(b_t + a * turn);
    const double within = box.state_half[kHeight] +
                          (magnitude(c_p) + f_most * magnitude(a_p)) * box.state_half[kPitch] +
                          (magnitude(c_r) + f_most * magnitude(a_r) + l_most * magnitude(b_r)) *
                              box.state_half[kRoll];
    const double beside = tube.along_m * magnitude(a) + tube.across_m * magnitude(b) +
                          tube.heading_rad * (f_most * magnitude(b) + l_most * magnitude(a)) *
                              (1.0 + tube.heading_rad);
    const Pose2 pose = box.pose_at(t);
    const Clearance clearance = pan_clearance(map_, g, pose, center, widen);
    if (clearance.status != Status::kOk) return reason_of(clearance.status);
    const double moves = (half * along + within + beside) * kWiden + kAbsolute;
    const double error = height_error_m(map_, pose.x_m, pose.y_m, f_most + l_most);
    const double least = clearance.clearance_m - moves - error;
    out->clearance_m = smaller(least, out->clearance_m);
    if (least < model_->limits.clearance_min_m) return kClearance;
  }
  return 0;
}

// Half-widths of the states in which wheel heights are within half_m of the centre line and its tube.
static void set_states(const double half_m[kN], SweepBox* box) noexcept {
  for (int j = 0; j < kN; ++j) {
    double sum = 0.0;
    for (int i = 0; i < kN; ++i) {
      sum += std::fabs(box->y[j][i]) * (half_m[i] + std::fabs(box->chi[0][i]) * box->tube.along_m +
                                        std::fabs(box->chi[1][i]) * box->tube.across_m +
                                        std::fabs(box->chi[2][i]) * box->tube.heading_rad);
    }
    box->state_half[j] = sum * kWiden + 1e-12;
  }
}

SweepProver::Result SweepProver::prove(const Sweep& sweep, const Offset& offset, const Tube& tube,
                                       const Knot& from, const Knot& to, const SweepBox* before,
                                       const double least_half_m[kN], SweepBox* box,
                                       unsigned* reasons) noexcept {
  ++work_->boxes;
  place(sweep, offset, tube, from, to, box);
  const double length = nodes_.travel_m + 1.5 * std::fabs(nodes_.turn) + nodes_.steering_half_rad;
  // Slopes of H near by serve most stretches. Others help short ones at steep rocks.
  constexpr double kSlopes[][2] = {{0.03, 0.7}, {0.01, 2.0}, {0.003, 2.0}, {0.03, 0.3}};
  Result result = kNoBox;
  for (const auto& slopes : kSlopes) {
    result = try_box(before, least_half_m, slopes[0], slopes[1], box, reasons);
    if (result == kProven || result == kNoGround || length > kShort_m) break;
  }
  return result;
}

SweepProver::Result SweepProver::try_box(const SweepBox* before, const double least_half_m[kN],
                                         double step_m, double steepest, SweepBox* box,
                                         unsigned* reasons) noexcept {
  ground_ = Status::kOk;
  if (!linearize(box, step_m, steepest)) {
    *reasons = ground_ == Status::kOk ? Reasons{kNotCertified} : reason_of(ground_);
    return ground_ == Status::kOk ? kNoBox : kNoGround;
  }
  *reasons = kNotCertified;
  if (!prepare(*box)) return kNoBox;
  if (!precondition(box)) return kNoBox;
  sample_line(*box);

  double half[kN];
  const double apart = nodes_.travel_m + 1.3 * std::fabs(nodes_.turn) + nodes_.steering_half_rad;
  const Pose2& middle = nodes_.pose[kNodes / 2];
  const double error = height_error_m(map_, middle.x_m, middle.y_m, kNear_m);
  for (int i = 0; i < kN; ++i) {
    half[i] = larger(1.5 * nodes_.off_m[i] + 0.1 * step_m + 0.0125 * apart + 1.2 * error,
                     least_half_m[i]);
  }
  if (before != nullptr) {  // a box that holds what the one before leaves needs no proof of that
    double left[kN];
    carry(box->jacobian, before->y, before->image_m, left);
    for (int i = 0; i < kN; ++i) half[i] = larger(half[i], 1.01 * left[i]);
  }

  double needs[kN];
  double gap_before_m = 0.0;
  bool trapped = false;
  int tightened = 0;
  Result result = kNoBox;
  const int rounds = apart > kShort_m ? kMaxRounds : kMaxRoundsShort;
  for (int round = 0; round < rounds; ++round) {
    bool fits = bound_motion(*box, half, &motion_);
    bool usable = fits;
    for (int i = 0; i < kN && fits; ++i) {
      if (!look_round(*box, motion_, i, true, reasons)) {
        if ((*reasons & kBorder) != 0) return kNoGround;
        fits = usable = false;
        break;
      }
      needs[i] = need(*box, motion_, i, (trapped ? kTighter : 1.0) * half[i]);
      if (needs[i] >= kUnknownResidual) {
        *reasons = near_[i].patch.over_border() ? kBorder : kUnknown;
        return kNoGround;
      }
    }
    for (int i = 0; i < kN && fits; ++i) fits = needs[i] <= half[i];
    if (!fits) {
      if (trapped) return result;
      if (!usable) return kNoBox;
      // The gap that is left shrinks by about the same share each round.
      double gap_m = 0.0;
      for (int i = 0; i < kN; ++i) gap_m = larger(gap_m, needs[i] - half[i]);
      double more = 1.0;
      if (gap_before_m > 0.0) {
        more =
            gap_m < gap_before_m ? larger(more, smaller(1.0, gap_m / (gap_before_m - gap_m))) : 1.0;
      }
      gap_before_m = gap_m;
      for (int i = 0; i < kN; ++i) {
        if (needs[i] > kMaxHalf_m) return kNoBox;
        if (needs[i] > half[i]) half[i] = needs[i] + more * (needs[i] - half[i]) + 3e-4;
      }
      set_states(half, box);
      const unsigned why = beyond_limits(*box, kGrown);
      if (why != 0) {
        *reasons = why;
        return kBeyondLimit;
      }
      continue;
    }
    trapped = true;
    for (int i = 0; i < kN; ++i) {
      // The image of a box that is trapped is trapped, but it may hold less than it has to.
      box->half_m[i] = half[i];
      box->image_m[i] = needs[i];
    }
    set_states(needs, box);
    unsigned why = beyond_limits(*box, 1.0);
    if (why == 0) why = pan_beyond(box);
    if (why == 0 && std::isfinite(model_->limits.relief_max_m)) why = relief_beyond(box);
    if (why == 0) {
      *reasons = 0;
      return kProven;
    }
    *reasons = why;
    result = why == kRelief ? kReliefBeyond : kBeyondLimit;
    if (++tightened > kMaxTightened) return result;
    for (int i = 0; i < kN; ++i) half[i] = larger(needs[i], least_half_m[i]);
  }
  return result;
}

// Relief over all places of the image.
unsigned SweepProver::relief_beyond(SweepBox* box) noexcept {
  Motion image;
  box->relief_m = 0.0;
  if (!bound_motion(*box, box->image_m, &image)) return kNotCertified;
  for (int i = 0; i < kN; ++i) {
    unsigned reasons = kNotCertified;
    if (!look_round(*box, image, i, true, &reasons)) return reasons;
    lay_track(*box, image, i, 0, kNodes - 1, &track_);
    box->relief_m = larger(box->relief_m, relief_bound_m(near_[i], track_, i));
    if (box->relief_m > model_->limits.relief_max_m) return kRelief;
  }
  return 0;
}

bool SweepProver::map_at(const SweepBox& box, bool last, double half_m[kN]) noexcept {
  constexpr double kRefined = 0.5;
  constexpr double kProgress = 0.9;
  const int node = last ? kNodes - 1 : 0;
  if (!bound_motion(box, half_m, &motion_)) return false;
  double found[kN];
  bool progress = false;
  for (int i = 0; i < kN; ++i) {
    unsigned reasons = 0;
    if (!look_round(box, motion_, i, false, &reasons)) return false;
    lay_track(box, motion_, i, node, node, &track_);
    const double rest = motion_.rest_m[i];
    found[i] =
        (residual(near_[i], track_, i, track_.whole, kRefined * half_m[i] - rest) + rest) * kWiden;
    progress = progress || found[i] < kProgress * half_m[i];
  }
  for (int i = 0; i < kN; ++i) half_m[i] = smaller(found[i], half_m[i]);
  return progress;
}

}  // namespace mlnav
