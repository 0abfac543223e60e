#include "link_bounds.hpp"

#include <initializer_list>

namespace mlnav {

using namespace verified;

LinkBounds bound_links(const RoverGeometry& geometry, int wheel, const Turns<double>& at,
                       SinCos steered, double steering_half_rad, double slope_forward,
                       double slope_left, double slope_lean_m, const double line_rad[kLinkAngles],
                       const double box_rad[kLinkAngles]) noexcept {
  const double r = geometry.wheel_radius_m;
  const int side = wheel / 3;
  const int place = wheel % 3;
  const double track = place == 0   ? geometry.front_y_m
                       : place == 1 ? geometry.middle_y_m
                                    : geometry.rear_y_m;
  const BallSinCos steering = ball_sincos(steered.sin, steered.cos, steering_half_rad);
  const auto along = [](double sin, double cos, double x, double z) { return x * cos - z * sin; };
  const auto up = [](double sin, double cos, double x, double z) { return x * sin + z * cos; };
  const auto cube = [](double x) { return x * x * x; };
  const auto magnitude = [](Ball b) { return std::fabs(b.m) + b.r; };
  LinkBounds out;
  struct Link {
    double x, z, length;
  } link[kLinkAngles] = {};
  link[kBody] = {
      along(at.sin_pitch, at.cos_pitch, geometry.rocker_pivot_x_m, geometry.rocker_pivot_z_m),
      up(at.sin_pitch, at.cos_pitch, geometry.rocker_pivot_x_m, geometry.rocker_pivot_z_m), 0.0};
  const double rocker_x =
      (place == 0 ? geometry.front_x_m : geometry.bogie_pivot_x_m) - geometry.rocker_pivot_x_m;
  const double rocker_z = (place == 0 ? r : geometry.bogie_pivot_z_m) - geometry.rocker_pivot_z_m;
  link[kRocker] = {along(at.sin_rocker[side], at.cos_rocker[side], rocker_x, rocker_z),
                   up(at.sin_rocker[side], at.cos_rocker[side], rocker_x, rocker_z), 0.0};
  if (place > 0) {
    const double x = (place == 1 ? 0.0 : geometry.rear_x_m) - geometry.bogie_pivot_x_m;
    const double z = r - geometry.bogie_pivot_z_m;
    link[kBogieLink] = {along(at.sin_bogie[side], at.cos_bogie[side], x, z),
                        up(at.sin_bogie[side], at.cos_bogie[side], x, z), 0.0};
  }
  double w = 0.0;  // height in the plane
  for (int a = kBody; a < kLinkAngles; ++a) {
    link[a].length = std::fabs(link[a].x) + std::fabs(link[a].z);
    w += link[a].z;
  }
  const double y = side == 0 ? track : -track;
  const double above = w * at.cos_roll + y * at.sin_roll;
  const double left = y * at.cos_roll - w * at.sin_roll;
  const double level = at.cos_roll + slope_left * at.sin_roll;
  const double lever = std::fabs(at.sin_roll - slope_left * at.cos_roll);
  // Products of two turnings, at least one of them of the box; and of three.
  const auto two = [&](int a) { return box_rad[a] * (0.5 * box_rad[a] + line_rad[a]); };
  const auto three = [&](double whole, double of_line) {
    return (cube(whole) - cube(of_line)) / 6.0;
  };
  const double rolled = line_rad[kRolled] + box_rad[kRolled];
  double lift = 0.0, lift_line = 0.0;  // first-order changes of w
  double second = two(kRolled) * std::fabs(above - slope_left * left);
  double third = std::fabs(y) * three(rolled, line_rad[kRolled]);
  double second_f = 0.0, second_l = two(kRolled) * std::fabs(left);
  for (int a = kBody; a < kLinkAngles; ++a) {
    lift += std::fabs(link[a].x) * box_rad[a];
    lift_line += std::fabs(link[a].x) * line_rad[a];
    second += two(a) * std::fabs(slope_forward * link[a].x - level * link[a].z);
    second_f += two(a) * std::fabs(link[a].x);
    second_l += two(a) * std::fabs(link[a].z * at.sin_roll);
    third +=
        link[a].length * three(line_rad[a] + box_rad[a] + rolled, line_rad[a] + line_rad[kRolled]);
  }
  const double crossed =
      lift * (box_rad[kRolled] + line_rad[kRolled]) + lift_line * box_rad[kRolled];
  second += lever * crossed;
  second_l += std::fabs(at.cos_roll) * crossed;

  // The lean, and the foot's offset r sin(lean) that comes with it, by roll and the angle of the wheel's link.
  const int own = place == 0 ? kRocker : kBogieLink;
  const double sin_link = place == 0 ? at.sin_rocker[side] : at.sin_bogie[side];
  const double cos_link = place == 0 ? at.cos_rocker[side] : at.cos_bogie[side];
  double by_angle[2] = {}, radius_sin[2] = {}, radius_lean[2] = {}, sin_1 = 0.0;
  for (const bool wide : {false, true}) {
    const double half_roll = line_rad[kRolled] + (wide ? box_rad[kRolled] : 0.0);
    const double half_link = line_rad[own] + (wide ? box_rad[own] : 0.0);
    const BallSinCos roll = ball_sincos(at.sin_roll, at.cos_roll, half_roll);
    const BallSinCos own_link = ball_sincos(sin_link, cos_link, half_link);
    const Ball sin = steering.cos * roll.sin - steering.sin * (own_link.sin * roll.cos);
    if (!(magnitude(sin) < kSteepestSinLean)) return out;
    const Ball per_cos = secant_of_sine(sin);
    const Ball d[2] = {steering.cos * roll.cos + steering.sin * (own_link.sin * roll.sin),
                       -(steering.sin * (own_link.cos * roll.cos))};
    for (int k = 0; k < 2; ++k) {
      const Ball lean = d[k] * per_cos;
      radius_sin[k] += 0.5 * d[k].r;
      radius_lean[k] += 0.5 * lean.r;
      by_angle[k] = box_rad[k == 0 ? kRolled : own];
      if (wide) sin_1 += magnitude(d[k]) * by_angle[k];
    }
  }
  double sin_2 = 0.0, lean_2 = 0.0;
  for (int k = 0; k < 2; ++k) {
    sin_2 += radius_sin[k] * by_angle[k];
    lean_2 += radius_lean[k] * by_angle[k];
  }
  const double aside = std::fabs(slope_forward * steered.sin - slope_left * steered.cos) * r;
  second +=
      aside * sin_2 + std::fabs(slope_lean_m) * lean_2 +
      r * (std::fabs(slope_forward) * steering.sin.r + std::fabs(slope_left) * steering.cos.r) *
          sin_1;
  second_f += r * (std::fabs(steered.sin) * sin_2 + steering.sin.r * sin_1);
  second_l += r * (std::fabs(steered.cos) * sin_2 + steering.cos.r * sin_1);
  third *= kWiden;
  out.s_m = second + (1.0 + std::fabs(slope_forward) + std::fabs(slope_left)) * third;
  out.forward_m = second_f + third;
  out.left_m = second_l + third;
  out.lean_rad = lean_2;
  out.usable = true;
  return out;
}

}  // namespace mlnav
