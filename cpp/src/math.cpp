#include "mlnav/math.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace mlnav {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// pi and its simple fractions beyond float64: kPi + kPiLow is pi to 106 bits.
constexpr double kPiLow = 1.2246467991473532e-16;
constexpr double kHalfPi = kPi / 2.0;
constexpr double kHalfPiLow = kPiLow / 2.0;
constexpr double kQuarterPi = kPi / 4.0;
constexpr double kQuarterPiLow = kPiLow / 4.0;
constexpr double kTwoPi = 2.0 * kPi;

// pi/2 in three parts (Cody and Waite): the first two have 32 significant bits, so their products
// with an integer below 2^21 are exact.
constexpr double kHalfPi1 = 1.5707963267341256;
constexpr double kHalfPi2 = 6.077100506303966e-11;
constexpr double kHalfPi3 = 2.0222662487959506e-21;

// log 2 in two parts, the first with 32 significant bits.
constexpr double kLog2High = 0.6931471803691238;
constexpr double kLog2Low = 1.9082149292705877e-10;

// Nearest integer of |x| < 2^51, ties to even: adding 1.5 * 2^52 rounds the fraction away.
double nearest_integer(double x) noexcept {
  constexpr double kShift = 6755399441055744.0;
  return (x + kShift) - kShift;
}

std::uint64_t bits_of(double x) noexcept {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

double from_bits(std::uint64_t bits) noexcept {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// 2^n for a normal result, -1022 <= n <= 1023.
double power_of_two(int n) noexcept {
  return from_bits(static_cast<std::uint64_t>(n + 1023) << 52);
}

// Taylor series; the first term left out is below 1e-18 on |x| <= pi/4.
double sin_series(double x) noexcept {
  const double z = x * x;
  const double z2 = z * z;
  const double low = (-0.16666666666666666 + z * 0.008333333333333333) +
                     z2 * (-0.0001984126984126984 + z * 2.7557319223985893e-06);
  const double high = (-2.505210838544172e-08 + z * 1.6059043836821613e-10) +
                      z2 * (-7.647163731819816e-13 + z * 2.8114572543455206e-15);
  return x + x * z * (low + z2 * z2 * high);
}

double cos_series(double x) noexcept {
  const double z = x * x;
  const double z2 = z * z;
  const double low = (0.041666666666666664 - z * 0.001388888888888889) +
                     z2 * (2.48015873015873e-05 - z * 2.755731922398589e-07);
  const double high = (2.08767569878681e-09 - z * 1.1470745597729725e-11) +
                      z2 * (4.779477332387385e-14 - z * 1.5619206968586225e-16);
  // 1 - z/2 is split into what float64 holds and its rounding error.
  const double half = 0.5 * z;
  const double head = 1.0 - half;
  const double tail = (1.0 - head) - half;
  return head + (tail + z2 * (low + z2 * z2 * high));
}

// (asin(x)/x - 1)/x^2 as a polynomial in z = x^2 on [0, 1/4]: interpolation at Chebyshev nodes, error of
// z * P below 6e-17. Terms are paired (Estrin) to shorten the chain of dependent operations.
double asin_polynomial(double z) noexcept {
  const double z2 = z * z;
  const double z4 = z2 * z2;
  const double p0 = (0.1666666666666665 + z * 0.0750000000002079) +
                    z2 * (0.044642857103377696 + z * 0.03038194737020906);
  const double p1 = (0.022372047524402985 + z * 0.017355262105297833) +
                    z2 * (0.013929626191818987 + z * 0.011875706674578072);
  const double p2 = (0.007801869497108294 + z * 0.016038914937744318) +
                    z2 * (-0.010755083992272393 + z * 0.0281738290384165);
  return p0 + z4 * (p1 + z4 * p2);
}

// (atan(x)/x - 1)/x^2 likewise on |x| <= tan(pi/8); error of z * P below 1e-17.
double atan_polynomial(double z) noexcept {
  const double z2 = z * z;
  const double z4 = z2 * z2;
  const double p0 = (-0.3333333333333333 + z * 0.19999999999995516) +
                    z2 * (-0.14285714284665682 + z * 0.11111111015187018);
  const double p1 = (-0.0909090457530649 + z * 0.07692183125376892) +
                    z2 * (-0.06664510525508936 + z * 0.05858140904866328);
  const double p2 = (-0.050854078345894844 + z * 0.03923044778479309) + z2 * -0.019175404711104935;
  return p0 + z4 * (p1 + z4 * p2);
}

// (2 atanh(s)/s - 2)/s^2 in z = s^2 on |s| <= (sqrt(2) - 1)/(sqrt(2) + 1); error of z * P below 1e-17.
double log_polynomial(double z) noexcept {
  const double z2 = z * z;
  const double p0 = (0.666666666666667 + z * 0.39999999999899444) +
                    z2 * (0.2857142862600327 + z * 0.22222211130259878);
  const double p1 = (0.18182889455674947 + z * 0.15331710618210773) + z2 * 0.14616585424888623;
  return p0 + z2 * z2 * p1;
}

// atan(numerator / denominator) in [0, pi/2] for arguments >= 0, not both zero; one division.
double first_quadrant(double numerator, double denominator) noexcept {
  constexpr double kTanEighthPi = 0.41421356237309503;
  double t, base, base_low;
  if (numerator <= kTanEighthPi * denominator) {
    t = numerator / denominator;
    base = 0.0;
    base_low = 0.0;
  } else if (denominator <= kTanEighthPi * numerator) {
    t = -(denominator / numerator);
    base = kHalfPi;
    base_low = kHalfPiLow;
  } else {
    t = (numerator - denominator) / (numerator + denominator);
    base = kQuarterPi;
    base_low = kQuarterPiLow;
  }
  const double z = t * t;
  return base + (t + (t * z * atan_polynomial(z) + base_low));
}

}  // namespace

SinCos det_sincos(double angle_rad) noexcept {
  constexpr double kLimit = 3e15;  // beyond, float64 has no digits of an angle left; NaN too
  if (!(std::fabs(angle_rad) <= kLimit)) return {kNan, kNan};
  constexpr double kTwoOverPi = 0.6366197723675814;
  const double n = nearest_integer(angle_rad * kTwoOverPi);
  const double x = ((angle_rad - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
  const double s = sin_series(x);
  const double c = cos_series(x);
  switch (static_cast<std::int64_t>(n) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

double det_asin(double x) noexcept {
  const double magnitude = std::fabs(x);
  if (magnitude <= 0.5) {
    const double z = x * x;
    return x + x * (z * asin_polynomial(z));
  }
  // asin(x) = pi/2 - 2 asin(sqrt((1 - x)/2)); sqrt gives NaN beyond 1.
  const double z = 0.5 * (1.0 - magnitude);
  const double root = std::sqrt(z);
  const double half = root + root * (z * asin_polynomial(z));
  const double result = kHalfPi - (2.0 * half - kHalfPiLow);
  return x < 0.0 ? -result : result;
}

double det_atan(double x) noexcept {
  const double result = first_quadrant(std::fabs(x), 1.0);
  return x < 0.0 ? -result : (x == 0.0 ? x : result);
}

double det_atan2(double y, double x) noexcept {
  if (!(y == y && x == x)) return kNan;
  // The sign of a zero is ignored: straight back is always +pi.
  if (y == 0.0) return x < 0.0 ? kPi : 0.0;
  double ay = std::fabs(y);
  double ax = std::fabs(x);
  if (ay > 1e300 || ax > 1e300) {  // keeps their sum finite; two infinities count as equal
    ay = ay == kInfinity ? (ax == kInfinity ? 1.0 : kInfinity) : ay * 0x1p-10;
    ax = ax == kInfinity ? (y == kInfinity || y == -kInfinity ? 1.0 : kInfinity) : ax * 0x1p-10;
  }
  double angle = first_quadrant(ay, ax);
  if (x < 0.0) angle = kPi - (angle - kPiLow);
  return y < 0.0 ? -angle : angle;
}

double det_log(double x) noexcept {
  constexpr double kSmallestNormal = 2.2250738585072014e-308;
  if (!(x > 0.0 && x < kInfinity)) {
    if (x == 0.0) return -kInfinity;
    return x > 0.0 ? kInfinity : kNan;
  }
  int exponent = 0;
  if (x < kSmallestNormal) {
    x *= 0x1p54;
    exponent = -54;
  }
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2)).
  constexpr std::uint64_t kMantissa = 0x000fffffffffffffu;
  const std::uint64_t bits = bits_of(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = from_bits((bits & kMantissa) | 0x3ff0000000000000u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log(1 + f) = 2 atanh(s), s = f / (2 + f), written about f so that its leading term is exact.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double half_square = 0.5 * f * f;
  const double correction = s * (half_square + z * log_polynomial(z));
  const double n = static_cast<double>(exponent);
  return n * kLog2High - ((half_square - (correction + n * kLog2Low)) - f);
}

double det_exp(double x) noexcept {
  constexpr double kLargest = 709.782712893384;
  constexpr double kSmallest = -745.1332191019412;
  if (!(x <= kLargest)) return x > kLargest ? kInfinity : x;
  if (x < kSmallest) return 0.0;
  constexpr double kOverLog2 = 1.4426950408889634;
  const double n = nearest_integer(x * kOverLog2);
  const double high = x - n * kLog2High;
  const double low = n * kLog2Low;
  const double r = high - low;
  // Taylor series of exp(r) - 1 - r; the first term left out is below 5e-18 on |r| <= log(2)/2.
  const double r2 = r * r;
  const double r4 = r2 * r2;
  const double p0 =
      (0.5 + r * 0.16666666666666666) + r2 * (0.041666666666666664 + r * 0.008333333333333333);
  const double p1 = (0.001388888888888889 + r * 0.0001984126984126984) +
                    r2 * (2.48015873015873e-05 + r * 2.7557319223985893e-06);
  const double p2 = (2.755731922398589e-07 + r * 2.505210838544172e-08) +
                    r2 * (2.08767569878681e-09 + r * 1.6059043836821613e-10);
  const double lost = (high - r) - low;  // rounding error of r
  const double value = 1.0 + (r + (r2 * (p0 + r4 * (p1 + r4 * p2)) + lost));
  // Two factors, each in the normal range, so that only the last product rounds.
  const int whole = static_cast<int>(n);
  const int first = whole / 2;
  return value * power_of_two(first) * power_of_two(whole - first);
}

double det_normal_cdf(double x) noexcept {
  if (!(x == x)) return x;
  constexpr double kFarthest = 39.0;  // the probability beyond is less than the smallest double
  if (!(std::fabs(x) < kFarthest)) return x < 0.0 ? 0.0 : 1.0;
  const double a = std::fabs(x);
  // (1 + a) exp(a^2/2) P(X <= -a) in u = (a - 5)/(a + 5), which runs over [-1, 0.78): interpolation at
  // Chebyshev nodes, relative error below 6e-14. The exponential adds the rounding error of its argument.
  static constexpr double kTail[] = {
      0.46151582985002587,     -0.09155228183426631,   0.0310303684286641,
      0.010002352402129634,    -0.02640104306467715,   0.02453696290756521,
      -0.015170414045630503,   0.006522003814227046,   -0.0016760816193475902,
      7.77506841266779e-06,    0.00018236950229830003, -5.355486854692135e-05,
      -9.974979254827925e-06,  8.955208685017554e-06,  3.2565150963022796e-08,
      -1.1804146636555217e-06, 5.338344960978152e-08,  1.0773716441270925e-07};
  constexpr int kTerms = static_cast<int>(sizeof kTail / sizeof kTail[0]);
  const double u = (a - 5.0) / (a + 5.0);
  double scaled = kTail[kTerms - 1];
  for (int i = kTerms - 2; i >= 0; --i) scaled = scaled * u + kTail[i];
  const double tail = scaled / (1.0 + a) * det_exp(-0.5 * a * a);
  return x < 0.0 ? tail : 1.0 - tail;
}

double wrap_angle(double angle_rad) noexcept {
  if (angle_rad >= -kPi && angle_rad < kPi) return angle_rad;
  double wrapped;
  if (std::fabs(angle_rad) < 3.0 * kPi) {  // the usual case: the subtraction is exact
    wrapped = angle_rad < 0.0 ? angle_rad + kTwoPi : angle_rad - kTwoPi;
  } else {
    const double n = std::floor(angle_rad / kTwoPi + 0.5);
    wrapped = ((angle_rad - n * (4.0 * kHalfPi1)) - n * (4.0 * kHalfPi2)) - n * (4.0 * kHalfPi3);
    if (wrapped < -kPi) wrapped += kTwoPi;  // n can be off by one after rounding
  }
  // At the edge itself, and far beyond 1e6 rad, where no digits remain.
  if (wrapped < -kPi || wrapped >= kPi) wrapped = -kPi;
  return wrapped;
}

}  // namespace mlnav
