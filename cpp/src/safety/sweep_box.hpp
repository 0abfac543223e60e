// Internals of `verified`: a box of states that proves a stretch of motion (docs/verified_ace.md, "Sweeps").
#pragma once

#include "mlnav/ground/wheel_track.hpp"
#include "mlnav/rover/settle.hpp"
#include "mlnav/rover/sweep.hpp"
#include "mlnav/safety/checker.hpp"
#include "verified_work.hpp"

namespace mlnav {

// The settled rover at one fraction of a sweep.
struct Knot {
  double fraction = 0.0;
  double q[verified::kN] = {};
  double heights_m[kWheels] = {};
};

// What the rover may do within the bounds: a limit and the slack of each.
struct SweepBounds {
  double lo[verified::kN], hi[verified::kN];
  double tilt_max_rad = 0.0;
  double clearance_min_m = 0.0;
  double relief_max_m = 0.0;
};

// States q = q_c(t) + Y (u + chi e), |u_i| <= half_m_i, about the line q_c between the settled states at both ends.
struct SweepBox {
  static constexpr int kN = verified::kN;
  static constexpr int kNodes = 9;
  // Motion.
  Sweep sweep;
  Tube tube;
  double from = 0.0, to = 1.0;  // fractions of the sweep
  double q_from[kN], q_to[kN];
  // At the middle.
  double y[kN][kN];             // inverse of the slopes of S by the state
  double jacobian[kN][kN];      // these slopes
  double chi[3][kN];            // rise of the centre line by the tube's parameters: along, across, heading
  WheelTrend trend[kN];
  // Result.
  double half_m[kN];            // of the box, in wheel height
  double image_m[kN];           // of its image
  double state_half[kN];        // of the image, by state, about q_c(t)
};

class SweepProver {
 public:
  enum Result { kProven, kNoBox, kBeyondLimit, kReliefBeyond, kNoGround };

  struct Work {
    int boxes = 0;     // tried
    int regions = 0;   // bounds of H over a region
    int lookups = 0;
    int rounds = 0;
  };

  SweepProver(const GridView& map, const RoverModel& model, const SettleModel& settle, Work* work) noexcept
      : map_(map), model_(model), settle_(settle), work_(work) {}

  // Whether a settled state exists at every pose of the tube about the sweep between two knots, inside bounds that
  // are within the limits. `least_half_m` (may be null): the box is to hold at least as much of heights.
  Result prove(const Sweep& sweep, const Tube& tube, const Knot& from, const Knot& to,
               const double* least_half_m, SweepBox* box, unsigned* reasons) noexcept;

 private:
  static constexpr int kN = verified::kN;
  static constexpr int kNodes = SweepBox::kNodes;
  struct Nodes;
  struct Motion;
  struct Track;
  bool linearize(SweepBox* box, Nodes* nodes, double step_m, double clamp) noexcept;
  Result prove(const Sweep& sweep, const Tube& tube, const Knot& from, const Knot& to, double step_m, double clamp,
               const double* least_half_m, SweepBox* box, unsigned* reasons) noexcept;
  void place_nodes(const SweepBox& box, Nodes* nodes) const noexcept;
  bool bound_motion(const SweepBox& box, const Nodes& nodes, const double half_m[kN], Motion* motion) const noexcept;
  void lay_track(const SweepBox& box, const Nodes& nodes, const Motion& motion, int wheel, Track* track) const noexcept;
  bool part_of(const Nodes& nodes, const Track& track, int wheel, const double rectangle[4], WheelRegion* region,
               double* s_lo, double* s_hi) const noexcept;
  double residual(const WheelPatch& patch, const Nodes& nodes, const Track& track, int wheel,
                  const double rectangle[4], double target_m, int depth, const WheelSamples& among) noexcept;
  bool relief_within(const WheelPatch& patch, const Nodes& nodes, const Track& track, int wheel,
                     const double rectangle[4], int depth) const noexcept;
  unsigned beyond_limits(const SweepBox& box) const noexcept;
  unsigned pan_beyond(const SweepBox& box) const noexcept;
  unsigned relief_beyond(const SweepBox& box, const Nodes& nodes, WheelPatch* patch) noexcept;
  double roomiest_m(const SweepBox& box) const noexcept;
  static void box_states(SweepBox* box, const double half_m[kN]) noexcept;
  bool fill_patch(const SweepBox& box, const Nodes& nodes, const Track& track, int i, WheelPatch* patch, WheelRegion* whole,
                  unsigned* reasons) const noexcept;

  const GridView& map_;
  const RoverModel& model_;
  const SettleModel& settle_;
  Work* work_;
  bool coarse_ = false;
};

}  // namespace mlnav
