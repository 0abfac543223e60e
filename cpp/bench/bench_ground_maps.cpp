// Time of the stages that run once a cycle on a 320 x 320 map of 0.1 m: validation, costmap
// (80 x 80), Sobel risk, cost-to-go. Prints milliseconds: best of several rounds.
#include <cstdio>

#include "bench.hpp"
#include "mlnav/ground/features.hpp"
#include "mlnav/search/cost_to_go.hpp"

namespace {

using namespace mlnav;

template <typename Work>
void report(const char* name, Work work) {
  std::printf("%-34s %.3f ms\n", name, 1e-6 * mlnav_bench::best_ns(40, 1, work));
}

}  // namespace

int main() {
  constexpr int kSide = 320;
  const mlnav_bench::Ground ground(kSide, 0.1, 8.0, 0.3, 5);
  const GridView& grid = ground.view;
  const CostmapConfig config;
  const auto cells = static_cast<std::size_t>(coarse_grid(grid, config.coarsening).cells());
  std::vector<double> scratch(costmap_scratch_doubles(kSide, kSide, config.coarsening));
  std::vector<float> cost(cells), tilt(cells), roughness(cells), value(cells);
  Costmap costmap;
  costmap.cost_per_m = cost.data();
  costmap.tilt_rad = tilt.data();
  costmap.roughness_m = roughness.data();
  std::vector<std::int32_t> heap(cells), position(cells);
  std::vector<double> sobel_scratch(sobel_scratch_doubles(kSide, kSide));
  std::vector<float> risk(grid.cells());
  int bad = 0;

  report("validate 320 x 320", [&] { bad += validate(grid) != Status::kOk; });
  report("costmap 80 x 80",
         [&] { build_costmap(grid, nullptr, config, scratch.data(), &costmap); });
  std::vector<std::uint8_t> keep_out(grid.cells(), 0);
  report("costmap with keep-out mask",
         [&] { build_costmap(grid, keep_out.data(), config, scratch.data(), &costmap); });
  report("cost-to-go 80 x 80", [&] {
    solve_cost_to_go(costmap.grid, cost.data(), nullptr, {11.0, 19.0}, 1.4,
                     {heap.data(), position.data()}, value.data());
  });
  report("cost-to-go, goal outside", [&] {
    solve_cost_to_go(costmap.grid, cost.data(), nullptr, {60.0, 16.0}, 1.4,
                     {heap.data(), position.data()}, value.data());
  });
  report("sobel risk 320 x 320", [&] { sobel_risk(grid, {}, sobel_scratch.data(), risk.data()); });
  if (bad != 0) std::puts("map refused");
  return 0;
}
