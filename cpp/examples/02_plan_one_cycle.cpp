// One planning cycle: from a local heightmap, a pose and a goal to a checked path and the motion to drive
// now. Then the same with a risk map, which reorders the candidates and does not affect safety.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/fixed_box.hpp"

using namespace mlnav;

namespace {

void print(const PlanResult& result) {
  std::printf("%s: %lld ACE evaluations, %lld of them for the path itself",
              to_string(result.outcome), static_cast<long long>(result.telemetry.ace_evaluations),
              static_cast<long long>(result.telemetry.ace_floor));
  std::printf(", candidate %d of the ranked list\n", result.telemetry.chosen_rank);
  std::printf("  turn %+.0f deg, drive %.2f m at %+.3f 1/m, to x %.2f m, y %.2f m\n",
              result.commit.turn_rad / kDeg, result.commit.length_m, result.commit.curvature_per_m,
              result.commit_end.x_m, result.commit_end.y_m);
}

}  // namespace

int main() {
  // 1. The ground: 24 m x 24 m at 0.2 m, strewn with small rocks.
  const int n = 120;
  std::vector<float> z(n * n, 0.0F);
  const GridView map{z.data(), n, n, 0.0, 0.0, 0.2};
  std::vector<Point2> rocks;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 6; ++j) rocks.push_back({9.5 + 2.6 * i, 5.0 + 2.6 * j + 1.3 * (i % 2)});
  }
  const double radius_m = 0.35;
  const auto distance_m = [&](int cell, const Point2& rock) {
    return std::hypot(map.center_x_m(cell % n) - rock.x_m, map.center_y_m(cell / n) - rock.y_m);
  };
  for (int cell = 0; cell < n * n; ++cell) {
    for (const Point2& rock : rocks) {
      const double d = distance_m(cell, rock);
      if (d < radius_m) {
        z[static_cast<std::size_t>(cell)] =
            static_cast<float>(std::sqrt(radius_m * radius_m - d * d));
      }
    }
  }

  // 2. A checker and a planner in one block of memory. The planner takes any checker.
  const RoverModel rover{RoverGeometry{}, SafetyLimits::enav_like()};
  EnavConfig config;
  config.max_map_cells = map.cells();
  std::vector<unsigned char> memory(FixedBoxChecker::memory_required(map.cells()) +
                                    EnavPlanner::memory_required(config));
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker checker;
  EnavPlanner planner;
  Fault fault = checker.init(rover, FixedBoxConfig{}, map.cells(), &arena);
  if (fault.ok()) fault = planner.init(config, &checker, &arena);
  if (!fault.ok()) {
    std::printf("%s %s\n", to_string(fault.status), fault.field);
    return 1;
  }

  // 3. A cycle. A result is large (it holds the path): keep one and reuse it.
  PlanRequest request;
  request.map = map;
  request.pose = {7.0, 12.0, 0.0};
  request.goal = {20.0, 12.0};
  const auto result = std::make_unique<PlanResult>();
  if (planner.plan(request, result.get()) != Status::kOk) {
    std::printf("refused: %s\n", to_string(result->status));
    return 1;
  }
  print(*result);

  // 4. A heuristic: the probability that ACE rejects the rover. Here it is high where a wheel would be on a
  // rock, at any heading: the wheels run 1.1 m beside the rover's path.
  std::vector<float> p(n * n, 0.0F);
  for (int cell = 0; cell < n * n; ++cell) {
    for (const Point2& rock : rocks) {
      if (std::fabs(distance_m(cell, rock) - 1.1) < 0.4) p[static_cast<std::size_t>(cell)] = 0.6F;
    }
  }
  const RiskView risk{p.data(), 1, n, n, 0.0, 0.0, 0.2};
  request.risk = &risk;
  planner.reset();  // forget the first cycle
  planner.plan(request, result.get());
  print(*result);
  return result->outcome == Outcome::kPath ? 0 : 1;
}
