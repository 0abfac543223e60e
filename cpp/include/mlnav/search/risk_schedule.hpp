// When a planner asks its heuristic for a risk map. A map costs time, and most cycles do without one: then it
// is asked for when the cheapest path has failed. But hard ground comes in stretches, and there a map pays
// from the start of the cycle.
#pragma once

#include <cstdint>

#include "mlnav/fields.hpp"
#include "mlnav/status.hpp"

namespace mlnav {

enum class AskRisk : std::uint8_t {
  kAlways,     // up front in every cycle
  kOnFailure,  // after the cheapest path has failed; up front on hard ground
};

inline constexpr const char* kAskRiskNames[] = {"always", "on_failure"};

struct RiskPolicy {
  AskRisk ask = AskRisk::kOnFailure;
  int persist_cycles = 3;
};
template <>
inline constexpr auto kFields<RiskPolicy> = std::tuple{
    choice("ask", &RiskPolicy::ask, kAskRiskNames,
           "When the risk map is made: always up front, or on_failure of the cheapest path."),
    number(
        "persist_cycles", "", &RiskPolicy::persist_cycles, 0.0, 1e6,
        "With on_failure: after a cycle that needed the map, so many have it from the start. Hard "
        "ground comes in stretches."),
};
Fault validate(const RiskPolicy& policy) noexcept;

class RiskSchedule {
 public:
  void init(const RiskPolicy& policy) noexcept {
    policy_ = policy;
    reset();
  }
  // Forgets the ground of earlier cycles.
  void reset() noexcept { hard_cycles_ = 0; }
  // Whether the cycle that begins asks before it ranks.
  bool up_front() const noexcept { return policy_.ask == AskRisk::kAlways || hard_cycles_ > 0; }
  // A cycle is over. It needed a map if it used one and either asked for it after a failure or tried more
  // than one path with it.
  void end_cycle(bool needed_map) noexcept {
    if (needed_map) {
      hard_cycles_ = policy_.persist_cycles;
    } else if (hard_cycles_ > 0) {
      --hard_cycles_;
    }
  }

 private:
  RiskPolicy policy_;
  int hard_cycles_ = 0;  // cycles to come on ground that counts as hard
};

}  // namespace mlnav
