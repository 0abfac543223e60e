// Time of one wheel contact, plain and shipped, on smooth and rocky ground, and whether the results
// agree to the bit. Prints nanoseconds per call: best of several rounds.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "../tests/naive_wheel.hpp"
#include "mlnav/ground/wheel_height.hpp"

namespace {

using namespace mlnav;

constexpr int kSide = 320;

std::vector<float> terrain(double resolution, double slope, int rocks, double noise) {
  std::mt19937 random(7);
  std::normal_distribution<double> rough(0.0, noise);
  std::uniform_real_distribution<double> place(0.0, kSide * resolution);
  std::exponential_distribution<double> radius(12.0);
  std::vector<float> z(kSide * kSide);
  std::vector<double> rx, ry, rr;
  for (int i = 0; i < rocks; ++i) {
    rx.push_back(place(random));
    ry.push_back(place(random));
    rr.push_back(0.05 + radius(random));
  }
  for (int iy = 0; iy < kSide; ++iy) {
    for (int ix = 0; ix < kSide; ++ix) {
      const double x = ix * resolution;
      const double y = iy * resolution;
      double h = slope * (0.8 * x + 0.6 * y) + rough(random) +
                 0.05 * std::sin(0.7 * x) * std::cos(0.5 * y);
      double rock = 0.0;
      for (std::size_t k = 0; k < rx.size(); ++k) {
        const double d2 = (x - rx[k]) * (x - rx[k]) + (y - ry[k]) * (y - ry[k]);
        if (d2 < rr[k] * rr[k]) rock = std::fmax(rock, std::sqrt(rr[k] * rr[k] - d2));
      }
      z[static_cast<std::size_t>(iy * kSide + ix)] = static_cast<float>(h + rock);
    }
  }
  return z;
}

struct Query {
  double x, y;
  SinCos heading;
};

template <typename Contact>
double best_ns(const std::vector<Query>& queries, double* sum, Contact contact) {
  double best = 1e30;
  for (int round = 0; round < 60; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (const Query& q : queries) *sum += contact(q);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::fmin(best, time.count() / static_cast<double>(queries.size()));
  }
  return best;
}

void run(const char* name, double resolution, double slope_deg, int rocks, double noise) {
  const std::vector<float> z = terrain(resolution, std::tan(slope_deg * kDeg), rocks, noise);
  const GridView grid{z.data(), kSide, kSide, -5.0, 3.0, resolution};
  WheelFootprint footprint;
  make_footprint(0.263, 0.335, &footprint);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> inside(0.5, (kSide - 1) * resolution - 0.5);
  std::uniform_real_distribution<double> angle(-kPi, kPi);
  std::vector<Query> queries(1000);
  for (Query& q : queries) {
    q = {grid.origin_x_m + inside(random), grid.origin_y_m + inside(random),
         det_sincos(angle(random))};
  }

  int different = 0;
  for (const Query& q : queries) {
    const WheelContact a = naive::wheel_contact(grid, footprint, q.x, q.y, q.heading);
    const WheelContact b = wheel_contact(grid, footprint, q.x, q.y, q.heading);
    const WheelHeight c = wheel_height(grid, footprint, q.x, q.y, q.heading);
    if (a.status != b.status || a.height_m != b.height_m || a.ground_min_m != b.ground_min_m ||
        a.ground_max_m != b.ground_max_m || c.status != a.status || c.height_m != a.height_m) {
      ++different;
    }
  }

  double sum = 0.0;
  const double plain = best_ns(queries, &sum, [&](const Query& q) {
    return naive::wheel_contact(grid, footprint, q.x, q.y, q.heading).height_m;
  });
  const double contact = best_ns(queries, &sum, [&](const Query& q) {
    return wheel_contact(grid, footprint, q.x, q.y, q.heading).height_m;
  });
  const double height = best_ns(queries, &sum, [&](const Query& q) {
    return wheel_height(grid, footprint, q.x, q.y, q.heading).height_m;
  });
  std::printf(
      "%-22s %4.2f m  naive %6.0f ns  contact %5.0f ns (%4.1fx)  height %5.0f ns (%4.1fx)  %s\n",
      name, resolution, plain, contact, plain / contact, height, plain / height,
      different == 0 ? "bit-equal" : "DIFFERENT");
  if (std::isnan(sum)) std::puts("(a query fell outside)");
}

}  // namespace

int main() {
  run("flat, smooth", 0.1, 0.0, 0, 0.002);
  run("slope 15, smooth", 0.1, 15.0, 0, 0.002);
  run("slope 15, CFA 10 %", 0.1, 15.0, 1000, 0.01);
  run("flat, CFA 20 %", 0.1, 0.0, 2500, 0.01);
  run("slope 15, CFA 10 %", 0.05, 15.0, 250, 0.01);
  run("slope 15, CFA 10 %", 0.2, 15.0, 4000, 0.01);
  run("slope 15, fine grid", 0.02, 15.0, 40, 0.005);
  return 0;
}
