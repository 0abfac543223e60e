// Parts of FixedBoxChecker that the dense mapper shares with it.
#pragma once

#include "mlnav/safety/fixed_box.hpp"

namespace mlnav {

// Valid for |x| < 2^20, to 2^-32: truncation after a shift that makes everything positive.
inline int fast_floor(double x) noexcept {
  constexpr int kShift = 1 << 20;
  return static_cast<int>(x + static_cast<double>(kShift)) - kShift;
}
inline int fast_ceil(double x) noexcept { return -fast_floor(-x); }

// Columns of a box's rows are found in integers, units of 2^-32 cells: a few cycles a row.
inline constexpr double kFixedOne = 4294967296.0;
inline std::int64_t to_fixed(double x) noexcept { return static_cast<std::int64_t>(x * kFixedOne); }
inline int fixed_floor(std::int64_t x) noexcept { return static_cast<int>(x >> 32); }
inline int fixed_ceil(std::int64_t x) noexcept {
  return static_cast<int>((x + ((std::int64_t{1} << 32) - 1)) >> 32);
}

// The same number of rows for each box of a pose, so that the processor foresees the loop's end: the last
// one can lie beyond the box, with first > last.
template <typename Visit>
void FixedBoxChecker::visit_box(const CellPose& pose, const BoxShape& shape, int wheel,
                                Visit&& visit) const {
  const double x = plan_.x_m[wheel] * cells_per_m_;
  const double y = plan_.y_m[wheel] * cells_per_m_;
  const double cx = pose.fx + (x * pose.cos - y * pose.sin);
  const double cy = pose.fy + (x * pose.sin + y * pose.cos);
  const int first_row = fast_ceil(cy - shape.rows_half);
  const int last_row = first_row + shape.rows - 1;
  const double dy = first_row - cy;
  std::int64_t along = to_fixed(cx + shape.along_slope * dy);
  std::int64_t across = to_fixed(cx + shape.across_slope * dy);
  for (int row = first_row; row <= last_row; ++row) {
    const std::int64_t lo1 = along - shape.along_half;
    const std::int64_t lo2 = across - shape.across_half;
    const std::int64_t hi1 = along + shape.along_half;
    const std::int64_t hi2 = across + shape.across_half;
    visit(row, fixed_ceil(lo1 > lo2 ? lo1 : lo2), fixed_floor(hi1 < hi2 ? hi1 : hi2));
    along += shape.along_step;
    across += shape.across_step;
  }
}

}  // namespace mlnav
