#include "common.hpp"

#include <cmath>
#include <sstream>
#include <string>

namespace mlnav::bindings {
namespace {

const char* explain(Status status) {
  switch (status) {
    case Status::kOk:
      return "no fault";
    case Status::kNotInitialized:
      return "used before it was set up (no map set, or init failed)";
    case Status::kMapEmpty:
      return "the map has no cells";
    case Status::kMapTooLarge:
      return "the map has more cells than max_map_cells reserves memory for";
    case Status::kMapBadResolution:
      return "the map's resolution must be 0.001 to 100 m";
    case Status::kMapBadOrigin:
      return "the map's origin must be finite and within 1e7 m of zero";
    case Status::kMapBadHeight:
      return "a height is infinite or beyond 1e5 m";
    case Status::kMapBadError:
      return "an error of the map's heights is negative, NaN or beyond 1e5 m";
    case Status::kMapAllUnknown:
      return "every cell of the map is unknown (NaN)";
    case Status::kMapResolutionChanged:
      return "the map's resolution changed between cycles";
    case Status::kPoseNotFinite:
      return "the pose is not finite";
    case Status::kPoseHeadingTooLarge:
      return "|heading| is beyond 1e6 rad: wrap it first";
    case Status::kPoseOutsideMap:
      return "the pose lies outside the map";
    case Status::kGoalNotFinite:
      return "the goal is not finite";
    case Status::kGoalToleranceBad:
      return "the goal tolerance must be finite and positive";
    case Status::kRiskBadShape:
      return "the risk map is empty, too large or badly placed";
    case Status::kKeepOutBadShape:
      return "the keep-out mask does not have the map's shape";
    case Status::kConfigBad:
      return "a configuration value is out of range";
    case Status::kArenaTooSmall:
      return "the memory given is too small";
    case Status::kOutputTooSmall:
      return "the output buffer is too small";
    case Status::kNotConverged:
      return "settling did not converge";
    case Status::kUnknownGround:
      return "needed ground is unknown";
    case Status::kOutsideMap:
      return "needed ground lies beyond the map";
    case Status::kOutOfMechanicalRange:
      return "wheel heights beyond the linkage";
    case Status::kViewpointBelowGround:
      return "the viewpoint is not above the ground that it is over";
    case Status::kCostMapBadShape:
      return "cost_grid does not have the shape, resolution and origin of the grid";
  }
  return "";
}

}  // namespace

void require(Status status, const char* field) {
  if (status == Status::kOk) return;
  std::string message = std::string(to_string(status)) + ": " + explain(status);
  if (*field != '\0') message += std::string(" [") + field + "]";
  throw CoreError(message);
}

void require(const Fault& fault) {
  if (fault.ok()) return;
  if (std::isnan(fault.lo)) require(fault.status, fault.field);
  const bool angle = std::string(fault.unit) == "rad";
  const double scale = angle ? 1.0 / kDeg : 1.0;
  std::ostringstream message;
  message << to_string(fault.status) << ": [" << fault.field << "] is " << fault.value * scale
          << (angle ? " deg" : "") << ", must be ";
  if (std::isinf(fault.hi)) {
    message << "at least " << fault.lo * scale;
  } else {
    message << fault.lo * scale << " to " << fault.hi * scale;
  }
  message << (angle ? " deg" : "");
  throw CoreError(message.str());
}

std::vector<Stance> to_stances(const Array<double>& array) {
  if (array.ndim() != 2 || (array.shape(1) != 3 && array.shape(1) != 4)) {
    throw CoreError(
        "poses must have shape (n, 3): x_m, y_m, heading_rad, or (n, 4): curvature_per_m too");
  }
  std::vector<Stance> stances(static_cast<std::size_t>(array.shape(0)));
  const bool steered = array.shape(1) == 4;
  const double* row = array.data();
  for (Stance& stance : stances) {
    stance = Stance{Pose2{row[0], row[1], row[2]}, steered ? row[3] : 0.0};
    row += array.shape(1);
  }
  return stances;
}

std::vector<Sweep> to_sweeps(const Array<double>& array) {
  if (array.ndim() != 2 || array.shape(1) < 3 || array.shape(1) > 6) {
    throw CoreError(
        "sweeps must have shape (n, 3): x_m, y_m, heading_rad, up to (n, 6): curvature_per_m, "
        "extent, "
        "steered_from_per_m too");
  }
  const py::ssize_t width = array.shape(1);
  std::vector<Sweep> sweeps(static_cast<std::size_t>(array.shape(0)));
  const double* row = array.data();
  for (Sweep& sweep : sweeps) {
    const Stance begin{Pose2{row[0], row[1], row[2]}, width > 3 ? row[3] : 0.0};
    sweep = Sweep(begin, width > 4 ? row[4] : 0.0);
    sweep.resteers = width > 5 && !std::isnan(row[5]);
    if (sweep.resteers) {
      if (row[4] != 0.0) throw CoreError("a sweep re-steers at a standstill: extent 0");
      sweep.steered_from_per_m = row[5];
    }
    row += width;
  }
  return sweeps;
}

Array<double> to_array(const std::vector<Pose2>& poses) {
  Array<double> out({static_cast<py::ssize_t>(poses.size()), py::ssize_t{3}});
  double* p = out.mutable_data();
  for (std::size_t i = 0; i < poses.size(); ++i) {
    p[3 * i] = poses[i].x_m;
    p[3 * i + 1] = poses[i].y_m;
    p[3 * i + 2] = poses[i].heading_rad;
  }
  return out;
}

Array<float> copy_floats(const float* data, py::ssize_t ny, py::ssize_t nx) {
  return Array<float>({ny, nx}, data);
}

}  // namespace mlnav::bindings
