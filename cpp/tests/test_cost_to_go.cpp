// Cost-to-go against Bellman-Ford, against closed forms, and its rules for goals and closed cells.
#include "mlnav/search/cost_to_go.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace mlnav;

constexpr float kInfF = std::numeric_limits<float>::infinity();
constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const CoarseGrid kGrids[] = {{5, 9, 0.0, 0.0, 0.4},          {9, 5, -31.7, 12.25, 0.2},
                             {13, 7, 1234.5, -98.6, 0.0731}, {1, 8, 0.5, 0.5, 1.0},
                             {8, 1, -0.5, 2.5, 0.25},        {1, 1, 3.0, 4.0, 0.4}};

std::vector<float> solve(const CoarseGrid& g, const std::vector<float>& cost,
                         const std::vector<float>& extra, Point2 goal, double outside = 1.4) {
  const auto cells = static_cast<std::size_t>(g.cells());
  std::vector<std::int32_t> heap(cells + 1, 12345), position(cells + 1, 12345);
  std::vector<float> out(cells + 1, -7.0f);
  const CostToGoScratch scratch{heap.data(), position.data()};
  solve_cost_to_go(g, cost.data(), extra.empty() ? nullptr : extra.data(), goal, outside, scratch,
                   out.data());
  EXPECT_EQ(heap.back(), 12345);
  EXPECT_EQ(position.back(), 12345);
  EXPECT_EQ(out.back(), -7.0f);
  out.pop_back();
  return out;
}

Point2 center(const CoarseGrid& g, int ix, int iy) {
  return {g.origin_x_m + g.resolution_m * ix, g.origin_y_m + g.resolution_m * iy};
}

// Sweeps over all cells and all their neighbours until nothing changes.
std::vector<double> bellman_ford(const CoarseGrid& g, const std::vector<float>& cost_per_m,
                                 const std::vector<float>& extra, Point2 goal, double outside) {
  const int n = g.cells();
  const double left = g.origin_x_m - g.resolution_m / 2, low = g.origin_y_m - g.resolution_m / 2;
  const int gx = static_cast<int>(std::floor((goal.x_m - left) / g.resolution_m));
  const int gy = static_cast<int>(std::floor((goal.y_m - low) / g.resolution_m));
  const bool inside = gx >= 0 && gy >= 0 && gx < g.nx && gy < g.ny;
  std::vector<double> cost, value(static_cast<std::size_t>(n), kInf);
  for (std::size_t i = 0; i < cost_per_m.size(); ++i) {
    cost.push_back(static_cast<double>(cost_per_m[i]) +
                   (extra.empty() ? 0.0 : static_cast<double>(extra[i])));
  }
  if (inside) {
    const auto i = static_cast<std::size_t>(gy * g.nx + gx);
    value[i] = 0.0;
    if (std::isinf(cost[i])) cost[i] = 1.0;
  }
  for (int iy = 0; iy < g.ny && !inside; ++iy) {
    for (int ix = 0; ix < g.nx; ++ix) {
      const bool border = ix == 0 || iy == 0 || ix == g.nx - 1 || iy == g.ny - 1;
      const auto i = static_cast<std::size_t>(iy * g.nx + ix);
      if (!border || std::isinf(cost[i])) continue;
      const Point2 p = center(g, ix, iy);
      value[i] = std::hypot(p.x_m - goal.x_m, p.y_m - goal.y_m) * outside;
    }
  }
  const auto closed = [&](int x, int y) {
    return std::isinf(cost[static_cast<std::size_t>(y * g.nx + x)]);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (int iy = 0; iy < g.ny; ++iy) {
      for (int ix = 0; ix < g.nx; ++ix) {
        if (closed(ix, iy)) continue;
        const auto i = static_cast<std::size_t>(iy * g.nx + ix);
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            const int jx = ix + dx, jy = iy + dy;
            if ((dx == 0 && dy == 0) || jx < 0 || jy < 0 || jx >= g.nx || jy >= g.ny) continue;
            if (closed(jx, jy)) continue;
            if (dx != 0 && dy != 0 && (closed(ix, jy) || closed(jx, iy))) continue;
            const auto j = static_cast<std::size_t>(jy * g.nx + jx);
            const double length = g.resolution_m * std::hypot(dx, dy);
            const double through = value[j] + length * 0.5 * (cost[i] + cost[j]);
            if (through < value[i] - 1e-12) {
              value[i] = through;
              changed = true;
            }
          }
        }
      }
    }
  }
  return value;
}

TEST(CostToGo, MatchesBellmanFord) {
  std::mt19937 random(61);
  std::uniform_real_distribution<float> costs(1.0f, 5.0f), extras(0.0f, 3.0f);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  int finite = 0, infinite = 0;
  for (int round = 0; round < 400; ++round) {
    const CoarseGrid& g = kGrids[round % 6];
    const auto cells = static_cast<std::size_t>(g.cells());
    std::vector<float> cost(cells), extra(round % 2 == 0 ? cells : 0);
    const double closed = 0.1 * (round % 5);
    for (float& c : cost) c = unit(random) < closed ? kInfF : costs(random);
    for (float& e : extra) e = extras(random);
    const Point2 goal{g.origin_x_m + (unit(random) * 1.6 - 0.3) * g.nx * g.resolution_m,
                      g.origin_y_m + (unit(random) * 1.6 - 0.3) * g.ny * g.resolution_m};
    const std::vector<float> got = solve(g, cost, extra, goal);
    const std::vector<double> expected = bellman_ford(g, cost, extra, goal, 1.4);
    for (std::size_t i = 0; i < cells; ++i) {
      ASSERT_EQ(std::isinf(got[i]), std::isinf(expected[i])) << round << " cell " << i;
      if (std::isinf(got[i])) {
        ++infinite;
        continue;
      }
      ++finite;
      ASSERT_NEAR(got[i], expected[i], 1e-4 * (1.0 + expected[i])) << round << " cell " << i;
    }
  }
  EXPECT_GT(finite, 1000);
  EXPECT_GT(infinite, 1000);
}

TEST(CostToGo, OnUniformGroundIsTheOctileDistance) {
  for (const CoarseGrid& g : kGrids) {
    const std::vector<float> cost(static_cast<std::size_t>(g.cells()), 2.0f);
    for (int goal = 0; goal < g.cells(); ++goal) {
      const int gx = goal % g.nx, gy = goal / g.nx;
      const std::vector<float> got = solve(g, cost, {}, center(g, gx, gy));
      for (int i = 0; i < g.cells(); ++i) {
        const int dx = std::abs(i % g.nx - gx), dy = std::abs(i / g.nx - gy);
        const double octile = std::max(dx, dy) + (std::sqrt(2.0) - 1.0) * std::min(dx, dy);
        ASSERT_NEAR(got[static_cast<std::size_t>(i)], 2.0 * g.resolution_m * octile, 1e-4);
      }
    }
  }
}

TEST(CostToGo, GoalAnywhereInItsCellToOneUlpOfTheEdge) {
  const CoarseGrid& g = kGrids[0];
  const std::vector<float> cost(45, 1.0f);
  const double edge = g.origin_x_m + g.resolution_m * (3 - 0.5);
  const double y = center(g, 0, 4).y_m;
  EXPECT_EQ(solve(g, cost, {}, {edge, y})[4 * 5 + 3], 0.0f);
  EXPECT_EQ(solve(g, cost, {}, {std::nextafter(edge, -kInf), y})[4 * 5 + 2], 0.0f);
}

TEST(CostToGo, DiagonalsDoNotCutCorners) {
  const CoarseGrid g{3, 3, 0.0, 0.0, 1.0};
  // Goal in the middle; the cell east of it closed: both eastern diagonals are closed as well.
  std::vector<float> cost(9, 1.0f);
  cost[5] = kInfF;
  const std::vector<float> got = solve(g, cost, {}, {1.0, 1.0});
  EXPECT_NEAR(got[0], std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(got[6], std::sqrt(2.0), 1e-6);
  EXPECT_NEAR(got[2], 2.0, 1e-6);
  EXPECT_NEAR(got[8], 2.0, 1e-6);
  EXPECT_TRUE(std::isinf(got[5]));
}

TEST(CostToGo, EnclosedGoalIsReachedFromItsEnclosureOnly) {
  const CoarseGrid g{9, 7, 5.0, -2.0, 0.4};
  std::vector<float> cost(63, 1.0f);
  for (int iy = 1; iy <= 5; ++iy) {
    for (int ix = 2; ix <= 6; ++ix) {
      if (ix == 2 || ix == 6 || iy == 1 || iy == 5)
        cost[static_cast<std::size_t>(iy * 9 + ix)] = kInfF;
    }
  }
  const std::vector<float> got = solve(g, cost, {}, center(g, 4, 3));
  for (int iy = 0; iy < 7; ++iy) {
    for (int ix = 0; ix < 9; ++ix) {
      const bool within = ix >= 3 && ix <= 5 && iy >= 2 && iy <= 4;
      EXPECT_EQ(std::isfinite(got[static_cast<std::size_t>(iy * 9 + ix)]), within)
          << ix << " " << iy;
    }
  }
}

TEST(CostToGo, GoalOnClosedGroundIsStillASource) {
  const CoarseGrid g{5, 9, 0.0, 0.0, 0.4};
  std::vector<float> cost(45, 3.0f);
  cost[4 * 5 + 2] = kInfF;
  const std::vector<float> got = solve(g, cost, {}, center(g, 2, 4));
  EXPECT_EQ(got[4 * 5 + 2], 0.0f);
  EXPECT_NEAR(got[4 * 5 + 3], 0.4 * 0.5 * (3.0 + 1.0), 1e-6);
  for (const float v : got) EXPECT_TRUE(std::isfinite(v));
  // NaN and infinite extra costs count as closed and as none.
  cost[4 * 5 + 2] = kNanF;
  EXPECT_NEAR(solve(g, cost, {}, center(g, 2, 4))[4 * 5 + 3], 0.4 * 0.5 * (3.0 + 1.0), 1e-6);
}

TEST(CostToGo, GoalOutsideStartsFromTheWholeBorder) {
  for (const CoarseGrid& g : kGrids) {
    const std::vector<float> cost(static_cast<std::size_t>(g.cells()), 1.0f);
    const double far = 100.0;
    const Point2 goal{g.origin_x_m + far, g.origin_y_m};
    const std::vector<float> got = solve(g, cost, {}, goal, 1.0);
    // Cost 1 outside as inside: the straight way to the eastern border.
    const Point2 east = center(g, g.nx - 1, 0);
    EXPECT_NEAR(got[static_cast<std::size_t>(g.nx - 1)], goal.x_m - east.x_m, 1e-4);
    EXPECT_NEAR(got[0], far, 1e-4);
    // A detour outside at ten times the cost does not pay.
    EXPECT_NEAR(solve(g, cost, {}, goal, 10.0)[0],
                (g.nx - 1) * g.resolution_m + 10.0 * (goal.x_m - east.x_m), 1e-2);
  }
}

TEST(CostToGo, NothingReachableWhenAllIsClosedOrTheGoalIsNoPlace) {
  const CoarseGrid g{5, 9, 0.0, 0.0, 0.4};
  const std::vector<float> closed(45, kInfF), open(45, 1.0f);
  for (const float v : solve(g, closed, {}, {100.0, 0.0})) EXPECT_TRUE(std::isinf(v));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const float v : solve(g, open, {}, {nan, 0.0})) EXPECT_TRUE(std::isinf(v));
  for (const float v : solve(g, open, {}, {kInf, 0.0})) EXPECT_TRUE(std::isinf(v));
  for (const float v : solve(g, open, {}, {1e300, 1e300})) EXPECT_TRUE(std::isinf(v));
}

TEST(CostToGo, BadExtraCostsDoNoHarm) {
  const CoarseGrid g{5, 9, 0.0, 0.0, 0.4};
  const std::vector<float> cost(45, 1.0f);
  const std::vector<float> plain = solve(g, cost, {}, {0.0, 0.0});
  EXPECT_EQ(solve(g, cost, std::vector<float>(45, 0.0f), {0.0, 0.0}), plain);
  EXPECT_EQ(solve(g, cost, std::vector<float>(45, kNanF), {0.0, 0.0}), plain);
  EXPECT_EQ(solve(g, cost, std::vector<float>(45, -5.0f), {0.0, 0.0}), plain);
  std::vector<float> wall(45, 0.0f);
  for (int ix = 0; ix < 5; ++ix) wall[static_cast<std::size_t>(4 * 5 + ix)] = kInfF;
  const std::vector<float> got = solve(g, cost, wall, {0.0, 0.0});
  for (std::size_t i = 0; i < 45; ++i) EXPECT_EQ(std::isfinite(got[i]), i < 20) << i;
}

TEST(CostToGo, SameInputSameBitsWhateverTheScratchHeld) {
  const CoarseGrid g{40, 31, 0.0, 0.0, 0.4};
  std::mt19937 random(62);
  std::uniform_int_distribution<int> few(1, 3);  // many ties
  std::vector<float> cost(static_cast<std::size_t>(g.cells()));
  for (float& c : cost) c = static_cast<float>(few(random));
  const std::vector<float> a = solve(g, cost, {}, center(g, 17, 11));
  const std::vector<float> b = solve(g, cost, {}, center(g, 17, 11));
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

TEST(SampleCostToGo, BilinearBetweenCentres) {
  for (const CoarseGrid& g : kGrids) {
    std::vector<float> value(static_cast<std::size_t>(g.cells()));
    for (int i = 0; i < g.cells(); ++i) {
      value[static_cast<std::size_t>(i)] =
          static_cast<float>(10 + 3 * (i % g.nx) - 0.5 * (i / g.nx));
    }
    std::mt19937 random(63);
    std::uniform_real_distribution<double> u(-0.499, g.nx - 0.501), v(-0.499, g.ny - 0.501);
    for (int k = 0; k < 500; ++k) {
      const double fx = u(random), fy = v(random);
      // Constant over the outer half cell.
      const double cx = std::fmin(std::fmax(fx, 0.0), g.nx - 1.0);
      const double cy = std::fmin(std::fmax(fy, 0.0), g.ny - 1.0);
      ASSERT_NEAR(sample_cost_to_go(g, value.data(), g.origin_x_m + fx * g.resolution_m,
                                    g.origin_y_m + fy * g.resolution_m),
                  10 + 3 * cx - 0.5 * cy, 1e-5);
    }
  }
}

TEST(SampleCostToGo, LeavesOutInfiniteCellsAndEndsAtTheEdge) {
  const CoarseGrid g{5, 9, 0.0, 0.0, 1.0};
  std::vector<float> value(45, 4.0f);
  value[2 * 5 + 2] = kInfF;
  value[2 * 5 + 1] = 8.0f;
  const auto at = [&](double x, double y) { return sample_cost_to_go(g, value.data(), x, y); };
  EXPECT_TRUE(std::isinf(at(2.0, 2.0)));
  EXPECT_TRUE(std::isinf(at(1.5, 2.0)));  // half-open: 1.5 is the closed cell's own
  EXPECT_EQ(at(std::nextafter(1.5, 0.0), 2.0), 8.0);
  EXPECT_EQ(at(1.25, 2.0), 8.0);  // the closed neighbour's quarter is left out
  EXPECT_NEAR(at(1.0, 2.25), 0.75 * 8.0 + 0.25 * 4.0, 1e-12);
  EXPECT_EQ(at(-0.5, -0.5), 4.0);
  EXPECT_TRUE(std::isinf(at(std::nextafter(-0.5, -1.0), 0.0)));
  EXPECT_TRUE(std::isinf(at(4.5, 0.0)));
  EXPECT_TRUE(std::isinf(at(0.0, 8.5)));
  for (const double bad : {1e300, -1e300, kInf, std::nan("")}) {
    EXPECT_TRUE(std::isinf(at(bad, 0.0)));
    EXPECT_TRUE(std::isinf(at(0.0, bad)));
  }
}

}  // namespace
