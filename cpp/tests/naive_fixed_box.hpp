// fixed_box as its definitions read, for tests and as the benchmark's yardstick: every cell of the map's
// neighbourhood is asked whether it lies in each box, every block is read cell by cell, and the chain is
// evaluated in float64 at all 64 corners with angles, not sines. Shares only solve_side() with the shipped code.
#pragma once

#include <algorithm>
#include <cmath>

#include "mlnav/safety/fixed_box.hpp"

namespace mlnav {

struct NaiveFixedBox {
  RoverModel model;
  FixedBoxConfig config;
  GridView map;

  struct Result {
    Reasons reasons = 0;  // of the first stage that fails, as is_safe()
    double clearance_m = NAN;
    double roll_lo = INFINITY, roll_hi = -INFINITY;
    double pitch_lo = INFINITY, pitch_hi = -INFINITY;
    double bogie_max = 0, differential_max = 0, tilt_max = 0;
  };

  Result check(const Pose2& pose) const {
    Result out;
    const RoverGeometry& g = model.geometry;
    const Linkage k(g);
    const WheelPlan plan = wheel_plan(g);
    const double res = map.resolution_m;
    if (!stance_ok(Stance{pose})) {
      out.reasons = kBadPose;
      return out;
    }
    const double quantum = 1048576.0;
    const double gx =
        std::floor((pose.x_m - map.origin_x_m) * (1.0 / res) * quantum + 0.5) / quantum;
    const double gy =
        std::floor((pose.y_m - map.origin_y_m) * (1.0 / res) * quantum + 0.5) / quantum;
    const SinCos heading = det_sincos(pose.heading_rad);
    const double along = std::max(config.half_length_m / res, 0.7072) + 1.0 / 65536;
    const double across = std::max(config.half_width_m / res, 0.7072) + 1.0 / 65536;

    const double panel_x = (g.pan_front_x_m - g.pan_rear_x_m) / FixedBoxChecker::kPanelsAlong;
    const double panel_y = 2 * g.pan_half_width_m / FixedBoxChecker::kPanelsAcross;
    const int radius = static_cast<int>(std::floor(0.5 * std::hypot(panel_x, panel_y) / res + 0.5));
    double reach = 0.0;
    for (int w = 0; w < kWheels; ++w) {
      reach = std::max(reach, std::hypot(std::fabs(plan.x_m[w]) / res + along,
                                         std::fabs(plan.y_m[w]) / res + across));
    }
    reach = std::max(
        reach,
        std::hypot(std::max(-g.pan_rear_x_m, g.pan_front_x_m), g.pan_half_width_m) / res + radius);
    const int border = static_cast<int>(std::ceil(reach)) + 2;
    if (!(gx >= border && gx <= map.nx - 1 - border && gy >= border && gy <= map.ny - 1 - border)) {
      out.reasons = kBorder;
      return out;
    }

    double lo[kWheels], hi[kWheels];
    for (int w = 0; w < kWheels; ++w) {
      const double x = plan.x_m[w] / res;
      const double y = plan.y_m[w] / res;
      const double cx = gx + x * heading.cos - y * heading.sin;
      const double cy = gy + x * heading.sin + y * heading.cos;
      lo[w] = INFINITY;
      hi[w] = -INFINITY;
      const int span = static_cast<int>(along + across) + 2;
      for (int jy = static_cast<int>(cy) - span; jy <= static_cast<int>(cy) + span; ++jy) {
        for (int jx = static_cast<int>(cx) - span; jx <= static_cast<int>(cx) + span; ++jx) {
          const double dx = jx - cx;
          const double dy = jy - cy;
          if (std::fabs(dx * heading.cos + dy * heading.sin) > along) continue;
          if (std::fabs(-dx * heading.sin + dy * heading.cos) > across) continue;
          const double z = static_cast<double>(map.at(jx, jy));
          if (std::isnan(z)) out.reasons = kUnknown;
          lo[w] = std::min(lo[w], z);
          hi[w] = std::max(hi[w], z);
        }
      }
    }
    if (out.reasons != 0) return out;
    const SafetyLimits& l = model.limits;
    for (int w = 0; w < kWheels; ++w) {
      if (hi[w] - lo[w] > l.wheel_drop_max_m) out.reasons = kRelief;
    }
    if (out.reasons != 0) return out;

    // All corners of each side's box.
    double rocker_lo[2] = {INFINITY, INFINITY}, rocker_hi[2] = {-INFINITY, -INFINITY};
    double pivot_lo[2] = {INFINITY, INFINITY}, pivot_hi[2] = {-INFINITY, -INFINITY};
    for (int side = 0; side < 2; ++side) {
      for (int corner = 0; corner < 8; ++corner) {
        const auto h = [&](int i) {
          return (corner >> i) & 1 ? hi[3 * side + i] : lo[3 * side + i];
        };
        SideState<double> s{};
        if (!solve_side(k, h(0), h(1), h(2), &s)) {
          out.reasons = kMechanical;
          return out;
        }
        const double rocker = std::atan2(s.sin_rocker, s.cos_rocker);
        const double bogie = std::asin(s.sin_bogie) - rocker;
        out.bogie_max = std::max(out.bogie_max, std::fabs(bogie));
        rocker_lo[side] = std::min(rocker_lo[side], rocker);
        rocker_hi[side] = std::max(rocker_hi[side], rocker);
        pivot_lo[side] = std::min(pivot_lo[side], s.pivot_z_m);
        pivot_hi[side] = std::max(pivot_hi[side], s.pivot_z_m);
      }
    }
    const double track = 2 * k.roll_arm_m;
    if (!((pivot_hi[0] - pivot_lo[1]) / track < 0.999 &&
          (pivot_lo[0] - pivot_hi[1]) / track > -0.999)) {
      out.reasons = kMechanical;
      return out;
    }
    out.roll_lo = std::asin((pivot_lo[0] - pivot_hi[1]) / track);
    out.roll_hi = std::asin((pivot_hi[0] - pivot_lo[1]) / track);
    out.pitch_lo = 0.5 * (rocker_lo[0] + rocker_lo[1]);
    out.pitch_hi = 0.5 * (rocker_hi[0] + rocker_hi[1]);
    out.differential_max = 0.5 * std::max(rocker_hi[0] - rocker_lo[1], rocker_hi[1] - rocker_lo[0]);
    const double roll_max = std::max(-out.roll_lo, out.roll_hi);
    const double pitch_max = std::max(-out.pitch_lo, out.pitch_hi);
    out.tilt_max = std::acos(std::cos(roll_max) * std::cos(pitch_max));
    unsigned reasons = 0;
    if (out.tilt_max > l.tilt_max_rad) reasons |= kTilt;
    if (out.bogie_max > l.bogie_max_rad) reasons |= kBogie;
    if (out.differential_max > l.differential_max_rad) reasons |= kDifferential;
    out.reasons = static_cast<Reasons>(reasons);
    if (reasons != 0) return out;

    const auto cos_max = [](double a, double b) {
      return a < 0 && b > 0 ? 1.0 : std::max(std::cos(a), std::cos(b));
    };
    const double cp = cos_max(out.pitch_lo, out.pitch_hi);
    const double cr = cos_max(out.roll_lo, out.roll_hi);
    const double base = 0.5 * (pivot_lo[0] + pivot_lo[1]) -
                        std::max(g.rocker_pivot_x_m * std::sin(out.pitch_lo),
                                 g.rocker_pivot_x_m * std::sin(out.pitch_hi)) -
                        g.rocker_pivot_z_m * cp * cr + g.pan_height_m / (cp * cr);
    const double cr_least = std::min(std::cos(out.roll_lo), std::cos(out.roll_hi));
    double along_slopes[4] = {std::tan(out.pitch_lo) / cr, std::tan(out.pitch_lo) / cr_least,
                              std::tan(out.pitch_hi) / cr, std::tan(out.pitch_hi) / cr_least};
    const double slope_lo = *std::min_element(along_slopes, along_slopes + 4);
    const double slope_hi = *std::max_element(along_slopes, along_slopes + 4);
    out.clearance_m = INFINITY;
    for (int i = 0; i < FixedBoxChecker::kPanelsAlong; ++i) {
      for (int j = 0; j < FixedBoxChecker::kPanelsAcross; ++j) {
        const double x0 = g.pan_rear_x_m + i * panel_x;
        const double y0 = -g.pan_half_width_m + j * panel_y;
        double drop_x = INFINITY, drop_y = INFINITY;
        for (const double x : {x0, x0 + panel_x}) {
          drop_x = std::min({drop_x, x * slope_lo, x * slope_hi});
        }
        for (const double y : {y0, y0 + panel_y}) {
          drop_y = std::min({drop_y, y * std::tan(out.roll_lo), y * std::tan(out.roll_hi)});
        }
        const double xc = (x0 + 0.5 * panel_x) / res;
        const double yc = (y0 + 0.5 * panel_y) / res;
        const int jx = static_cast<int>(std::floor(gx + xc * heading.cos - yc * heading.sin + 0.5));
        const int jy = static_cast<int>(std::floor(gy + xc * heading.sin + yc * heading.cos + 0.5));
        for (int dy = -radius; dy <= radius; ++dy) {
          for (int dx = -radius; dx <= radius; ++dx) {
            const double z = static_cast<double>(map.at(jx + dx, jy + dy));
            if (std::isnan(z)) out.reasons = kUnknown;
            out.clearance_m = std::min(out.clearance_m, base + drop_x + drop_y - z);
          }
        }
      }
    }
    if (out.reasons == 0 && out.clearance_m < l.clearance_min_m) out.reasons = kClearance;
    return out;
  }
};

}  // namespace mlnav
