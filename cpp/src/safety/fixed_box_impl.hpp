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

template <typename Visit>
void FixedBoxChecker::visit_box(const CellPose& pose, const BoxShape& shape, int wheel,
                                Visit&& visit) const {
  const double x = plan_.x_m[wheel] * cells_per_m_;
  const double y = plan_.y_m[wheel] * cells_per_m_;
  const double cx = pose.fx + (x * pose.cos - y * pose.sin);
  const double cy = pose.fy + (x * pose.sin + y * pose.cos);
  const int last_row = fast_floor(cy + shape.rows_half);
  for (int row = fast_ceil(cy - shape.rows_half); row <= last_row; ++row) {
    const double dy = row - cy;
    const double along = shape.along_slope * dy;
    const double across = shape.across_slope * dy;
    const double lo1 = along - shape.along_half;
    const double lo2 = across - shape.across_half;
    const double hi1 = along + shape.along_half;
    const double hi2 = across + shape.across_half;
    const int first = fast_ceil(cx + (lo1 > lo2 ? lo1 : lo2));
    const int last = fast_floor(cx + (hi1 < hi2 ? hi1 : hi2));
    if (first <= last) visit(row, first, last);
  }
}

}  // namespace mlnav
