#include "mlnav/rover/settle.hpp"

#include <cmath>

namespace mlnav {

Status make_settle_model(const RoverGeometry& geometry, SettleModel* model) noexcept {
  model->linkage = Linkage(geometry);
  return make_footprint(geometry.wheel_radius_m, geometry.wheel_width_m, &model->footprint);
}

namespace {

// Headings and leans of the six wheels on the ground.
struct Wheels {
  SinCos rover_heading;
  SinCos steering[kWheels];
  SinCos heading[kWheels];
  SinCos lean[kWheels];
  Point2 at[kWheels];

  Wheels(double rover_heading_rad, const SinCos steered[kWheels]) noexcept
      : rover_heading(det_sincos(rover_heading_rad)) {
    for (int i = 0; i < kWheels; ++i) {
      steering[i] = steered[i];
      heading[i] = wheel_heading(rover_heading, steering[i]);
    }
  }
  void place(const Pose2& pose, const double forward_m[kWheels],
             const double left_m[kWheels]) noexcept {
    const double c = rover_heading.cos;
    const double s = rover_heading.sin;
    for (int i = 0; i < kWheels; ++i) {
      at[i] = {pose.x_m + forward_m[i] * c - left_m[i] * s,
               pose.y_m + forward_m[i] * s + left_m[i] * c};
    }
  }
  // False if one leans too far.
  bool tilt(double sin_roll, double cos_roll, const double sin_link[kWheels]) noexcept {
    for (int i = 0; i < kWheels; ++i) {
      const double sin = sin_lean(steering[i], sin_roll, cos_roll, sin_link[i]);
      if (!(sin >= -kSteepestSinLean && sin <= kSteepestSinLean)) return false;
      lean[i] = {sin, std::sqrt(1.0 - sin * sin)};
    }
    return true;
  }
};

// Leans of the wheels on the plane of best fit to the ground under the nominal positions; level if that is
// unknown.
void tilt_with_ground(const GridView& grid, const WheelPlan& plan, Wheels* wheels) noexcept {
  double mean_x = 0.0;
  for (const double x : plan.x_m) mean_x += x / kWheels;
  double along = 0.0, along_inertia = 0.0;
  double across = 0.0, across_inertia = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    const double z = height_m(grid, wheels->at[i].x_m, wheels->at[i].y_m);
    const double x = plan.x_m[i] - mean_x;
    const double y = plan.y_m[i];
    along += x * z;
    along_inertia += x * x;
    across += y * z;
    across_inertia += y * y;
  }
  // Roll and pitch of a rover on the plane (tan(roll) and tan(pitch) / cos(roll) are its slopes).
  const double tan_roll = across / across_inertia;
  const double cos_roll = 1.0 / std::sqrt(1.0 + tan_roll * tan_roll);
  const double tan_pitch = along / along_inertia * cos_roll;
  double sin_link[kWheels];
  for (double& sin : sin_link) sin = tan_pitch / std::sqrt(1.0 + tan_pitch * tan_pitch);
  if (!wheels->tilt(tan_roll * cos_roll, cos_roll, sin_link)) {
    for (SinCos& lean : wheels->lean) lean = kLevel;
  }
}

// H at all six wheels; the worst fault of all.
Status look_up(const GridView& grid, const WheelFootprint& footprint, const Wheels& wheels,
               double heights_m[kWheels]) noexcept {
  Status worst = Status::kOk;
  for (int i = 0; i < kWheels; ++i) {
    const WheelHeight height = wheel_height(grid, footprint, wheels.at[i].x_m, wheels.at[i].y_m,
                                            wheels.heading[i], wheels.lean[i]);
    if (height.status == Status::kOk) {
      heights_m[i] = height.height_m;
    } else if (worst != Status::kOutsideMap) {
      worst = height.status;
    }
  }
  return worst;
}

// Height span under each wheel; returns the largest. H was just evaluated at these places, so there are no
// faults.
double relief(const GridView& grid, const WheelFootprint& footprint, const Wheels& wheels,
              double relief_m[kWheels]) noexcept {
  double largest = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    const WheelContact contact = wheel_contact(grid, footprint, wheels.at[i].x_m, wheels.at[i].y_m,
                                               wheels.heading[i], wheels.lean[i]);
    relief_m[i] = contact.ground_max_m - contact.ground_min_m;
    if (relief_m[i] > largest) largest = relief_m[i];
  }
  return largest;
}

// Anderson acceleration of depth two: H is close to linear in the wheels' places, so the last three steps
// predict the limit of the iteration. It falls back on the plain step if they are degenerate.
class Accelerator {
 public:
  // The next guess after h, where the ground was found at heights `found`.
  void step(const double found[kWheels], double h[kWheels]) noexcept {
    double f[kWheels];
    for (int i = 0; i < kWheels; ++i) f[i] = found[i] - h[i];
    double next[kWheels];
    for (int i = 0; i < kWheels; ++i) next[i] = found[i];
    if (known_ > 0) {
      double d1[kWheels], d2[kWheels];
      for (int i = 0; i < kWheels; ++i) {
        d1[i] = f[i] - f1_[i];
        d2[i] = f1_[i] - f2_[i];
      }
      const double a11 = dot(d1, d1);
      const double a12 = dot(d1, d2);
      const double a22 = dot(d2, d2);
      const double b1 = dot(d1, f);
      const double b2 = dot(d2, f);
      const double determinant = a11 * a22 - a12 * a12;
      double w1 = a11 > 0.0 ? b1 / a11 : 0.0;
      double w2 = 0.0;
      if (known_ > 1 && determinant > 1e-3 * a11 * a22) {
        w1 = (b1 * a22 - b2 * a12) / determinant;
        w2 = (b2 * a11 - b1 * a12) / determinant;
      }
      if (std::fabs(w1) < kMostWeight && std::fabs(w2) < kMostWeight) {
        for (int i = 0; i < kWheels; ++i) {
          next[i] -= w1 * (found[i] - g1_[i]) + w2 * (g1_[i] - g2_[i]);
        }
      }
    }
    for (int i = 0; i < kWheels; ++i) {
      f2_[i] = f1_[i];
      g2_[i] = g1_[i];
      f1_[i] = f[i];
      g1_[i] = found[i];
      h[i] = next[i];
    }
    if (known_ < 2) ++known_;
  }
  void forget() noexcept { known_ = 0; }

 private:
  static constexpr double kMostWeight = 2.0;
  static double dot(const double a[kWheels], const double b[kWheels]) noexcept {
    double sum = 0.0;
    for (int i = 0; i < kWheels; ++i) sum += a[i] * b[i];
    return sum;
  }
  int known_ = 0;
  double f1_[kWheels] = {}, f2_[kWheels] = {};  // found - guess, one and two steps ago
  double g1_[kWheels] = {}, g2_[kWheels] = {};  // found
};

Status nominal_heights(const GridView& grid, const SettleModel& model, const Pose2& pose,
                       const SinCos steering[kWheels], double heights_m[kWheels]) noexcept {
  const WheelPlan plan = wheel_plan(model.linkage.g);
  Wheels wheels(pose.heading_rad, steering);
  wheels.place(pose, plan.x_m, plan.y_m);
  tilt_with_ground(grid, plan, &wheels);
  return look_up(grid, model.footprint, wheels, heights_m);
}

}  // namespace

Status nominal_heights(const GridView& grid, const SettleModel& model, const Stance& stance,
                       double heights_m[kWheels]) noexcept {
  SinCos steering[kWheels];
  wheel_steering(model.linkage.g, stance.curvature_per_m, steering);
  return nominal_heights(grid, model, stance.pose, steering, heights_m);
}

SettledState settle(const GridView& grid, const SettleModel& model, const Stance& stance,
                    const double* start_heights_m) noexcept {
  SinCos steering[kWheels];
  wheel_steering(model.linkage.g, stance.curvature_per_m, steering);
  return settle(grid, model, stance.pose, steering, start_heights_m);
}

SettledState settle(const GridView& grid, const SettleModel& model, const Pose2& pose,
                    const SinCos steering[kWheels], const double* start_heights_m) noexcept {
  SettledState out;
  double h[kWheels];
  if (start_heights_m != nullptr) {
    for (int i = 0; i < kWheels; ++i) h[i] = start_heights_m[i];
  } else {
    out.status = nominal_heights(grid, model, pose, steering, h);
    out.lookups += kWheels;
    if (out.status != Status::kOk) return out;
  }
  Wheels wheels(pose.heading_rad, steering);

  // Fixed-point steps contract by 0.1-0.3 on ordinary ground. Among sharp rocks they can cycle; stronger and
  // stronger averaging with the last guess breaks the cycles.
  constexpr int kFullSteps = 24;
  double damping = 1.0;
  double last_residual = INFINITY;
  Accelerator accelerator;
  for (int step = 0; step < kSettleMaxSteps; ++step) {
    out.status = solve_chain(model.linkage, h, &out.state, &out.positions);
    ++out.steps;
    if (out.status != Status::kOk) return out;
    wheels.place(pose, out.positions.forward_m, out.positions.left_m);
    if (!wheels.tilt(out.state.sin_roll, out.state.cos_roll, out.positions.sin_link)) {
      out.status = Status::kOutOfMechanicalRange;
      return out;
    }
    out.status = look_up(grid, model.footprint, wheels, out.heights_m);
    out.lookups += kWheels;
    if (out.status != Status::kOk) return out;
    out.residual_m = 0.0;
    for (int i = 0; i < kWheels; ++i) {
      const double error = std::fabs(out.heights_m[i] - h[i]);
      if (error > out.residual_m) out.residual_m = error;
    }
    if (out.residual_m < kSettleTolerance_m) {
      out.relief_max_m = relief(grid, model.footprint, wheels, out.relief_m);
      return out;
    }
    // Each stage is twice as long as the one before, since its steps are half as long.
    if (step == kFullSteps || step == 2 * kFullSteps || step == 4 * kFullSteps) damping *= 0.5;
    if (step < kFullSteps) {
      if (out.residual_m > last_residual) accelerator.forget();
      last_residual = out.residual_m;
      accelerator.step(out.heights_m, h);
    } else {
      for (int i = 0; i < kWheels; ++i) h[i] += damping * (out.heights_m[i] - h[i]);
    }
  }
  out.status = Status::kNotConverged;
  return out;
}

Clearance pan_clearance(const GridView& grid, const RoverGeometry& g, const Pose2& pose,
                        const ChainState<double>& s, double widen_m) noexcept {
  // Body point (x, y, pan) -> heading frame: forward = x cp - zp sp, left = y cr - (x sp + zp cp) sr,
  // up = origin_z + (x sp + zp cp) cr + y sr. Eliminating x and y, the pan plane over (forward, left):
  //   up = origin_z + zp / (cp cr) + forward tan(pitch) / cr + left tan(roll).
  const double zp = g.pan_height_m;
  const double slope_forward = s.sin_pitch / (s.cos_pitch * s.cos_roll);
  const double slope_left = s.sin_roll / s.cos_roll;
  const double plane_0 = s.origin_z_m + zp / (s.cos_pitch * s.cos_roll);

  // The pan's projection is the parallelogram |x - xm| <= xh, |y| <= yh, with
  //   x = (forward + zp sp) / cp,   y = (left + (x sp + zp cp) sr) / cr.
  // Both are affine in world (X, Y): x = x0 + xX X + xY Y, and likewise y.
  const SinCos heading = det_sincos(pose.heading_rad);
  const double xm = 0.5 * (g.pan_front_x_m + g.pan_rear_x_m);
  const double xh = 0.5 * (g.pan_front_x_m - g.pan_rear_x_m);
  const double yh = g.pan_half_width_m;
  const double x_forward = 1.0 / s.cos_pitch;
  const double y_forward = s.sin_pitch * s.sin_roll / (s.cos_pitch * s.cos_roll);
  const double y_left = 1.0 / s.cos_roll;
  const double x_0 = zp * s.sin_pitch / s.cos_pitch;
  const double y_0 = (x_0 * s.sin_pitch + zp * s.cos_pitch) * s.sin_roll / s.cos_roll;
  // World offsets (dx, dy) from the pose: forward = c dx + n dy, left = -n dx + c dy.
  const double c = heading.cos;
  const double n = heading.sin;
  const double x_dx = x_forward * c;
  const double x_dy = x_forward * n;
  const double y_dx = y_forward * c - y_left * n;
  const double y_dy = y_forward * n + y_left * c;
  const double plane_dx = slope_forward * c - slope_left * n;
  const double plane_dy = slope_forward * n + slope_left * c;

  // Widen by one cell (and what was asked for) each way: every cell whose bilinear support reaches under the
  // pan.
  const double res = grid.resolution_m;
  const double rim = res + widen_m;
  const double x_reach = xh + rim * (std::fabs(x_dx) + std::fabs(x_dy));
  const double y_reach = yh + rim * (std::fabs(y_dx) + std::fabs(y_dy));

  // Bounding rows from the corners.
  const double det = x_dx * y_dy - x_dy * y_dx;
  const double xc = xm - x_0;  // parallelogram's centre in (x, y) minus the affine constants
  const double yc = -y_0;
  const double dy_center = (x_dx * yc - y_dx * xc) / det;
  const double dy_half = (std::fabs(x_dx) * y_reach + std::fabs(y_dx) * x_reach) / std::fabs(det);

  Clearance out;
  const double first_row = std::ceil((pose.y_m + dy_center - dy_half - grid.origin_y_m) / res);
  const double last_row = std::floor((pose.y_m + dy_center + dy_half - grid.origin_y_m) / res);
  // The pan must lie inside the map; the rim of one cell may be outside.
  double lowest = INFINITY;
  bool unknown = false;
  bool outside = false;
  const double map_x_lo = grid.origin_x_m - 0.5 * res;
  const double map_x_hi = grid.origin_x_m + (grid.nx - 0.5) * res;
  const double map_y_lo = grid.origin_y_m - 0.5 * res;
  const double map_y_hi = grid.origin_y_m + (grid.ny - 0.5) * res;
  for (int corner = 0; corner < 4; ++corner) {
    const double x = xc + (corner & 1 ? xh : -xh);
    const double y = yc + (corner & 2 ? yh : -yh);
    const double px = pose.x_m + (x * y_dy - y * x_dy) / det;
    const double py = pose.y_m + (x_dx * y - y_dx * x) / det;
    outside |= !(px - widen_m >= map_x_lo && px + widen_m < map_x_hi && py - widen_m >= map_y_lo &&
                 py + widen_m < map_y_hi);
  }
  if (outside) {
    out.status = Status::kOutsideMap;
    out.clearance_m = NAN;
    return out;
  }
  const int iy_first = first_row < 0.0 ? 0 : static_cast<int>(first_row);
  const int iy_last = last_row > grid.ny - 1.0 ? grid.ny - 1 : static_cast<int>(last_row);
  for (int iy = iy_first; iy <= iy_last; ++iy) {
    const double dy = grid.center_y_m(iy) - pose.y_m;
    // |x_dx dx + x_dy dy - xc| <= x_reach and the same for y: an interval of dx each.
    double lo = -INFINITY;
    double hi = INFINITY;
    const auto clip = [&lo, &hi](double a, double b, double reach) {
      if (std::fabs(a) < 1e-12) {
        if (std::fabs(b) > reach) hi = -INFINITY;
        return;
      }
      const double e1 = (-reach - b) / a;
      const double e2 = (reach - b) / a;
      const double l = e1 < e2 ? e1 : e2;
      const double h = e1 < e2 ? e2 : e1;
      if (l > lo) lo = l;
      if (h < hi) hi = h;
    };
    clip(x_dx, x_dy * dy - xc, x_reach);
    clip(y_dx, y_dy * dy - yc, y_reach);
    if (!(lo <= hi)) continue;
    const double first = std::ceil((pose.x_m + lo - grid.origin_x_m) / res);
    const double last = std::floor((pose.x_m + hi - grid.origin_x_m) / res);
    const int ix_first = first < 0.0 ? 0 : static_cast<int>(first);
    const int ix_last = last > grid.nx - 1.0 ? grid.nx - 1 : static_cast<int>(last);
    const double row_plane = plane_0 + plane_dy * dy;
    for (int ix = ix_first; ix <= ix_last; ++ix) {
      const double z = static_cast<double>(grid.at(ix, iy));
      const double dx = grid.center_x_m(ix) - pose.x_m;
      const double gap = row_plane + plane_dx * dx - z;
      unknown |= z != z;
      if (gap < lowest) lowest = gap;
      ++out.cells;
    }
  }
  if (unknown) {
    out.status = Status::kUnknownGround;
    out.clearance_m = NAN;
    return out;
  }
  out.clearance_m = lowest;
  return out;
}

}  // namespace mlnav
