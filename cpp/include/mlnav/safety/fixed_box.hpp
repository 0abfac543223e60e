// `fixed_box`: the ENav-like checker (Otsu et al. 2019, arXiv 1808.00031). Each wheel's height is taken to
// lie between the lowest and the highest cell of a body-aligned box of fixed size about its nominal position.
// The planar chain is monotone in every wheel height, so its extremes are at corners of the six intervals. It
// is conservative, and not a proof: docs/benchmarks.md shows how often settled states leave its bounds.
//
// Definitions:
//  - The pose is rounded to 2^-20 of a cell. A wheel box holds the cells whose centres lie within half_length
//    along and half_width across of the wheel's nominal position, at least 0.7072 cells each way, so that no
//    box is empty.
//  - The belly pan is cut into kPanelsAlong x kPanelsAcross panels. A panel's ground is the highest
//    cell of the smallest axis-aligned square block of cells about the cell nearest to its centre that
//    holds the panel at any heading.
//  - A pose is kBorder if it is closer to the border than the rover reaches in any direction.
//  - Roll uses the effective arm of the linkage, and the side planes are assumed vertical.
#pragma once

#include "mlnav/rover/kinematics.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav {

struct FixedBoxConfig {
  double half_length_m = 0.20;
  double half_width_m = 0.20;
};
template <>
inline constexpr auto kFields<FixedBoxConfig> = std::tuple{
    number("half_length_m", "m", &FixedBoxConfig::half_length_m, 1e-3, 1.0,
           "Of a wheel's box, along the rover."),
    number("half_width_m", "m", &FixedBoxConfig::half_width_m, 1e-3, 1.0, "Across."),
};
Fault validate(const FixedBoxConfig& config) noexcept;

// Lowest and highest ground in each wheel's box.
struct WheelBoxes {
  float lo_m[kWheels];
  float hi_m[kWheels];
};

class FixedBoxChecker final : public AceChecker {
 public:
  static constexpr int kPanelsAlong = 6;
  static constexpr int kPanelsAcross = 5;
  static constexpr int kPanels = kPanelsAlong * kPanelsAcross;

  // Bytes of an arena at any address.
  static std::size_t memory_required(std::size_t max_map_cells) noexcept;
  Fault init(const RoverModel& model, const FixedBoxConfig& config, std::size_t max_map_cells,
             Arena* arena) noexcept;

  Status set_map(const GridView& map) noexcept override;
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override;
  AceReport report(const Sweep& sweep) const noexcept override;
  // Wheel boxes reach this far from their pose: those of a sweep overlap.
  static constexpr double kSpacing_m = 0.28;  // 10 deg of a turn
  const RoverModel& model() const noexcept override { return model_; }
  bool sees_steering() const noexcept override { return false; }

 private:
  friend class AceMapper;

  // A pose in cells: its cell, the offset within it, and the heading.
  struct CellPose {
    int ix, iy;
    double fx, fy;  // in [-0.5, 0.5], multiples of 2^-20
    double sin, cos;
  };
  // Shape of the wheel boxes at one heading. The row at dy from a box's centre holds the columns whose dx is
  // within `along_half` of along_slope * dy and within `across_half` of across_slope * dy. Integers are in
  // units of 2^-32 cells.
  struct BoxShape {
    double along_slope, across_slope;
    double rows_half;
    int rows;  // the most rows a box can touch
    std::int64_t along_step, along_half;
    std::int64_t across_step, across_half;
  };
  // Bounds of the state from the chain, as sines and cosines: verdicts need no angles.
  struct Attitude {
    struct Angle {
      double sin, cos;
    };
    Angle bogie_lo[2], bogie_hi[2];                        // relative to the rocker; left, right
    bool bogie_beyond;                                     // any of them is beyond its limit
    Angle double_differential_lo, double_differential_hi;  // of twice the differential
    Angle pitch_lo, pitch_hi;
    Angle roll_lo, roll_hi;
    double pivot_lo_m, pivot_hi_m;  // mean height of the rocker pivots
    double cos_tilt;                // at the worst roll and the worst pitch
  };
  // Lower bound of the pan plane over panel (i, j): base + along[i] + across[j].
  struct PanBounds {
    double base_m;
    double along_m[kPanelsAlong];
    double across_m[kPanelsAcross];
  };
  // Cell nearest to each panel's centre, as an offset in the map from the pose's cell.
  struct PanelCells {
    std::ptrdiff_t offset[kPanels];
  };

  AceReport report_pose(const Stance& stance) const noexcept;
  bool locate(const Stance& stance, CellPose* cell_pose, Reasons* reasons) const noexcept;
  BoxShape box_shape(double sin, double cos) const noexcept;
  // Calls visit(dy, first_dx, last_dx) for the rows of a wheel's box, relative to the pose's cell. A row with
  // first_dx > last_dx has no cells in the box.
  template <typename Visit>
  void visit_box(const CellPose& pose, const BoxShape& shape, int wheel, Visit&& visit) const;
  bool read_boxes(const CellPose& pose, WheelBoxes* boxes) const noexcept;
  PanelCells panel_cells(const CellPose& pose) const noexcept;
  Reasons check_relief(const WheelBoxes& boxes) const noexcept;
  bool bound_attitude(const WheelBoxes& boxes, Attitude* out) const noexcept;
  Reasons check_attitude(const Attitude& attitude) const noexcept;
  PanBounds bound_pan(const Attitude& attitude) const noexcept;
  double clearance_m(const PanBounds& pan, const PanelCells& cells,
                     const CellPose& pose) const noexcept;
  Bounds origin_z_m(const Attitude& attitude) const noexcept;
  // `panels`: the pose's panel cells if they are already computed, else null.
  Reasons judge_boxes(const WheelBoxes& boxes, const PanelCells* panels,
                      const CellPose& at) const noexcept;

  RoverModel model_;
  FixedBoxConfig config_;
  Linkage linkage_;
  WheelPlan plan_{};
  double sin_bogie_max_ = 0.0;
  double sin_double_differential_max_ = 0.0;
  double cos_tilt_max_ = 0.0;
  double panel_x_m_[kPanelsAlong + 1] = {};   // edges, rear to front
  double panel_y_m_[kPanelsAcross + 1] = {};  // edges, right to left

  GridView map_;
  double cells_per_m_ = 0.0;
  double half_length_cells_ = 0.0;
  double half_width_cells_ = 0.0;
  int block_radius_ = 0;        // of a panel's block of cells
  int reach_cells_ = 0;         // no box or block leaves this square about the pose's cell
  int row_cells_max_ = 0;       // the most cells a row of a box can have
  float* known_ = nullptr;      // the map with +inf for unknown
  float* block_max_ = nullptr;  // per cell: highest of the block about it, +inf if any is unknown
  float* scratch_ = nullptr;
  std::size_t max_map_cells_ = 0;
};

}  // namespace mlnav
