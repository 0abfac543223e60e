// Small value types shared by every room. World frame: x east, y north, z up, metres; headings in
// radians counter-clockwise from +x.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mlnav/assert.hpp"

namespace mlnav {

struct Point2 {
  double x_m = 0.0;
  double y_m = 0.0;
};

struct Pose2 {
  double x_m = 0.0;
  double y_m = 0.0;
  double heading_rad = 0.0;
};

// A pose and how the corner wheels are steered there: for an arc of this curvature (left positive) or, with
// an infinite one, for turning in place. By default the wheels are straight.
struct Stance {
  Pose2 pose;
  double curvature_per_m = 0.0;

  Stance() = default;
  explicit Stance(const Pose2& at, double curvature = 0.0) noexcept
      : pose(at), curvature_per_m(curvature) {}
  explicit Stance(double x_m, double y_m, double heading_rad) noexcept
      : pose{x_m, y_m, heading_rad} {}
};

// Base of what points into an arena or to an object of the caller: a copy would share the other's memory.
class NoCopy {
 public:
  NoCopy(const NoCopy&) = delete;
  NoCopy& operator=(const NoCopy&) = delete;

 protected:
  NoCopy() = default;
  ~NoCopy() = default;
};

// Closed range [lo, hi].
struct Bounds {
  double lo = 0.0;
  double hi = 0.0;
  constexpr bool contains(double value) const noexcept { return lo <= value && value <= hi; }
  constexpr double width() const noexcept { return hi - lo; }
};

// Non-owning view of `size` consecutive values.
template <typename T>
struct Span {
  T* data = nullptr;
  std::size_t size = 0;
  T* begin() const noexcept { return data; }
  T* end() const noexcept { return data + size; }
  T& operator[](std::size_t i) const noexcept {
    MLNAV_ASSERT(i < size);
    return data[i];
  }
};

// Bump allocator over memory the caller owns: the core allocates at init() and never after. Memory
// that is not aligned to kAlignment loses up to kAlignment - 1 bytes at its start.
class Arena {
 public:
  static constexpr std::size_t kAlignment = 64;

  Arena() = default;
  Arena(void* memory, std::size_t bytes) noexcept;

  // Uninitialised room for `count` values of T (trivial types only), or nullptr when it is full.
  template <typename T>
  T* take(std::size_t count) noexcept {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment, "trivial types");
    if (count > static_cast<std::size_t>(-1) / sizeof(T)) return nullptr;
    return static_cast<T*>(take_bytes(count * sizeof(T)));
  }
  // The same into `*to`; false when the arena is full. Asked for several blocks, look at every answer: a
  // small block may find room where a large one before it did not.
  template <typename T>
  bool take(std::size_t count, T** to) noexcept {
    *to = take<T>(count);
    return *to != nullptr;
  }

  std::size_t used_bytes() const noexcept { return used_; }

  // Bytes that `count` values of T take in an arena, padding included.
  template <typename T>
  static constexpr std::size_t cost(std::size_t count) noexcept {
    return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  void* take_bytes(std::size_t bytes) noexcept;

  unsigned char* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace mlnav
