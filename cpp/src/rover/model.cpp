#include "mlnav/rover/model.hpp"

#include <cmath>
#include <limits>

namespace mlnav {

Fault validate(const RoverGeometry& geometry) noexcept { return check_fields(geometry); }

Fault validate(const SafetyLimits& limits) noexcept { return check_fields(limits); }

Fault validate(const Tube& tube) noexcept { return check_fields(tube); }

Fault validate(const RoverModel& model) noexcept {
  Fault fault = validate(model.geometry);
  if (!fault.ok()) return fault;
  const Range clearance[] = {
      {model.limits.clearance_min_m, 0.0, model.geometry.pan_height_m, "clearance_min_m", "m"}};
  fault = out_of_range(clearance);
  if (!fault.ok()) return fault;
  fault = validate(model.limits);
  return fault.ok() ? validate(model.tracking) : fault;
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
