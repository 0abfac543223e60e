// What driving costs, for ranking alone (safety is the verdicts'): the costmap, dearer where the rover has
// been and beside keep-out zones; the price of a risk map, dearer around poses that failed; and the
// cost-to-go over both. It knows poses by where they are, and no tree, lattice or list; any planner can use
// it.
//
//   begin() -> add_visit() -> build() -> [use_risk()] -> solve() -> at(), to_go()
#pragma once

#include <cmath>
#include <cstdint>

#include "mlnav/ground/features.hpp"
#include "mlnav/safety/checker.hpp"
#include "mlnav/search/cost_to_go.hpp"
#include "mlnav/search/keep_out.hpp"
#include "mlnav/search/risk.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// Part of a planner's configuration, which has these values under the same names, with their ranges.
struct CostsConfig {
  CostmapConfig costmap;
  RiskPricing risk;
  int memory_poses = 0;  // places that add_visit() remembers (ring)
  double visit_cost_per_m = 0.0;
  double visit_radius_m = 0.0;
  int memory_failures = 0;  // poses that add_failure() remembers (ring)
  std::size_t max_map_cells = 0;
  std::size_t max_risk_cells = 0;  // bins x cells
};

class Costs : NoCopy {
 public:
  // Bytes of an aligned arena.
  static std::size_t memory_required(const CostsConfig& config) noexcept;
  Status init(const CostsConfig& config, const RoverModel& model, Arena* arena) noexcept;

  // Forgets visits and failures.
  void reset() noexcept;
  // A cycle begins, without a risk map.
  void begin() noexcept;

  // Where the rover has been costs more, from the next build() on: a pocket fills up until its way out is
  // cheaper.
  void add_visit(const Pose2& pose) noexcept;

  // Costmap, visits and the margin of the zones. `keep_out` has the shape of `heights`.
  void build(const GridView& heights, const KeepOutMask& keep_out) noexcept;

  // Whether a risk map can be used, and why not.
  Status check(const RiskView& risk) const noexcept;
  // Prices a map that passed check(); the caller keeps its view's values alive until the cycle ends.
  void use_risk(const RiskView& risk) noexcept;
  bool has_risk() const noexcept { return has_risk_; }

  // A pose failed for these reasons. One failure says more about the poses beside it than the map did: with a
  // risk map it raises the price around them now, and in later cycles too, since the ground ahead is the
  // same.
  void add_failure(const Pose2& pose, Reasons reasons) noexcept;

  // Cost-to-go to a goal, inside the map or not.
  void solve(Point2 goal) noexcept;

  // Cost per metre at a pose; +inf outside the costmap.
  double at(double x_m, double y_m, double heading_rad) const noexcept {
    const CoarseGrid& grid = costmap_.grid;
    const double gx = (x_m - grid.origin_x_m) / grid.resolution_m + 0.5;
    const double gy = (y_m - grid.origin_y_m) / grid.resolution_m + 0.5;
    if (!(gx >= 0.0 && gy >= 0.0 && gx < grid.nx && gy < grid.ny)) return INFINITY;
    const int cell = static_cast<int>(gy) * grid.nx + static_cast<int>(gx);
    double cost = static_cast<double>(cost_with_memory_[cell]);
    if (has_risk_) {
      cost += config_.risk.weight_per_m * sample_price(risk_, price_, x_m, y_m, heading_rad);
    }
    return cost;
  }
  // How likely a pose is to fail, as far as anything is known: the price of its risk, else its cost. For the
  // order in which poses are checked.
  double suspicion(const Pose2& pose) const noexcept {
    return has_risk_ ? sample_price(risk_, price_, pose.x_m, pose.y_m, pose.heading_rad)
                     : at(pose.x_m, pose.y_m, pose.heading_rad);
  }
  // Cost from a place to the goal; +inf where there is no way.
  double to_go(double x_m, double y_m) const noexcept {
    return sample_cost_to_go(costmap_.grid, cost_to_go_, x_m, y_m);
  }

  // Of the last cycle, for pictures and tests.
  const Costmap& costmap() const noexcept { return costmap_; }
  const float* cost_to_go() const noexcept { return cost_to_go_; }
  const float* cost_with_memory() const noexcept { return cost_with_memory_; }

 private:
  struct Failure {
    Pose2 pose;
    std::uint64_t only_in;  // the cycle that it counts in, or kEver
  };
  static constexpr std::uint64_t kEver = 0;

  void add_visit_costs() noexcept;
  void add_zone_margin(const KeepOutMask& zones) noexcept;
  double typical_cost_per_m() const noexcept;

  CostsConfig config_;
  double inscribed_m_ = 0.0;  // the rover's origin cannot be closer than this to a zone

  // Memory between cycles.
  Point2* visits_ = nullptr;
  int visit_count_ = 0;
  int visit_next_ = 0;
  Failure* failures_ = nullptr;
  int failure_count_ = 0;
  int failure_next_ = 0;
  std::uint64_t cycle_ = kEver;

  // This cycle.
  RiskView risk_;
  bool has_risk_ = false;
  Costmap costmap_{};
  double* costmap_scratch_ = nullptr;
  float* cost_with_memory_ = nullptr;    // per metre, with visits and the zones' margin
  std::uint8_t* beside_zone_ = nullptr;  // coarse cells that the rover's origin cannot be in
  float* risk_cost_ = nullptr;           // per metre, for the cost-to-go
  float* cost_to_go_ = nullptr;
  CostToGoScratch to_go_scratch_;
  float* price_ = nullptr;
};

}  // namespace mlnav
