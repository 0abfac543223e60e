// The rocker-bogie chain: six wheel contact heights -> attitude, suspension angles, body height, and wheel
// positions. It is templated on the number type T: settling uses float64, fixed_box evaluates its corners in
// four float32 lanes. T needs + - * and an overload of chain_sqrt(T).
//
// Convention. The body is turned by pitch in its own x-z plane (nose up positive: (x, z) -> (x cos - z sin, x
// sin + z cos)), then rolled about the horizontal heading axis (left side up positive), then turned to its
// heading: R = Rz(heading) Rx(roll) Ry(-pitch). So each side's linkage moves in a plane that contains the
// heading axis and is tilted from the vertical by the roll. With q the height of a wheel's contact measured
// inside that plane,
//
//   q_i = (h_i + r - s y_i sin(roll)) / cos(roll) - r,      s = +1 left, -1 right,
//
// both sides follow the planar closed form (Otsu et al. 2019; F, M, R: front, middle and rear axle, B: bogie
// pivot, D: differential pivot, L: distances)
//
//   sin(a_bogie) = (q_m - q_r) / L_MR
//   z_B          = q_m + r + x_B sin(a_bogie) + (z_B0 - r) cos(a_bogie)
//   a_rocker     = asin((q_f + r - z_B) / L_FB) - asin((r - z_B0) / L_FB)
//   z_D          = q_f + r + (x_D - x_F) sin(a_rocker) + (z_D0 - r) cos(a_rocker)
//
// and the roll is the one for which both sides place the differential axis at the same in-plane height z_D.
// Then pitch = (a_rocker,L + a_rocker,R) / 2, differential = (a_rocker,L - a_rocker,R) / 2, bogie angle =
// a_bogie - a_rocker, and the origin is at z_D cos(roll) - (x_D sin(pitch) + z_D0 cos(pitch)) cos(roll).
#pragma once

#include <cmath>

#include "mlnav/math.hpp"
#include "mlnav/rover/model.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

inline double chain_sqrt(double x) noexcept { return std::sqrt(x); }
inline double chain_asin(double x) noexcept { return det_asin(x); }
// Whether x, or every value that x represents, is a valid sine.
inline bool chain_is_sine(double x) noexcept { return x >= -1.0 && x <= 1.0; }

// Constants of the chain, derived once from the geometry.
struct Linkage {
  explicit Linkage(const RoverGeometry& geometry = {}) noexcept;

  RoverGeometry g;
  double bogie_base_m;          // middle to rear axle
  double per_bogie_base;        // 1 / bogie_base_m
  double rocker_base_m;         // |front axle - bogie pivot|
  double per_rocker_base;       // 1 / rocker_base_m
  double front_from_bogie_sin;  // sine of the angle of (front axle - bogie pivot) at rest
  double front_from_bogie_cos;
  double front_from_bogie_rad;
  double roll_arm_m;  // effective half track of the differential: d z_D,side = arm * d roll
};

// One side in its own plane.
template <typename T>
struct SideState {
  T sin_bogie, cos_bogie;    // bogie, from the in-plane horizontal
  T sin_rocker, cos_rocker;  // rocker, likewise
  T rocker_arg;              // sine of the angle of (front axle - bogie pivot)
  T pivot_z_m;               // in-plane height of the rocker (differential) pivot, z_D
};

// False when the wheel heights are beyond what the linkage can take (an asin argument outside
// [-1, 1]); `side` is then not to be used.
template <typename T>
bool solve_side(const Linkage& k, T q_front, T q_middle, T q_rear, SideState<T>* side) noexcept {
  const RoverGeometry& g = k.g;
  const double r = g.wheel_radius_m;
  side->sin_bogie = (q_middle - q_rear) * k.per_bogie_base;
  if (!chain_is_sine(side->sin_bogie)) return false;
  side->cos_bogie = chain_sqrt(1.0 - side->sin_bogie * side->sin_bogie);
  const T bogie_pivot_z = q_middle + r + g.bogie_pivot_x_m * side->sin_bogie +
                          (g.bogie_pivot_z_m - r) * side->cos_bogie;
  side->rocker_arg = (q_front + r - bogie_pivot_z) * k.per_rocker_base;
  if (!chain_is_sine(side->rocker_arg)) return false;
  const T cos_arg = chain_sqrt(1.0 - side->rocker_arg * side->rocker_arg);
  side->sin_rocker = side->rocker_arg * k.front_from_bogie_cos - cos_arg * k.front_from_bogie_sin;
  side->cos_rocker = cos_arg * k.front_from_bogie_cos + side->rocker_arg * k.front_from_bogie_sin;
  side->pivot_z_m = q_front + r + (g.rocker_pivot_x_m - g.front_x_m) * side->sin_rocker +
                    (g.rocker_pivot_z_m - r) * side->cos_rocker;
  return true;
}

template <typename T>
T rocker_rad(const Linkage& k, const SideState<T>& side) noexcept {
  return chain_asin(side.rocker_arg) - k.front_from_bogie_rad;
}

// Both sides, at a given roll. Heights in Wheel order, relative to a datum near the rover.
template <typename T>
bool solve_sides(const Linkage& k, const T h[kWheels], T sin_roll, T cos_roll, SideState<T>* left,
                 SideState<T>* right) noexcept {
  const RoverGeometry& g = k.g;
  const double r = g.wheel_radius_m;
  const double y[3] = {g.front_y_m, g.middle_y_m, g.rear_y_m};
  const T per_cos = 1.0 / cos_roll;
  T q_left[3], q_right[3];
  for (int i = 0; i < 3; ++i) {
    q_left[i] = (h[i] + r - y[i] * sin_roll) * per_cos - r;
    q_right[i] = (h[3 + i] + r + y[i] * sin_roll) * per_cos - r;
  }
  return solve_side(k, q_left[0], q_left[1], q_left[2], left) &&
         solve_side(k, q_right[0], q_right[1], q_right[2], right);
}

// Attitude and suspension of the rover on six wheel heights.
template <typename T>
struct ChainState {
  T roll_rad, pitch_rad;  // left side up, nose up
  T differential_rad;     // left rocker relative to the body; the right one is its negative
  T bogie_left_rad, bogie_right_rad;  // relative to their rockers
  T origin_z_m;                       // rover frame's origin
  T sin_roll, cos_roll, sin_pitch, cos_pitch;
};

// Horizontal axle positions relative to the rover's origin, in the heading frame (forward, left), and the
// angle of the link that each wheel is mounted on (front: rocker, middle and rear: bogie).
template <typename T>
struct WheelPositions {
  T forward_m[kWheels];
  T left_m[kWheels];
  T sin_link[kWheels];  // from the horizontal, inside the side's plane
};

// Sine of a wheel's lean, the elevation of its axle's left end. In the frame of its link, a steered axle
// points along (-sin, cos, 0); the link is turned by its angle, then by the roll.
template <typename T>
T sin_lean(SinCos steering, T sin_roll, T cos_roll, T sin_link) noexcept {
  return steering.cos * sin_roll - steering.sin * (sin_link * cos_roll);
}
// Largest sine of lean that is considered; a rover has fallen over before.
inline constexpr double kSteepestSinLean = 0.95;

namespace detail {

// Axles of one side, relative to the rover's origin and inside its plane: (along, up).
template <typename T>
void side_axles(const Linkage& k, const SideState<T>& side, T sin_pitch, T cos_pitch, T along[3],
                T up[3]) noexcept {
  const RoverGeometry& g = k.g;
  const double r = g.wheel_radius_m;
  const auto turn = [](T sin_a, T cos_a, double x, double z, T* out_x, T* out_z) {
    *out_x = x * cos_a - z * sin_a;
    *out_z = x * sin_a + z * cos_a;
  };
  T pivot_x, pivot_z, x, z, bogie_x, bogie_z;
  turn(sin_pitch, cos_pitch, g.rocker_pivot_x_m, g.rocker_pivot_z_m, &pivot_x, &pivot_z);
  turn(side.sin_rocker, side.cos_rocker, g.front_x_m - g.rocker_pivot_x_m, r - g.rocker_pivot_z_m,
       &x, &z);
  along[0] = pivot_x + x;
  up[0] = pivot_z + z;
  turn(side.sin_rocker, side.cos_rocker, g.bogie_pivot_x_m - g.rocker_pivot_x_m,
       g.bogie_pivot_z_m - g.rocker_pivot_z_m, &x, &z);
  bogie_x = pivot_x + x;
  bogie_z = pivot_z + z;
  turn(side.sin_bogie, side.cos_bogie, -g.bogie_pivot_x_m, r - g.bogie_pivot_z_m, &x, &z);
  along[1] = bogie_x + x;
  up[1] = bogie_z + z;
  turn(side.sin_bogie, side.cos_bogie, g.rear_x_m - g.bogie_pivot_x_m, r - g.bogie_pivot_z_m, &x,
       &z);
  along[2] = bogie_x + x;
  up[2] = bogie_z + z;
}

}  // namespace detail

template <typename T>
WheelPositions<T> wheel_positions(const Linkage& k, const SideState<T>& left,
                                  const SideState<T>& right, const ChainState<T>& state) noexcept {
  const RoverGeometry& g = k.g;
  const double y[3] = {g.front_y_m, g.middle_y_m, g.rear_y_m};
  WheelPositions<T> p;
  T along[3], up[3];
  detail::side_axles(k, left, state.sin_pitch, state.cos_pitch, along, up);
  for (int i = 0; i < 3; ++i) {
    p.sin_link[i] = i == 0 ? left.sin_rocker : left.sin_bogie;
    p.sin_link[3 + i] = i == 0 ? right.sin_rocker : right.sin_bogie;
    p.forward_m[i] = along[i];
    p.left_m[i] = y[i] * state.cos_roll - up[i] * state.sin_roll;
  }
  detail::side_axles(k, right, state.sin_pitch, state.cos_pitch, along, up);
  for (int i = 0; i < 3; ++i) {
    p.forward_m[3 + i] = along[i];
    p.left_m[3 + i] = -y[i] * state.cos_roll - up[i] * state.sin_roll;
  }
  return p;
}

// Exact state of the rover on six wheel contact heights (world, Wheel order): roll by a safeguarded
// secant iteration to |z_D,left - z_D,right| < 1e-12 m. kOutOfMechanicalRange or kNotConverged
// otherwise. `positions` may be null.
Status solve_chain(const Linkage& k, const double heights_m[kWheels], ChainState<double>* state,
                   WheelPositions<double>* positions) noexcept;

// Tilt of the body's z axis from the vertical.
double tilt_rad(const ChainState<double>& state) noexcept;

}  // namespace mlnav
