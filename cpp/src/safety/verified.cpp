#include "mlnav/safety/verified.hpp"

#include <cmath>
#include <limits>

#include "verified_work.hpp"

namespace mlnav {

using namespace verified;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far beyond a limit a state may be and still be worth settling [0] (the state on the heights under the
// nominal wheels), and worth certifying [1] (the settled state).
constexpr double kRejectBeyond_rad[2] = {4 * kDeg, 0.1 * kDeg};
constexpr double kRejectClearance_m[2] = {0.05, 0.01};
constexpr double kRejectRelief_m = 0.002;
// An error of settling's tolerance (1e-6 m) changes every angle (rad) and height (m) by far less than this.
constexpr double kSettledWithin = 2e-5;
// Largest half-widths of a box that is worth trying.
constexpr double kMaxHalf_rad = 0.1;
constexpr double kMaxHalf_m = 0.3;
// Lean [rad] per metre of motion for which H is bounded about a wheel: with the roll, and for a steered wheel
// with its link.
constexpr double kLeanPerReach[2] = {0.5, 1.2};

// Inverse by Gauss-Jordan with row pivots; false where a pivot is nearly zero.
bool invert(double a[kN][kN], double inverse[kN][kN]) noexcept {
  for (int i = 0; i < kN; ++i) {
    for (int j = 0; j < kN; ++j) inverse[i][j] = i == j ? 1.0 : 0.0;
  }
  for (int column = 0; column < kN; ++column) {
    int pivot = column;
    for (int i = column + 1; i < kN; ++i) {
      if (std::fabs(a[i][column]) > std::fabs(a[pivot][column])) pivot = i;
    }
    if (!(std::fabs(a[pivot][column]) > 1e-6)) return false;
    for (int j = 0; j < kN && pivot != column; ++j) {
      const double x = a[pivot][j];
      a[pivot][j] = a[column][j];
      a[column][j] = x;
      const double y = inverse[pivot][j];
      inverse[pivot][j] = inverse[column][j];
      inverse[column][j] = y;
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

// Magnitude of an interval: its largest |x|.
double magnitude(Ball b) noexcept { return std::fabs(b.m) + b.r; }

}  // namespace

Fault validate(const VerifiedConfig& config) noexcept { return check_fields(config); }

Fault VerifiedChecker::init(const RoverModel& model, const VerifiedConfig& config,
                            Arena* arena) noexcept {
  Fault fault = validate(model);
  if (!fault.ok()) return fault;
  fault = validate(config);
  if (!fault.ok()) return fault;
  model_ = model;
  config_ = config;
  const Status status = make_settle_model(model.geometry, &settle_);
  if (status != Status::kOk) return {status, "wheel_radius_m"};
  return {take_memory(arena), ""};
}

Status VerifiedChecker::set_map(const GridView& map) noexcept {
  const Status status = validate_geometry(map);
  if (status == Status::kOk) map_ = map;
  return status;
}

// Limits that a state is beyond by more than `beyond_rad`.
unsigned VerifiedChecker::reasons_beyond_limits(const ChainState<double>& state,
                                                double beyond_rad) const noexcept {
  const SafetyLimits& l = model_.limits;
  unsigned reasons = 0;
  if (tilt_rad(state) > l.tilt_max_rad + beyond_rad) reasons |= kTilt;
  if (larger(std::fabs(state.bogie_left_rad), std::fabs(state.bogie_right_rad)) >
      l.bogie_max_rad + beyond_rad) {
    reasons |= kBogie;
  }
  if (std::fabs(state.differential_rad) > l.differential_max_rad + beyond_rad) {
    reasons |= kDifferential;
  }
  return reasons;
}

// The centre of the first box: the state that settling finds from the nominal wheels. False, with reasons,
// where the pose clearly cannot pass. Rejecting is always safe.
//
// The proof needs only some point close to a settled state. Where settling ends is used because a pose among
// rocks can have several settled states, and one that nothing settles to is of no use.
bool VerifiedChecker::find_centre(Work* work, const Stance& stance) const noexcept {
  work->pose = stance.pose;
  work->heading = det_sincos(stance.pose.heading_rad);
  wheel_steering(model_.geometry, stance.curvature_per_m, work->steering);
  for (int i = 0; i < kN; ++i) work->steered[i] = wheel_heading(work->heading, work->steering[i]);
  double h[kN];
  work->reasons |= reason_of(nominal_heights(map_, settle_, stance, h));
  work->report.lookups += kN;
  if (work->reasons != 0) return false;

  // The state on the heights under the nominal wheels is cheap, and often enough to reject the pose.
  ChainState<double> first{};
  if (solve_chain(settle_.linkage, h, &first, nullptr) != Status::kOk) {
    work->reasons |= kMechanical;
    return false;
  }
  const auto spare_clearance = [&](const ChainState<double>& state) {
    const Clearance clearance = pan_clearance(map_, model_.geometry, work->pose, state);
    return clearance.status == Status::kOk ? clearance.clearance_m - model_.limits.clearance_min_m
                                           : kInfinity;  // judge_box() decides
  };
  work->reasons |= reasons_beyond_limits(first, kRejectBeyond_rad[0]);
  const double spare = spare_clearance(first);
  if (spare < -kRejectClearance_m[0]) work->reasons |= kClearance;
  if (work->reasons != 0 && !work->everything) return false;

  const SettledState settled = settle(map_, settle_, stance, h);
  work->report.lookups += settled.lookups;
  if (settled.status != Status::kOk) {
    work->reasons |= reason_of(settled.status);
    return false;
  }
  work->reasons |= reasons_beyond_limits(settled.state, kRejectBeyond_rad[1]);
  if (settled.relief_max_m > model_.limits.relief_max_m + kRejectRelief_m) work->reasons |= kRelief;
  if (spare < kRejectClearance_m[0] && spare_clearance(settled.state) < -kRejectClearance_m[1]) {
    work->reasons |= kClearance;
  }
  if (work->reasons != 0 && !work->everything) return false;
  work->q[kRoll] = settled.state.roll_rad;
  work->q[kPitch] = settled.state.pitch_rad;
  work->q[kDifferentialState] = settled.state.differential_rad;
  work->q[kBogieLeft] = settled.state.bogie_left_rad;
  work->q[kBogieRight] = settled.state.bogie_right_rad;
  work->q[kHeight] = settled.state.origin_z_m;
  for (int j = 0; j < kN; ++j) work->settled[j] = work->q[j];
  return true;
}

// Sines and cosines of the centre's angles.
void VerifiedChecker::set_angles(Work* work) const noexcept {
  const double* const q = work->q;
  const double rocker[2] = {q[kPitch] + q[kDifferentialState], q[kPitch] - q[kDifferentialState]};
  const SinCos roll = det_sincos(q[kRoll]);
  const SinCos pitch = det_sincos(q[kPitch]);
  work->turns.sin_roll = roll.sin;
  work->turns.cos_roll = roll.cos;
  work->turns.sin_pitch = pitch.sin;
  work->turns.cos_pitch = pitch.cos;
  for (int side = 0; side < 2; ++side) {
    const SinCos r = det_sincos(rocker[side]);
    const SinCos b = det_sincos(rocker[side] + q[side == 0 ? kBogieLeft : kBogieRight]);
    work->turns.sin_rocker[side] = r.sin;
    work->turns.cos_rocker[side] = r.cos;
    work->turns.sin_bogie[side] = b.sin;
    work->turns.cos_bogie[side] = b.cos;
  }
}

// The axles over the box of half-widths work->half about the centre, and how far each wheel can be from its
// centre place and lean in it (mean value theorem). False for a box that is too large.
bool VerifiedChecker::bound_motion(Work* work, Reach* reach) const noexcept {
  const double* const half = work->half;
  bool small = half[kHeight] <= kMaxHalf_m;
  for (int j = 0; j < kHeight; ++j) small &= half[j] <= kMaxHalf_rad;
  if (!small) return false;
  const Turns<double>& t = work->turns;
  const double half_rocker = half[kPitch] + half[kDifferentialState];
  Turns<Ball> balls;
  const auto fill = [](double sin, double cos, double width, Ball* out_sin, Ball* out_cos) {
    const BallSinCos b = ball_sincos(sin, cos, width);
    *out_sin = b.sin;
    *out_cos = b.cos;
  };
  fill(t.sin_roll, t.cos_roll, half[kRoll], &balls.sin_roll, &balls.cos_roll);
  fill(t.sin_pitch, t.cos_pitch, half[kPitch], &balls.sin_pitch, &balls.cos_pitch);
  for (int side = 0; side < 2; ++side) {
    fill(t.sin_rocker[side], t.cos_rocker[side], half_rocker, &balls.sin_rocker[side],
         &balls.cos_rocker[side]);
    fill(t.sin_bogie[side], t.cos_bogie[side],
         half_rocker + half[side == 0 ? kBogieLeft : kBogieRight], &balls.sin_bogie[side],
         &balls.cos_bogie[side]);
  }
  place_axles<true>(model_.geometry, work->steering, balls, &work->box);
  for (int i = 0; i < kN; ++i) {
    if (!(magnitude(work->box.sin_lean[i]) < kSteepestSinLean)) return false;
    double forward = 0.0;
    double left = 0.0;
    double lean = 0.0;
    for (int j = 0; j < kN; ++j) {
      forward += magnitude(work->box.d_forward[i][j]) * half[j];
      left += magnitude(work->box.d_left[i][j]) * half[j];
      lean += magnitude(work->box.d_lean[i][j]) * half[j];
    }
    reach->forward[i] = forward * kWiden + kAbsolute;
    reach->left[i] = left * kWiden + kAbsolute;
    reach->lean[i] = lean * kWiden + kAbsolute;
  }
  return true;
}

// H about each wheel within work->reach gives the slope of G, its inverse Y, and the part of T(q) - q that
// does not depend on q: newton_step +- residual_half. False, with reasons, where H is not known; false where
// the slope has no usable inverse.
bool VerifiedChecker::linearize(Work* work) const noexcept {
  ++work->report.inner_steps;
  Axles<double> axles;
  place_axles<true>(model_.geometry, work->steering, work->turns, &axles);
  work->place(axles);
  double gap[kN], spread[kN], jacobian[kN][kN];
  for (int i = 0; i < kN; ++i) {
    const Point2 at = work->wheel(i);
    const WheelRange range = wheel_range(map_, settle_.footprint, at.x_m, at.y_m, work->steered[i],
                                         work->lean[i], work->play(i));
    ++work->report.lookups;
    if (range.status != Status::kOk) {
      work->reasons |= reason_of(range.status);
      return false;
    }
    const double c = work->heading.cos;
    const double s = work->heading.sin;
    work->slope_forward[i] = range.slope_x * c + range.slope_y * s;
    work->slope_left[i] = range.slope_y * c - range.slope_x * s;
    work->slope_lean[i] = range.slope_lean_m;
    gap[i] = work->q[kHeight] + axles.up[i] - model_.geometry.wheel_radius_m - range.height_m -
             0.5 * (range.residual_lo_m + range.residual_hi_m);
    spread[i] = 0.5 * (range.residual_hi_m - range.residual_lo_m) * kWiden + kAbsolute;
    for (int j = 0; j < kN; ++j) {
      jacobian[i][j] = axles.d_up[i][j] - work->slope_forward[i] * axles.d_forward[i][j] -
                       work->slope_left[i] * axles.d_left[i][j] -
                       work->slope_lean[i] * axles.d_lean[i][j];
    }
  }
  if (!invert(jacobian, work->y)) return false;
  for (int j = 0; j < kN; ++j) {
    work->newton_step[j] = work->residual_half[j] = 0.0;
    for (int i = 0; i < kN; ++i) {
      work->newton_step[j] -= work->y[j][i] * gap[i];
      work->residual_half[j] += std::fabs(work->y[j][i]) * spread[i];
    }
  }
  return true;
}

// |I - Y J(Q)| times the half-widths of Q: the last term of Krawczyk's operator.
void VerifiedChecker::interval_remainder(const Work& work, double out[kStates]) const noexcept {
  for (int j = 0; j < kN; ++j) out[j] = 0.0;
  for (int k = 0; k < kN; ++k) {
    Ball column[kN];
    for (int i = 0; i < kN; ++i) {
      column[i] = work.box.d_up[i][k] - work.slope_forward[i] * work.box.d_forward[i][k] -
                  work.slope_left[i] * work.box.d_left[i][k] -
                  work.slope_lean[i] * work.box.d_lean[i][k];
    }
    for (int j = 0; j < kN; ++j) {
      Ball e{j == k ? 1.0 : 0.0, 0.0};
      for (int i = 0; i < kN; ++i) e = e - work.y[j][i] * column[i];
      out[j] += magnitude(e) * work.half[k];
    }
  }
}

// Krawczyk's image of a box about the centre work->q: work->newton_step +- work->image_half about it. H is
// bounded within `reach` of each wheel. The box is somewhat larger than its image should be, and lets wheel
// heights differ by at least `enclosed_m` where the reach allows it. False where H is not known or the box is
// too large.
bool VerifiedChecker::krawczyk_image(Work* work, double reach, double enclosed_m) const noexcept {
  set_angles(work);
  for (int i = 0; i < kN; ++i) {
    const SinCos& steered = work->steering[i];
    work->reach.forward[i] = work->reach.left[i] = reach;
    work->reach.lean[i] = reach * (std::fabs(steered.cos) * kLeanPerReach[0] +
                                   std::fabs(steered.sin) * kLeanPerReach[1]);
  }
  if (!linearize(work)) return false;
  for (int j = 0; j < kN; ++j) {
    double sum = 0.0;
    for (int i = 0; i < kN; ++i) sum += std::fabs(work->y[j][i]);
    work->half[j] = larger((std::fabs(work->newton_step[j]) + work->residual_half[j]) * 1.25 + 1e-7,
                           sum * enclosed_m);
  }
  // H is bounded only within `reach`: a box in which a wheel moves farther is too large.
  Reach moves;
  if (!bound_motion(work, &moves)) return false;
  double share = work->share_of_reach(moves);
  if (share > 1.0) {
    for (int j = 0; j < kN; ++j) work->half[j] *= 0.99 / share;
    if (!bound_motion(work, &moves)) return false;
    share = work->share_of_reach(moves);
  }
  if (!(share <= 1.0)) return false;
  double remainder[kN];
  interval_remainder(*work, remainder);
  for (int j = 0; j < kN; ++j)
    work->image_half[j] = (work->residual_half[j] + remainder[j]) * kWiden + 1e-12;
  return true;
}

// Finds a certified box. Every settled state in a box Q is a fixed point of T and lies in its image; if the
// image lies in the interior of Q, there is one. The first box is as large as config_.enclosed_m asks, so
// that its image bounds the other settled states near by as well. If it fails, smaller boxes about a better
// centre prove existence (H is smooth except at kinks, and a smaller box holds fewer of them); the bounds are
// then the hull of both images.
bool VerifiedChecker::certify(Work* work) const noexcept {
  double first_lo[kN], first_hi[kN];  // image of the first box, cut to the box
  bool first_empty = true;
  double reach = 1.5 * config_.enclosed_m;
  for (int attempt = 0; attempt < config_.max_tries; ++attempt) {
    if (!krawczyk_image(work, reach, attempt == 0 ? config_.enclosed_m : 0.0)) return false;
    const double* const image_half = work->image_half;
    bool contracts = true;
    bool empty = false;
    for (int j = 0; j < kN; ++j) {
      contracts &= std::fabs(work->newton_step[j]) + image_half[j] < work->half[j];
      if (attempt > 0) continue;
      first_lo[j] = work->q[j] + larger(work->newton_step[j] - image_half[j], -work->half[j]);
      first_hi[j] = work->q[j] + smaller(work->newton_step[j] + image_half[j], work->half[j]);
      empty |= first_lo[j] > first_hi[j];
    }
    if (attempt == 0) first_empty = empty;
    for (int j = 0; j < kN; ++j) work->q[j] += work->newton_step[j];
    if (contracts) {
      for (int j = 0; j < kN; ++j) {
        double lo = work->q[j] - image_half[j];
        double hi = work->q[j] + image_half[j];
        if (attempt > 0 && !first_empty) {
          lo = smaller(lo, first_lo[j]);
          hi = larger(hi, first_hi[j]);
        }
        work->q[j] = 0.5 * (lo + hi);
        work->half[j] = 0.5 * (hi - lo) * kWiden + 1e-12;
        // The bounds must hold the state that settling ends in, up to its tolerance.
        contracts &= std::fabs(work->settled[j] - work->q[j]) <= work->half[j] + kSettledWithin;
      }
      return contracts;
    }
    reach = larger(0.3 * reach, 1e-5);
  }
  return false;
}

// Bounds and limits over the certified box.
void VerifiedChecker::judge_box(Work* work) const noexcept {
  const SafetyLimits& l = model_.limits;
  const RoverGeometry& g = model_.geometry;
  AceReport& out = work->report;
  const double* const q = work->q;
  const double* const half = work->half;
  const auto range = [&](int j) { return Bounds{q[j] - half[j], q[j] + half[j]}; };
  out.roll_rad = range(kRoll);
  out.pitch_rad = range(kPitch);
  out.differential_rad = range(kDifferentialState);
  out.bogie_left_rad = range(kBogieLeft);
  out.bogie_right_rad = range(kBogieRight);
  out.origin_z_m = range(kHeight);

  const double roll_most = std::fabs(q[kRoll]) + half[kRoll];
  const double pitch_most = std::fabs(q[kPitch]) + half[kPitch];
  const SinCos steepest_roll = det_sincos(roll_most);
  const SinCos steepest_pitch = det_sincos(pitch_most);
  const double along = steepest_pitch.sin;
  const double across = steepest_roll.sin;
  out.tilt_max_rad = det_atan2(std::sqrt(along * along +
                                         across * across * steepest_pitch.cos * steepest_pitch.cos),
                               steepest_pitch.cos * steepest_roll.cos) +
                     1e-12;
  const double bogie = larger(std::fabs(q[kBogieLeft]) + half[kBogieLeft],
                              std::fabs(q[kBogieRight]) + half[kBogieRight]);
  const double differential = std::fabs(q[kDifferentialState]) + half[kDifferentialState];
  out.margin_tilt_rad = l.tilt_max_rad - out.tilt_max_rad;
  out.margin_bogie_rad = l.bogie_max_rad - bogie;
  out.margin_differential_rad = l.differential_max_rad - differential;
  if (out.margin_tilt_rad < 0.0) work->reasons |= kTilt;
  if (out.margin_bogie_rad < 0.0) work->reasons |= kBogie;
  if (out.margin_differential_rad < 0.0) work->reasons |= kDifferential;
  if (work->reasons != 0 && !work->everything) return;

  // Clearance: that at the box's centre, less the most that the pan can move within the box. Its plane over
  // (forward, left) is  z + zp sec(pitch) sec(roll) + forward tan(pitch) sec(roll) + left tan(roll)
  // (pan_clearance). Each coefficient is monotone in |angle|, so its extremes are at the ends of the
  // intervals.
  ChainState<double> center{};
  const SinCos roll = det_sincos(q[kRoll]);
  const SinCos pitch = det_sincos(q[kPitch]);
  center.sin_roll = roll.sin;
  center.cos_roll = roll.cos;
  center.sin_pitch = pitch.sin;
  center.cos_pitch = pitch.cos;
  center.origin_z_m = q[kHeight];
  const double length = larger(std::fabs(g.pan_rear_x_m), std::fabs(g.pan_front_x_m));
  const double lever = length + g.pan_half_width_m + g.pan_height_m;
  const double widen = lever * (half[kRoll] + half[kPitch]) * kWiden + kAbsolute;
  const Clearance clearance = pan_clearance(map_, g, work->pose, center, widen);
  if (clearance.status != Status::kOk) {
    work->reasons |= reason_of(clearance.status);
    return;
  }
  const auto largest_change = [](double now, double a, double b) {
    return larger(std::fabs(a - now), std::fabs(b - now));
  };
  const SinCos roll_lo = det_sincos(q[kRoll] - half[kRoll]);
  const SinCos roll_hi = det_sincos(q[kRoll] + half[kRoll]);
  const SinCos pitch_lo = det_sincos(q[kPitch] - half[kPitch]);
  const SinCos pitch_hi = det_sincos(q[kPitch] + half[kPitch]);
  const auto cos_most = [](double angle, double h, double lo, double hi) {
    return std::fabs(angle) <= h ? 1.0 : larger(lo, hi);
  };
  const double sec_roll = 1.0 / roll.cos;
  const double sec_roll_most = 1.0 / smaller(roll_lo.cos, roll_hi.cos);
  const double sec_roll_least = 1.0 / cos_most(q[kRoll], half[kRoll], roll_lo.cos, roll_hi.cos);
  const double sec_pitch_most = 1.0 / smaller(pitch_lo.cos, pitch_hi.cos);
  const double sec_pitch_least =
      1.0 / cos_most(q[kPitch], half[kPitch], pitch_lo.cos, pitch_hi.cos);
  const double level =
      g.pan_height_m * largest_change(sec_roll / pitch.cos, sec_roll_most * sec_pitch_most,
                                      sec_roll_least * sec_pitch_least);
  const double tan_lo = pitch_lo.sin / pitch_lo.cos;
  const double tan_hi = pitch_hi.sin / pitch_hi.cos;
  const double slope_forward = largest_change(
      pitch.sin / pitch.cos * sec_roll, tan_lo * (tan_lo < 0.0 ? sec_roll_most : sec_roll_least),
      tan_hi * (tan_hi < 0.0 ? sec_roll_least : sec_roll_most));
  const double slope_left =
      largest_change(roll.sin / roll.cos, roll_lo.sin / roll_lo.cos, roll_hi.sin / roll_hi.cos);
  // Farthest cell that can support the ground under the pan, in the heading frame.
  const double rim = 2.0 * (map_.resolution_m + widen);
  const double forward_most = length + g.pan_height_m * along + rim;
  const double left_most = g.pan_half_width_m + (length + g.pan_height_m) * across + rim;
  const double moves =
      (half[kHeight] + level + forward_most * slope_forward + left_most * slope_left) * kWiden +
      kAbsolute;
  out.clearance_min_m = clearance.clearance_m - moves;
  out.margin_clearance_m = out.clearance_min_m - l.clearance_min_m;
  if (out.margin_clearance_m < 0.0) work->reasons |= kClearance;
  if (work->reasons != 0 && !work->everything) return;

  if (std::isfinite(l.relief_max_m) || work->everything) {
    double relief = 0.0;
    set_angles(work);
    Axles<double> axles;
    place_axles<true>(g, work->steering, work->turns, &axles);
    work->place(axles);
    if (!bound_motion(work, &work->reach)) {
      work->reasons |= kNotCertified;
      return;
    }
    for (int i = 0; i < kN; ++i) {
      const Point2 at = work->wheel(i);
      relief = larger(relief, relief_bound_m(map_, settle_.footprint, at.x_m, at.y_m,
                                             work->steered[i], work->lean[i], work->play(i),
                                             work->everything ? 0.0 : l.relief_max_m));
    }
    out.relief_max_m = relief;
    out.margin_relief_m = l.relief_max_m - relief;
    if (out.margin_relief_m < 0.0) work->reasons |= kRelief;
  }
}

AceReport VerifiedChecker::check_pose(const Stance& stance, bool everything) const noexcept {
  Work work;
  work.everything = everything;
  AceReport& out = work.report;
  if (find_centre(&work, stance)) {
    if (certify(&work)) {
      judge_box(&work);
    } else if (work.reasons == 0) {
      work.reasons = kNotCertified;
    }
  }
  out.reasons = static_cast<Reasons>(work.reasons);
  out.safe = work.reasons == 0;
  return out;
}

bool VerifiedChecker::check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept {
  AceReport out;
  if (!sweep_ok(sweep)) {
    out.reasons = kBadPose;
  } else if (sweep.is_pose() && model_.tracking.none() && map_.exact()) {
    out = check_pose(sweep.begin, false);
  } else {
    out = prove_sweep(sweep);
  }
  *reasons = out.reasons;
  work->boxes += out.inner_steps;
  work->lookups += out.lookups;
  work->ranges += out.ranges;
  return out.safe;
}

AceReport VerifiedChecker::report(const Sweep& sweep) const noexcept {
  if (!sweep_ok(sweep)) {
    AceReport out;
    out.reasons = kBadPose;
    return out;
  }
  const bool pose = sweep.is_pose() && model_.tracking.none() && map_.exact();
  return pose ? check_pose(sweep.begin, true) : prove_sweep(sweep);
}

}  // namespace mlnav
