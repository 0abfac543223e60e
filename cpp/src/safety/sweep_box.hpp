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

// |A B|, summed along rows with weights: what `half` about B's coordinates can be in A's.
void carry(const double a[verified::kN][verified::kN], const double b[verified::kN][verified::kN],
           const double half[verified::kN], double out[verified::kN]) noexcept;
// Inverse by Gauss-Jordan with row pivots; false where a pivot is nearly zero.
bool invert(const double from[verified::kN][verified::kN],
            double inverse[verified::kN][verified::kN]) noexcept;
void turn_links(const double q[verified::kN], verified::Turns<double>* turns) noexcept;

// States q = q_c(t) + Y (u + chi e), |u_i| <= half_m[i], about the straight line q_c between the settled states at
// both ends, for all offsets e within the tube.
struct SweepBox {
  static constexpr int kN = verified::kN;
  Sweep sweep;
  Offset offset;
  Tube tube;
  double from = 0.0, to = 1.0;  // fractions of the sweep
  double q_from[kN], q_to[kN];
  // At the middle.
  double jacobian[kN][kN];  // slopes of S by the state
  double y[kN][kN];         // and their inverse
  double chi[3][kN];  // rise of the centre line by the tube's parameters: along, across, heading
  WheelTrend trend[kN];
  // Result.
  double half_m[kN];      // of the box, in wheel height
  double image_m[kN];     // of its image
  double state_half[kN];  // of the image, by state, about q_c(t)
  double relief_m = 0.0;  // bounds over the image
  double clearance_m = 0.0;

  Pose2 pose_at(double t) const noexcept {
    return moved(sweep.pose_at(from + t * (to - from)), offset);
  }
};

class SweepProver {
 public:
  static constexpr int kN = verified::kN;
  enum Result { kProven, kNoBox, kBeyondLimit, kReliefBeyond, kNoGround };

  // Large: it belongs into an arena. The caller keeps what it refers to alive.
  void begin(const GridView& map, const RoverModel& model, const SettleModel& settle,
             CheckWork* work) noexcept;

  // Whether a settled state exists at every pose of the tube about the sweep, moved by `offset`, between two knots,
  // inside bounds that are within the limits. The box holds at least `least_half_m`. `reasons`: why not.
  Result prove(const Sweep& sweep, const Offset& offset, const Tube& tube, const Knot& from,
               const Knot& to, const SweepBox* before, const double least_half_m[kN], SweepBox* box,
               unsigned* reasons) noexcept;

  // The image of states at the last pose of a box (or its first), in place: settled states within half_m there are
  // within what it leaves. False: that is hardly less. For the box that was proven last, or after come_back().
  bool map_at(const SweepBox& box, bool last, double half_m[kN]) noexcept;
  bool come_back(const SweepBox& box) noexcept;
  // A box about a single pose, of no size yet, by slopes over +-step_m.
  bool stand(const Sweep& sweep, const Offset& offset, const Tube& tube, const Knot& at,
             double step_m, SweepBox* box) noexcept;

 private:
  friend struct SweepProbe;  // tests of single boxes
  static constexpr int kNodes = 9;
  static constexpr int kMaxSplits = 13;
  // The centre line at equal steps, and bounds of what lies between them.
  struct Nodes {
    Pose2 pose[kNodes];
    SinCos heading[kNodes];
    SinCos steering[kNodes][kN];
    double steering_half_rad;  // over the box
    double turn;               // of the rover's heading, over the box
    double travel_m;           // of its origin
    Point2 foot[kNodes][kN];
    double forward[kNodes][kN], left[kNodes][kN];  // the same in the heading frame
    double lean_rad[kNodes][kN];
    double height_m[kNodes][kN];  // of the wheels on the centre line,
    double s[kNodes][kN];         // S there
    double off_m[kN];             // H less S there, the largest at a few nodes
    // How far place, lean and S can be from their linear interpolation between two nodes.
    double foot_between_m;
    double lean_between_rad;
    double height_between_m;
    double s_between_m[kN];
    // At the middle: the links, and slopes of feet and leans by the state.
    verified::Turns<double> turns;
    double d_up[kN][kN], d_forward[kN][kN], d_left[kN][kN], d_lean[kN][kN];
  };
  // Bounds over a box: of the second order of the chain, and of the wheels' reach about the centre line.
  struct Motion {
    double
        rest_m[kN];  // of T, beside the residual of H: what is not linear in the box and the tube
    double forward[kN], left[kN], lean[kN];
  };
  struct Rectangle {
    double along_lo, along_hi, across_lo, across_hi;
  };
  // Where a wheel's foot can be between each two nodes: rectangles in one frame, that of its way from the first node
  // to the last. With the values that belong to each.
  struct Track {
    static constexpr int kMaxPieces = kNodes - 1;
    int pieces;
    int node[kMaxPieces + 1];  // where they begin and end
    Point2 origin;
    SinCos along;
    Rectangle piece[kMaxPieces];
    double lean_lo[kMaxPieces], lean_hi[kMaxPieces];
    double s_lo[kMaxPieces], s_hi[kMaxPieces];
    double heading_half_rad;  // beside the way's own turning
    double turn_step_rad;     // of the wheel, from node to node
    Rectangle whole;
  };
  // Ground and samples about one wheel, for all boxes in which it reaches no farther.
  struct Near {
    double forward, left, lean;
    double found_m;  // bound of |H less trend - S| in all of them
    WheelPatch patch;
    WheelSamples samples;
  };

  // `i` is a wheel.
  Result try_box(const SweepBox* before, const double least_half_m[kN], double step_m,
                 double steepest, SweepBox* box, unsigned* reasons) noexcept;
  void place(const Sweep& sweep, const Offset& offset, const Tube& tube, const Knot& from,
             const Knot& to, SweepBox* box) noexcept;
  void steer(const SweepBox& box) noexcept;
  bool linearize(SweepBox* box, double step_m, double steepest) noexcept;
  bool differentiate(const SweepBox& box) noexcept;
  bool precondition(SweepBox* box) const noexcept;
  void place_nodes(const SweepBox& box) noexcept;
  void detrend(const SweepBox& box) noexcept;
  bool prepare(const SweepBox& box) noexcept;
  void sample_line(const SweepBox& box) noexcept;
  bool bound_motion(const SweepBox& box, const double half_m[kN], Motion* motion) const noexcept;
  void lay_track(const SweepBox& box, const Motion& motion, int i, int first_node, int last_node,
                 Track* out) const noexcept;
  bool part_of(const Track& track, int i, const Rectangle& within, WheelRegion* out, double* s_lo,
               double* s_hi) const noexcept;
  bool look_round(const SweepBox& box, const Motion& motion, int i, bool choose,
                  unsigned* reasons) noexcept;
  double residual(const Near& near, const Track& track, int i, const Rectangle& at,
                  double target_m) noexcept;
  double need(const SweepBox& box, const Motion& motion, int i, double target_m) noexcept;
  double relief_bound_m(const Near& near, const Track& track, int i) const noexcept;
  unsigned beyond_limits(const SweepBox& box, double share) const noexcept;
  unsigned pan_beyond(SweepBox* out) const noexcept;
  unsigned relief_beyond(SweepBox* box) noexcept;

  GridView map_;
  const RoverModel* model_ = nullptr;
  const SettleModel* settle_ = nullptr;
  CheckWork* work_ = nullptr;
  Status ground_ = Status::kOk;  // what the last look-ups of H met
  WheelSamples every_sample_;
  Nodes nodes_;
  Motion motion_;
  Track track_;
  Near near_[kN];
  WheelTrackScratch scratch_;
  WheelSamples left_[kMaxSplits + 1];  // by a rectangle, for its halves
};

}  // namespace mlnav
