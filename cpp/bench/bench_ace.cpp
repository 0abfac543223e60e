// Cost of ACE: fixed_box against its naive scan on the same poses with the same verdicts, the dense map
// against pose by pose, and settling. Prints ns and ratios; one core.
//   bench_ace [poses] [seed]
#include <cstdio>
#include <cstdlib>

#include "../tests/naive_fixed_box.hpp"
#include "bench.hpp"
#include "mlnav/safety/ace_map.hpp"
#include "mlnav/safety/settle_checker.hpp"

namespace {

using namespace mlnav;
using mlnav_bench::best_ns;

constexpr int kRounds = 5;

}  // namespace

int main(int argc, char** argv) {
  const int poses_n = argc > 1 ? std::atoi(argv[1]) : 20000;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  const int n = 400;
  std::printf("%-22s %8s %10s %10s %7s %9s %12s %11s\n", "terrain (0.1 m cells)", "pass %",
              "naive ns", "shipped ns", "ratio", "pass ns", "ace_map ns", "settle ns");
  const struct {
    double slope_deg, rocks_per_m2;
    const char* name;
  } terrains[] = {{0.0, 0.05, "flat, few rocks"},
                  {10.0, 0.4, "10 deg, rocks"},
                  {15.0, 0.8, "15 deg, many rocks"},
                  {0.0, 1.6, "flat, rock field"}};
  for (const auto& [slope, density, name] : terrains) {
    const mlnav_bench::Ground ground(n, 0.1, slope, density, seed);
    const GridView& map = ground.view;
    const std::size_t cells = map.cells();
    std::vector<char> memory(FixedBoxChecker::memory_required(cells) +
                             AceMapper::memory_required(cells) + 64);
    Arena arena(memory.data(), memory.size());
    RoverModel model;
    model.limits = SafetyLimits::enav_like();
    FixedBoxChecker checker;
    AceMapper mapper;
    if (!checker.init(model, {}, cells, &arena).ok() || mapper.init(cells, &arena) != Status::kOk ||
        checker.set_map(map) != Status::kOk) {
      return 1;
    }
    const NaiveFixedBox naive{model, {}, map};

    std::mt19937 rng(seed + 7);
    std::uniform_real_distribution<double> place(3.0, 36.0), turn(-3.14, 3.14);
    std::vector<Stance> poses(static_cast<std::size_t>(poses_n));
    for (Stance& pose : poses) {
      pose = Stance{map.origin_x_m + place(rng), map.origin_y_m + place(rng), turn(rng)};
    }
    const std::vector<Sweep> sweeps(poses.begin(), poses.end());
    std::vector<Reasons> shipped(poses.size()), plain(poses.size());
    const double shipped_ns = best_ns(kRounds, poses.size(), [&] {
      check_sweeps(checker, {sweeps.data(), sweeps.size()}, shipped.data(), nullptr);
    });
    const double naive_ns = best_ns(kRounds, poses.size(), [&] {
      for (std::size_t i = 0; i < poses.size(); ++i) plain[i] = naive.check(poses[i].pose).reasons;
    });
    std::vector<Sweep> passing;
    for (std::size_t i = 0; i < poses.size(); ++i) {
      if (shipped[i] != plain[i]) {
        std::printf("verdicts differ at pose %zu: %u and %u\n", i, shipped[i], plain[i]);
        return 1;
      }
      if (shipped[i] == 0) passing.push_back(poses[i]);
    }
    const double passing_ns = best_ns(kRounds, passing.size(), [&] {
      check_sweeps(checker, {passing.data(), passing.size()}, shipped.data(), nullptr);
    });

    std::vector<Reasons> dense(16 * cells);
    const double map_ns = best_ns(
        kRounds, dense.size(), [&] { mapper.compute(checker, 16, {dense.data(), dense.size()}); });

    SettleModel settle_model;
    make_settle_model(model.geometry, &settle_model);
    std::size_t steps = 0;
    const std::size_t settle_n = poses.size() / 20;
    const double settle_ns = best_ns(kRounds, settle_n, [&] {
      for (std::size_t i = 0; i < settle_n; ++i) {
        steps += static_cast<std::size_t>(settle(map, settle_model, poses[i]).steps);
      }
    });
    std::printf("%-22s %8.1f %10.0f %10.0f %7.1f %9.0f %12.1f %11.0f  (%.1f steps a settling)\n",
                name,
                100.0 * static_cast<double>(passing.size()) / static_cast<double>(poses.size()),
                naive_ns, shipped_ns, naive_ns / shipped_ns, passing_ns, map_ns, settle_ns,
                static_cast<double>(steps) / static_cast<double>(kRounds * settle_n));
    if (slope == 0.0) {
      std::printf("  tables of set_map: %.0f us for %zu cells\n",
                  1e-3 * best_ns(kRounds, 1, [&] { checker.set_map(map); }), cells);
    }
  }
  return 0;
}
