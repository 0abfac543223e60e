// One planning cycle on a 32 x 32 m map of 0.1 m (the full tree of 1,694 paths ranked), split by stage: mean
// and worst over many cycles from poses all over the map, and the memory of the planner. Without a risk map,
// and with one (Sobel's) on demand: "asked %" is the share of cycles that asked for it.
//   bench_plan [cycles] [seed]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench.hpp"
#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/fixed_box.hpp"

namespace {

using namespace mlnav;

double now_s(void*) noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Sobel's risk map of the ground, computed when it is asked for.
struct Sobel {
  explicit Sobel(const GridView& map)
      : map_(map), risk_(map.cells()), scratch_(sobel_scratch_doubles(map.nx, map.ny)) {}
  RiskSource source() {
    const auto fill = [](void* context, RiskView* risk) noexcept {
      Sobel& self = *static_cast<Sobel*>(context);
      const GridView& map = self.map_;
      sobel_risk(map, {}, self.scratch_.data(), self.risk_.data());
      *risk = {self.risk_.data(), 1, map.nx, map.ny, map.origin_x_m, map.origin_y_m,
               map.resolution_m};
      return true;
    };
    return {fill, this};
  }

 private:
  GridView map_;
  std::vector<float> risk_;
  std::vector<double> scratch_;
};

}  // namespace

int main(int argc, char** argv) {
  const int cycles = argc > 1 ? std::atoi(argv[1]) : 200;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  EnavConfig config;
  config.max_map_cells = 320 * 320;
  const std::size_t bytes =
      FixedBoxChecker::memory_required(config.max_map_cells) + EnavPlanner::memory_required(config);
  std::vector<char> memory(bytes);
  std::printf("arena %.1f MB, PlanResult %zu bytes\n", 1e-6 * static_cast<double>(bytes),
              sizeof(PlanResult));
  std::printf("%-30s %6s %7s %6s |", "ms: mean (worst)", "path %", "asked %", "ACE");
  for (int stage = 0; stage < kStageCount; ++stage) std::printf(" %15s", stage_name(stage));
  std::printf(" %15s\n", "cycle");

  const struct {
    double slope_deg, rocks_per_m2;
    const char* name;
  } grounds[] = {
      {0.0, 0.02, "flat, benign"}, {10.0, 0.3, "10 deg, rocks"}, {15.0, 0.8, "15 deg, many rocks"}};
  for (int row = 0; row < 6; ++row) {
    const auto& [slope, density, name] = grounds[row / 2];
    const bool on_demand = row % 2 == 1;
    const mlnav_bench::Ground ground(320, 0.1, slope, density, seed);
    RoverModel model;
    model.limits = SafetyLimits::enav_like();
    Arena arena(memory.data(), memory.size());
    FixedBoxChecker checker;
    EnavPlanner planner;
    if (!checker.init(model, {}, config.max_map_cells, &arena).ok() ||
        !planner.init(config, &checker, &arena).ok()) {
      return 1;
    }
    std::mt19937 random(seed + 1);
    std::uniform_real_distribution<double> place(8.0, 24.0), angle(-kPi, kPi);
    PlanRequest request;
    request.map = ground.view;
    request.clock.now_s = now_s;
    Sobel sobel(ground.view);
    if (on_demand) request.risk_source = sobel.source();
    static PlanResult result;
    double sum[kStageCount + 1] = {};
    double worst[kStageCount + 1] = {};
    long evaluations = 0;
    int paths = 0;
    int asked = 0;
    int planned = 0;
    while (planned < cycles) {
      request.pose = {ground.view.origin_x_m + place(random),
                      ground.view.origin_y_m + place(random), angle(random)};
      const double heading = angle(random);
      request.goal = {request.pose.x_m + 40 * std::cos(heading),
                      request.pose.y_m + 40 * std::sin(heading)};
      planner.reset();
      const double start = now_s(nullptr);
      if (planner.plan(request, &result) != Status::kOk) return 1;
      const double cycle = now_s(nullptr) - start;
      if (result.outcome == Outcome::kStartUnsafe) continue;  // no plan was made
      ++planned;
      paths += result.outcome == Outcome::kPath;
      asked += result.telemetry.risk_requested;
      evaluations += result.telemetry.ace_evaluations;
      for (int stage = 0; stage <= kStageCount; ++stage) {
        const double t = stage == kStageCount ? cycle : result.telemetry.stage_s[stage];
        sum[stage] += t;
        worst[stage] = std::max(worst[stage], t);
      }
    }
    std::printf("%-18s %-11s %6.1f %7.1f %6.0f |", name, on_demand ? "on demand" : "no risk",
                100.0 * paths / cycles, 100.0 * asked / cycles,
                static_cast<double>(evaluations) / cycles);
    for (int stage = 0; stage <= kStageCount; ++stage) {
      std::printf("   %5.2f (%5.2f)", 1e3 * sum[stage] / cycles, 1e3 * worst[stage]);
    }
    std::printf("\n");
  }
  return 0;
}
