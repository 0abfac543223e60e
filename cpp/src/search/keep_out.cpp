#include "mlnav/search/keep_out.hpp"

#include <algorithm>
#include <cmath>

#include "mlnav/math.hpp"
#include "mlnav/rover/kinematics.hpp"

namespace mlnav {
namespace {

// Covers rounding at coordinates of up to kMaxOrigin_m.
constexpr double kSlack_m = 1e-6;

// Intersection of a rectangle with a row of cells: x from lo to hi, empty if lo > hi. All in cells.
struct RowSpan {
  double lo, hi;
};

RowSpan row_span(const double (&x)[4], const double (&y)[4], double bottom, double top) noexcept {
  RowSpan span{INFINITY, -INFINITY};
  const auto add = [&span](double at) {
    span.lo = std::min(span.lo, at);
    span.hi = std::max(span.hi, at);
  };
  for (int i = 0; i < 4; ++i) {
    const int j = (i + 1) % 4;
    if (y[i] >= bottom && y[i] <= top) add(x[i]);
    for (const double level : {bottom, top}) {
      // Only edges that cross the level; an end on the level is a corner within the row.
      if ((y[i] < level) == (y[j] < level) || y[i] == level || y[j] == level) continue;
      add(x[i] + (x[j] - x[i]) * ((level - y[i]) / (y[j] - y[i])));
    }
  }
  return span;
}

int clamped_floor(double value, int lo, int hi) noexcept {
  return static_cast<int>(std::floor(std::clamp(value, 1.0 * lo, 1.0 * hi)));
}

}  // namespace

double RoverOutline::inscribed_m() const noexcept {
  return std::min({front_m, rear_m, half_width_m});
}

RoverOutline rover_outline(const RoverModel& model) noexcept {
  const RoverGeometry& g = model.geometry;
  const SafetyLimits& limits = model.limits;
  const Linkage linkage(g);
  const double r = g.wheel_radius_m;
  // A wheel lies within this ball about its middle, at any steering angle and lean.
  const double ball = std::hypot(r, 0.5 * g.wheel_width_m);
  // Middle wheels do not steer: their outer edges lean with the body and reach less far.
  const double outer[3] = {g.front_y_m, g.middle_y_m + 0.5 * g.wheel_width_m, g.rear_y_m};
  const double across[3] = {ball, 0.0, ball};
  const double above[3] = {0.0, r, 0.0};
  const double cos_tilt = det_sincos(limits.tilt_max_rad).cos;
  RoverOutline outline;
  const auto reach = [&outline](double along, double aside) {
    outline.front_m = std::max(outline.front_m, along);
    outline.rear_m = std::max(outline.rear_m, -along);
    outline.half_width_m = std::max(outline.half_width_m, aside);
  };
  // Functions that are smooth in an angle are evaluated at steps of it, including its limits.
  constexpr int kSteps = 8;
  constexpr double kBetween_m = 0.005;  // between two steps they can be larger by this much
  for (int i = -kSteps; i <= kSteps; ++i) {
    const double pitch = limits.tilt_max_rad * i / kSteps;
    const SinCos p = det_sincos(pitch);
    // The largest roll that the tilt limit allows at this pitch.
    const double cos_roll = std::min(1.0, cos_tilt / p.cos);
    const double sin_roll = std::sqrt(1.0 - cos_roll * cos_roll);
    // The largest lateral distance of a point at this lateral distance and height in the body.
    const auto rolled = [cos_roll, sin_roll](double y, double z) {
      z = std::fabs(z);
      return z * cos_roll <= y * sin_roll ? std::hypot(y, z) : y * cos_roll + z * sin_roll;
    };
    for (const double x : {g.pan_rear_x_m, g.pan_front_x_m}) {
      reach(x * p.cos - g.pan_height_m * p.sin,
            rolled(g.pan_half_width_m, x * p.sin + g.pan_height_m * p.cos));
    }
    for (int j = -kSteps; j <= kSteps; ++j) {
      const double rocker = pitch + limits.differential_max_rad * j / kSteps;
      const SinCos rock = det_sincos(rocker);
      for (int k = -kSteps; k <= kSteps; ++k) {
        const SinCos bogie = det_sincos(rocker + limits.bogie_max_rad * k / kSteps);
        SideState<double> side{};
        side.sin_rocker = rock.sin;
        side.cos_rocker = rock.cos;
        side.sin_bogie = bogie.sin;
        side.cos_bogie = bogie.cos;
        double along[3], up[3];
        detail::side_axles(linkage, side, p.sin, p.cos, along, up);
        for (int axle = 0; axle < 3; ++axle) {
          const double aside =
              rolled(outer[axle], std::fabs(up[axle]) + above[axle]) + across[axle];
          reach(along[axle] + ball, aside);
          reach(along[axle] - ball, aside);
        }
      }
    }
  }
  outline.front_m += kBetween_m;
  outline.rear_m += kBetween_m;
  outline.half_width_m += kBetween_m;
  return outline;
}

// In the frame of the arc's middle, a point (x, y) of the rover is at (sin(a) / k + x cos(a) - y sin(a),
// (1 - cos(a)) / k + x sin(a) + y cos(a)) with a = k s, |s| <= half the length.
RoverOutline swept_by_arc(const RoverOutline& outline, double curvature_per_m,
                          double length_m) noexcept {
  const double half = 0.5 * std::fabs(length_m);
  const double turned = std::fabs(curvature_per_m) * half;
  const double ahead = half + outline.half_width_m * turned + kSlack_m;
  const double aside =
      0.5 * turned * half + std::max(outline.front_m, outline.rear_m) * turned + kSlack_m;
  return {outline.front_m + ahead, outline.rear_m + ahead, outline.half_width_m + aside};
}

RoverOutline swept_by_turn(const RoverOutline& outline, double turn_rad) noexcept {
  const double half = 0.5 * std::fabs(turn_rad);
  const double ahead = outline.half_width_m * half + kSlack_m;
  const double aside = std::max(outline.front_m, outline.rear_m) * half + kSlack_m;
  return {outline.front_m + ahead, outline.rear_m + ahead, outline.half_width_m + aside};
}

bool touches(const KeepOutMask& mask, const GridView& grid, const Pose2& pose,
             const RoverOutline& outline) noexcept {
  if (mask.cells == nullptr) return false;
  const SinCos heading = det_sincos(pose.heading_rad);
  const double along[4] = {outline.front_m, outline.front_m, -outline.rear_m, -outline.rear_m};
  const double left[4] = {-outline.half_width_m, outline.half_width_m, outline.half_width_m,
                          -outline.half_width_m};
  // In cells: cell (ix, iy) is [ix, ix + 1] x [iy, iy + 1].
  const double per_m = 1.0 / grid.resolution_m;
  const double slack = 0.5 * kSlack_m * per_m;
  double x[4], y[4];
  for (int i = 0; i < 4; ++i) {
    const double dx = heading.cos * along[i] - heading.sin * left[i];
    const double dy = heading.sin * along[i] + heading.cos * left[i];
    x[i] = (pose.x_m + dx - grid.origin_x_m) * per_m + 0.5;
    y[i] = (pose.y_m + dy - grid.origin_y_m) * per_m + 0.5;
  }
  const double lowest = *std::min_element(y, y + 4) - slack;
  const double highest = *std::max_element(y, y + 4) + slack;
  if (!(highest >= 0.0 && lowest <= mask.ny)) return false;
  const int y0 = clamped_floor(lowest, 0, mask.ny - 1);
  const int y1 = clamped_floor(highest, 0, mask.ny - 1);
  for (int iy = y0; iy <= y1; ++iy) {
    const RowSpan span = row_span(x, y, iy - slack, iy + 1 + slack);
    const double lo = span.lo - slack;
    const double hi = span.hi + slack;
    if (!(lo <= hi && hi >= 0.0 && lo <= mask.nx)) continue;
    const int x0 = clamped_floor(lo, 0, mask.nx - 1);
    const int x1 = clamped_floor(hi, 0, mask.nx - 1);
    const std::uint8_t* const row =
        mask.cells + static_cast<std::size_t>(iy) * static_cast<std::size_t>(mask.nx);
    unsigned any = 0;
    for (int ix = x0; ix <= x1; ++ix) any |= row[ix];
    if (any != 0) return true;
  }
  return false;
}

}  // namespace mlnav
