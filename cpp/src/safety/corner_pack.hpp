// A number type for the chain that carries N values at once: the corners of a box of wheel heights.
// Loops of fixed length that the compiler turns into the baseline's vector instructions; every lane has
// the bits of the scalar expression.
#pragma once

#include <cmath>

namespace mlnav {

template <int N>
struct Pack {
  double v[N];
};

#define MLNAV_PACK_OPERATOR(op)                                                          \
  template <int N>                                                                       \
  inline Pack<N> operator op(const Pack<N>& a, const Pack<N>& b) noexcept {              \
    Pack<N> out;                                                                         \
    for (int i = 0; i < N; ++i) out.v[i] = a.v[i] op b.v[i];                             \
    return out;                                                                          \
  }                                                                                      \
  template <int N>                                                                       \
  inline Pack<N> operator op(const Pack<N>& a, double b) noexcept {                      \
    Pack<N> out;                                                                         \
    for (int i = 0; i < N; ++i) out.v[i] = a.v[i] op b;                                  \
    return out;                                                                          \
  }                                                                                      \
  template <int N>                                                                       \
  inline Pack<N> operator op(double a, const Pack<N>& b) noexcept {                      \
    Pack<N> out;                                                                         \
    for (int i = 0; i < N; ++i) out.v[i] = a op b.v[i];                                  \
    return out;                                                                          \
  }
MLNAV_PACK_OPERATOR(+)
MLNAV_PACK_OPERATOR(-)
MLNAV_PACK_OPERATOR(*)
#undef MLNAV_PACK_OPERATOR

template <int N>
inline Pack<N> chain_sqrt(const Pack<N>& a) noexcept {
  Pack<N> out;
  for (int i = 0; i < N; ++i) out.v[i] = std::sqrt(a.v[i]);
  return out;
}

// All lanes.
template <int N>
inline bool chain_is_sine(const Pack<N>& a) noexcept {
  bool all = true;
  for (int i = 0; i < N; ++i) all &= a.v[i] >= -1.0 && a.v[i] <= 1.0;
  return all;
}

}  // namespace mlnav
