// A six-wheel rocker-bogie rover: geometry and operating limits. The default is Perseverance-class
// (dimensions of NASA/JPL's public rover description; wheel radius from NASA).
//
// Rover frame: x forward, y left, z up, origin midway between the middle wheels' contact points, all
// joints at zero. The rocker carries the front wheel and the bogie pivot; the bogie carries the middle
// and the rear wheel. Left and right sides mirror each other.
#pragma once

#include <limits>

#include "mlnav/math.hpp"
#include "mlnav/status.hpp"

namespace mlnav {

struct RoverGeometry {
  double wheel_radius_m = 0.263;
  double wheel_width_m = 0.335;
  double front_x_m = 1.185;   // front wheel axle (middle axle: x = 0 by definition of the frame)
  double rear_x_m = -1.075;   // rear wheel axle
  double front_y_m = 1.0625;  // half tracks
  double middle_y_m = 1.1845;
  double rear_y_m = 1.0625;
  double rocker_pivot_x_m = 0.304;  // the differential pivot, where the rocker turns on the body
  double rocker_pivot_z_m = 0.893;
  double bogie_pivot_x_m = -0.450;  // where the bogie turns on the rocker
  double bogie_pivot_z_m = 0.663;
  double pan_rear_x_m = -1.18;  // belly pan: a rectangle at constant height in the body frame
  double pan_front_x_m = 0.90;
  double pan_half_width_m = 0.775;
  double pan_height_m = 0.60;
};

// A pose is unsafe when any of these is exceeded.
struct SafetyLimits {
  double clearance_min_m = 0.20;           // belly pan above ground
  double tilt_max_rad = 25 * kDeg;         // body z axis against the vertical
  double bogie_max_rad = 17 * kDeg;        // |bogie angle relative to its rocker|
  double differential_max_rad = 7 * kDeg;  // |rocker angle relative to the body|
  // Height span of the ground about a wheel, in two forms. ENav's wheel drop is the span over the checker's
  // whole wheel box. A settled wheel has no box; the span is taken over its footprint.
  double wheel_drop_max_m = 0.30;  // of the box: fixed_box
  double relief_max_m = 0.30;      // of the footprint: settled states; infinite for no limit

  // After the limits Curiosity is operated with: bogie 17, differential 7 deg.
  static constexpr SafetyLimits flight_like() noexcept { return {}; }
  // Reproduces the difficulty published for ENav with the fixed-box checker.
  static constexpr SafetyLimits enav_like() noexcept {
    return {0.06, 30 * kDeg, 25 * kDeg, 12 * kDeg, 0.22, std::numeric_limits<double>::infinity()};
  }
};

struct RoverModel {
  RoverGeometry geometry;
  SafetyLimits limits;
};

// kConfigBad with the field that is impossible: not finite, of the wrong sign, a linkage that does not close,
// a pan below the wheels' contact plane, a limit outside (0, 45 deg) and so on.
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
