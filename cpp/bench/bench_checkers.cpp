// Cost of a pose by checker, in one run: fixed_box, verified (poses that pass, and those it rejects) and
// settling, under the flight-like limits. Microseconds, best of five; inner steps and look-ups of H a pose.
//   bench_checkers [poses] [seed]
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench.hpp"
#include "mlnav/safety/ace_map.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"

namespace {

using namespace mlnav;

double microseconds(const AceChecker& checker, const std::vector<Stance>& poses) {
  if (poses.empty()) return 0.0;
  const std::vector<Sweep> sweeps(poses.begin(), poses.end());
  std::vector<Reasons> reasons(poses.size());
  return 1e-3 * mlnav_bench::best_ns(5, poses.size(), [&] {
           check_sweeps(checker, {sweeps.data(), sweeps.size()}, reasons.data(), nullptr);
         });
}

}  // namespace

int main(int argc, char** argv) {
  const int poses_n = argc > 1 ? std::atoi(argv[1]) : 3000;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  const int n = 400;
  std::printf("%-20s %7s | %9s %9s %9s %9s %9s | %8s %8s | %6s %8s\n", "us a pose", "pass %",
              "verified", "rej. 50%", "rej. 90%", "settle", "fixed_box", "/settle", "/f.box",
              "tries", "look-ups");
  const struct {
    double slope_deg, rocks_per_m2;
    const char* name;
  } grounds[] = {{0.0, 0.05, "flat, few rocks"},
                 {10.0, 0.4, "10 deg, rocks"},
                 {15.0, 0.8, "15 deg, many rocks"},
                 {0.0, 1.6, "flat, rock field"}};
  for (const auto& [slope, density, name] : grounds) {
    const mlnav_bench::Ground ground(n, 0.1, slope, density, seed);
    const GridView& map = ground.view;
    const RoverModel model;
    std::vector<char> memory(FixedBoxChecker::memory_required(map.cells()) +
                             VerifiedChecker::memory_required());
    Arena arena(memory.data(), memory.size());
    FixedBoxChecker fixed_box;
    VerifiedChecker verified;
    SettleChecker settled;
    if (!fixed_box.init(model, {}, map.cells(), &arena).ok() ||
        !verified.init(model, {}, &arena).ok() || !settled.init(model).ok()) {
      return 1;
    }
    fixed_box.set_map(map);
    verified.set_map(map);
    settled.set_map(map);

    std::mt19937 random(seed + 7);
    std::uniform_real_distribution<double> place(3.0, 36.0), turn(-kPi, kPi);
    std::vector<Stance> all(static_cast<std::size_t>(poses_n)), passed, rejected;
    double tries = 0.0;
    double lookups = 0.0;
    for (Stance& pose : all) {
      pose = Stance{map.origin_x_m + place(random), map.origin_y_m + place(random), turn(random)};
      const AceReport report = verified.report(pose);
      (report.safe ? passed : rejected).push_back(pose);
      if (report.safe) {
        tries += report.inner_steps;
        lookups += report.lookups;
      }
    }
    const double pass_us = microseconds(verified, passed);
    const double settle_us = microseconds(settled, passed);
    const double box_us = microseconds(fixed_box, passed);
    // Rejections differ most in cost: some need only the first state, others a proof that fails.
    std::vector<double> rejected_us;
    for (const Stance& pose : rejected) rejected_us.push_back(microseconds(verified, {pose}));
    std::sort(rejected_us.begin(), rejected_us.end());
    const auto quantile = [&](double q) {
      return rejected_us.empty() ? 0.0
                                 : rejected_us[static_cast<std::size_t>(
                                       q * static_cast<double>(rejected_us.size() - 1))];
    };
    const double count = static_cast<double>(passed.size());
    std::printf("%-20s %7.1f | %9.1f %9.1f %9.1f %9.1f %9.2f | %8.2f %8.0f | %6.2f %8.1f\n", name,
                100.0 * count / poses_n, pass_us, quantile(0.5), quantile(0.9), settle_us, box_us,
                pass_us / settle_us, pass_us / box_us, tries / count, lookups / count);
  }
  return 0;
}
