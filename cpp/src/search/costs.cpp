#include "mlnav/search/costs.hpp"

#include <algorithm>
#include <cstring>

#include "mlnav/assert.hpp"

namespace mlnav {
namespace {

std::size_t size_of(int n) noexcept { return static_cast<std::size_t>(n); }

// Coarse cells that a map of this many cells can have, whatever its shape: ceil(n / k) <= n.
std::size_t max_coarse_cells(const CostsConfig& config) noexcept { return config.max_map_cells; }

// The scratch of build_costmap depends on the map's shape; the worst shape of a given area is one
// cell wide.
std::size_t max_costmap_scratch(const CostsConfig& config) noexcept {
  const int longest = static_cast<int>(config.max_map_cells);
  return std::max(costmap_scratch_doubles(longest, 1, config.costmap.coarsening),
                  costmap_scratch_doubles(1, longest, config.costmap.coarsening));
}

}  // namespace

std::size_t Costs::memory_required(const CostsConfig& config) noexcept {
  const std::size_t coarse = max_coarse_cells(config);
  return Arena::cost<Point2>(size_of(config.memory_poses)) +
         Arena::cost<Failure>(size_of(config.memory_failures)) + 6 * Arena::cost<float>(coarse) +
         Arena::cost<std::uint8_t>(coarse) + 2 * Arena::cost<std::int32_t>(coarse) +
         Arena::cost<double>(max_costmap_scratch(config)) +
         Arena::cost<float>(config.max_risk_cells);
}

Status Costs::init(const CostsConfig& config, const RoverModel& model, Arena* arena) noexcept {
  config_ = config;
  inscribed_m_ = rover_outline(model).inscribed_m();
  const std::size_t coarse = max_coarse_cells(config);
  bool enough = arena->take(size_of(config.memory_poses), &visits_);
  enough &= arena->take(size_of(config.memory_failures), &failures_);
  enough &= arena->take(coarse, &costmap_.cost_per_m);
  enough &= arena->take(coarse, &costmap_.tilt_rad);
  enough &= arena->take(coarse, &costmap_.roughness_m);
  enough &= arena->take(coarse, &cost_with_memory_);
  enough &= arena->take(coarse, &beside_zone_);
  enough &= arena->take(coarse, &risk_cost_);
  enough &= arena->take(coarse, &cost_to_go_);
  enough &= arena->take(coarse, &to_go_scratch_.heap);
  enough &= arena->take(coarse, &to_go_scratch_.position);
  enough &= arena->take(max_costmap_scratch(config), &costmap_scratch_);
  enough &= arena->take(config.max_risk_cells, &price_);
  reset();
  return enough ? Status::kOk : Status::kArenaTooSmall;
}

void Costs::reset() noexcept {
  visit_count_ = 0;
  visit_next_ = 0;
  failure_count_ = 0;
  failure_next_ = 0;
}

void Costs::begin() noexcept {
  ++cycle_;
  has_risk_ = false;
}

// ---- the ground ----------------------------------------------------------------------------------

void Costs::add_visit(const Pose2& pose) noexcept {
  if (config_.memory_poses == 0) return;
  visits_[visit_next_] = {pose.x_m, pose.y_m};
  visit_next_ = (visit_next_ + 1) % config_.memory_poses;
  if (visit_count_ < config_.memory_poses) ++visit_count_;
}

void Costs::build(const GridView& heights, const KeepOutMask& keep_out) noexcept {
  MLNAV_ASSERT(heights.cells() <= config_.max_map_cells);
  build_costmap(heights, keep_out.cells, config_.costmap, costmap_scratch_, &costmap_);
  const int cells = costmap_.grid.cells();
  for (int i = 0; i < cells; ++i) cost_with_memory_[i] = costmap_.cost_per_m[i];
  add_visit_costs();
  add_zone_margin(keep_out);
}

void Costs::add_visit_costs() noexcept {
  const CoarseGrid& grid = costmap_.grid;
  const double radius = config_.visit_radius_m / grid.resolution_m;
  for (int i = 0; i < visit_count_; ++i) {
    const double cx = (visits_[i].x_m - grid.origin_x_m) / grid.resolution_m;
    const double cy = (visits_[i].y_m - grid.origin_y_m) / grid.resolution_m;
    // Clamped as doubles: the map may have moved far away from an old visit.
    const int x0 = static_cast<int>(std::clamp(std::ceil(cx - radius), 0.0, grid.nx * 1.0));
    const int x1 = static_cast<int>(std::clamp(std::floor(cx + radius), -1.0, grid.nx - 1.0));
    const int y0 = static_cast<int>(std::clamp(std::ceil(cy - radius), 0.0, grid.ny * 1.0));
    const int y1 = static_cast<int>(std::clamp(std::floor(cy + radius), -1.0, grid.ny - 1.0));
    for (int y = y0; y <= y1; ++y) {
      for (int x = x0; x <= x1; ++x) {
        const double dx = x - cx;
        const double dy = y - cy;
        if (dx * dx + dy * dy > radius * radius) continue;
        cost_with_memory_[y * grid.nx + x] += static_cast<float>(config_.visit_cost_per_m);
      }
    }
  }
}

// Per metre where the rover's origin has no room beside a zone. Cost-to-go then leads round gaps that are too
// narrow. It is not infinite: cells are coarse, and a start, a goal or the only way may lie just beside a
// zone.
constexpr float kBesideZone_per_m = 20.0F;

void Costs::add_zone_margin(const KeepOutMask& zones) noexcept {
  const CoarseGrid& grid = costmap_.grid;
  std::memset(beside_zone_, 0, size_of(grid.cells()));
  if (zones.cells == nullptr) return;
  const int k = config_.costmap.coarsening;
  const double radius = inscribed_m_ / grid.resolution_m;
  const int reach = static_cast<int>(std::min(radius, 1.0 * std::max(grid.nx, grid.ny)));
  int last = -1;  // a coarse cell holds many cells; its zone is spread once
  for (int iy = 0; iy < zones.ny; ++iy) {
    const std::uint8_t* const row = zones.cells + size_of(iy) * size_of(zones.nx);
    for (int ix = 0; ix < zones.nx; ++ix) {
      if (row[ix] == 0) continue;
      const int cx = ix / k;
      const int cy = iy / k;
      const int cell = cy * grid.nx + cx;
      constexpr std::uint8_t kSpread = 2;
      if (cell == last || beside_zone_[cell] == kSpread) continue;
      last = cell;
      for (int y = std::max(cy - reach, 0); y <= std::min(cy + reach, grid.ny - 1); ++y) {
        for (int x = std::max(cx - reach, 0); x <= std::min(cx + reach, grid.nx - 1); ++x) {
          const double dx = x - cx;
          const double dy = y - cy;
          std::uint8_t& beside = beside_zone_[y * grid.nx + x];
          if (beside == 0 && dx * dx + dy * dy <= radius * radius) beside = 1;
        }
      }
      beside_zone_[cell] = kSpread;
    }
  }
  for (int i = 0; i < grid.cells(); ++i) {
    if (beside_zone_[i] != 0) cost_with_memory_[i] += kBesideZone_per_m;
  }
}

// ---- the risk ------------------------------------------------------------------------------------

Status Costs::check(const RiskView& risk) const noexcept {
  const Status status = validate(risk);
  if (status != Status::kOk) return status;
  const std::size_t cells = size_of(risk.nx) * size_of(risk.ny);
  return cells > config_.max_risk_cells / size_of(risk.bins) ? Status::kRiskBadShape : Status::kOk;
}

void Costs::use_risk(const RiskView& risk) noexcept {
  MLNAV_ASSERT(check(risk) == Status::kOk);
  has_risk_ = true;
  risk_ = risk;
  price_risk(risk_, price_);
  for (int i = 0; i < failure_count_; ++i) {
    const Failure& failure = failures_[i];
    if (failure.only_in == kEver || failure.only_in == cycle_) {
      raise_price(risk_, price_, failure.pose, config_.risk.fail_price);
    }
  }
  coarse_price(risk_, price_, costmap_.grid, risk_cost_);
  const float weight = static_cast<float>(config_.risk.weight_per_m * config_.risk.to_go_fraction);
  const int cells = costmap_.grid.cells();
  for (int i = 0; i < cells; ++i) risk_cost_[i] *= weight;
}

// What failed for want of sight may be seen from elsewhere, and a zone's edge says nothing about the ground:
// those failures are of this cycle alone.
void Costs::add_failure(const Pose2& pose, Reasons reasons) noexcept {
  if (has_risk_) raise_price(risk_, price_, pose, config_.risk.fail_price);
  if (config_.memory_failures == 0) return;
  constexpr unsigned kNotOfTheGround = kUnknown | kBorder | kKeepOutZone;
  failures_[failure_next_] = {pose, (reasons & ~kNotOfTheGround) == 0 ? cycle_ : kEver};
  failure_next_ = (failure_next_ + 1) % config_.memory_failures;
  if (failure_count_ < config_.memory_failures) ++failure_count_;
}

// ---- cost-to-go ----------------------------------------------------------------------------------

// Ground beyond the map is taken to cost what the map costs on average. Were it cheaper, the nearest way off
// the map would beat the way to the goal, and the more so the more risk or slope adds inside.
double Costs::typical_cost_per_m() const noexcept {
  double sum = 0.0;
  int count = 0;
  for (int i = 0; i < costmap_.grid.cells(); ++i) {
    double cost = static_cast<double>(cost_with_memory_[i]);
    if (has_risk_) cost += static_cast<double>(risk_cost_[i]);
    if (!std::isfinite(cost) || beside_zone_[i] != 0) continue;
    sum += cost;
    ++count;
  }
  return count > 0 ? sum / count : 1.0;
}

void Costs::solve(Point2 goal) noexcept {
  solve_cost_to_go(costmap_.grid, cost_with_memory_, has_risk_ ? risk_cost_ : nullptr, goal,
                   typical_cost_per_m(), to_go_scratch_, cost_to_go_);
}

}  // namespace mlnav
