// `probabilistic`: p-ACE (Ghosh, Otsu, Ono, IROS 2018), for comparison and never the default. The intervals
// are those of fixed_box, but each state has a probability distribution over its interval, and a pose passes
// if it is within the limits with sufficient probability. It proves nothing.
//
// Definitions:
//  - A state is normal, its mean at the middle of its interval and its standard deviation a fraction of
//    the width; states are independent. The normal keeps its tails beyond the interval.
//  - States: roll and pitch (together the tilt), both bogies, differential, clearance. The interval of
//    clearance begins at fixed_box's bound. Its width is the most that the pan can rise within the intervals
//    of height, pitch and roll, where it rises most: width(z) + max |x| width(tan pitch) + max |y| width(tan
//    roll).
//  - The span of a wheel box is known from the map, so wheel drop is exceeded with probability 0 or 1.
//  - risk = 1 - product over the limits of P(within it), and a pose is safe if risk <= risk_max. The risk
//    of a path is its poses' largest, so the threshold of a path is the threshold of each of its poses.
//  - Reasons: the fewest limits, those most likely exceeded first, without which the pose would pass.
//  - Where fixed_box has no intervals (unknown ground, border, beyond the linkage, bad pose), the pose is
//    not safe for that reason alone, and has no risk.
// Bounds and margins are fixed_box's: a pose may pass with a negative margin.
#pragma once

#include "mlnav/safety/fixed_box.hpp"

namespace mlnav {

struct ProbabilisticConfig {
  double sigma_fraction = 0.17;
  // Unpublished. Intervals that just fill their limits have tails beyond them: what fixed_box passes has a
  // risk of up to 0.015 (0.055 at a fraction of 0.20), and 0.05 is a step above.
  double risk_max = 0.05;
};
template <>
inline constexpr auto kFields<ProbabilisticConfig> = std::tuple{
    number("sigma_fraction", "", &ProbabilisticConfig::sigma_fraction, 0.13, 0.20,
           "Standard deviation of a state, of its interval's width; published: 0.13 to 0.20."),
    number("risk_max", "", &ProbabilisticConfig::risk_max, 0.0, 1.0,
           "Probability of exceeding any limit that a pose may have."),
};
Fault validate(const ProbabilisticConfig& config) noexcept;

class ProbabilisticChecker final : public AceChecker {
 public:
  // Bytes of an arena at any address.
  static std::size_t memory_required(std::size_t max_map_cells) noexcept {
    return FixedBoxChecker::memory_required(max_map_cells);
  }
  Fault init(const RoverModel& model, const FixedBoxConfig& boxes,
             const ProbabilisticConfig& config, std::size_t max_map_cells, Arena* arena) noexcept;

  Status set_map(const GridView& map) noexcept override { return boxes_.set_map(map); }
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override;
  AceReport report(const Sweep& sweep) const noexcept override;
  const RoverModel& model() const noexcept override { return boxes_.model(); }
  bool sees_steering() const noexcept override { return false; }

 private:
  AceReport report_pose(const Stance& stance) const noexcept;
  static constexpr int kLimits = 5;  // as the first five reasons
  // Nodes of the quadrature over roll or pitch, in standard deviations from its mean: -4 to 4.
  static constexpr int kNodes = 17;
  static double node(int i) noexcept { return 0.5 * i - 4.0; }
  // P(state outside [least, most]).
  double probability_outside(const Bounds& state, double least, double most) const noexcept;
  // P(tilt beyond its limit).
  double probability_tilted(const Bounds& roll, const Bounds& pitch) const noexcept;
  // P(limit exceeded) for each.
  void probabilities(const AceReport& box, double exceeded[kLimits]) const noexcept;

  FixedBoxChecker boxes_;
  ProbabilisticConfig config_;
  double cos_tilt_max_ = 0.0;
  double weight_[kNodes] = {};  // of the nodes, by the normal distribution
};

}  // namespace mlnav
