// Parts of FixedBoxChecker that it shares with the dense mapper.
#pragma once

#include "mlnav/safety/fixed_box.hpp"

namespace mlnav {

// For |x| < 2^20, to 2^-32: truncation after an offset that makes all values positive.
inline int fast_floor(double x) noexcept {
  constexpr int kShift = 1 << 20;
  return static_cast<int>(x + static_cast<double>(kShift)) - kShift;
}
inline int fast_ceil(double x) noexcept { return -fast_floor(-x); }

// Columns of a box's rows, in integers (units of 2^-32 cells): a few cycles per row.
inline constexpr double kFixedOne = 4294967296.0;
inline std::int64_t to_fixed(double x) noexcept { return static_cast<std::int64_t>(x * kFixedOne); }
inline int fixed_floor(std::int64_t x) noexcept { return static_cast<int>(x >> 32); }
inline int fixed_ceil(std::int64_t x) noexcept {
  return static_cast<int>((x + ((std::int64_t{1} << 32) - 1)) >> 32);
}

// All boxes of a pose have the same number of rows, so that the processor predicts the end of the loop. The
// last row can lie beyond the box, with first > last.
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
