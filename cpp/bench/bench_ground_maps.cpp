// Time of the stages that run once a cycle on a 320 x 320 map of 0.1 m: validation, costmap
// (80 x 80), Sobel risk, cost-to-go; and of a panorama seen from the mast, by azimuth and ray by ray. Prints
// milliseconds: best of several rounds.
#include <cstdio>

#include "bench.hpp"
#include "mlnav/ground/features.hpp"
#include "mlnav/ground/view.hpp"
#include "mlnav/search/cost_to_go.hpp"

namespace {

using namespace mlnav;

template <typename Work>
void report(const char* name, Work work) {
  std::printf("%-34s %.3f ms\n", name, 1e-6 * mlnav_bench::best_ns(40, 1, work));
}

// A naive cast_view: each ray separately, in steps of half a cell.
void march_rays(const GridView& grid, const Viewpoint& eye, const RayLattice& rays,
                float* range_m) {
  const double step_m = 0.5 * grid.resolution_m;
  for (const double azimuth_rad : rays.azimuth_rad) {
    const SinCos azimuth = det_sincos(azimuth_rad);
    for (const double elevation_rad : rays.elevation_rad) {
      const SinCos up = det_sincos(elevation_rad);
      *range_m = NAN;
      double before = -1.0;
      for (double s = rays.range_min_m; s <= rays.range_max_m; s += step_m) {
        const double below =
            height_m(grid, eye.x_m + s * up.cos * azimuth.cos, eye.y_m + s * up.cos * azimuth.sin) -
            (eye.z_m + s * up.sin);
        if (below >= 0.0) {
          *range_m = static_cast<float>(s - step_m * below / (below - before));
          break;
        }
        before = below;
      }
      ++range_m;
    }
  }
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

  // Half a circle and 73 degrees down, every quarter of a degree, up to 15 m.
  std::vector<double> azimuth, elevation;
  for (int i = -360; i <= 360; ++i) azimuth.push_back(0.25 * kDeg * i);
  for (int i = -272; i <= 20; ++i) elevation.push_back(0.25 * kDeg * i);
  const RayLattice rays{
      {azimuth.data(), azimuth.size()}, {elevation.data(), elevation.size()}, 0.5, 15.0};
  const double middle_x = grid.center_x_m(kSide / 2);
  const double middle_y = grid.center_y_m(kSide / 2);
  const Viewpoint eye{middle_x, middle_y, height_m(grid, middle_x, middle_y) + 2.0};
  std::vector<double> view_scratch(view_scratch_doubles(elevation.size()));
  std::vector<float> range(rays.rays());
  const double by_azimuth = mlnav_bench::best_ns(
      20, 1, [&] { bad += !cast_view(grid, eye, rays, view_scratch.data(), range.data()).ok(); });
  const double by_ray =
      mlnav_bench::best_ns(3, 1, [&] { march_rays(grid, eye, rays, range.data()); });
  std::printf("%-34s %.3f ms\n", "view 721 x 293", 1e-6 * by_azimuth);
  std::printf("%-34s %.3f ms, %.0f x\n", "view 721 x 293, ray by ray", 1e-6 * by_ray,
              by_ray / by_azimuth);
  if (bad != 0) std::puts("map refused");
  return 0;
}
