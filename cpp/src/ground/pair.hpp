// Two float64 lanes: SSE2 where the compiler has it, plain code elsewhere (or with MLNAV_SCALAR). Both
// give the same bits, lane by lane: IEEE 754 operations only, and max/min defined as one comparison.
#pragma once

#include <cstdint>

#if defined(__SSE2__) && !defined(MLNAV_SCALAR)
#include <emmintrin.h>
#endif

// The speed of the inner loops depends on inlining, whatever the compiler's heuristics choose.
#if defined(__GNUC__)
#define MLNAV_INLINE inline __attribute__((always_inline))
#else
#define MLNAV_INLINE inline
#endif

namespace mlnav {

#if defined(__SSE2__) && !defined(MLNAV_SCALAR)

struct Pair {
  __m128d v;
};

MLNAV_INLINE Pair both(double a) noexcept { return {_mm_set1_pd(a)}; }
MLNAV_INLINE Pair load_pair(const double* p) noexcept { return {_mm_loadu_pd(p)}; }
MLNAV_INLINE Pair load_aligned(const double* p) noexcept { return {_mm_load_pd(p)}; }  // 16 bytes
MLNAV_INLINE void store_aligned(double* p, Pair a) noexcept { _mm_store_pd(p, a.v); }
MLNAV_INLINE void store_pair(double* p, Pair a) noexcept { _mm_storeu_pd(p, a.v); }
MLNAV_INLINE Pair operator+(Pair a, Pair b) noexcept { return {_mm_add_pd(a.v, b.v)}; }
MLNAV_INLINE Pair operator-(Pair a, Pair b) noexcept { return {_mm_sub_pd(a.v, b.v)}; }
MLNAV_INLINE Pair operator*(Pair a, Pair b) noexcept { return {_mm_mul_pd(a.v, b.v)}; }
MLNAV_INLINE Pair larger(Pair a, Pair b) noexcept { return {_mm_max_pd(a.v, b.v)}; }
MLNAV_INLINE Pair smaller(Pair a, Pair b) noexcept { return {_mm_min_pd(a.v, b.v)}; }
// (a0, b0) and (a1, b1).
MLNAV_INLINE Pair firsts(Pair a, Pair b) noexcept { return {_mm_unpacklo_pd(a.v, b.v)}; }
MLNAV_INLINE Pair seconds(Pair a, Pair b) noexcept { return {_mm_unpackhi_pd(a.v, b.v)}; }
MLNAV_INLINE double largest(Pair a) noexcept {
  return _mm_cvtsd_f64(_mm_max_sd(a.v, _mm_unpackhi_pd(a.v, a.v)));
}
MLNAV_INLINE double smallest(Pair a) noexcept {
  return _mm_cvtsd_f64(_mm_min_sd(a.v, _mm_unpackhi_pd(a.v, a.v)));
}

// floor(x) for 1 <= x < 2^20, except that a whole x may give x - 1; as float64 and, in the low 32 bits of
// `shifted`, as an integer. Adding 2^52 - 1/2 rounds the fraction away, without a conversion of float64,
// which is several times slower.
struct Floor {
  Pair shifted;  // floor + 2^52
  Pair value;
};
constexpr double kShift = 4503599627370496.0;  // 2^52
MLNAV_INLINE Floor floor_of(Pair x) noexcept {
  const Pair shifted = x + both(kShift - 0.5);
  return {shifted, shifted - both(kShift)};
}
// The integers of two shifted values.
struct IntPair {
  std::uint32_t first;
  std::uint32_t second;
};
MLNAV_INLINE IntPair integers(Pair shifted) noexcept {
  const __m128i bits = _mm_castpd_si128(shifted.v);
  return {static_cast<std::uint32_t>(_mm_cvtsi128_si32(bits)),
          static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_unpackhi_epi64(bits, bits)))};
}

// Four floats as float64.
struct FourWide {
  Pair first, second;
};
MLNAV_INLINE FourWide widen4(const float* p) noexcept {
  const __m128 values = _mm_loadu_ps(p);
  return {{_mm_cvtps_pd(values)}, {_mm_cvtps_pd(_mm_movehl_ps(values, values))}};
}

// Whether any value seen was NaN.
class NanScan {
 public:
  void see(Pair a) noexcept { nan_ = _mm_or_pd(nan_, _mm_cmpunord_pd(a.v, a.v)); }
  void see4(const float* p) noexcept {
    const __m128 values = _mm_loadu_ps(p);
    nan_ = _mm_or_pd(nan_, _mm_castps_pd(_mm_cmpunord_ps(values, values)));
  }
  bool any() const noexcept { return _mm_movemask_ps(_mm_castpd_ps(nan_)) != 0; }

 private:
  __m128d nan_ = _mm_setzero_pd();
};

#else

struct Pair {
  double a, b;
};

MLNAV_INLINE Pair both(double a) noexcept { return {a, a}; }
MLNAV_INLINE Pair load_pair(const double* p) noexcept { return {p[0], p[1]}; }
MLNAV_INLINE Pair load_aligned(const double* p) noexcept { return {p[0], p[1]}; }
MLNAV_INLINE void store_aligned(double* p, Pair a) noexcept {
  p[0] = a.a;
  p[1] = a.b;
}
MLNAV_INLINE void store_pair(double* p, Pair a) noexcept { store_aligned(p, a); }
MLNAV_INLINE Pair operator+(Pair a, Pair b) noexcept { return {a.a + b.a, a.b + b.b}; }
MLNAV_INLINE Pair operator-(Pair a, Pair b) noexcept { return {a.a - b.a, a.b - b.b}; }
MLNAV_INLINE Pair operator*(Pair a, Pair b) noexcept { return {a.a * b.a, a.b * b.b}; }
MLNAV_INLINE Pair larger(Pair a, Pair b) noexcept {
  return {a.a > b.a ? a.a : b.a, a.b > b.b ? a.b : b.b};
}
MLNAV_INLINE Pair smaller(Pair a, Pair b) noexcept {
  return {a.a < b.a ? a.a : b.a, a.b < b.b ? a.b : b.b};
}
MLNAV_INLINE Pair firsts(Pair a, Pair b) noexcept { return {a.a, b.a}; }
MLNAV_INLINE Pair seconds(Pair a, Pair b) noexcept { return {a.b, b.b}; }
MLNAV_INLINE double largest(Pair a) noexcept { return a.a > a.b ? a.a : a.b; }
MLNAV_INLINE double smallest(Pair a) noexcept { return a.a < a.b ? a.a : a.b; }

struct Floor {
  Pair shifted;
  Pair value;
};
constexpr double kShift = 4503599627370496.0;
MLNAV_INLINE Floor floor_of(Pair x) noexcept {
  const Pair shifted = x + both(kShift - 0.5);
  return {shifted, shifted - both(kShift)};
}
struct IntPair {
  std::uint32_t first;
  std::uint32_t second;
};
MLNAV_INLINE IntPair integers(Pair shifted) noexcept {
  return {static_cast<std::uint32_t>(shifted.a - kShift),
          static_cast<std::uint32_t>(shifted.b - kShift)};
}

struct FourWide {
  Pair first, second;
};
MLNAV_INLINE FourWide widen4(const float* p) noexcept {
  return {{static_cast<double>(p[0]), static_cast<double>(p[1])},
          {static_cast<double>(p[2]), static_cast<double>(p[3])}};
}

class NanScan {
 public:
  void see(Pair a) noexcept { nan_ |= !(a.a == a.a) || !(a.b == a.b); }
  void see4(const float* p) noexcept {
    for (int i = 0; i < 4; ++i) nan_ |= !(p[i] == p[i]);
  }
  bool any() const noexcept { return nan_; }

 private:
  bool nan_ = false;
};

#endif

}  // namespace mlnav
