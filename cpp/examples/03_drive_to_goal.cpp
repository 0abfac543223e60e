// The loop around the planner: plan, drive the committed motion, plan again, until the goal. The rover sees a
// window of the terrain that moves with it; it knows nothing of the ground beyond.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/fixed_box.hpp"

using namespace mlnav;

namespace {

constexpr double kResolution_m = 0.2;
constexpr int kWindow = 100;  // cells: 20 m

// The world: low hills and some rocks.
double ground_m(double x, double y) {
  static constexpr double kRocks[][3] = {{9, 1, 0.5},  {12, 3, 0.4},   {14, -1, 0.6}, {18, 2, 0.5},
                                         {21, 5, 0.6}, {23, 1.5, 0.5}, {27, 4, 0.5}};
  double z = 0.3 * std::sin(0.25 * x) + 0.2 * std::cos(0.3 * y);
  for (const auto& rock : kRocks) {
    const double h2 =
        rock[2] * rock[2] - (x - rock[0]) * (x - rock[0]) - (y - rock[1]) * (y - rock[1]);
    if (h2 > 0.0) z += std::sqrt(h2);
  }
  return z;
}

// The window seen from a pose, on cells that keep their place in the world.
GridView look(const Pose2& pose, std::vector<float>* z) {
  const double left = std::round(pose.x_m / kResolution_m) - kWindow / 2;
  const double bottom = std::round(pose.y_m / kResolution_m) - kWindow / 2;
  const GridView map{z->data(),    kWindow, kWindow, left * kResolution_m, bottom * kResolution_m,
                     kResolution_m};
  for (int i = 0; i < kWindow * kWindow; ++i) {
    (*z)[static_cast<std::size_t>(i)] =
        static_cast<float>(ground_m(map.center_x_m(i % kWindow), map.center_y_m(i / kWindow)));
  }
  return map;
}

}  // namespace

int main() {
  const std::size_t cells = static_cast<std::size_t>(kWindow) * kWindow;
  EnavConfig config;
  config.max_map_cells = cells;
  std::vector<unsigned char> memory(FixedBoxChecker::memory_required(cells) +
                                    EnavPlanner::memory_required(config));
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker checker;
  EnavPlanner planner;
  const RoverModel rover{RoverGeometry{}, SafetyLimits::enav_like()};
  if (!checker.init(rover, FixedBoxConfig{}, cells, &arena).ok()) return 1;
  if (!planner.init(config, &checker, &arena).ok()) return 1;

  std::vector<float> z(cells);
  Pose2 pose{4.0, 0.0, 0.0};
  const auto result = std::make_unique<PlanResult>();
  double driven_m = 0.0;
  for (int cycle = 0; cycle < 200; ++cycle) {
    PlanRequest request;
    request.map = look(pose, &z);
    request.pose = pose;
    request.goal = {32.0, 3.0};  // beyond the window at first
    if (planner.plan(request, result.get()) != Status::kOk) {
      std::printf("refused: %s\n", to_string(result->status));
      return 1;
    }
    if (result->outcome == Outcome::kGoalReached) {
      std::printf("goal reached after %d cycles and %.1f m\n", cycle, driven_m);
      return 0;
    }
    if (result->outcome != Outcome::kPath) {
      std::printf("stopped at x %.1f m, y %.1f m: %s\n", pose.x_m, pose.y_m,
                  to_string(result->outcome));
      return 1;
    }
    // A real rover drives here; its localization, not the plan, gives the new pose.
    pose = result->commit_end;
    pose.heading_rad = wrap_angle(pose.heading_rad);
    driven_m += result->commit.length_m;
    std::printf("%3d  x %5.2f m  y %5.2f m  heading %+4.0f deg  %4lld ACE evaluations\n", cycle,
                pose.x_m, pose.y_m, pose.heading_rad / kDeg,
                static_cast<long long>(result->telemetry.ace_evaluations));
  }
  std::printf("gave up\n");
  return 1;
}
