// Is a rover safe at a pose, and if not, why? Two checkers look at the same poses beside a rock: `fixed_box`
// bounds the state of the suspension from the ground around each wheel; `settle` computes the state in which
// the rover rests.
#include <cmath>
#include <cstdio>
#include <vector>

#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"

using namespace mlnav;

namespace {

void print(const char* checker, const Pose2& pose, const AceReport& report) {
  std::printf("  %-9s x %4.1f m  %-6s", checker, pose.x_m, report.safe ? "safe" : "UNSAFE");
  std::printf("  tilt <= %4.1f deg  clearance %.2f m", report.tilt_max_rad / kDeg,
              report.clearance_min_m);
  for (int bit = 0; bit < kReasonCount; ++bit) {
    if ((report.reasons >> bit & 1) != 0) std::printf("  %s", reason_name(bit));
  }
  std::printf("\n");
}

}  // namespace

int main() {
  // 1. A heightmap: 12 m x 8 m at 0.1 m, a gentle slope with one rock of 0.35 m on it.
  const int nx = 120;
  const int ny = 80;
  std::vector<float> z(nx * ny);
  const GridView map{z.data(), nx, ny, 0.0, 0.0, 0.1};
  for (int iy = 0; iy < ny; ++iy) {
    for (int ix = 0; ix < nx; ++ix) {
      const double x = map.center_x_m(ix);
      const double y = map.center_y_m(iy);
      const double rock = 0.35 * 0.35 - (x - 7.0) * (x - 7.0) - (y - 5.0) * (y - 5.0);
      z[static_cast<std::size_t>(iy * nx + ix)] =
          static_cast<float>(0.05 * x + (rock > 0.0 ? std::sqrt(rock) : 0.0));
    }
  }
  if (validate(map) != Status::kOk) return 1;  // once per map, before any checker sees it

  // 2. A rover and the checkers. The core allocates nothing: the caller provides its memory.
  const RoverModel rover;  // Perseverance-class, flight-like limits
  std::vector<unsigned char> memory(FixedBoxChecker::memory_required(map.cells()));
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker fixed_box;
  SettleChecker settle;
  const Fault fault = fixed_box.init(rover, FixedBoxConfig{}, map.cells(), &arena);
  if (!fault.ok() || !settle.init(rover).ok()) {
    std::printf("%s %s\n", to_string(fault.status), fault.field);
    return 1;
  }
  if (fixed_box.set_map(map) != Status::kOk || settle.set_map(map) != Status::kOk) return 1;

  // 3. Poses along a line that takes the left wheels over the rock.
  for (double x = 3.0; x < 9.5; x += 1.0) {
    const Pose2 pose{x, 4.0, 0.0};
    print("fixed_box", pose, fixed_box.report(Stance{pose}));
    print("settle", pose, settle.report(Stance{pose}));
  }
  return 0;
}
