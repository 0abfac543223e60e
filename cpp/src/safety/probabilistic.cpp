#include "mlnav/safety/probabilistic.hpp"

#include <cmath>
#include <limits>

namespace mlnav {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double larger(double a, double b) noexcept { return a > b ? a : b; }
double smaller(double a, double b) noexcept { return a < b ? a : b; }

double tangent(double angle_rad) noexcept {
  const SinCos a = det_sincos(angle_rad);
  return a.sin / a.cos;
}
double tangent_width(const Bounds& b) noexcept { return tangent(b.hi) - tangent(b.lo); }

Bounds clearance_bounds(const AceReport& box, const RoverGeometry& g) noexcept {
  const double reach_x = larger(std::fabs(g.pan_rear_x_m), std::fabs(g.pan_front_x_m));
  const double rise = (box.origin_z_m.hi - box.origin_z_m.lo) +
                      reach_x * tangent_width(box.pitch_rad) +
                      g.pan_half_width_m * tangent_width(box.roll_rad);
  return {box.clearance_min_m, box.clearance_min_m + rise};
}

}  // namespace

Fault validate(const ProbabilisticConfig& config) noexcept { return check_fields(config); }

Fault ProbabilisticChecker::init(const RoverModel& model, const FixedBoxConfig& boxes,
                                 const ProbabilisticConfig& config, std::size_t max_map_cells,
                                 Arena* arena) noexcept {
  const Fault fault = validate(config);
  if (!fault.ok()) return fault;
  config_ = config;
  cos_tilt_max_ = det_sincos(model.limits.tilt_max_rad).cos;
  double sum = 0.0;
  for (int i = 0; i < kNodes; ++i) {
    const double t = node(i);
    weight_[i] = det_exp(-0.5 * t * t);
    sum += weight_[i];
  }
  for (double& weight : weight_) weight /= sum;
  return boxes_.init(model, boxes, max_map_cells, arena);
}

double ProbabilisticChecker::probability_outside(const Bounds& state, double least,
                                                 double most) const noexcept {
  const double mean = 0.5 * (state.lo + state.hi);
  const double sigma = config_.sigma_fraction * (state.hi - state.lo);
  if (!(sigma > 0.0)) return mean < least || mean > most ? 1.0 : 0.0;  // flat ground
  return smaller(det_normal_cdf((least - mean) / sigma) + det_normal_cdf((mean - most) / sigma),
                 1.0);
}

// cos(tilt) = cos(roll) cos(pitch): for each value of one angle, the limit leaves an interval about zero for
// the other. Trapezoidal rule over the angle whose mean is nearer to zero, along which that interval changes
// least. The error is below 2e-4 if neither width is more than 1.7 times the other.
double ProbabilisticChecker::probability_tilted(const Bounds& roll,
                                                const Bounds& pitch) const noexcept {
  const bool over_roll = std::fabs(roll.lo + roll.hi) < std::fabs(pitch.lo + pitch.hi);
  const Bounds& flat = over_roll ? roll : pitch;
  const Bounds& steep = over_roll ? pitch : roll;
  const double mean = 0.5 * (flat.lo + flat.hi);
  const double sigma = config_.sigma_fraction * (flat.hi - flat.lo);
  double tilted = 0.0;
  for (int i = 0; i < kNodes; ++i) {
    const double cos_flat = det_sincos(mean + sigma * node(i)).cos;
    double p = 1.0;
    if (cos_flat > cos_tilt_max_) {
      const double cos_steep = cos_tilt_max_ / cos_flat;
      const double most = det_atan2(std::sqrt(1.0 - cos_steep * cos_steep), cos_steep);
      p = probability_outside(steep, -most, most);
    }
    tilted += weight_[i] * p;
  }
  return smaller(tilted, 1.0);
}

void ProbabilisticChecker::probabilities(const AceReport& box,
                                         double exceeded[kLimits]) const noexcept {
  const RoverModel& rover = boxes_.model();
  const SafetyLimits& l = rover.limits;
  const double left = probability_outside(box.bogie_left_rad, -l.bogie_max_rad, l.bogie_max_rad);
  const double right = probability_outside(box.bogie_right_rad, -l.bogie_max_rad, l.bogie_max_rad);
  exceeded[0] = probability_tilted(box.roll_rad, box.pitch_rad);
  exceeded[1] = left + right - left * right;
  exceeded[2] =
      probability_outside(box.differential_rad, -l.differential_max_rad, l.differential_max_rad);
  exceeded[3] =
      probability_outside(clearance_bounds(box, rover.geometry), l.clearance_min_m, kInfinity);
  exceeded[4] = box.margin_relief_m < 0.0 ? 1.0 : 0.0;
}

AceReport ProbabilisticChecker::report_pose(const Stance& stance) const noexcept {
  AceReport out = boxes_.report(stance);
  const unsigned no_intervals = out.reasons & unsigned{kBadPose | kBorder | kUnknown | kMechanical};
  if (no_intervals != 0) {
    out.reasons = static_cast<Reasons>(no_intervals);
    return out;
  }
  double exceeded[kLimits];
  probabilities(out, exceeded);
  const auto risk = [&exceeded] {
    double within = 1.0;
    for (const double p : exceeded) within *= 1.0 - p;
    return 1.0 - within;
  };
  out.risk = risk();
  unsigned reasons = 0;
  for (int named = 0; named < kLimits && !(risk() <= config_.risk_max); ++named) {
    int likeliest = 0;
    for (int i = 1; i < kLimits; ++i) {
      if (exceeded[i] > exceeded[likeliest]) likeliest = i;
    }
    reasons |= 1U << likeliest;
    exceeded[likeliest] = 0.0;
  }
  out.reasons = static_cast<Reasons>(reasons);
  out.safe = reasons == 0;
  return out;
}

bool ProbabilisticChecker::check(const Sweep& sweep, Reasons* reasons,
                                 CheckWork* work) const noexcept {
  *reasons = kBadPose;
  return sweep_ok(sweep) && each_stance(sweep, model().geometry, FixedBoxChecker::kSpacing_m,
                                        [&](const Stance& stance) {
                                          ++work->boxes;
                                          const AceReport r = report_pose(stance);
                                          *reasons = r.reasons;
                                          return r.safe;
                                        });
}

// The risk of a sweep is its poses' largest, like that of a path.
AceReport ProbabilisticChecker::report(const Sweep& sweep) const noexcept {
  AceReport out;
  out.reasons = kBadPose;
  if (!sweep_ok(sweep)) return out;
  bool first = true;
  each_stance(sweep, model().geometry, FixedBoxChecker::kSpacing_m, [&](const Stance& stance) {
    if (first) {
      out = report_pose(stance);
    } else {
      out.include(report_pose(stance));
    }
    first = false;
    return true;
  });
  return out;
}

}  // namespace mlnav
