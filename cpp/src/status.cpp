#include "mlnav/status.hpp"

namespace mlnav {

const char* to_string(Status status) noexcept {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kNotInitialized:
      return "not initialized";
    case Status::kMapEmpty:
      return "map empty";
    case Status::kMapTooLarge:
      return "map too large";
    case Status::kMapBadResolution:
      return "map resolution bad";
    case Status::kMapBadOrigin:
      return "map origin bad";
    case Status::kMapBadHeight:
      return "map height infinite or too large";
    case Status::kMapBadError:
      return "error of a map's height negative, not a number, or too large";
    case Status::kMapAllUnknown:
      return "map all unknown";
    case Status::kMapResolutionChanged:
      return "map resolution changed";
    case Status::kPoseNotFinite:
      return "pose not finite";
    case Status::kPoseHeadingTooLarge:
      return "pose heading too large";
    case Status::kPoseOutsideMap:
      return "pose outside map";
    case Status::kGoalNotFinite:
      return "goal not finite";
    case Status::kGoalToleranceBad:
      return "goal tolerance bad";
    case Status::kRiskBadShape:
      return "risk map shape bad";
    case Status::kKeepOutBadShape:
      return "keep-out mask shape bad";
    case Status::kConfigBad:
      return "configuration bad";
    case Status::kArenaTooSmall:
      return "arena too small";
    case Status::kOutputTooSmall:
      return "output buffer too small";
    case Status::kNotConverged:
      return "settling did not converge";
    case Status::kUnknownGround:
      return "unknown ground";
    case Status::kOutsideMap:
      return "outside map";
    case Status::kOutOfMechanicalRange:
      return "out of mechanical range";
    case Status::kViewpointBelowGround:
      return "viewpoint below ground";
    case Status::kCostMapBadShape:
      return "map for costs: shape bad";
  }
  return "invalid status";
}

Fault out_of_range(const Range* ranges, std::size_t count) noexcept {
  for (const Range* range = ranges; range != ranges + count; ++range) {
    if (range->value >= range->lo && range->value <= range->hi) continue;
    return {Status::kConfigBad, range->field, range->value, range->lo, range->hi, range->unit};
  }
  return {};
}

}  // namespace mlnav
