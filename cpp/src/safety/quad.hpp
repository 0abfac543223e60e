// Four float32 lanes: SSE2 where the compiler has it, plain code elsewhere (or with MLNAV_SCALAR). Both
// give the same bits, lane by lane. A number type for the kinematic chain: four corners at once.
#pragma once

#include <cmath>

#if defined(__SSE2__) && !defined(MLNAV_SCALAR)
#include <emmintrin.h>
#endif

#include "../ground/pair.hpp"  // MLNAV_INLINE

namespace mlnav {

#if defined(__SSE2__) && !defined(MLNAV_SCALAR)

struct Quad {
  __m128 v;
};
MLNAV_INLINE Quad all_four(float a) noexcept { return {_mm_set1_ps(a)}; }
MLNAV_INLINE Quad quad(float a, float b, float c, float d) noexcept {
  return {_mm_setr_ps(a, b, c, d)};
}
MLNAV_INLINE Quad load_quad(const float* p) noexcept { return {_mm_loadu_ps(p)}; }
MLNAV_INLINE void store_quad(float* p, Quad a) noexcept { _mm_storeu_ps(p, a.v); }
MLNAV_INLINE Quad operator+(Quad a, Quad b) noexcept { return {_mm_add_ps(a.v, b.v)}; }
MLNAV_INLINE Quad operator-(Quad a, Quad b) noexcept { return {_mm_sub_ps(a.v, b.v)}; }
MLNAV_INLINE Quad operator*(Quad a, Quad b) noexcept { return {_mm_mul_ps(a.v, b.v)}; }
MLNAV_INLINE Quad chain_sqrt(Quad a) noexcept { return {_mm_sqrt_ps(a.v)}; }
// Lane by lane a > b ? a : b, and a < b ? a : b; b where a is NaN.
MLNAV_INLINE Quad larger(Quad a, Quad b) noexcept { return {_mm_max_ps(a.v, b.v)}; }
MLNAV_INLINE Quad smaller(Quad a, Quad b) noexcept { return {_mm_min_ps(a.v, b.v)}; }
MLNAV_INLINE bool all_within(Quad a, float lo, float hi) noexcept {
  const __m128 in =
      _mm_and_ps(_mm_cmpge_ps(a.v, _mm_set1_ps(lo)), _mm_cmple_ps(a.v, _mm_set1_ps(hi)));
  return _mm_movemask_ps(in) == 15;
}
// Lanes whose mask has all bits set become NaN.
MLNAV_INLINE Quad mask_to_nan(Quad a, const std::uint32_t* mask) noexcept {
  return {
      _mm_or_ps(a.v, _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(mask))))};
}
MLNAV_INLINE float largest(Quad a) noexcept {
  const __m128 two = _mm_max_ps(a.v, _mm_movehl_ps(a.v, a.v));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
MLNAV_INLINE float smallest(Quad a) noexcept {
  const __m128 two = _mm_min_ps(a.v, _mm_movehl_ps(a.v, a.v));
  return _mm_cvtss_f32(_mm_min_ss(two, _mm_shuffle_ps(two, two, 1)));
}

#else

struct Quad {
  float v[4];
};
MLNAV_INLINE Quad quad(float a, float b, float c, float d) noexcept { return {{a, b, c, d}}; }
MLNAV_INLINE Quad all_four(float a) noexcept { return quad(a, a, a, a); }
MLNAV_INLINE Quad load_quad(const float* p) noexcept { return quad(p[0], p[1], p[2], p[3]); }
MLNAV_INLINE void store_quad(float* p, Quad a) noexcept {
  for (int i = 0; i < 4; ++i) p[i] = a.v[i];
}
template <typename Op>
MLNAV_INLINE Quad by_lane(Quad a, Quad b, Op op) noexcept {
  return quad(op(a.v[0], b.v[0]), op(a.v[1], b.v[1]), op(a.v[2], b.v[2]), op(a.v[3], b.v[3]));
}
MLNAV_INLINE Quad operator+(Quad a, Quad b) noexcept {
  return by_lane(a, b, [](float x, float y) { return x + y; });
}
MLNAV_INLINE Quad operator-(Quad a, Quad b) noexcept {
  return by_lane(a, b, [](float x, float y) { return x - y; });
}
MLNAV_INLINE Quad operator*(Quad a, Quad b) noexcept {
  return by_lane(a, b, [](float x, float y) { return x * y; });
}
MLNAV_INLINE Quad chain_sqrt(Quad a) noexcept {
  return quad(std::sqrt(a.v[0]), std::sqrt(a.v[1]), std::sqrt(a.v[2]), std::sqrt(a.v[3]));
}
MLNAV_INLINE Quad larger(Quad a, Quad b) noexcept {
  return by_lane(a, b, [](float x, float y) { return x > y ? x : y; });
}
MLNAV_INLINE Quad smaller(Quad a, Quad b) noexcept {
  return by_lane(a, b, [](float x, float y) { return x < y ? x : y; });
}
MLNAV_INLINE bool all_within(Quad a, float lo, float hi) noexcept {
  bool in = true;
  for (int i = 0; i < 4; ++i) in &= a.v[i] >= lo && a.v[i] <= hi;
  return in;
}
MLNAV_INLINE Quad mask_to_nan(Quad a, const std::uint32_t* mask) noexcept {
  for (int i = 0; i < 4; ++i) a.v[i] = mask[i] != 0 ? NAN : a.v[i];
  return a;
}
MLNAV_INLINE float largest(Quad a) noexcept {
  const float x = a.v[0] > a.v[2] ? a.v[0] : a.v[2];
  const float y = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return x > y ? x : y;
}
MLNAV_INLINE float smallest(Quad a) noexcept {
  const float x = a.v[0] < a.v[2] ? a.v[0] : a.v[2];
  const float y = a.v[1] < a.v[3] ? a.v[1] : a.v[3];
  return x < y ? x : y;
}

#endif

// The constants of the chain are float64.
MLNAV_INLINE Quad operator+(Quad a, double b) noexcept {
  return a + all_four(static_cast<float>(b));
}
MLNAV_INLINE Quad operator-(Quad a, double b) noexcept {
  return a - all_four(static_cast<float>(b));
}
MLNAV_INLINE Quad operator*(Quad a, double b) noexcept {
  return a * all_four(static_cast<float>(b));
}
MLNAV_INLINE Quad operator-(double a, Quad b) noexcept {
  return all_four(static_cast<float>(a)) - b;
}
MLNAV_INLINE Quad operator*(double a, Quad b) noexcept {
  return all_four(static_cast<float>(a)) * b;
}

MLNAV_INLINE bool chain_is_sine(Quad a) noexcept { return all_within(a, -1.0F, 1.0F); }

}  // namespace mlnav
