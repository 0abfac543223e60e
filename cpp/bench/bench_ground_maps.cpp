// Time of the stages that run once a cycle on a 320 x 320 map of 0.1 m: validation, costmap
// (80 x 80), Sobel risk, cost-to-go. Prints milliseconds: best of several rounds.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "mlnav/ground/features.hpp"
#include "mlnav/search/cost_to_go.hpp"

namespace {

using namespace mlnav;

template <typename Work>
void report(const char* name, Work work) {
  double best = 1e30;
  for (int round = 0; round < 40; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    best = std::fmin(best, time.count());
  }
  std::printf("%-34s %.3f ms\n", name, best);
}

}  // namespace

int main() {
  constexpr int kSide = 320;
  std::vector<float> z(kSide * kSide);
  std::mt19937 random(5);
  std::normal_distribution<double> noise(0.0, 0.03);
  for (int iy = 0; iy < kSide; ++iy) {
    for (int ix = 0; ix < kSide; ++ix) {
      z[static_cast<std::size_t>(iy * kSide + ix)] = static_cast<float>(
          0.015 * ix + 0.4 * std::sin(0.05 * ix) * std::cos(0.04 * iy) + noise(random));
    }
  }
  const GridView grid{z.data(), kSide, kSide, 0.0, 0.0, 0.1};
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
    solve_cost_to_go(costmap.grid, cost.data(), nullptr, {16.0, 16.0}, 1.4,
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
