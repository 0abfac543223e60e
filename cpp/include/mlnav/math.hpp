// Elementary functions with the same bits on every IEEE-754 platform.
//
// libm may differ in the last place between vendors and versions, and one differing bit can flip a verdict.
// These functions use only + - * / sqrt and floor, which IEEE 754 rounds correctly. So (with
// -ffp-contract=off) a plan made on a workstation is the plan made on the rover. They are accurate to a few
// units in the last place (tests/test_math.cpp measures it against libm).
#pragma once

namespace mlnav {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kDeg = kPi / 180.0;

struct SinCos {
  double sin;
  double cos;
};

// For |angle| up to 1e6 rad; beyond, the argument reduction loses digits.
SinCos det_sincos(double angle_rad) noexcept;
double det_asin(double x) noexcept;  // NaN outside [-1, 1]
double det_atan(double x) noexcept;
double det_atan2(double y, double x) noexcept;  // (-pi, pi]; atan2(0, 0) = 0
double det_log(double x) noexcept;              // x > 0, normal
double det_exp(double x) noexcept;              // saturates to 0 and +inf
// P(X <= x) for X normal, mean 0 and variance 1; relative error below 1e-12 while it is a normal number.
double det_normal_cdf(double x) noexcept;

// Into [-pi, pi).
double wrap_angle(double angle_rad) noexcept;

}  // namespace mlnav
