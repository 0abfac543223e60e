// `verified`: the certified checker. A pose passes only with a proof that the rover has a settled state
// inside the reported bounds, and that everything inside the bounds is within the limits
// (docs/verified_ace.md has the argument).
//
// Unknown is the state itself, q = (roll, pitch, differential, left bogie, right bogie, height), because
// axle positions are explicit in it. A settled state is a zero of
//
//   G_i(q) = Z_i(q) - r - H(P_i(q), lean_i(q)),     i = 1..6,
//
// Z_i, P_i and lean_i axle height, place and lean, H the wheel-height field. With Y close to the inverse of G's slope,
// T(q) = q - Y G(q) is continuous; if T maps a box Q into its own inside, Q holds a fixed point of T
// (Brouwer), Y is regular, and so the fixed point is a settled state. H enters as its value and slope at
// the centre and a range for the rest (wheel_range), so that neither the ground's slope nor the rover's own
// motion under tilt widens anything.
#pragma once

#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav {

struct VerifiedConfig {
  double enclosed_m = 1e-3;
  int max_tries = 8;
};
template <>
inline constexpr auto kFields<VerifiedConfig> = std::tuple{
    number("enclosed_m", "m", &VerifiedConfig::enclosed_m, 1e-8, 0.1,
           "Half-width of the first enclosure, in wheel height."),
    number("max_tries", "", &VerifiedConfig::max_tries, 1, 100,
           "Boxes tried before `not_certified`."),
};
Fault validate(const VerifiedConfig& config) noexcept;

class VerifiedChecker final : public AceChecker {
 public:
  Fault init(const RoverModel& model, const VerifiedConfig& config) noexcept;

  Status set_map(const GridView& map) noexcept override;
  bool is_safe(const Stance& stance, Reasons* reasons) const noexcept override;
  AceReport report(const Stance& stance) const noexcept override;
  const RoverModel& model() const noexcept override { return model_; }

 private:
  static constexpr int kStates = 6;
  friend struct VerifiedBoxes;  // tests of single boxes
  struct Reach;
  struct Work;  // one pose's working values
  unsigned hopeless(const ChainState<double>& state, double beyond_rad) const noexcept;
  bool guess(Work* work, const Stance& stance) const noexcept;
  void turn(Work* work) const noexcept;
  bool move(Work* work, Reach* reach) const noexcept;
  bool linearize(Work* work) const noexcept;
  void drift(const Work& work, double out[kStates]) const noexcept;
  bool enclose(Work* work, double reach, double enclosed_m) const noexcept;
  bool certify(Work* work) const noexcept;
  void judge_box(Work* work) const noexcept;
  AceReport check(const Stance& stance, bool everything) const noexcept;

  RoverModel model_;
  VerifiedConfig config_;
  SettleModel settle_;
  GridView map_;
};

}  // namespace mlnav
