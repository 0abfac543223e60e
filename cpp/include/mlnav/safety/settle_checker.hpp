// `settle`: the reference checker. It settles the rover at the pose and compares the settled state with the
// limits. It is exact where settling converges, and gives no bounds.
#pragma once

#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/checker.hpp"

namespace mlnav {

class SettleChecker final : public AceChecker {
 public:
  Fault init(const RoverModel& model) noexcept;

  Status set_map(const GridView& map) noexcept override;
  bool is_safe(const Stance& stance, Reasons* reasons) const noexcept override;
  AceReport report(const Stance& stance) const noexcept override;
  const RoverModel& model() const noexcept override { return model_; }

  // report() for a state that is already settled, from another start for example.
  AceReport judge(const Pose2& pose, const SettledState& settled) const noexcept;

 private:
  RoverModel model_;
  SettleModel settle_;
  GridView map_;
};

}  // namespace mlnav
