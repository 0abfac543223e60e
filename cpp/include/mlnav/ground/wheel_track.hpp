// Bounds of the wheel-height field H over all that a wheel can be over while the rover moves: places, headings
// and leans. For proofs about stretches of motion (docs/verified_ace.md).
#pragma once

#include <cstdint>

#include "mlnav/ground/wheel_height.hpp"

namespace mlnav {

// A linear trend of H in the place of a wheel's foot and in its lean. Bounds are of H less the trend:
//
//   H(foot P, heading, lean) - slope . (P - foot) - slope_lean (lean - lean_rad).
//
// Any trend gives valid bounds; one close to the ground gives narrow ones.
struct WheelTrend {
  Point2 foot;
  double lean_rad = 0.0;
  double slope_x = 0.0;  // rise over run, world axes
  double slope_y = 0.0;
  double slope_lean_m = 0.0;  // rise per radian
};

// All feet of a rectangle, with all headings and leans of two intervals. The foot is the lowest point of the
// wheel's middle, r sin(lean) to the left of the axle's.
struct WheelRegion {
  Point2 foot;   // centre of the rectangle
  SinCos along;  // direction of its first side
  double half_along_m = 0.0;
  double half_across_m = 0.0;
  SinCos heading;  // of the wheel, the middle of the interval
  double half_heading_rad = 0.0;
  SinCos lean;
  double lean_rad = 0.0;
  double half_lean_rad = 0.0;

  // No point of the wheel's lower half is farther than this from its place at the centre of the region.
  double reach_m(const WheelFootprint& footprint) const noexcept;
};

// Samples of a footprint, row times its width across plus the place in the row, that can carry the wheel.
struct WheelSamples {
  static constexpr int kMax = WheelFootprint::kMaxAlong * WheelFootprint::kMaxAcross;
  int count = 0;
  std::uint16_t id[kMax];

  void all_of(const WheelFootprint& footprint) noexcept;  // middle rows first
};

struct WheelTrackBounds {
  Status status = Status::kOk;  // kOk, kUnknownGround: anywhere in the region
  double lo_m = 0.0;
  double hi_m = 0.0;
};

// Room for the work of WheelPatch; one does for all patches.
class WheelPatch;
class WheelTrackScratch {
  friend class WheelPatch;
  static constexpr int kMaxCells = 900;
  struct Sample {
    double x, y;  // cells
    double value_m;
    int i, j;
  };
  float x_lo[kMaxCells], x_hi[kMaxCells], y_lo[kMaxCells], y_hi[kMaxCells];  // slopes, by rows
  Sample samples[WheelSamples::kMax];
  double upper[WheelSamples::kMax];
};

// The ground about the track of one wheel, detrended, prepared once for the regions along it.
class WheelPatch {
 public:
  // Parts of a region can be asked about whose headings are at most `turn_step_rad` outside its own. kOutsideMap: all that
  // is beyond the map. kConfigBad: the patch has no room for so much ground, or it is too steep.
  Status fill(const GridView& grid, const WheelFootprint& footprint, const WheelTrend& trend,
              const WheelRegion& whole, double turn_step_rad, WheelTrackScratch* scratch) noexcept;

  // Bounds of H less the trend, over the region, for all ground within the map's error. No other samples than those of
  // `among` carry the wheel anywhere in it; `left` (may be null) gets those that this region leaves, for parts of
  // it. `coarse`: the bounds may be wider, and `left` longer, than they need be.
  WheelTrackBounds bound(const WheelRegion& at, const WheelSamples& among, bool coarse,
                         WheelSamples* left) const noexcept;

  // Largest height span of the ground under the footprint at any pose of the region, bounded from above; a
  // bound of at most `enough_m` may be coarse. +inf over unknown ground.
  double relief_bound_m(const WheelRegion& at, double enough_m) const noexcept;

  // Whether the ground that may be asked about reaches over the map's border, where all is unknown.
  bool over_border() const noexcept { return over_border_; }

 private:
  static constexpr int kSide = 30;
  static constexpr int kBlock = 2;  // cells along a side of a block
  // Range of the gradient over a block of cells, rise per cell: middle and half-width.
  struct Gradient {
    float x, spread_x, y, spread_y;
  };
  struct Layout;
  struct Rows;
  float z(int ix, int iy) const noexcept { return z_[iy * kSide + ix]; }
  bool known(double x, double y, double wide_x, double wide_y) const noexcept;
  double steepest(double x, double y, double reach) const noexcept;

  const WheelFootprint* footprint_ = nullptr;
  WheelTrackScratch* scratch_ = nullptr;
  WheelTrend trend_;
  double origin_x_m_ = 0.0, origin_y_m_ = 0.0;  // of cell (0, 0)
  double resolution_m_ = 0.0;
  double datum_m_ = 0.0;
  int nx_ = 0, ny_ = 0;
  bool any_unknown_ = false;
  bool over_border_ = false;
  float highest_ = 0.0F;   // above datum and trend
  float steepest_ = 0.0F;  // gradient over the trend, rise per cell
  double error_m_ = 0.0;   // of the map
  float z_[kSide * kSide];
  Gradient gradient_[kSide * kSide];  // of the block whose first cell is (ix, iy),
  float steep_[kSide * kSide];        // and its largest magnitude
};

}  // namespace mlnav
