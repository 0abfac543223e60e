#include "mlnav/safety/fixed_box.hpp"

#include <cmath>
#include <limits>

#include "fixed_box_impl.hpp"
#include "quad.hpp"

namespace mlnav {
namespace {

// A cell centre on the edge of a box belongs to it, however its coordinates were rounded.
constexpr double kEdgeCells = 1.0 / 65536.0;
// Half of the diagonal of a cell: a box of at least this half-size always holds a cell centre.
constexpr double kMinHalfCells = 0.7072;
// Sub-cell steps of a pose. They are coarse enough to absorb rounding, so that a pose has the same cells on
// every map that contains it.
constexpr double kSubCells = 1048576.0;  // 2^20

constexpr double kUnknownClearance = -std::numeric_limits<double>::infinity();

// Cells that the two vectors of four read from the first of a row.
constexpr std::size_t kReadAhead = 8;

double larger(double a, double b) noexcept { return a > b ? a : b; }
double smaller(double a, double b) noexcept { return a < b ? a : b; }

}  // namespace

Fault validate(const FixedBoxConfig& config) noexcept { return check_fields(config); }

std::size_t FixedBoxChecker::memory_required(std::size_t max_map_cells) noexcept {
  return Arena::kAlignment + 3 * Arena::cost<float>(max_map_cells + kReadAhead);
}

Fault FixedBoxChecker::init(const RoverModel& model, const FixedBoxConfig& config,
                            std::size_t max_map_cells, Arena* arena) noexcept {
  Fault fault = validate(model);
  if (!fault.ok()) return fault;
  fault = validate(config);
  if (!fault.ok()) return fault;
  if (max_map_cells == 0) return {Status::kConfigBad, "max_map_cells"};
  known_ = arena->take<float>(max_map_cells + kReadAhead);
  block_max_ = arena->take<float>(max_map_cells + kReadAhead);
  scratch_ = arena->take<float>(max_map_cells + kReadAhead);
  if (known_ == nullptr || block_max_ == nullptr || scratch_ == nullptr)
    return {Status::kArenaTooSmall, ""};
  max_map_cells_ = max_map_cells;
  model_ = model;
  config_ = config;
  linkage_ = Linkage(model.geometry);
  plan_ = wheel_plan(model.geometry);
  sin_bogie_max_ = det_sincos(model.limits.bogie_max_rad).sin;
  sin_double_differential_max_ = det_sincos(2.0 * model.limits.differential_max_rad).sin;
  cos_tilt_max_ = det_sincos(model.limits.tilt_max_rad).cos;
  const RoverGeometry& g = model.geometry;
  for (int i = 0; i <= kPanelsAlong; ++i) {
    panel_x_m_[i] = g.pan_rear_x_m + (g.pan_front_x_m - g.pan_rear_x_m) * i / kPanelsAlong;
  }
  for (int j = 0; j <= kPanelsAcross; ++j) {
    panel_y_m_[j] = g.pan_half_width_m * (2.0 * j / kPanelsAcross - 1.0);
  }
  map_ = GridView{};
  return {};
}

Status FixedBoxChecker::set_map(const GridView& map) noexcept {
  const Status status = validate_geometry(map);
  if (status != Status::kOk) return status;
  if (map.cells() > max_map_cells_) return Status::kMapTooLarge;
  map_ = map;
  cells_per_m_ = 1.0 / map.resolution_m;
  half_length_cells_ = larger(config_.half_length_m * cells_per_m_, kMinHalfCells) + kEdgeCells;
  half_width_cells_ = larger(config_.half_width_m * cells_per_m_, kMinHalfCells) + kEdgeCells;

  const double panel_x = panel_x_m_[1] - panel_x_m_[0];
  const double panel_y = panel_y_m_[1] - panel_y_m_[0];
  const double panel_radius = 0.5 * std::sqrt(panel_x * panel_x + panel_y * panel_y);
  block_radius_ = fast_floor(panel_radius * cells_per_m_ + 0.5);

  double reach = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    const double x = std::fabs(plan_.x_m[i]) * cells_per_m_ + half_length_cells_;
    const double y = std::fabs(plan_.y_m[i]) * cells_per_m_ + half_width_cells_;
    reach = larger(reach, std::sqrt(x * x + y * y));
  }
  const double pan_x = larger(std::fabs(panel_x_m_[0]), std::fabs(panel_x_m_[kPanelsAlong]));
  const double pan_y = panel_y_m_[kPanelsAcross];
  reach = larger(reach, std::sqrt(pan_x * pan_x + pan_y * pan_y) * cells_per_m_ + block_radius_);
  reach_cells_ = fast_ceil(reach) + 2;
  // A chord of the box is at most its diagonal.
  row_cells_max_ = 1 + fast_floor(2.0 * std::sqrt(half_length_cells_ * half_length_cells_ +
                                                  half_width_cells_ * half_width_cells_));

  // Sliding maximum over blocks of (2 radius + 1) cells, along rows and then columns. A window of w cells is
  // two overlapping runs whose length is the largest power of two in w. Cells whose block leaves the map keep
  // +inf.
  const int nx = map.nx;
  const int ny = map.ny;
  const std::size_t cells = map.cells();
  const int window = 2 * block_radius_ + 1;
  float* runs = scratch_;
  for (std::size_t i = 0; i < cells; ++i) {
    const float z = map.z[i];
    known_[i] = runs[i] = z == z ? z : INFINITY;
  }
  for (std::size_t i = 0; i < kReadAhead; ++i) known_[cells + i] = INFINITY;
  int run = 1;
  // Each pass reads ahead of what it writes, so the runs can grow in place.
  for (; 2 * run <= window; run *= 2) {
    for (std::size_t i = 0; i + static_cast<std::size_t>(run) < cells; ++i) {
      const float other = runs[i + static_cast<std::size_t>(run)];
      runs[i] = runs[i] > other ? runs[i] : other;
    }
  }
  const std::size_t rest = static_cast<std::size_t>(window - run);
  for (std::size_t i = 0; i + rest < cells; ++i) {
    const float other = runs[i + rest];
    runs[i] = runs[i] > other ? runs[i] : other;
  }
  const std::size_t row = static_cast<std::size_t>(nx);
  for (run = 1; 2 * run <= window; run *= 2) {
    const std::size_t step = row * static_cast<std::size_t>(run);
    for (std::size_t i = 0; i + step < cells; ++i) {
      runs[i] = runs[i] > runs[i + step] ? runs[i] : runs[i + step];
    }
  }
  const std::size_t row_rest = row * static_cast<std::size_t>(window - run);
  const std::size_t radius = static_cast<std::size_t>(block_radius_);
  for (int iy = 0; iy < ny; ++iy) {
    float* out = block_max_ + static_cast<std::size_t>(iy) * row;
    const bool inside = iy >= block_radius_ && iy + block_radius_ < ny;
    for (int ix = 0; ix < nx; ++ix) out[ix] = INFINITY;
    if (!inside) continue;
    const float* a = runs + (static_cast<std::size_t>(iy) - radius) * row;
    const float* b = a + row_rest;
    for (int ix = 0; ix + window <= nx; ++ix) {
      out[ix + block_radius_] = a[ix] > b[ix] ? a[ix] : b[ix];
    }
  }
  return Status::kOk;
}

bool FixedBoxChecker::locate(const Stance& stance, CellPose* cell_pose,
                             Reasons* reasons) const noexcept {
  const Pose2& pose = stance.pose;
  if (!stance_ok(stance)) {
    *reasons = kBadPose;
    return false;
  }
  const double gx = std::floor((pose.x_m - map_.origin_x_m) * cells_per_m_ * kSubCells + 0.5);
  const double gy = std::floor((pose.y_m - map_.origin_y_m) * cells_per_m_ * kSubCells + 0.5);
  const double x = gx / kSubCells;
  const double y = gy / kSubCells;
  // Compared as doubles first, so that a pose far away does not overflow an int.
  const bool inside = x >= reach_cells_ && x <= map_.nx - 1 - reach_cells_ && y >= reach_cells_ &&
                      y <= map_.ny - 1 - reach_cells_;
  if (!inside) {
    *reasons = kBorder;
    return false;
  }
  cell_pose->ix = fast_floor(x + 0.5);
  cell_pose->iy = fast_floor(y + 0.5);
  cell_pose->fx = x - cell_pose->ix;
  cell_pose->fy = y - cell_pose->iy;
  const SinCos heading = det_sincos(pose.heading_rad);
  cell_pose->sin = heading.sin;
  cell_pose->cos = heading.cos;
  return true;
}

FixedBoxChecker::BoxShape FixedBoxChecker::box_shape(double sin, double cos) const noexcept {
  // |dx cos + dy sin| <= half_length and |-dx sin + dy cos| <= half_width, solved for dx. Near the axes one
  // of the two is no bound; kEdgeCells keeps it from cutting off the corners.
  constexpr double kLeast = 1.0 / 1048576.0;
  const double c = std::fabs(cos) > kLeast ? cos : std::copysign(kLeast, cos);
  const double s = std::fabs(sin) > kLeast ? sin : std::copysign(kLeast, sin);
  const double per_c = 1.0 / c;
  const double per_s = 1.0 / s;
  BoxShape shape;
  shape.along_slope = -s * per_c;
  shape.across_slope = c * per_s;
  shape.rows_half = half_length_cells_ * std::fabs(s) + half_width_cells_ * std::fabs(c);
  shape.rows = 1 + fast_floor(2.0 * shape.rows_half);
  shape.along_step = to_fixed(shape.along_slope);
  shape.along_half = to_fixed(half_length_cells_ * std::fabs(per_c));
  shape.across_step = to_fixed(shape.across_slope);
  shape.across_half = to_fixed(half_width_cells_ * std::fabs(per_s));
  return shape;
}

namespace {

// For row lengths 0 to 8: which of eight lanes are beyond the end.
constexpr std::uint32_t kOff = 0xFFFFFFFFU;
alignas(16) constexpr std::uint32_t kBeyond[9][8] = {
    {kOff, kOff, kOff, kOff, kOff, kOff, kOff, kOff},
    {0, kOff, kOff, kOff, kOff, kOff, kOff, kOff},
    {0, 0, kOff, kOff, kOff, kOff, kOff, kOff},
    {0, 0, 0, kOff, kOff, kOff, kOff, kOff},
    {0, 0, 0, 0, kOff, kOff, kOff, kOff},
    {0, 0, 0, 0, 0, kOff, kOff, kOff},
    {0, 0, 0, 0, 0, 0, kOff, kOff},
    {0, 0, 0, 0, 0, 0, 0, kOff},
    {0, 0, 0, 0, 0, 0, 0, 0}};

}  // namespace

// False where a cell is unknown.
bool FixedBoxChecker::read_boxes(const CellPose& pose, WheelBoxes* boxes) const noexcept {
  const BoxShape shape = box_shape(pose.sin, pose.cos);
  const std::ptrdiff_t nx = map_.nx;
  const float* origin = known_ + pose.iy * nx + pose.ix;
  const bool narrow = row_cells_max_ <= 8;
  float highest = -INFINITY;
  for (int wheel = 0; wheel < kWheels; ++wheel) {
    // Rows differ in length by a cell or two at random. Two vectors for every row, with the lanes beyond its
    // end masked to NaN, are faster than a loop whose end the processor cannot predict.
    Quad lo = all_four(INFINITY);
    Quad hi = all_four(-INFINITY);
    if (narrow) {
      visit_box(pose, shape, wheel, [&](int dy, int first, int last) {
        const bool any = first <= last;
        const float* cells = origin + (any ? dy * nx + first : 0);
        const std::uint32_t* beyond = kBeyond[any ? last - first + 1 : 0];
        const Quad a = mask_to_nan(load_quad(cells), beyond);
        const Quad b = mask_to_nan(load_quad(cells + 4), beyond + 4);
        lo = smaller(b, smaller(a, lo));
        hi = larger(b, larger(a, hi));
      });
    } else {
      visit_box(pose, shape, wheel, [&](int dy, int first, int last) {
        const float* cells = origin + dy * nx + first;
        const int length = last - first + 1;
        for (int k = 0; k < length; k += 4) {
          const Quad a =
              mask_to_nan(load_quad(cells + k), kBeyond[length - k < 4 ? length - k : 4]);
          lo = smaller(a, lo);
          hi = larger(a, hi);
        }
      });
    }
    boxes->lo_m[wheel] = smallest(lo);
    boxes->hi_m[wheel] = largest(hi);
    highest = boxes->hi_m[wheel] > highest ? boxes->hi_m[wheel] : highest;
  }
  return highest < INFINITY;
}

FixedBoxChecker::PanelCells FixedBoxChecker::panel_cells(const CellPose& pose) const noexcept {
  std::int64_t x_from_y[kPanelsAcross];
  std::int64_t y_from_y[kPanelsAcross];
  for (int j = 0; j < kPanelsAcross; ++j) {
    const double y = 0.5 * (panel_y_m_[j] + panel_y_m_[j + 1]) * cells_per_m_;
    x_from_y[j] = to_fixed(-y * pose.sin);
    y_from_y[j] = to_fixed(y * pose.cos);
  }
  PanelCells cells;
  for (int i = 0; i < kPanelsAlong; ++i) {
    const double x = 0.5 * (panel_x_m_[i] + panel_x_m_[i + 1]) * cells_per_m_;
    const std::int64_t x_from_x = to_fixed(pose.fx + x * pose.cos + 0.5);
    const std::int64_t y_from_x = to_fixed(pose.fy + x * pose.sin + 0.5);
    for (int j = 0; j < kPanelsAcross; ++j) {
      const std::ptrdiff_t dx = fixed_floor(x_from_x + x_from_y[j]);
      const std::ptrdiff_t dy = fixed_floor(y_from_x + y_from_y[j]);
      cells.offset[i * kPanelsAcross + j] = dy * map_.nx + dx;
    }
  }
  return cells;
}

Reasons FixedBoxChecker::check_relief(const WheelBoxes& boxes) const noexcept {
  double relief = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    relief =
        larger(relief, static_cast<double>(boxes.hi_m[i]) - static_cast<double>(boxes.lo_m[i]));
  }
  return relief > model_.limits.wheel_drop_max_m ? Reasons{kRelief} : Reasons{0};
}

// False if a corner of the boxes is beyond the range of the linkage.
bool FixedBoxChecker::bound_attitude(const WheelBoxes& boxes, Attitude* out) const noexcept {
  // Each output of a side is monotone in each of its wheels' heights, so three pairs of corners of (front,
  // middle, rear) contain all extremes. Lanes: left and right at the highest, left and right at the lowest.
  // Heights are relative to one of them, so that float32 resolves 0.1 um.
  const float datum = boxes.lo_m[kMiddleLeft];
  const auto lo = [&](int wheel) { return boxes.lo_m[wheel] - datum; };
  const auto hi = [&](int wheel) { return boxes.hi_m[wheel] - datum; };
  const auto rising = [&](int w) { return quad(hi(w), hi(w + 3), lo(w), lo(w + 3)); };
  const auto falling = [&](int w) { return quad(lo(w), lo(w + 3), hi(w), hi(w + 3)); };
  const Quad front_up = rising(kFrontLeft);
  const Quad front_down = falling(kFrontLeft);
  const Quad middle_up = rising(kMiddleLeft);
  const Quad middle_down = falling(kMiddleLeft);
  const Quad rear_up = rising(kRearLeft);
  const Quad rear_down = falling(kRearLeft);
  SideState<Quad> rocker, pivot, bogie;
  if (!solve_side(linkage_, front_up, middle_down, rear_down, &rocker) ||
      !solve_side(linkage_, front_up, middle_up, rear_up, &pivot) ||
      !solve_side(linkage_, front_down, middle_up, rear_down, &bogie)) {
    return false;
  }
  // The bogie relative to its rocker.
  const Quad bogie_sin = bogie.sin_bogie * bogie.cos_rocker - bogie.cos_bogie * bogie.sin_rocker;
  const Quad bogie_cos = bogie.cos_bogie * bogie.cos_rocker + bogie.sin_bogie * bogie.sin_rocker;
  const float limit = static_cast<float>(sin_bogie_max_);
  out->bogie_beyond =
      !(all_within(bogie_sin, -limit, limit) && all_within(bogie_cos, 0.0F, INFINITY));

  float sin_rocker[4], cos_rocker[4], pivot_z[4], sin_bogie[4], cos_bogie[4];
  store_quad(sin_rocker, rocker.sin_rocker);
  store_quad(cos_rocker, rocker.cos_rocker);
  store_quad(pivot_z, pivot.pivot_z_m);
  store_quad(sin_bogie, bogie_sin);
  store_quad(cos_bogie, bogie_cos);
  using Angle = Attitude::Angle;
  const auto angle = [](float sin, float cos) {
    return Angle{static_cast<double>(sin), static_cast<double>(cos)};
  };
  for (int side = 0; side < 2; ++side) {
    out->bogie_hi[side] = angle(sin_bogie[side], cos_bogie[side]);
    out->bogie_lo[side] = angle(sin_bogie[2 + side], cos_bogie[2 + side]);
  }
  const Angle left_hi = angle(sin_rocker[0], cos_rocker[0]);
  const Angle right_hi = angle(sin_rocker[1], cos_rocker[1]);
  const Angle left_lo = angle(sin_rocker[2], cos_rocker[2]);
  const Angle right_lo = angle(sin_rocker[3], cos_rocker[3]);
  const auto difference = [](const Angle& a, const Angle& b) {
    return Angle{a.sin * b.cos - a.cos * b.sin, a.cos * b.cos + a.sin * b.sin};
  };
  const auto half_of_sum = [](const Angle& a, const Angle& b) {
    const double sum_sin = a.sin * b.cos + a.cos * b.sin;
    const double sum_cos = a.cos * b.cos - a.sin * b.sin;
    const double cos_half = std::sqrt(larger(0.5 + 0.5 * sum_cos, 1e-12));
    return Angle{0.5 * sum_sin / cos_half, cos_half};
  };
  out->double_differential_hi = difference(left_hi, right_lo);
  out->double_differential_lo = difference(left_lo, right_hi);
  out->pitch_hi = half_of_sum(left_hi, right_hi);
  out->pitch_lo = half_of_sum(left_lo, right_lo);

  const double z_left_hi = static_cast<double>(pivot_z[0]);
  const double z_right_hi = static_cast<double>(pivot_z[1]);
  const double z_left_lo = static_cast<double>(pivot_z[2]);
  const double z_right_lo = static_cast<double>(pivot_z[3]);
  const double per_track = 0.5 / linkage_.roll_arm_m;
  const double sin_hi = (z_left_hi - z_right_lo) * per_track;
  const double sin_lo = (z_left_lo - z_right_hi) * per_track;
  if (!(sin_hi < 0.999 && sin_lo > -0.999)) return false;
  out->roll_hi = {sin_hi, std::sqrt(1.0 - sin_hi * sin_hi)};
  out->roll_lo = {sin_lo, std::sqrt(1.0 - sin_lo * sin_lo)};
  out->pivot_hi_m = static_cast<double>(datum) + 0.5 * (z_left_hi + z_right_hi);
  out->pivot_lo_m = static_cast<double>(datum) + 0.5 * (z_left_lo + z_right_lo);
  out->cos_tilt =
      smaller(out->pitch_lo.cos, out->pitch_hi.cos) * smaller(out->roll_lo.cos, out->roll_hi.cos);
  return true;
}

Reasons FixedBoxChecker::check_attitude(const Attitude& a) const noexcept {
  using Angle = Attitude::Angle;
  // |angle| > limit, for a limit below 90 deg.
  const auto beyond = [](const Angle& angle, double sin_limit) {
    return std::fabs(angle.sin) > sin_limit || angle.cos < 0.0;
  };
  unsigned reasons = 0;
  if (a.cos_tilt < cos_tilt_max_) reasons |= kTilt;
  if (a.bogie_beyond) reasons |= kBogie;
  if (beyond(a.double_differential_lo, sin_double_differential_max_) ||
      beyond(a.double_differential_hi, sin_double_differential_max_)) {
    reasons |= kDifferential;
  }
  return static_cast<Reasons>(reasons);
}

namespace {

// Range of the cosine over a range of angles within +-90 deg.
template <typename Angle>
Bounds cos_range(const Angle& lo, const Angle& hi) noexcept {
  const bool crosses_zero = lo.sin < 0.0 && hi.sin > 0.0;
  return {smaller(lo.cos, hi.cos), crosses_zero ? 1.0 : larger(lo.cos, hi.cos)};
}

}  // namespace

// z_origin = z_D - xd sin(pitch) - zd cos(pitch) cos(roll), term by term.
Bounds FixedBoxChecker::origin_z_m(const Attitude& a) const noexcept {
  const RoverGeometry& g = model_.geometry;
  const Bounds cos_pitch = cos_range(a.pitch_lo, a.pitch_hi);
  const Bounds cos_roll = cos_range(a.roll_lo, a.roll_hi);
  const double t1 = g.rocker_pivot_x_m * a.pitch_lo.sin;
  const double t2 = g.rocker_pivot_x_m * a.pitch_hi.sin;
  return {a.pivot_lo_m - larger(t1, t2) - g.rocker_pivot_z_m * cos_pitch.hi * cos_roll.hi,
          a.pivot_hi_m - smaller(t1, t2) - g.rocker_pivot_z_m * cos_pitch.lo * cos_roll.lo};
}

// The pan plane over (forward, left) of the rover's origin (see pan_clearance in settle.cpp):
//   z_origin + zp / (cos pitch cos roll) + forward tan(pitch) / cos(roll) + left tan(roll).
FixedBoxChecker::PanBounds FixedBoxChecker::bound_pan(const Attitude& a) const noexcept {
  const Bounds cos_pitch = cos_range(a.pitch_lo, a.pitch_hi);
  const Bounds cos_roll = cos_range(a.roll_lo, a.roll_hi);
  PanBounds pan;
  pan.base_m = origin_z_m(a).lo + model_.geometry.pan_height_m / (cos_pitch.hi * cos_roll.hi);
  const double per_cos_least = 1.0 / cos_roll.hi;
  const double per_cos_most = 1.0 / cos_roll.lo;
  const double tan_lo = a.pitch_lo.sin / a.pitch_lo.cos;
  const double tan_hi = a.pitch_hi.sin / a.pitch_hi.cos;
  const double along_lo = tan_lo * (tan_lo < 0.0 ? per_cos_most : per_cos_least);
  const double along_hi = tan_hi * (tan_hi < 0.0 ? per_cos_least : per_cos_most);
  const double across_lo = a.roll_lo.sin / a.roll_lo.cos;
  const double across_hi = a.roll_hi.sin / a.roll_hi.cos;
  const auto least = [](double x0, double x1, double slope_lo, double slope_hi) {
    return smaller(smaller(x0 * slope_lo, x0 * slope_hi), smaller(x1 * slope_lo, x1 * slope_hi));
  };
  for (int i = 0; i < kPanelsAlong; ++i) {
    pan.along_m[i] = least(panel_x_m_[i], panel_x_m_[i + 1], along_lo, along_hi);
  }
  for (int j = 0; j < kPanelsAcross; ++j) {
    pan.across_m[j] = least(panel_y_m_[j], panel_y_m_[j + 1], across_lo, across_hi);
  }
  return pan;
}

// kUnknownClearance if a cell under the pan is unknown: the maximum of its block is +inf.
double FixedBoxChecker::clearance_m(const PanBounds& pan, const PanelCells& cells,
                                    const CellPose& pose) const noexcept {
  const float* ground = block_max_ + (static_cast<std::ptrdiff_t>(pose.iy) * map_.nx + pose.ix);
  double lowest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kPanelsAlong; ++i) {
    const double rear = pan.base_m + pan.along_m[i];
    for (int j = 0; j < kPanelsAcross; ++j) {
      const double highest = static_cast<double>(ground[cells.offset[i * kPanelsAcross + j]]);
      lowest = smaller(rear + pan.across_m[j] - highest, lowest);
    }
  }
  return lowest;
}

// The verdict for known boxes, in stages, the cheapest first; stops at the first that fails.
Reasons FixedBoxChecker::judge_boxes(const WheelBoxes& boxes, const PanelCells* panels,
                                     const CellPose& at) const noexcept {
  Reasons reasons = check_relief(boxes);
  if (reasons != 0) return reasons;
  Attitude a;
  if (!bound_attitude(boxes, &a)) return kMechanical;
  reasons = check_attitude(a);
  if (reasons != 0) return reasons;
  const PanBounds pan = bound_pan(a);
  const double clearance = clearance_m(pan, panels != nullptr ? *panels : panel_cells(at), at);
  if (clearance >= model_.limits.clearance_min_m) return 0;
  return clearance == kUnknownClearance ? kUnknown : kClearance;
}

bool FixedBoxChecker::check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept {
  *reasons = kBadPose;
  return sweep_ok(sweep) &&
         each_stance(sweep, model_.geometry, kSpacing_m, [&](const Stance& stance) {
           ++work->boxes;
           CellPose at;
           if (!locate(stance, &at, reasons)) return false;
           WheelBoxes boxes;
           *reasons = read_boxes(at, &boxes) ? judge_boxes(boxes, nullptr, at) : Reasons{kUnknown};
           return *reasons == 0;
         });
}

AceReport FixedBoxChecker::report(const Sweep& sweep) const noexcept {
  AceReport out;
  out.reasons = kBadPose;
  if (!sweep_ok(sweep)) return out;
  bool first = true;
  each_stance(sweep, model_.geometry, kSpacing_m, [&](const Stance& stance) {
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

AceReport FixedBoxChecker::report_pose(const Stance& stance) const noexcept {
  AceReport out;

  CellPose at;
  if (!locate(stance, &at, &out.reasons)) return out;
  WheelBoxes boxes;
  if (!read_boxes(at, &boxes)) {
    out.reasons = kUnknown;
    return out;
  }
  unsigned reasons = check_relief(boxes);
  out.relief_max_m = 0.0;
  for (int i = 0; i < kWheels; ++i) {
    out.relief_max_m = larger(
        out.relief_max_m, static_cast<double>(boxes.hi_m[i]) - static_cast<double>(boxes.lo_m[i]));
  }
  out.margin_relief_m = model_.limits.wheel_drop_max_m - out.relief_max_m;
  out.lookups = kPanels;
  out.inner_steps = 1;
  Attitude a;
  if (!bound_attitude(boxes, &a)) {
    out.reasons = static_cast<Reasons>(reasons | kMechanical);
    return out;
  }
  reasons |= check_attitude(a);
  const auto angle = [](const Attitude::Angle& x) { return det_atan2(x.sin, x.cos); };
  const auto range = [&angle](const Attitude::Angle& lo, const Attitude::Angle& hi) {
    return Bounds{angle(lo), angle(hi)};
  };
  out.roll_rad = range(a.roll_lo, a.roll_hi);
  out.pitch_rad = range(a.pitch_lo, a.pitch_hi);
  out.differential_rad = {0.5 * angle(a.double_differential_lo),
                          0.5 * angle(a.double_differential_hi)};
  out.bogie_left_rad = range(a.bogie_lo[0], a.bogie_hi[0]);
  out.bogie_right_rad = range(a.bogie_lo[1], a.bogie_hi[1]);
  out.origin_z_m = origin_z_m(a);
  out.tilt_max_rad = det_atan2(std::sqrt(larger(1.0 - a.cos_tilt * a.cos_tilt, 0.0)), a.cos_tilt);
  const double clearance = clearance_m(bound_pan(a), panel_cells(at), at);
  if (clearance == kUnknownClearance) {
    reasons |= kUnknown;
  } else {
    out.clearance_min_m = clearance;
    out.margin_clearance_m = clearance - model_.limits.clearance_min_m;
    if (clearance < model_.limits.clearance_min_m) reasons |= kClearance;
  }
  const SafetyLimits& l = model_.limits;
  const auto widest = [](const Bounds& b) { return larger(-b.lo, b.hi); };
  out.margin_tilt_rad = l.tilt_max_rad - out.tilt_max_rad;
  out.margin_bogie_rad =
      l.bogie_max_rad - larger(widest(out.bogie_left_rad), widest(out.bogie_right_rad));
  out.margin_differential_rad = l.differential_max_rad - widest(out.differential_rad);
  out.reasons = static_cast<Reasons>(reasons);
  out.safe = reasons == 0;
  return out;
}

}  // namespace mlnav
