// ACE: is the rover safe all along a stretch of motion, and if not, why? All checkers have one interface; a
// planner does not know which one it is given.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "mlnav/ground/grid.hpp"
#include "mlnav/rover/model.hpp"
#include "mlnav/rover/sweep.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// Why a sweep is not safe: one bit per cause.
using Reasons = std::uint16_t;
enum Reason : Reasons {
  kTilt = 1 << 0,
  kBogie = 1 << 1,
  kDifferential = 1 << 2,
  kClearance = 1 << 3,
  kRelief = 1 << 4,         // height span about a wheel: wheel drop of a box, relief of a footprint
  kMechanical = 1 << 5,     // beyond the mechanical range of the linkage
  kUnknown = 1 << 6,        // unknown ground under a wheel or the pan
  kBorder = 1 << 7,         // needs ground beyond the map's border
  kNotSettled = 1 << 8,     // settling did not converge
  kBadPose = 1 << 9,        // not finite, or heading too large
  kKeepOutZone = 1 << 10,   // set by the planner: the outline touches a keep-out zone
  kNotCertified = 1 << 11,  // no proof found in report().inner_steps tries
};
inline constexpr int kReasonCount = 12;
const char* reason_name(int bit) noexcept;  // "tilt", "bogie", ...

// Reasons for a status that settling, or reading the ground, ended with; 0 for kOk.
Reasons reason_of(Status status) noexcept;

// Result of a check. The bounds are on the settled state all along the sweep, and as reliable as the checker (fixed_box: its
// intervals; verified: proven; settle: the state itself). NaN: not evaluated.
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
  // Distance to each limit, positive inside, in the order of the first five reasons.
  double margin_tilt_rad = kNotEvaluated;
  double margin_bogie_rad = kNotEvaluated;
  double margin_differential_rad = kNotEvaluated;
  double margin_clearance_m = kNotEvaluated;
  double margin_relief_m = kNotEvaluated;
  // Probability that a limit is exceeded, if the checker has a model of it (probabilistic).
  double risk = kNotEvaluated;
  int inner_steps = 0;  // chain evaluations
  int lookups = 0;      // evaluations of H, or cells read
  int ranges = 0;       // bounds of H over many places

  // Takes in another part of the same sweep.
  void include(const AceReport& other) noexcept;
};

// What checks cost, to be added to.
struct CheckWork {
  std::int64_t boxes = 0;    // of states: chain evaluations
  std::int64_t lookups = 0;  // of H, or cells read
  std::int64_t ranges = 0;   // bounds of H over many places
};

// A checker answers one question at a time.
class AceChecker : NoCopy {
 public:
  // Checks refer to `map` from now on; the caller keeps it alive and unchanged. One call per map, since
  // checkers may prepare tables. The map's heights must have passed validate().
  virtual Status set_map(const GridView& map) noexcept = 0;

  // The verdict alone, as cheaply as possible; `reasons` may be those of the first stage that fails, and what it
  // cost is added to `work`. Never true where report() says unsafe. A checker that looks at poses chooses them
  // itself, at most its own spacing apart; they need not hold the beginning of a sweep that moves, where the sweep
  // before ends.
  virtual bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept = 0;
  bool is_safe(const Sweep& sweep, Reasons* reasons) const noexcept {
    CheckWork work;
    return check(sweep, reasons, &work);
  }

  // The same verdict with all bounds, margins and reasons that can be evaluated.
  virtual AceReport report(const Sweep& sweep) const noexcept = 0;

  virtual const RoverModel& model() const noexcept = 0;

  // Whether verdicts depend on how the wheels are steered; if not, it need not be asked about re-steering.
  virtual bool sees_steering() const noexcept { return true; }

 protected:
  ~AceChecker() = default;  // never deleted through the interface: the core owns no memory
};

// Whether a stance can be checked: finite (the curvature may be infinite, for turning in place), |heading| at
// most kMaxHeading_rad.
bool stance_ok(const Stance& stance) noexcept;
// Whether a sweep can: its beginning can, and it is at most kMaxExtent long.
inline constexpr double kMaxExtent = 1e3;
bool sweep_ok(const Sweep& sweep) noexcept;

// Calls look(stance) at poses of a sweep at most spacing_m (of Sweep::length_m()) apart, its end the last; its
// beginning is the end of the sweep before. For checkers that judge poses. Stops where look() is false.
template <typename Look>
bool each_stance(const Sweep& sweep, const RoverGeometry& geometry, double spacing_m, Look&& look) {
  if (sweep.resteers) return look(sweep.begin);
  const int steps = static_cast<int>(std::ceil(sweep.length_m(geometry) / spacing_m - 1e-9));
  if (steps < 1) return look(Stance(sweep.pose_at(1.0), sweep.begin.curvature_per_m));
  for (int i = 1; i <= steps; ++i) {
    const double fraction = i == steps ? 1.0 : static_cast<double>(i) / steps;
    if (!look(Stance(sweep.pose_at(fraction), sweep.begin.curvature_per_m))) return false;
  }
  return true;
}

}  // namespace mlnav
