// Settling: the state in which a rover rests on a heightmap with all six wheels in contact.
//
// A settled state is a fixed point of heights -> state -> wheel positions and leans -> H -> heights.
#pragma once

#include <cstdint>

#include "mlnav/ground/wheel_height.hpp"
#include "mlnav/rover/kinematics.hpp"

namespace mlnav {

inline constexpr double kSettleTolerance_m = 1e-6;
inline constexpr int kSettleMaxSteps = 480;

struct SettledState {
  Status status = Status::kNotInitialized;  // kOk: all wheels in contact within the tolerance
  ChainState<double> state{};
  WheelPositions<double> positions{};
  double heights_m[kWheels] = {};  // contact heights: H at the wheels and their leans
  double residual_m = 0.0;         // largest |H - height| at the last step
  double relief_m[kWheels] = {};   // height span of the ground under each wheel's footprint
  double relief_max_m = 0.0;       // the largest of them
  int steps = 0;                   // chain evaluations
  int lookups = 0;                 // evaluations of H
};

// What settling needs besides the map, prepared once.
struct SettleModel {
  Linkage linkage;
  WheelFootprint footprint;
};
Status make_settle_model(const RoverGeometry& geometry, SettleModel* model) noexcept;

// Start of settling: H at the nominal wheel positions, with the axles' leans on the plane of best fit to the
// ground there.
Status nominal_heights(const GridView& grid, const SettleModel& model, const Stance& stance,
                       double heights_m[kWheels]) noexcept;

// Settles the rover whose origin is over (x, y). `start_heights_m` (Wheel order) is the first guess;
// null starts from nominal_heights(). Wheels are steered as the stance says.
SettledState settle(const GridView& grid, const SettleModel& model, const Stance& stance,
                    const double* start_heights_m = nullptr) noexcept;

// The same with each wheel steered individually (Wheel order, relative to the rover, as from
// wheel_steering()): between the steering of one stance and that of the next, the wheels have no common
// centre.
SettledState settle(const GridView& grid, const SettleModel& model, const Pose2& pose,
                    const SinCos steering[kWheels],
                    const double* start_heights_m = nullptr) noexcept;

// Smallest vertical distance between belly pan and ground, over every cell that supports the bilinear ground
// under the pan (the pan's horizontal projection, widened by one cell and by widen_m). NaN when `status` is
// not kOk: unknown ground, or the pan (widened by widen_m) beyond the border.
struct Clearance {
  Status status = Status::kOk;
  double clearance_m = 0.0;
  int cells = 0;
};
Clearance pan_clearance(const GridView& grid, const RoverGeometry& geometry, const Pose2& pose,
                        const ChainState<double>& state, double widen_m = 0.0) noexcept;

}  // namespace mlnav
