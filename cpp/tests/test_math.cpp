// Elementary functions against libm: accuracy, symmetries, special values, range limits.
#include "mlnav/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

namespace {

using namespace mlnav;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Distance in units in the last place of `expected`.
double ulps(double got, double expected) {
  if (got == expected) return 0.0;
  const double magnitude = std::fabs(expected);
  const double ulp = std::nextafter(magnitude, kInf) - magnitude;
  return std::fabs(got - expected) / ulp;
}

// Largest error over many points; an error below 1e-15 absolute does not count where `absolute`.
struct Worst {
  double ulp = 0.0;
  double at = 0.0;
  void add(double x, double got, double expected, bool absolute) {
    double u = ulps(got, expected);
    if (absolute && std::fabs(got - expected) <= 1e-15) u = 0.0;
    if (!(u <= ulp)) {
      ulp = u;
      at = x;
    }
  }
};

// Uniform points, and points at every order of magnitude down to 1e-300.
template <typename Check>
void sweep(double lo, double hi, int count, unsigned seed, Check check) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(lo, hi);
  std::uniform_real_distribution<double> exponent(-300.0, 0.0);
  for (int i = 0; i < count; ++i) {
    check(uniform(random));
    const double scaled = hi * std::pow(10.0, exponent(random));
    check(scaled);
    if (lo < 0.0) check(-scaled);
  }
  check(lo);
  check(hi);
}

TEST(Math, SinCosWithinTwoUlpsUpToAMillionRadians) {
  for (const double limit : {kPi / 4, kPi, 10.0, 1e3, 1e6}) {
    Worst worst_sin, worst_cos;
    sweep(-limit, limit, 200000, 11, [&](double x) {
      const SinCos got = det_sincos(x);
      worst_sin.add(x, got.sin, std::sin(x), false);
      worst_cos.add(x, got.cos, std::cos(x), false);
    });
    EXPECT_LE(worst_sin.ulp, 2.0) << "at " << worst_sin.at;
    EXPECT_LE(worst_cos.ulp, 2.0) << "at " << worst_cos.at;
    RecordProperty("sin_ulp", std::to_string(worst_sin.ulp));
  }
}

TEST(Math, SinCosNearMultiplesOfHalfPiKeepsRelativeAccuracy) {
  Worst worst_sin, worst_cos;
  for (int n = -600000; n <= 600000; n += 37) {
    double x = n * (kPi / 2);
    for (const double shift : {0.0, 1e-12, -1e-9, 1e-5}) {
      const SinCos got = det_sincos(x + shift);
      worst_sin.add(x + shift, got.sin, std::sin(x + shift), false);
      worst_cos.add(x + shift, got.cos, std::cos(x + shift), false);
    }
  }
  EXPECT_LE(worst_sin.ulp, 2.0) << "at " << worst_sin.at;
  EXPECT_LE(worst_cos.ulp, 2.0) << "at " << worst_cos.at;
}

TEST(Math, SinCosOfNonFiniteIsNan) {
  for (const double x : {kInf, -kInf, kNan, 1e300}) {
    EXPECT_TRUE(std::isnan(det_sincos(x).sin)) << x;
    EXPECT_TRUE(std::isnan(det_sincos(x).cos)) << x;
  }
}

TEST(Math, SinCosSymmetryIsExact) {
  sweep(-20.0, 20.0, 20000, 12, [](double x) {
    const SinCos a = det_sincos(x);
    const SinCos b = det_sincos(-x);
    ASSERT_EQ(a.sin, -b.sin);
    ASSERT_EQ(a.cos, b.cos);
    ASSERT_LE(std::fabs(a.sin), 1.0);
    ASSERT_LE(std::fabs(a.cos), 1.0);
  });
  EXPECT_EQ(det_sincos(0.0).sin, 0.0);
  EXPECT_EQ(det_sincos(0.0).cos, 1.0);
}

TEST(Math, AsinWithinThreeUlps) {
  Worst worst;
  sweep(-1.0, 1.0, 500000, 13, [&](double x) { worst.add(x, det_asin(x), std::asin(x), false); });
  for (const double x : {0.5, std::nextafter(0.5, 1.0), std::nextafter(1.0, 0.0), -0.5}) {
    worst.add(x, det_asin(x), std::asin(x), false);
  }
  EXPECT_LE(worst.ulp, 3.0) << "at " << worst.at;
}

TEST(Math, AsinOutsideItsDomainIsNan) {
  for (const double x :
       {std::nextafter(1.0, 2.0), -std::nextafter(1.0, 2.0), 2.0, kInf, -kInf, kNan}) {
    EXPECT_TRUE(std::isnan(det_asin(x))) << x;
  }
}

TEST(Math, AsinIsMonotoneAcrossItsBranches) {
  // The two formulas meet at 1/2: a downward jump there would break interval arguments. One ulp of
  // disorder between neighbours is what rounding may do.
  double x = 0.5;
  for (int i = 0; i < 1000; ++i) x = std::nextafter(x, 0.0);
  double previous = det_asin(x);
  for (int i = 0; i < 2000; ++i) {
    x = std::nextafter(x, 1.0);
    const double value = det_asin(x);
    ASSERT_GE(value, previous - 2.3e-16) << x;
    previous = value;
  }
}

TEST(Math, AtanWithinThreeUlps) {
  Worst worst;
  sweep(-1.0, 1.0, 200000, 14, [&](double x) { worst.add(x, det_atan(x), std::atan(x), false); });
  sweep(-50.0, 50.0, 200000, 15, [&](double x) { worst.add(x, det_atan(x), std::atan(x), false); });
  sweep(-1e300, 1e300, 20000, 16,
        [&](double x) { worst.add(x, det_atan(x), std::atan(x), false); });
  EXPECT_LE(worst.ulp, 3.0) << "at " << worst.at;
  EXPECT_EQ(det_atan(kInf), kPi / 2);
  EXPECT_EQ(det_atan(-kInf), -kPi / 2);
  EXPECT_TRUE(std::isnan(det_atan(kNan)));
}

TEST(Math, Atan2AllQuadrantsWithinThreeUlps) {
  Worst worst;
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  std::uniform_real_distribution<double> exponent(-150.0, 150.0);
  for (int i = 0; i < 400000; ++i) {
    double y = uniform(random);
    double x = uniform(random);
    if (i % 2 == 1) {
      y *= std::pow(10.0, exponent(random));
      x *= std::pow(10.0, exponent(random));
    }
    worst.add(y, det_atan2(y, x), std::atan2(y, x), false);
  }
  EXPECT_LE(worst.ulp, 3.0) << "at y = " << worst.at;
}

TEST(Math, Atan2OnTheAxesAndAtInfinity) {
  EXPECT_EQ(det_atan2(0.0, 1.0), 0.0);
  EXPECT_EQ(det_atan2(1.0, 0.0), kPi / 2);
  EXPECT_EQ(det_atan2(-1.0, 0.0), -kPi / 2);
  EXPECT_EQ(det_atan2(0.0, -1.0), kPi);
  EXPECT_EQ(det_atan2(0.0, 0.0), 0.0);
  // A negative zero is a zero: the range is (-pi, pi], and no sign bit turns the rover round.
  EXPECT_EQ(det_atan2(-0.0, -1.0), kPi);
  EXPECT_EQ(det_atan2(-0.0, 1.0), 0.0);
  EXPECT_EQ(det_atan2(-0.0, -0.0), 0.0);
  EXPECT_EQ(det_atan2(0.0, -0.0), 0.0);
  EXPECT_EQ(det_atan2(1.0, -0.0), kPi / 2);
  for (const double y : {1.0, -1.0, kInf, -kInf}) {
    for (const double x : {1.0, -1.0, kInf, -kInf}) {
      EXPECT_NEAR(det_atan2(y, x), std::atan2(y, x), 1e-15) << y << " " << x;
    }
  }
  EXPECT_NEAR(det_atan2(1.7e308, 1.7e308), kPi / 4, 1e-15);
  EXPECT_NEAR(det_atan2(1.7e308, -1.2e308), std::atan2(1.7e308, -1.2e308), 1e-15);
  EXPECT_TRUE(std::isnan(det_atan2(kNan, 1.0)));
  EXPECT_TRUE(std::isnan(det_atan2(0.0, kNan)));
}

TEST(Math, LogWithinTwoUlps) {
  Worst worst;
  std::mt19937_64 random(18);
  std::uniform_real_distribution<double> near_one(0.5, 2.0);
  std::uniform_real_distribution<double> exponent(-307.0, 308.0);
  for (int i = 0; i < 400000; ++i) {
    const double a = near_one(random);
    const double b = std::pow(10.0, exponent(random));
    worst.add(a, det_log(a), std::log(a), false);
    worst.add(b, det_log(b), std::log(b), false);
  }
  double x = 1.0;
  for (int i = 0; i < 1000; ++i) {
    x = std::nextafter(x, 2.0);
    worst.add(x, det_log(x), std::log(x), false);
    worst.add(2.0 - x, det_log(2.0 - x), std::log(2.0 - x), false);
  }
  for (const double v : {1e-310, 5e-324, std::numeric_limits<double>::max(), std::sqrt(2.0)}) {
    worst.add(v, det_log(v), std::log(v), false);
  }
  EXPECT_LE(worst.ulp, 2.0) << "at " << worst.at;
  EXPECT_EQ(det_log(1.0), 0.0);
  EXPECT_EQ(det_log(0.0), -kInf);
  EXPECT_EQ(det_log(kInf), kInf);
  EXPECT_TRUE(std::isnan(det_log(-1.0)));
  EXPECT_TRUE(std::isnan(det_log(-kInf)));
  EXPECT_TRUE(std::isnan(det_log(kNan)));
}

TEST(Math, ExpWithinTwoUlpsAndSaturates) {
  Worst worst;
  sweep(-700.0, 709.0, 400000, 19, [&](double x) { worst.add(x, det_exp(x), std::exp(x), false); });
  sweep(-745.0, -708.0, 20000, 20, [&](double x) { worst.add(x, det_exp(x), std::exp(x), false); });
  sweep(-1.0, 1.0, 400000, 21, [&](double x) { worst.add(x, det_exp(x), std::exp(x), false); });
  EXPECT_LE(worst.ulp, 2.0) << "at " << worst.at;
  EXPECT_EQ(det_exp(0.0), 1.0);
  EXPECT_EQ(det_exp(1000.0), kInf);
  EXPECT_EQ(det_exp(kInf), kInf);
  EXPECT_EQ(det_exp(-1000.0), 0.0);
  EXPECT_EQ(det_exp(-kInf), 0.0);
  EXPECT_NEAR(det_exp(709.782712893384) / std::numeric_limits<double>::max(), 1.0, 1e-12);
  EXPECT_TRUE(std::isnan(det_exp(kNan)));
}

TEST(Math, NormalCdfWithinItsStatedError) {
  double worst = 0.0;
  double at = 0.0;
  sweep(-37.0, 37.0, 300000, 23, [&](double x) {
    const double expected = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double error = std::fabs(det_normal_cdf(x) / expected - 1.0);
    if (!(error <= worst)) {
      worst = error;
      at = x;
    }
    ASSERT_NEAR(det_normal_cdf(x) + det_normal_cdf(-x), 1.0, 3e-16) << x;
  });
  EXPECT_LE(worst, 1e-12) << "at " << at;
  EXPECT_NEAR(det_normal_cdf(0.0), 0.5, 1e-13);
  EXPECT_NEAR(det_normal_cdf(-1.0), 0.15865525393145705, 1e-13);
  EXPECT_NEAR(det_normal_cdf(1.959963984540054), 0.975, 1e-13);
  EXPECT_EQ(det_normal_cdf(-kInf), 0.0);
  EXPECT_EQ(det_normal_cdf(kInf), 1.0);
  EXPECT_EQ(det_normal_cdf(-1e300), 0.0);
  EXPECT_EQ(det_normal_cdf(40.0), 1.0);
  EXPECT_TRUE(std::isnan(det_normal_cdf(kNan)));
}

TEST(Math, NormalCdfRises) {
  double previous = 0.0;
  for (int i = -38600; i <= 10000; ++i) {
    const double value = det_normal_cdf(i * 1e-3);
    ASSERT_GE(value, previous) << i;
    previous = value;
  }
}

TEST(Math, WrapAngleIsHalfOpenAndKeepsTheAngle) {
  EXPECT_EQ(wrap_angle(-kPi), -kPi);
  EXPECT_EQ(wrap_angle(kPi), -kPi);
  EXPECT_EQ(wrap_angle(std::nextafter(kPi, 0.0)), std::nextafter(kPi, 0.0));
  EXPECT_EQ(wrap_angle(0.0), 0.0);
  EXPECT_NEAR(wrap_angle(3 * kPi / 2), -kPi / 2, 1e-15);
  EXPECT_NEAR(wrap_angle(-3 * kPi / 2), kPi / 2, 1e-15);
  sweep(-1e6, 1e6, 200000, 22, [](double a) {
    const double w = wrap_angle(a);
    ASSERT_GE(w, -kPi);
    ASSERT_LT(w, kPi);
    ASSERT_NEAR(std::sin(w), std::sin(a), 1e-15);
    ASSERT_NEAR(std::cos(w), std::cos(a), 1e-15);
    ASSERT_EQ(wrap_angle(w), w);
  });
  for (int n = -1000; n <= 1000; ++n) {
    for (const double near : {(2 * n + 1) * kPi, std::nextafter((2 * n + 1) * kPi, 1e9),
                              std::nextafter((2 * n + 1) * kPi, -1e9)}) {
      const double w = wrap_angle(near);
      ASSERT_GE(w, -kPi) << n;
      ASSERT_LT(w, kPi) << n;
      ASSERT_NEAR(std::fabs(w), kPi, 1e-11) << n;
    }
  }
}

TEST(Math, WrapAngleFarOutStaysInRange) {
  for (const double a : {1e15, -1e18, 1e300, -1.7e308}) {
    const double w = wrap_angle(a);
    EXPECT_TRUE(w >= -kPi && w < kPi) << a;
  }
  EXPECT_TRUE(std::isnan(wrap_angle(kNan)));
  EXPECT_TRUE(std::isnan(wrap_angle(kInf)));
}

// Golden bits: the promise is the same bits everywhere, so a compiler that contracts or reorders
// shows here. Values are this code's own, from x86-64.
TEST(Math, GoldenBits) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto mix = [&hash](double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211ull;
  };
  for (int i = -2000; i <= 2000; ++i) {
    const double x = i * 0.0004987654321;
    mix(det_sincos(x * 40.0).sin);
    mix(det_sincos(x * 40.0).cos);
    mix(det_asin(x));
    mix(det_atan(x * 7.0));
    mix(det_atan2(x, 0.3 - x * x));
    mix(det_log(x * x + 0.001));
    mix(det_exp(x * 30.0));
    mix(wrap_angle(x * 50.0));
    mix(det_normal_cdf(x * 9.0));
  }
  EXPECT_EQ(hash, 15429346594922916124ull);
}

}  // namespace
