// Midpoint-radius intervals: all values within r of m. Rounding of m and r is not tracked in each operation.
// Code that uses the result as a bound widens it once, by kWiden (docs/verified_ace.md bounds the accumulated
// rounding).
#pragma once

#include <cmath>

namespace mlnav {

struct Ball {
  double m = 0.0;
  double r = 0.0;
};

inline Ball operator+(Ball a, Ball b) noexcept { return {a.m + b.m, a.r + b.r}; }
inline Ball operator-(Ball a, Ball b) noexcept { return {a.m - b.m, a.r + b.r}; }
inline Ball operator-(Ball a) noexcept { return {-a.m, a.r}; }
inline Ball operator*(Ball a, double k) noexcept { return {a.m * k, a.r * std::fabs(k)}; }
inline Ball operator*(double k, Ball a) noexcept { return a * k; }
inline Ball operator*(Ball a, Ball b) noexcept {
  return {a.m * b.m, std::fabs(a.m) * b.r + a.r * std::fabs(b.m) + a.r * b.r};
}

// Sine and cosine of all angles within `half` of the given one, by Taylor's theorem.
struct BallSinCos {
  Ball sin, cos;
};
inline BallSinCos ball_sincos(double sin, double cos, double half) noexcept {
  const double second = 0.5 * half * half;
  return {{sin, std::fabs(cos) * half + second}, {cos, std::fabs(sin) * half + second}};
}

// 1 / cos of an angle within +-90 deg, from its sine: 1 / sqrt(1 - x^2), by the mean value theorem.
inline double secant_of_sine(double x) noexcept { return 1.0 / std::sqrt(1.0 - x * x); }
inline Ball secant_of_sine(Ball x) noexcept {
  const double farthest = std::fabs(x.m) + x.r;
  const double steepest = secant_of_sine(farthest);
  return {secant_of_sine(x.m), farthest * steepest * steepest * steepest * x.r};
}

}  // namespace mlnav
