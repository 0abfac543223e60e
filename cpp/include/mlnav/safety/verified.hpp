// `verified`: the certified checker. A pose passes only with a proof that the rover has a settled state
// inside the reported bounds, and that everything inside the bounds is within the limits
// (docs/verified_ace.md has the argument).
//
// The unknown is the state itself, q = (roll, pitch, differential, left bogie, right bogie, height), because
// axle positions are explicit in it. A settled state is a zero of
//
//   G_i(q) = Z_i(q) - r - H(P_i(q), lean_i(q)),     i = 1..6,
//
// where Z_i, P_i and lean_i are the axle's height, place and lean, and H is the wheel-height field. Let Y be
// close to the inverse of the slope of G. T(q) = q - Y G(q) is continuous. If T maps a box Q into its
// interior, then Q holds a fixed point of T (Brouwer), Y is regular, and so the fixed point is a settled
// state. The interval image of Q under T is Krawczyk's operator
//
//   K(Q) = q_c - Y G(q_c) + (I - Y J(Q)) (Q - q_c)
//
// (R. Krawczyk, Computing 4, 1969; A. Neumaier, Interval Methods for Systems of Equations, 1990, chapter 5),
// with one change: G has kinks, and no Jacobian. So H enters as its value and slope at the centre and an
// interval for the residual (wheel_range), which adds |Y| times that interval. Neither the ground's slope nor
// the rover's own motion under tilt widens the image.
#pragma once

#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav {

struct VerifiedConfig {
  double enclosed_m = 1e-3;
  int max_tries = 8;
  double first_length_m = 0.1;
  double shortest_m = 0.0006;
  int max_boxes = 96;
  double joint_m = 0.005;
};
template <>
inline constexpr auto kFields<VerifiedConfig> = std::tuple{
    number("enclosed_m", "m", &VerifiedConfig::enclosed_m, 1e-8, 0.1,
           "Half-width of the first enclosure, in wheel height."),
    number("max_tries", "", &VerifiedConfig::max_tries, 1, 100,
           "Boxes tried at a pose before `not_certified`."),
    number("first_length_m", "m", &VerifiedConfig::first_length_m, 0.01, 2.0,
           "Of the stretches that a sweep is proven in; halved where there is no proof."),
    number("shortest_m", "m", &VerifiedConfig::shortest_m, 1e-4, 0.1,
           "No stretch is halved to less."),
    number("max_boxes", "", &VerifiedConfig::max_boxes, 1, 100000,
           "Boxes tried along a sweep before `not_certified`."),
    number("joint_m", "m", &VerifiedConfig::joint_m, 1e-6, 0.1,
           "Wheel heights about the settled ones that a sweep must start with and end within."),
};
Fault validate(const VerifiedConfig& config) noexcept;

class SweepCover;  // proves sweeps: its memory

class VerifiedChecker final : public AceChecker {
 public:
  // Bytes of an arena at any address: for the proof of sweeps, one at a time. So one thread at a time may ask.
  static std::size_t memory_required() noexcept;
  Fault init(const RoverModel& model, const VerifiedConfig& config, Arena* arena) noexcept;

  Status set_map(const GridView& map) noexcept override;
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override;
  AceReport report(const Sweep& sweep) const noexcept override;
  const RoverModel& model() const noexcept override { return model_; }

 private:
  static constexpr int kStates = 6;
  friend struct VerifiedBoxes;  // tests of single boxes
  struct Reach;
  struct Work;  // one pose's working values
  unsigned reasons_beyond_limits(const ChainState<double>& state, double beyond_rad) const noexcept;
  bool find_centre(Work* work, const Stance& stance) const noexcept;
  void set_angles(Work* work) const noexcept;
  bool bound_motion(Work* work, Reach* reach) const noexcept;
  bool linearize(Work* work) const noexcept;
  void interval_remainder(const Work& work, double out[kStates]) const noexcept;  // |I - Y J(Q)| w
  bool krawczyk_image(Work* work, double reach, double enclosed_m) const noexcept;
  bool certify(Work* work) const noexcept;
  void judge_box(Work* work) const noexcept;
  AceReport check_pose(const Stance& stance, bool everything) const noexcept;
  AceReport prove_sweep(const Sweep& sweep) const noexcept;
  Status take_memory(Arena* arena) noexcept;

  RoverModel model_;
  VerifiedConfig config_;
  SettleModel settle_;
  GridView map_;
  SweepCover* cover_ = nullptr;
};

}  // namespace mlnav
