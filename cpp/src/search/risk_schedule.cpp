#include "mlnav/search/risk_schedule.hpp"

namespace mlnav {

Fault validate(const RiskPolicy& policy) noexcept {
  const Range ranges[] = {
      {static_cast<double>(policy.ask), 0.0, 1.0, "ask"},
      {policy.persist_cycles * 1.0, 0.0, 1e6, "persist_cycles"},
  };
  return out_of_range(ranges);
}

}  // namespace mlnav
