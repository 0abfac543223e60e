// Statuses: every fault that comes from outside (map, pose, goal, configuration, model) is one of
// these values. The core throws nothing and asserts only its own invariants (assert.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace mlnav {

enum class Status : std::uint8_t {
  kOk = 0,
  kNotInitialized,        // init() was not called, or failed
  kMapEmpty,              // no data pointer, or nx or ny is zero
  kMapTooLarge,           // more cells than the configuration reserved memory for
  kMapBadResolution,      // resolution not finite, not positive, or out of [kMin, kMax]Resolution
  kMapBadOrigin,          // origin not finite, or too far from zero for float64 sub-cell precision
  kMapBadHeight,          // a height is infinite, or beyond +-kMaxHeight
  kMapBadError,           // an error of the heights is negative, NaN, or beyond kMaxHeight
  kMapAllUnknown,         // every cell is NaN
  kMapResolutionChanged,  // the map's resolution differs from that of earlier cycles
  kPoseNotFinite,         // x, y or heading is NaN or infinite
  kPoseHeadingTooLarge,   // |heading| beyond kMaxHeading: wrap it before the call
  kPoseOutsideMap,        // the pose is not inside the map's extent
  kGoalNotFinite,         // goal is NaN or infinite
  kGoalToleranceBad,      // goal tolerance is not finite and positive
  kRiskBadShape,          // risk map without data, bins or cells, or with a bad resolution
  kKeepOutBadShape,       // keep-out mask does not match the map's shape
  kConfigBad,             // a configuration value is out of range; see Fault::field
  kArenaTooSmall,         // the caller's memory is smaller than memory_required()
  kOutputTooSmall,        // the caller's output buffer is smaller than the result
  kNotConverged,          // settling did not reach its tolerance
  kUnknownGround,         // needed terrain is NaN
  kOutsideMap,            // needed terrain lies beyond the map's border
  kOutOfMechanicalRange,  // wheel heights that the rocker-bogie linkage cannot take
  kViewpointBelowGround,  // a viewpoint is not above the ground below it
  kCostMapBadShape,       // the map for costs does not have the map's shape, resolution and origin
};

const char* to_string(Status status) noexcept;

// A status. If a configuration value is at fault: the name of its field ("" otherwise). If the value is out
// of its range: the value and the range in `unit` (NaN otherwise).
struct Fault {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Status status = Status::kOk;
  const char* field = "";
  double value = kNone;
  double lo = kNone;
  double hi = kNone;
  const char* unit = "";
  constexpr bool ok() const noexcept { return status == Status::kOk; }
};

// A configuration value and its closed range.
struct Range {
  double value;
  double lo;
  double hi;
  const char* field;
  const char* unit;
};

// kConfigBad for the first value that is out of its range; NaN is out of every range.
Fault out_of_range(const Range* ranges, std::size_t count) noexcept;
template <std::size_t N>
Fault out_of_range(const Range (&ranges)[N]) noexcept {
  return out_of_range(ranges, N);
}

}  // namespace mlnav
