// `settle`: the reference checker. It settles the rover every kSettleSpacing_m of a sweep and compares the settled
// states with the limits. It is exact at these poses, where settling converges, and says nothing of those between.
#pragma once

#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav {

inline constexpr double kSettleSpacing_m = 0.02;  // of Sweep::length_m()

class SettleChecker final : public AceChecker {
 public:
  Fault init(const RoverModel& model) noexcept;

  Status set_map(const GridView& map) noexcept override;
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override;
  AceReport report(const Sweep& sweep) const noexcept override;
  const RoverModel& model() const noexcept override { return model_; }

  // report() for a state that is already settled, from another start for example.
  AceReport judge(const Pose2& pose, const SettledState& settled) const noexcept;

 private:
  AceReport along(const Sweep& sweep, bool to_first_failure) const noexcept;

  RoverModel model_;
  SettleModel settle_;
  GridView map_;
};

}  // namespace mlnav
