#include "mlnav/ground/view.hpp"

#include <cmath>
#include <limits>

namespace mlnav {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double smaller(double a, double b) noexcept { return a < b ? a : b; }
double larger(double a, double b) noexcept { return a > b ? a : b; }
double mix(double a, double b, double t) noexcept { return a + t * (b - a); }

// A traversal of the map along one of its axes. Lengths are in cells; `way` is the horizontal distance from
// the eye. Patch i lies between the centres of cells i and i + 1. Patches -1 and n - 1 are the outer half
// cells, where the height is constant.
class Axis {
 public:
  Axis(double eye_m, double origin_m, double resolution_m, int cells, double direction) noexcept
      : eye_((eye_m - origin_m) / resolution_m), direction_(direction), cells_(cells) {}

  // Clips [*enter, *leave] to the part that is over the map's extent along this axis.
  void cut(double* enter, double* leave) const noexcept {
    const double lo = -0.5 - eye_;
    const double hi = static_cast<double>(cells_) - 0.5 - eye_;
    if (direction_ == 0.0) {
      if (!(lo <= 0.0 && hi > 0.0)) *leave = -1.0;
      return;
    }
    const double a = lo / direction_;
    const double b = hi / direction_;
    *enter = larger(*enter, smaller(a, b));
    *leave = smaller(*leave, larger(a, b));
  }

  void start(double way) noexcept {
    const double at = std::floor(eye_ + way * direction_);
    patch_ = static_cast<int>(larger(-1.0, smaller(at, static_cast<double>(cells_ - 1))));
    set_next();
  }
  void advance() noexcept {
    patch_ += direction_ > 0.0 ? 1 : -1;
    set_next();
  }

  double next() const noexcept { return next_; }  // way at the end of the patch
  int lo() const noexcept { return clamped(patch_); }
  int hi() const noexcept { return clamped(patch_ + 1); }
  // Position in the patch, 0 at lo and 1 at hi.
  double fraction(double way) const noexcept {
    return larger(0.0, smaller(eye_ + way * direction_ - static_cast<double>(patch_), 1.0));
  }

 private:
  void set_next() noexcept {
    const int line = direction_ > 0.0 ? patch_ + 1 : patch_;
    next_ = direction_ == 0.0 ? kInfinity : (static_cast<double>(line) - eye_) / direction_;
  }
  int clamped(int cell) const noexcept { return cell < 0 ? 0 : cell < cells_ ? cell : cells_ - 1; }

  double eye_;
  double direction_;
  double next_ = 0.0;
  int cells_;
  int patch_ = 0;
};

// The first zero in [0, 1] of the parabola through f0 < 0 at 0 and f1 at 1, with coefficient `bend` of its
// square; negative if there is none.
double first_zero(double f0, double f1, double bend) noexcept {
  const double rise = f1 - f0 - bend;
  const bool ends_above = f1 >= 0.0;
  if (!ends_above && !(rise > 0.0 && rise < -2.0 * bend)) return -1.0;  // no maximum in between
  const double discriminant = rise * rise - 4.0 * bend * f0;
  if (!ends_above && discriminant < 0.0) return -1.0;
  return smaller(-2.0 * f0 / (rise + std::sqrt(larger(0.0, discriminant))), 1.0);
}

// The rays of one azimuth, the lowest first.
struct Fan {
  const double* slope;    // rise over run
  const double* stretch;  // length along the ray per horizontal length
  std::size_t count;
  double range_min_m;
  double range_max_m;
};

void cast_fan(const GridView& grid, const Viewpoint& eye, SinCos azimuth, const Fan& fan,
              float* range_m) noexcept {
  for (std::size_t i = 0; i < fan.count; ++i) range_m[i] = std::numeric_limits<float>::quiet_NaN();
  const double res = grid.resolution_m;
  Axis x(eye.x_m, grid.origin_x_m, res, grid.nx, azimuth.cos);
  Axis y(eye.y_m, grid.origin_y_m, res, grid.ny, azimuth.sin);
  double way = 0.0;
  double leave = fan.range_max_m / res;
  x.cut(&way, &leave);
  y.cut(&way, &leave);
  if (!(way < leave)) return;
  x.start(way);
  y.start(way);

  std::size_t ray = 0;  // the lowest that is still above the ground
  bool known = false;
  double far = 0.0;  // height above the eye at the end of the last patch, if known
  while (ray < fan.count && way < leave) {
    const double next = smaller(leave, smaller(x.next(), y.next()));
    if (next > way) {
      const double z00 = static_cast<double>(grid.at(x.lo(), y.lo()));
      const double z10 = static_cast<double>(grid.at(x.hi(), y.lo()));
      const double z01 = static_cast<double>(grid.at(x.lo(), y.hi()));
      const double z11 = static_cast<double>(grid.at(x.hi(), y.hi()));
      const double twist = (z11 - z01) - (z10 - z00);
      if (std::isnan(twist)) {
        known = false;
      } else {
        const double x0 = x.fraction(way);
        const double x1 = x.fraction(next);
        const double y0 = y.fraction(way);
        const double y1 = y.fraction(next);
        const double near = known ? far : mix(mix(z00, z10, x0), mix(z01, z11, x0), y0) - eye.z_m;
        far = mix(mix(z00, z10, x1), mix(z01, z11, x1), y1) - eye.z_m;
        const double bend = twist * (x1 - x0) * (y1 - y0);
        const double near_m = way * res;
        const double far_m = next * res;
        if (!known) {  // these rays met unknown ground
          while (ray < fan.count && near >= fan.slope[ray] * near_m) ++ray;
          known = true;
        }
        for (; ray < fan.count; ++ray) {
          const double slope = fan.slope[ray];
          const double zero = first_zero(near - slope * near_m, far - slope * far_m, bend);
          if (zero < 0.0) break;  // all higher rays pass above as well
          const double range = (near_m + zero * (far_m - near_m)) * fan.stretch[ray];
          if (range >= fan.range_min_m && range <= fan.range_max_m) {
            range_m[ray] = static_cast<float>(range);
          }
        }
      }
      way = next;
    }
    if (x.next() <= next) x.advance();
    if (y.next() <= next) y.advance();
  }
}

bool good_count(std::size_t count) noexcept { return count >= 1 && count <= kMaxViewAngles; }

}  // namespace

Fault validate(const RayLattice& rays) noexcept {
  constexpr Fault kBadAzimuth{Status::kConfigBad, "azimuth_rad"};
  constexpr Fault kBadElevation{Status::kConfigBad, "elevation_rad"};
  if (!good_count(rays.azimuth_rad.size)) return kBadAzimuth;
  for (const double azimuth : rays.azimuth_rad) {
    if (!(std::fabs(azimuth) <= kMaxHeading_rad)) return kBadAzimuth;
  }
  if (!good_count(rays.elevation_rad.size)) return kBadElevation;
  double below = -kInfinity;
  for (const double elevation : rays.elevation_rad) {
    if (!(std::fabs(elevation) <= kMaxElevation_rad && elevation > below)) return kBadElevation;
    below = elevation;
  }
  if (!(rays.range_min_m >= 0.0)) return {Status::kConfigBad, "range_min_m"};
  if (!(rays.range_max_m > rays.range_min_m && rays.range_max_m <= kMaxViewRange_m)) {
    return {Status::kConfigBad, "range_max_m"};
  }
  return {};
}

std::size_t view_scratch_doubles(std::size_t elevations) noexcept { return 2 * elevations; }

Fault cast_view(const GridView& grid, const Viewpoint& eye, const RayLattice& rays, double* scratch,
                float* range_m) noexcept {
  const Status status = validate_geometry(grid);
  if (status != Status::kOk) return {status, ""};
  const Fault fault = validate(rays);
  if (!fault.ok()) return fault;
  if (!std::isfinite(eye.x_m)) return {Status::kConfigBad, "x_m"};
  if (!std::isfinite(eye.y_m)) return {Status::kConfigBad, "y_m"};
  if (!std::isfinite(eye.z_m)) return {Status::kConfigBad, "z_m"};
  if (height_m(grid, eye.x_m, eye.y_m) >= eye.z_m) return {Status::kViewpointBelowGround, "z_m"};

  const std::size_t elevations = rays.elevation_rad.size;
  double* const slope = scratch;
  double* const stretch = scratch + elevations;
  for (std::size_t i = 0; i < elevations; ++i) {
    const SinCos elevation = det_sincos(rays.elevation_rad[i]);
    slope[i] = elevation.sin / elevation.cos;
    stretch[i] = 1.0 / elevation.cos;
  }
  const Fan fan{slope, stretch, elevations, rays.range_min_m, rays.range_max_m};
  for (const double azimuth : rays.azimuth_rad) {
    cast_fan(grid, eye, det_sincos(azimuth), fan, range_m);
    range_m += elevations;
  }
  return {};
}

}  // namespace mlnav
