// Shared by the benchmarks: timing by the best of several rounds, and ground to drive on.
#pragma once

#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "mlnav/ground/grid.hpp"
#include "mlnav/math.hpp"

namespace mlnav_bench {

// Best of `rounds`, in ns per call; one round runs `work`, which makes `calls` calls. The best round is the
// one least disturbed by other processes.
template <typename Work>
double best_ns(int rounds, std::size_t calls, Work work) {
  double best = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::fmin(best, time.count());
  }
  return best / static_cast<double>(calls);
}

// A square map with a slope towards +x, waves, centimetre noise and hemispherical rocks.
struct Ground {
  std::vector<float> z;
  mlnav::GridView view;

  Ground(int side, double resolution_m, double slope_deg, double rocks_per_m2, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    z.resize(static_cast<std::size_t>(side) * static_cast<std::size_t>(side));
    view = {z.data(), side, side, -5.0, 3.0, resolution_m};
    std::vector<float> rise(z.size(), 0.0F);
    const int rocks = static_cast<int>(rocks_per_m2 * side * side * resolution_m * resolution_m);
    for (int k = 0; k < rocks; ++k) {
      const double cx = side * unit(random);
      const double cy = side * unit(random);
      const double radius = (0.08 + 0.25 * std::pow(unit(random), 3)) / resolution_m;
      for (int iy = static_cast<int>(cy - radius); iy <= cy + radius; ++iy) {
        for (int ix = static_cast<int>(cx - radius); ix <= cx + radius; ++ix) {
          if (ix < 0 || iy < 0 || ix >= side || iy >= side) continue;
          const double r2 = radius * radius - (ix - cx) * (ix - cx) - (iy - cy) * (iy - cy);
          float& cell = rise[static_cast<std::size_t>(iy * side + ix)];
          if (r2 > 0)
            cell = std::fmax(cell, static_cast<float>(0.8 * std::sqrt(r2) * resolution_m));
        }
      }
    }
    const double slope = std::tan(slope_deg * mlnav::kDeg);
    for (int iy = 0; iy < side; ++iy) {
      for (int ix = 0; ix < side; ++ix) {
        const std::size_t i = static_cast<std::size_t>(iy * side + ix);
        const double x = ix * resolution_m;
        const double y = iy * resolution_m;
        z[i] =
            rise[i] + static_cast<float>(slope * x + 0.05 * std::sin(0.7 * x) * std::cos(0.5 * y) +
                                         0.01 * unit(random));
      }
    }
  }
  Ground(const Ground&) = delete;  // `view` points into `z`
  Ground& operator=(const Ground&) = delete;
};

}  // namespace mlnav_bench
