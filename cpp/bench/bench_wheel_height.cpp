// Time of one wheel contact on smooth and rocky ground, of a plain implementation and the one in the core,
// and whether their results agree to the bit. Prints nanoseconds per call: best of several rounds.
#include <cstdio>

#include "../tests/naive_wheel.hpp"
#include "bench.hpp"
#include "mlnav/ground/wheel_height.hpp"

namespace {

using namespace mlnav;

constexpr int kSide = 320;

struct Query {
  double x, y;
  SinCos heading;
};

template <typename Contact>
double best_ns(const std::vector<Query>& queries, double* sum, Contact contact) {
  return mlnav_bench::best_ns(60, queries.size(), [&] {
    for (const Query& q : queries) *sum += contact(q);
  });
}

void run(const char* name, double resolution, double slope_deg, double rocks_per_m2) {
  const mlnav_bench::Ground ground(kSide, resolution, slope_deg, rocks_per_m2, 7);
  const GridView& grid = ground.view;
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
  run("flat, bare", 0.1, 0.0, 0.0);
  run("slope 15, bare", 0.1, 15.0, 0.0);
  run("slope 15, rocks", 0.1, 15.0, 1.0);
  run("flat, rock field", 0.1, 0.0, 2.5);
  run("slope 15, rocks", 0.05, 15.0, 1.0);
  run("slope 15, rocks", 0.2, 15.0, 1.0);
  run("slope 15, fine grid", 0.02, 15.0, 1.0);
  return 0;
}
