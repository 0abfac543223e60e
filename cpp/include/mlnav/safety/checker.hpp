// ACE: is the rover safe at a pose, and if not, why? Checkers stand behind one interface; planners
// neither know nor care which they are given.
#pragma once

#include <cstdint>
#include <limits>

#include "mlnav/ground/grid.hpp"
#include "mlnav/rover/model.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// Why a pose is not safe: a bit per cause.
using Reasons = std::uint16_t;
enum Reason : Reasons {
  kTilt = 1 << 0,
  kBogie = 1 << 1,
  kDifferential = 1 << 2,
  kClearance = 1 << 3,
  kRelief = 1 << 4,         // height span about a wheel: wheel drop of a box, relief of a footprint
  kMechanical = 1 << 5,     // beyond what the linkage can take
  kUnknown = 1 << 6,        // unknown ground under a wheel or the pan
  kBorder = 1 << 7,         // too close to the map's border to tell
  kNotSettled = 1 << 8,     // settling did not converge
  kBadPose = 1 << 9,        // not finite, or heading too large
  kKeepOutZone = 1 << 10,   // set by the planner: the outline touches a keep-out zone
  kNotCertified = 1 << 11,  // no proof found, in as many tries as report().inner_steps says
};
inline constexpr int kReasonCount = 12;
const char* reason_name(int bit) noexcept;  // "tilt", "bogie", ...

// Why a pose is not safe when settling there, or looking up ground it needs, ends with this status; 0 for kOk.
Reasons reason_of(Status status) noexcept;

// What a checker found out about a pose. Bounds hold for the settled state as far as the checker can
// tell (fixed_box: its intervals; settle: the state itself). NaN: not evaluated.
struct AceReport {
  static constexpr double kNotEvaluated = std::numeric_limits<double>::quiet_NaN();
  static constexpr Bounds kNoBounds{kNotEvaluated, kNotEvaluated};

  bool safe = false;
  Reasons reasons = 0;
  Bounds roll_rad = kNoBounds;
  Bounds pitch_rad = kNoBounds;
  Bounds differential_rad = kNoBounds;
  Bounds bogie_left_rad = kNoBounds;
  Bounds bogie_right_rad = kNoBounds;
  Bounds origin_z_m = kNoBounds;
  double tilt_max_rad = kNotEvaluated;
  double clearance_min_m = kNotEvaluated;
  double relief_max_m = kNotEvaluated;
  // Distance to each limit, positive inside: the first five reasons in order.
  double margin_tilt_rad = kNotEvaluated;
  double margin_bogie_rad = kNotEvaluated;
  double margin_differential_rad = kNotEvaluated;
  double margin_clearance_m = kNotEvaluated;
  double margin_relief_m = kNotEvaluated;
  // Probability that a limit is exceeded, where a checker has a model of it (probabilistic).
  double risk = kNotEvaluated;
  int inner_steps = 0;  // chain evaluations
  int lookups = 0;      // evaluations of H, or cells read
};

class AceChecker : NoCopy {
 public:
  // Looks at `map` from now on; the caller keeps it alive and unchanged. One call per map, since
  // checkers may prepare tables. The map's heights must have passed validate().
  virtual Status set_map(const GridView& map) noexcept = 0;

  // The verdict alone, as cheaply as the checker can; `reasons` may stop at the first stage that
  // fails. Never true where report() says unsafe.
  virtual bool is_safe(const Stance& stance, Reasons* reasons) const noexcept = 0;

  // The verdict with every bound, margin and reason that can be evaluated. Same verdict as is_safe().
  virtual AceReport report(const Stance& stance) const noexcept = 0;

  virtual const RoverModel& model() const noexcept = 0;

 protected:
  ~AceChecker() = default;  // never deleted through the interface: the core owns no memory
};

// Whether a stance can be looked at all: finite (but for the curvature of turning in place), with a heading
// that still has its digits.
bool stance_ok(const Stance& stance) noexcept;

}  // namespace mlnav
