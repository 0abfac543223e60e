#include "mlnav/search/risk_schedule.hpp"

namespace mlnav {

Fault validate(const RiskPolicy& policy) noexcept { return check_fields(policy); }

}  // namespace mlnav
