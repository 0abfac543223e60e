#include "mlnav/rover/sweep.hpp"

#include <cmath>

namespace mlnav {

bool Sweep::turns() const noexcept { return std::isinf(begin.curvature_per_m); }

Sweep::Sweep(const Stance& from, double how_far) noexcept : begin(from), extent(how_far) {
  end_pose = from.pose;
  if (turns() && !resteers) {
    end_pose.heading_rad += extent;
  } else if (extent != 0.0) {
    end_pose = along_arc(from.pose, from.curvature_per_m, extent);
  }
}

Pose2 Sweep::pose_at(double fraction) const noexcept {
  if (extent == 0.0) return begin.pose;
  if (fraction == 1.0) return end_pose;
  const double moved = extent * fraction;
  if (!turns()) return along_arc(begin.pose, begin.curvature_per_m, moved);
  return {begin.pose.x_m, begin.pose.y_m, begin.pose.heading_rad + moved};
}

void Sweep::steering_at(const RoverGeometry& geometry, double fraction,
                        SinCos steering[kWheels]) const noexcept {
  // Both ends are to the bit what sweeps that meet them have.
  wheel_steering(geometry, resteers && fraction == 0.0 ? steered_from_per_m : begin.curvature_per_m,
                 steering);
  if (!resteers || fraction == 0.0 || fraction == 1.0) return;
  SinCos from[kWheels];
  wheel_steering(geometry, steered_from_per_m, from);
  for (int i = 0; i < kWheels; ++i) {
    const double angle = det_atan2(from[i].sin, from[i].cos);
    const double to = det_atan2(steering[i].sin, steering[i].cos);
    steering[i] = det_sincos(angle + fraction * (to - angle));
  }
}

double Sweep::length_m(const RoverGeometry& geometry) const noexcept {
  if (turns() && !resteers) {
    const WheelPlan plan = wheel_plan(geometry);
    double square_m2 = 0.0;
    for (int i = 0; i < kWheels; ++i) {
      const double of_wheel = plan.x_m[i] * plan.x_m[i] + plan.y_m[i] * plan.y_m[i];
      square_m2 = of_wheel > square_m2 ? of_wheel : square_m2;
    }
    return std::fabs(extent) * std::sqrt(square_m2);
  }
  if (!resteers) return std::fabs(extent);
  SinCos from[kWheels], to[kWheels];
  steering_at(geometry, 0.0, from);
  steering_at(geometry, 1.0, to);
  double widest = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    const double turned = std::fabs(det_atan2(to[i].sin * from[i].cos - to[i].cos * from[i].sin,
                                              to[i].cos * from[i].cos + to[i].sin * from[i].sin));
    widest = turned > widest ? turned : widest;
  }
  // The lower half of a wheel reaches less than 1.7 radii to each side of its steering axis.
  constexpr double kRadii = 1.7;
  return kRadii * geometry.wheel_radius_m * widest;
}

Pose2 moved(const Pose2& pose, const Offset& by) noexcept {
  const SinCos h = det_sincos(pose.heading_rad);
  return {pose.x_m + by.along_m * h.cos - by.across_m * h.sin,
          pose.y_m + by.along_m * h.sin + by.across_m * h.cos, pose.heading_rad + by.heading_rad};
}

}  // namespace mlnav
