// Dense ACE: the fixed_box verdict at every cell centre and heading bin of a map, by sliding minimum and
// maximum filters. The verdicts and reasons are those of FixedBoxChecker::is_safe, at a fraction of the cost.
// It makes labels for learning and the oracle's risk map.
#pragma once

#include "mlnav/safety/fixed_box.hpp"

namespace mlnav {

// Heading of bin k of n: k * 2 pi / n.
double heading_of_bin(int bin, int bins) noexcept;

class AceMapper : NoCopy {
 public:
  // Bytes of an arena at any address.
  static std::size_t memory_required(std::size_t max_map_cells) noexcept;
  Status init(std::size_t max_map_cells, Arena* arena) noexcept;

  // Writes bins * ny * nx values to `reasons`, [bin][iy][ix]; 0 is safe. `checker` must have its map.
  Status compute(const FixedBoxChecker& checker, int bins, Span<Reasons> reasons) noexcept;

 private:
  static constexpr int kLevels = 6;  // runs of 1, 2, 4, ... 32 cells
  void build_runs(const GridView& map) noexcept;

  float* run_max_[kLevels] = {};  // [level][cell]: over cells ix .. ix + 2^level - 1 of the row
  float* run_min_[kLevels] = {};
  std::size_t max_map_cells_ = 0;
};

// Verdicts of any checker on a list of sweeps, in order. Without `reports` the verdicts alone go to
// `reasons`; with them, `reasons` may be null.
void check_sweeps(const AceChecker& checker, Span<const Sweep> sweeps, Reasons* reasons,
                  AceReport* reports) noexcept;

}  // namespace mlnav
