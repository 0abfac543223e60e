#include "mlnav/rover/model.hpp"

#include <cmath>
#include <limits>

namespace mlnav {
Fault validate(const RoverModel& model) noexcept {
  const RoverGeometry& g = model.geometry;
  const SafetyLimits& l = model.limits;
  const double r = g.wheel_radius_m;
  constexpr double kSize = 20.0;            // largest size of a rover
  constexpr double kSmall = 1e-3;           // smallest size of a part
  constexpr double kAngle = 44.999 * kDeg;  // verdicts compare sines of doubled angles
  const Range ranges[] = {
      {r, kSmall, 0.8, "wheel_radius_m"},
      {g.wheel_width_m, kSmall, 1.6, "wheel_width_m"},
      {g.front_x_m, kSmall, kSize, "front_x_m"},
      {g.rear_x_m, -kSize, -kSmall, "rear_x_m"},
      {g.front_y_m, kSmall, kSize, "front_y_m"},
      {g.middle_y_m, kSmall, kSize, "middle_y_m"},
      {g.rear_y_m, kSmall, kSize, "rear_y_m"},
      {g.rocker_pivot_x_m, g.rear_x_m, g.front_x_m, "rocker_pivot_x_m"},
      {g.rocker_pivot_z_m, r, kSize, "rocker_pivot_z_m"},
      {g.bogie_pivot_x_m, g.rear_x_m, 0.0, "bogie_pivot_x_m"},
      {g.bogie_pivot_z_m, r, kSize, "bogie_pivot_z_m"},
      {g.pan_rear_x_m, -kSize, g.pan_front_x_m - kSmall, "pan_rear_x_m"},
      {g.pan_front_x_m, g.pan_rear_x_m + kSmall, kSize, "pan_front_x_m"},
      {g.pan_half_width_m, kSmall, kSize, "pan_half_width_m"},
      {g.pan_height_m, kSmall, kSize, "pan_height_m"},
      {l.clearance_min_m, 0.0, g.pan_height_m, "clearance_min_m"},
      {l.tilt_max_rad, kSmall, kAngle, "tilt_max_rad"},
      {l.bogie_max_rad, kSmall, kAngle, "bogie_max_rad"},
      {l.differential_max_rad, kSmall, kAngle, "differential_max_rad"},
      {l.wheel_drop_max_m, kSmall, kSize, "wheel_drop_max_m"},
      {l.relief_max_m, kSmall, std::numeric_limits<double>::infinity(), "relief_max_m"},
  };
  return out_of_range(ranges);
}

WheelPlan wheel_plan(const RoverGeometry& g) noexcept {
  return {{g.front_x_m, 0.0, g.rear_x_m, g.front_x_m, 0.0, g.rear_x_m},
          {g.front_y_m, g.middle_y_m, g.rear_y_m, -g.front_y_m, -g.middle_y_m, -g.rear_y_m}};
}

void wheel_steering(const RoverGeometry& geometry, double curvature_per_m,
                    SinCos steering[kWheels]) noexcept {
  const WheelPlan plan = wheel_plan(geometry);
  // A radius below a micrometre counts as that: the squares below would overflow, and the wheels would have
  // no heading.
  const bool in_place = std::fabs(curvature_per_m) > 1e6;
  for (int i = 0; i < kWheels; ++i) {
    steering[i] = {0.0, 1.0};
    if (plan.x_m[i] == 0.0 || curvature_per_m == 0.0) continue;
    // Velocity of the wheel in the rover frame, for a rotation about (0, 1 / curvature).
    const double forward = in_place ? -plan.y_m[i] : 1.0 - curvature_per_m * plan.y_m[i];
    const double left = in_place ? plan.x_m[i] : curvature_per_m * plan.x_m[i];
    // A wheel that would roll backwards is steered the opposite way, within +-90 deg.
    const double scale = (forward < 0.0 ? -1.0 : 1.0) / std::sqrt(forward * forward + left * left);
    steering[i] = {left * scale, forward * scale};
  }
}

SinCos wheel_heading(SinCos rover_heading, SinCos steering) noexcept {
  return {rover_heading.sin * steering.cos + rover_heading.cos * steering.sin,
          rover_heading.cos * steering.cos - rover_heading.sin * steering.sin};
}

}  // namespace mlnav
