#include "mlnav/rover/kinematics.hpp"

#include <initializer_list>

namespace mlnav {

Linkage::Linkage(const RoverGeometry& geometry) noexcept : g(geometry) {
  const double r = g.wheel_radius_m;
  const double dx = g.front_x_m - g.bogie_pivot_x_m;
  const double dz = r - g.bogie_pivot_z_m;
  bogie_base_m = -g.rear_x_m;
  per_bogie_base = 1.0 / bogie_base_m;
  rocker_base_m = std::sqrt(dx * dx + dz * dz);
  per_rocker_base = 1.0 / rocker_base_m;
  front_from_bogie_sin = dz / rocker_base_m;
  front_from_bogie_cos = dx / rocker_base_m;
  front_from_bogie_rad = det_asin(front_from_bogie_sin);

  // Rise of the pivot per rise of each wheel, at rest: virtual work of three wheels on a rigid two-lever
  // chain. The roll arm is the mean half track with these weights (1.10 m for the Perseverance-class default;
  // the half track of the pivots themselves, 0.80 m, would overstate roll by a factor of 1.38).
  const double front = (g.rocker_pivot_x_m - g.bogie_pivot_x_m) / dx;
  const double middle = (1.0 - front) * (g.bogie_pivot_x_m - g.rear_x_m) / bogie_base_m;
  const double rear = 1.0 - front - middle;
  roll_arm_m = front * g.front_y_m + middle * g.middle_y_m + rear * g.rear_y_m;
}

namespace {

constexpr int kMaxRollSteps = 24;
constexpr int kMaxHalvings = 8;
constexpr double kPivotTolerance_m = 1e-12;
constexpr double kSteepest = 0.95;  // sine of the largest roll: a rover falls over before

}  // namespace

Status solve_chain(const Linkage& k, const double heights_m[kWheels], ChainState<double>* state,
                   WheelPositions<double>* positions) noexcept {
  const RoverGeometry& g = k.g;
  // Heights relative to their mean: the chain divides heights by cos(roll), which would lose digits far from
  // the datum.
  double mean = 0.0;
  for (int i = 0; i < kWheels; ++i) mean += heights_m[i];
  mean /= kWheels;
  double h[kWheels];
  for (int i = 0; i < kWheels; ++i) h[i] = heights_m[i] - mean;
  if (!std::isfinite(mean)) return Status::kOutOfMechanicalRange;

  // First guess: the roll of the plane of best fit to the six heights. (A level start would put a strongly
  // rolled rover beyond the range of its linkage.)
  const double y[kWheels] = {g.front_y_m,  g.middle_y_m,  g.rear_y_m,
                             -g.front_y_m, -g.middle_y_m, -g.rear_y_m};
  double moment = 0.0;
  double inertia = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    moment += y[i] * h[i];
    inertia += y[i] * y[i];
  }
  const double guess = moment / inertia;
  if (!(guess > -kSteepest && guess < kSteepest)) return Status::kOutOfMechanicalRange;
  SideState<double> left{}, right{};
  double sin_roll = 0.0;
  double cos_roll = 1.0;
  const auto solve_at = [&](double sine) {
    if (!(sine > -kSteepest && sine < kSteepest)) return false;
    sin_roll = sine;
    cos_roll = std::sqrt(1.0 - sine * sine);
    return solve_sides(k, h, sin_roll, cos_roll, &left, &right);
  };
  // With strongly turned bogies the guess can be beyond the range of the linkage while the solution is not.
  bool started = false;
  for (const double scale : {1.0, 0.8, 1.2, 0.5, 1.5}) {
    started = solve_at(scale * guess);
    if (started) break;
  }
  if (!started) return Status::kOutOfMechanicalRange;

  // Secant iteration in sin(roll) on the difference of the pivots' heights. Its slope is close to -2 arm,
  // which is used for the first step and whenever the secant's slope is unreliable.
  double gap = left.pivot_z_m - right.pivot_z_m;
  double slope = -2.0 * k.roll_arm_m;
  bool converged = std::fabs(gap) < kPivotTolerance_m;
  for (int step = 0; step < kMaxRollSteps && !converged; ++step) {
    const double from = sin_roll;
    double moved = -gap / slope;
    int halvings = 0;
    while (!solve_at(from + moved)) {
      if (++halvings > kMaxHalvings) return Status::kOutOfMechanicalRange;
      moved *= 0.5;
    }
    const double new_gap = left.pivot_z_m - right.pivot_z_m;
    const double secant = (new_gap - gap) / moved;
    const double plain = -2.0 * k.roll_arm_m / (cos_roll * cos_roll);
    slope = secant < 0.25 * plain && secant > 4.0 * plain ? secant : plain;
    gap = new_gap;
    // Steps of a few ulp of sin(roll) change nothing.
    converged = std::fabs(gap) < kPivotTolerance_m;
  }
  if (!converged) return Status::kNotConverged;

  ChainState<double> s{};
  s.sin_roll = sin_roll;
  s.cos_roll = cos_roll;
  s.roll_rad = det_asin(sin_roll);
  const double rocker_left = rocker_rad(k, left);
  const double rocker_right = rocker_rad(k, right);
  s.pitch_rad = 0.5 * (rocker_left + rocker_right);
  s.differential_rad = 0.5 * (rocker_left - rocker_right);
  s.bogie_left_rad = det_asin(left.sin_bogie) - rocker_left;
  s.bogie_right_rad = det_asin(right.sin_bogie) - rocker_right;
  const SinCos pitch = det_sincos(s.pitch_rad);
  s.sin_pitch = pitch.sin;
  s.cos_pitch = pitch.cos;
  const double pivot_z = 0.5 * (left.pivot_z_m + right.pivot_z_m);
  s.origin_z_m = mean + cos_roll * (pivot_z - g.rocker_pivot_x_m * s.sin_pitch -
                                    g.rocker_pivot_z_m * s.cos_pitch);
  *state = s;
  if (positions != nullptr) *positions = wheel_positions(k, left, right, s);
  return Status::kOk;
}

double tilt_rad(const ChainState<double>& state) noexcept {
  // acos loses half its digits near zero, so the horizontal part of the body's z axis is used,
  // (-sin pitch, -cos pitch sin roll).
  const double along = state.sin_pitch;
  const double across = state.cos_pitch * state.sin_roll;
  return det_atan2(std::sqrt(along * along + across * across), state.cos_pitch * state.cos_roll);
}

}  // namespace mlnav
