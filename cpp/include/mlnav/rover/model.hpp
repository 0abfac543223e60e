// A six-wheel rocker-bogie rover: geometry and operating limits. The default is Perseverance-class
// (dimensions of NASA/JPL's public rover description; wheel radius from NASA).
//
// Rover frame: x forward, y left, z up, origin midway between the middle wheels' contact points, all
// joints at zero. The rocker carries the front wheel and the bogie pivot; the bogie carries the middle
// and the rear wheel. Left and right sides mirror each other.
#pragma once

#include <limits>

#include "mlnav/fields.hpp"
#include "mlnav/math.hpp"
#include "mlnav/status.hpp"

namespace mlnav {

struct RoverGeometry {
  double wheel_radius_m = 0.263;
  double wheel_width_m = 0.335;
  double front_x_m = 1.185;
  double rear_x_m = -1.075;
  double front_y_m = 1.0625;
  double middle_y_m = 1.1845;
  double rear_y_m = 1.0625;
  double rocker_pivot_x_m = 0.304;
  double rocker_pivot_z_m = 0.893;
  double bogie_pivot_x_m = -0.450;
  double bogie_pivot_z_m = 0.663;
  double pan_rear_x_m = -1.18;
  double pan_front_x_m = 0.90;
  double pan_half_width_m = 0.775;
  double pan_height_m = 0.60;
};

inline constexpr double kMaxPart_m = 20.0;  // no rover is larger
inline constexpr double kMinPart_m = 1e-3;  // and no part of it smaller

template <>
inline constexpr auto kFields<RoverGeometry> = std::tuple{
    number("wheel_radius_m", "m", &RoverGeometry::wheel_radius_m, kMinPart_m, 0.8),
    number("wheel_width_m", "m", &RoverGeometry::wheel_width_m, kMinPart_m, 1.6),
    number("front_x_m", "m", &RoverGeometry::front_x_m, kMinPart_m, kMaxPart_m,
           "Front axle; the middle one is at 0."),
    number("rear_x_m", "m", &RoverGeometry::rear_x_m, -kMaxPart_m, -kMinPart_m, "Rear axle."),
    number("front_y_m", "m", &RoverGeometry::front_y_m, kMinPart_m, kMaxPart_m, "Half track."),
    number("middle_y_m", "m", &RoverGeometry::middle_y_m, kMinPart_m, kMaxPart_m, "Half track."),
    number("rear_y_m", "m", &RoverGeometry::rear_y_m, kMinPart_m, kMaxPart_m, "Half track."),
    number("rocker_pivot_x_m", "m", &RoverGeometry::rocker_pivot_x_m, &RoverGeometry::rear_x_m,
           &RoverGeometry::front_x_m,
           "Where the rocker turns on the body: the differential pivot."),
    number("rocker_pivot_z_m", "m", &RoverGeometry::rocker_pivot_z_m,
           &RoverGeometry::wheel_radius_m, kMaxPart_m),
    number("bogie_pivot_x_m", "m", &RoverGeometry::bogie_pivot_x_m, &RoverGeometry::rear_x_m, 0.0,
           "Where the bogie turns on the rocker."),
    number("bogie_pivot_z_m", "m", &RoverGeometry::bogie_pivot_z_m, &RoverGeometry::wheel_radius_m,
           kMaxPart_m),
    number("pan_front_x_m", "m", &RoverGeometry::pan_front_x_m, -kMaxPart_m, kMaxPart_m,
           "Belly pan: a rectangle at constant height in the body frame."),
    number("pan_rear_x_m", "m", &RoverGeometry::pan_rear_x_m, -kMaxPart_m,
           {&RoverGeometry::pan_front_x_m, -kMinPart_m}),
    number("pan_half_width_m", "m", &RoverGeometry::pan_half_width_m, kMinPart_m, kMaxPart_m),
    number("pan_height_m", "m", &RoverGeometry::pan_height_m, kMinPart_m, kMaxPart_m),
};
Fault validate(const RoverGeometry& geometry) noexcept;

// A pose is unsafe when any of these is exceeded.
struct SafetyLimits {
  double clearance_min_m = 0.20;
  double tilt_max_rad = 25 * kDeg;
  double bogie_max_rad = 17 * kDeg;
  double differential_max_rad = 7 * kDeg;
  // ENav's wheel drop is the span of a checker's whole wheel box; a settled wheel has no box, and the ground
  // it stands on spans its footprint.
  double wheel_drop_max_m = 0.30;
  double relief_max_m = 0.30;

  // After the limits Curiosity is operated with: bogie 17, differential 7 deg.
  static constexpr SafetyLimits flight_like() noexcept { return {}; }
  // Reproduces the difficulty published for ENav with the fixed-box checker.
  static constexpr SafetyLimits enav_like() noexcept {
    return {0.06, 30 * kDeg, 25 * kDeg, 12 * kDeg, 0.22, std::numeric_limits<double>::infinity()};
  }
};

inline constexpr double kMinAngleLimit_rad = 1e-3;
inline constexpr double kMaxAngleLimit_rad =
    44.999 * kDeg;  // verdicts compare sines of doubled angles

template <>
inline constexpr auto kFields<SafetyLimits> = std::tuple{
    number("clearance_min_m", "m", &SafetyLimits::clearance_min_m, 0.0, kMaxPart_m,
           "Least height of the belly pan above ground."),
    number("tilt_max_rad", "rad", &SafetyLimits::tilt_max_rad, kMinAngleLimit_rad,
           kMaxAngleLimit_rad, "Body z axis against the vertical."),
    number("bogie_max_rad", "rad", &SafetyLimits::bogie_max_rad, kMinAngleLimit_rad,
           kMaxAngleLimit_rad, "Bogie angle relative to its rocker, either way."),
    number("differential_max_rad", "rad", &SafetyLimits::differential_max_rad, kMinAngleLimit_rad,
           kMaxAngleLimit_rad, "Rocker angle relative to the body, either way."),
    number("wheel_drop_max_m", "m", &SafetyLimits::wheel_drop_max_m, kMinPart_m, kMaxPart_m,
           "Height span of the ground in a wheel's box: what `fixed_box` looks at."),
    number("relief_max_m", "m", &SafetyLimits::relief_max_m, kMinPart_m,
           std::numeric_limits<double>::infinity(),
           "Height span of the ground under a settled wheel's footprint."),
};
Fault validate(const SafetyLimits& limits) noexcept;

// How far the rover may be from where it should be while it drives, to either side: what checkers allow for.
struct Tube {
  double along_m = 0.0;
  double across_m = 0.0;
  double heading_rad = 0.0;

  bool none() const noexcept { return along_m == 0.0 && across_m == 0.0 && heading_rad == 0.0; }
};
template <>
inline constexpr auto kFields<Tube> = std::tuple{
    number("along_m", "m", &Tube::along_m, 0.0, 1.0),
    number("across_m", "m", &Tube::across_m, 0.0, 1.0),
    number("heading_rad", "rad", &Tube::heading_rad, 0.0, 30 * kDeg),
};
Fault validate(const Tube& tube) noexcept;

struct RoverModel {
  RoverGeometry geometry;
  SafetyLimits limits;
  Tube tracking;

  RoverModel() = default;
  RoverModel(const RoverGeometry& g, const SafetyLimits& l, const Tube& t = {}) noexcept
      : geometry(g), limits(l), tracking(t) {}
};

// kConfigBad names the field whose value cannot be: out of its range, or a clearance above the pan's height.
Fault validate(const RoverModel& model) noexcept;

enum Wheel : int { kFrontLeft, kMiddleLeft, kRearLeft, kFrontRight, kMiddleRight, kRearRight };
inline constexpr int kWheels = 6;

// Nominal axle positions in the rover frame (all joints at zero), in Wheel order.
struct WheelPlan {
  double x_m[kWheels];
  double y_m[kWheels];  // left positive
};
WheelPlan wheel_plan(const RoverGeometry& geometry) noexcept;

// Sine and cosine of each wheel's steering angle, counter-clockwise from straight ahead: double Ackermann
// steering about the centre of the arc, which lies on the axle of the middle wheels (they do not steer).
void wheel_steering(const RoverGeometry& geometry, double curvature_per_m,
                    SinCos steering[kWheels]) noexcept;

// Heading in the world of a wheel that is steered so. Tilt turns the axle of a steered wheel a little
// further, in second order of roll and pitch (4 deg at 20 deg each, turning in place). That is neglected
// everywhere.
SinCos wheel_heading(SinCos rover_heading, SinCos steering) noexcept;

}  // namespace mlnav
