// Costmap and Sobel risk against naive versions cell by cell, and against closed forms.
#include "mlnav/ground/features.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "maps.hpp"
#include "mlnav/math.hpp"

namespace {

using namespace mlnav;
using mlnav_test::Frame;
using mlnav_test::kFrames;
using mlnav_test::Map;

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();

struct Built {
  std::vector<double> scratch;
  std::vector<float> cost, tilt, roughness;
  Costmap map;

  Built(const GridView& grid, const std::uint8_t* keep_out, const CostmapConfig& config) {
    const auto cells = static_cast<std::size_t>(coarse_grid(grid, config.coarsening).cells());
    // A guard value behind each buffer, and garbage in the scratch.
    scratch.assign(costmap_scratch_doubles(grid.nx, grid.ny, config.coarsening) + 1, -12345.0);
    cost.assign(cells + 1, -7.0f);
    tilt.assign(cells + 1, -7.0f);
    roughness.assign(cells + 1, -7.0f);
    map.cost_per_m = cost.data();
    map.tilt_rad = tilt.data();
    map.roughness_m = roughness.data();
    build_costmap(grid, keep_out, config, scratch.data(), &map);
    EXPECT_EQ(scratch.back(), -12345.0);
    EXPECT_EQ(cost.back(), -7.0f);
    EXPECT_EQ(tilt.back(), -7.0f);
    EXPECT_EQ(roughness.back(), -7.0f);
  }
};

struct NaiveCell {
  float cost;
  double tilt;
  double roughness;
};

// Plane fit by the normal equations about the patch's own centroid, in metres, points gathered one
// by one: no sums shared between cells.
NaiveCell naive_cell(const GridView& g, const std::uint8_t* keep_out, const CostmapConfig& c,
                     int cx, int cy) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const int k = c.coarsening;
  const auto in_map = [&g](int x, int y) { return x >= 0 && y >= 0 && x < g.nx && y < g.ny; };
  bool own_known = false;
  bool kept_out = false;
  for (int y = cy * k; y < (cy + 1) * k; ++y) {
    for (int x = cx * k; x < (cx + 1) * k; ++x) {
      if (!in_map(x, y)) continue;
      own_known |= !std::isnan(g.at(x, y));
      kept_out |= keep_out != nullptr && keep_out[y * g.nx + x] != 0;
    }
  }
  const int half = static_cast<int>(std::floor(c.patch_half_width_m / (k * g.resolution_m) + 1e-9));
  std::vector<double> px, py, pz;
  for (int y = (cy - half) * k; y < (cy + half + 1) * k; ++y) {
    for (int x = (cx - half) * k; x < (cx + half + 1) * k; ++x) {
      if (!in_map(x, y) || std::isnan(g.at(x, y))) continue;
      px.push_back(g.resolution_m * x);
      py.push_back(g.resolution_m * y);
      pz.push_back(static_cast<double>(g.at(x, y)));
    }
  }
  if (!own_known) return {kept_out ? kInfF : static_cast<float>(c.unknown_cost), nan, nan};
  const auto n = static_cast<double>(px.size());
  if (n < 6) return {kInfF, nan, nan};
  double mx = 0, my = 0, mz = 0;
  for (std::size_t i = 0; i < px.size(); ++i) {
    mx += px[i] / n;
    my += py[i] / n;
    mz += pz[i] / n;
  }
  double xx = 0, xy = 0, yy = 0, xz = 0, yz = 0;
  for (std::size_t i = 0; i < px.size(); ++i) {
    xx += (px[i] - mx) * (px[i] - mx);
    xy += (px[i] - mx) * (py[i] - my);
    yy += (py[i] - my) * (py[i] - my);
    xz += (px[i] - mx) * (pz[i] - mz);
    yz += (py[i] - my) * (pz[i] - mz);
  }
  const double det = xx * yy - xy * xy;
  if (!(det > 1e-9 * xx * yy)) return {kInfF, nan, nan};
  const double a = (xz * yy - yz * xy) / det;
  const double b = (yz * xx - xz * xy) / det;
  double squares = 0;
  for (std::size_t i = 0; i < px.size(); ++i) {
    const double r = (pz[i] - mz) - a * (px[i] - mx) - b * (py[i] - my);
    squares += r * r;
  }
  const double tilt = std::atan(std::hypot(a, b));
  const double roughness = std::sqrt(squares / n);
  double cost = 1.0 + std::pow(tilt / c.tilt_scale_rad, 2) + roughness / c.roughness_scale_m;
  if (tilt > c.tilt_limit_rad || kept_out) cost = static_cast<double>(kInfF);
  return {static_cast<float>(cost), tilt, roughness};
}

void expect_matches_naive(const GridView& g, const std::uint8_t* keep_out, const CostmapConfig& c,
                          double tolerance) {
  const Built built(g, keep_out, c);
  int finite = 0;
  for (int cy = 0; cy < built.map.grid.ny; ++cy) {
    for (int cx = 0; cx < built.map.grid.nx; ++cx) {
      const auto i = static_cast<std::size_t>(cy * built.map.grid.nx + cx);
      const NaiveCell n = naive_cell(g, keep_out, c, cx, cy);
      ASSERT_EQ(std::isinf(built.cost[i]), std::isinf(n.cost)) << cx << " " << cy << " " << n.tilt;
      if (!std::isinf(n.cost)) {
        ASSERT_NEAR(built.cost[i], n.cost, 20 * tolerance) << cx << " " << cy;
        ++finite;
      }
      ASSERT_EQ(std::isnan(built.tilt[i]), std::isnan(n.tilt)) << cx << " " << cy;
      ASSERT_EQ(std::isnan(built.roughness[i]), std::isnan(n.roughness)) << cx << " " << cy;
      if (!std::isnan(n.tilt)) {
        ASSERT_NEAR(built.tilt[i], n.tilt, tolerance) << cx << " " << cy;
        ASSERT_NEAR(built.roughness[i], n.roughness, tolerance) << cx << " " << cy;
      }
    }
  }
  EXPECT_GT(finite, 0);
}

TEST(CoarseGridShape, CoversTheMapFromItsOwnCorner) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    const CoarseGrid c = coarse_grid(map.view, 4);
    EXPECT_EQ(c.nx, 2);
    EXPECT_EQ(c.ny, 3);
    EXPECT_DOUBLE_EQ(c.resolution_m, 4 * f.res);
    // Same lower-left corner of the extent.
    EXPECT_NEAR(c.origin_x_m - c.resolution_m / 2, f.ox - f.res / 2, 1e-8);
    EXPECT_NEAR(c.origin_y_m - c.resolution_m / 2, f.oy - f.res / 2, 1e-8);
    const CoarseGrid same = coarse_grid(map.view, 1);
    EXPECT_EQ(same.nx, 5);
    EXPECT_EQ(same.ny, 9);
    EXPECT_EQ(same.origin_x_m, f.ox);
    EXPECT_EQ(coarse_grid(map.view, 9).ny, 1);
  }
}

TEST(CostmapConfigCheck, NamesTheFieldAtFault) {
  EXPECT_TRUE(validate(CostmapConfig{}).ok());
  const auto field = [](auto change) {
    CostmapConfig c;
    change(c);
    const Fault fault = validate(c);
    EXPECT_EQ(fault.status, Status::kConfigBad);
    return std::string(fault.field);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(field([](CostmapConfig& c) { c.coarsening = 0; }), "coarsening");
  EXPECT_EQ(field([](CostmapConfig& c) { c.coarsening = 65; }), "coarsening");
  for (const double bad : {0.0, -1.0, nan, inf}) {
    EXPECT_EQ(field([bad](CostmapConfig& c) { c.patch_half_width_m = bad; }), "patch_half_width_m");
    EXPECT_EQ(field([bad](CostmapConfig& c) { c.tilt_scale_rad = bad; }), "tilt_scale_rad");
    EXPECT_EQ(field([bad](CostmapConfig& c) { c.roughness_scale_m = bad; }), "roughness_scale_m");
    EXPECT_EQ(field([bad](CostmapConfig& c) { c.tilt_limit_rad = bad; }), "tilt_limit_rad");
    EXPECT_EQ(field([bad](CostmapConfig& c) { c.unknown_cost = bad; }), "unknown_cost");
  }
  EXPECT_EQ(field([](CostmapConfig& c) { c.tilt_limit_rad = 1.6; }), "tilt_limit_rad");
  EXPECT_EQ(field([](CostmapConfig& c) { c.unknown_cost = 0.99; }), "unknown_cost");
}

TEST(Costmap, MatchesNaiveFitsOnRoughGroundWithHoles) {
  for (const Frame& f : kFrames) {
    for (const int coarsening : {1, 3, 4}) {
      Map map(23, 37, f.ox, f.oy, f.res);
      std::mt19937 random(51);
      std::normal_distribution<double> noise(0.0, 0.03);
      std::uniform_real_distribution<double> unit(0.0, 1.0);
      const bool far = std::fabs(f.ox) > 1e6;
      map.fill([&](double x, double y) {
        return 100.0 + 0.2 * (x - f.ox) - 0.15 * (y - f.oy) + noise(random);
      });
      const double holes = coarsening == 1 ? 0.7 : 0.2;
      for (float& z : map.z) {
        if (unit(random) < holes) z = kNanF;
      }
      for (int iy = 20; iy < 30; ++iy) {
        for (int ix = 5; ix < 17; ++ix) map.at(ix, iy) = kNanF;
      }
      std::vector<std::uint8_t> keep_out(map.z.size(), 0);
      for (auto& k : keep_out) k = unit(random) < 0.01 ? 200 : 0;
      CostmapConfig config;
      config.coarsening = coarsening;
      config.patch_half_width_m = 2.5 * coarsening * f.res;
      config.tilt_limit_rad = 0.3;
      expect_matches_naive(map.view, nullptr, config, far ? 1e-5 : 1e-6);
      if (HasFatalFailure()) return;
      expect_matches_naive(map.view, keep_out.data(), config, far ? 1e-5 : 1e-6);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Costmap, PatchWiderThanTheMap) {
  Map map(5, 9, 2.0, -3.0, 0.1);
  std::mt19937 random(52);
  std::normal_distribution<float> heights(0.0f, 0.02f);
  for (float& z : map.z) z = heights(random);
  CostmapConfig config;
  config.patch_half_width_m = 50.0;
  expect_matches_naive(map.view, nullptr, config, 1e-6);
}

TEST(Costmap, TiltOfAPlaneIsItsTiltAndRoughnessIsNone) {
  std::mt19937 random(53);
  std::uniform_real_distribution<double> slopes(-0.35, 0.35);
  for (int i = 0; i < 60; ++i) {
    const Frame& f = kFrames[i % 6];
    const double a = slopes(random), b = slopes(random);
    Map map(23, 37, f.ox, f.oy, f.res);
    map.fill([&](double x, double y) { return 3.0 + a * (x - f.ox) + b * (y - f.oy); });
    CostmapConfig config;
    config.patch_half_width_m = 10.0 * f.res;
    const Built built(map.view, nullptr, config);
    const double tilt = std::atan(std::sqrt(a * a + b * b));
    const double expected = 1.0 + std::pow(tilt / config.tilt_scale_rad, 2);
    for (int c = 0; c < built.map.grid.cells(); ++c) {
      const auto k = static_cast<std::size_t>(c);
      ASSERT_NEAR(built.tilt[k], tilt, 1e-5);
      ASSERT_NEAR(built.roughness[k], 0.0, 1e-6);
      if (tilt < config.tilt_limit_rad) {
        ASSERT_NEAR(built.cost[k], expected, 1e-4);
      }
    }
  }
}

TEST(Costmap, FlatGroundCostsExactlyOne) {
  for (const Frame& f : kFrames) {
    Map map(23, 37, f.ox, f.oy, f.res);
    for (float& z : map.z) z = 1234.5f;
    CostmapConfig config;
    config.patch_half_width_m = 10.0 * f.res;
    const Built built(map.view, nullptr, config);
    for (int c = 0; c < built.map.grid.cells(); ++c) {
      ASSERT_EQ(built.cost[static_cast<std::size_t>(c)], 1.0f);
    }
  }
}

TEST(Costmap, RoughnessOfACheckerboardIsItsAmplitude) {
  for (const Frame& f : kFrames) {
    Map map(24, 40, f.ox, f.oy, f.res);
    for (int iy = 0; iy < 40; ++iy) {
      for (int ix = 0; ix < 24; ++ix)
        map.at(ix, iy) = 50.0f + ((ix + iy) % 2 == 0 ? 0.125f : -0.125f);
    }
    CostmapConfig config;
    config.patch_half_width_m = 2.5 * 4 * f.res;
    const Built built(map.view, nullptr, config);
    for (int c = 0; c < built.map.grid.cells(); ++c) {
      ASSERT_NEAR(built.roughness[static_cast<std::size_t>(c)], 0.125, 1e-3);
    }
  }
}

TEST(Costmap, RoughnessSurvivesALargeCommonHeightAndASlope) {
  // Float32 keeps 8 mm at 90 km: the sums must not lose more than that.
  Map map(64, 48, 0.0, 0.0, 0.5);
  map.fill([](double x, double y) {
    const int cell = static_cast<int>(std::lround(2.0 * x) + std::lround(2.0 * y));
    return 90000.0 + (cell % 2 == 0 ? 0.5 : -0.5) + 0.25 * x;
  });
  CostmapConfig config;
  config.patch_half_width_m = 5.0;
  const Built built(map.view, nullptr, config);
  for (int c = 0; c < built.map.grid.cells(); ++c) {
    ASSERT_NEAR(built.roughness[static_cast<std::size_t>(c)], 0.5, 0.01);
    ASSERT_NEAR(built.tilt[static_cast<std::size_t>(c)], std::atan(0.25), 0.01);
  }
}

TEST(Costmap, UnknownTooFewAndCollinear) {
  Map map(12, 20, 1.0, 2.0, 0.1);
  CostmapConfig config;
  config.patch_half_width_m = 0.2;  // the cell's own block only
  map.z.assign(map.z.size(), kNanF);
  const auto cell = [&map, &config](int cx, int cy, float* tilt) {
    const Built built(map.view, nullptr, config);
    const auto i = static_cast<std::size_t>(cy * built.map.grid.nx + cx);
    *tilt = built.tilt[i];
    return built.cost[i];
  };
  float tilt;
  // 1. Nothing known: finite, and above known flat ground.
  EXPECT_EQ(cell(1, 2, &tilt), static_cast<float>(config.unknown_cost));
  EXPECT_TRUE(std::isnan(tilt));
  // 2. Five points: too few for a plane to be trusted.
  const int spots[6][2] = {{4, 8}, {7, 8}, {4, 11}, {7, 11}, {5, 10}, {6, 9}};
  for (int i = 0; i < 5; ++i) map.at(spots[i][0], spots[i][1]) = 1.0f;
  EXPECT_EQ(cell(1, 2, &tilt), kInfF);
  EXPECT_TRUE(std::isnan(tilt));
  map.at(spots[5][0], spots[5][1]) = 1.0f;
  EXPECT_EQ(cell(1, 2, &tilt), 1.0f);
  EXPECT_EQ(tilt, 0.0f);
  // 3. Points on one line, in each direction.
  config.patch_half_width_m = 1.0;
  const int lines[4][2] = {{1, 0}, {0, 1}, {1, 1}, {1, -1}};
  for (const auto& line : lines) {
    map.z.assign(map.z.size(), kNanF);
    for (int i = -4; i <= 4; ++i) {
      map.at(6 + i * line[0], 9 + i * line[1]) = 0.1f * static_cast<float>(i);
    }
    EXPECT_EQ(cell(1, 2, &tilt), kInfF) << line[0] << line[1];
    EXPECT_TRUE(std::isnan(tilt));
  }
  // 4. One point beside the line is enough to fit.
  map.at(8, 9) = 0.0f;
  EXPECT_FALSE((cell(1, 2, &tilt), std::isnan(tilt)));
}

TEST(Costmap, NoPlaneThroughAnyLineOfPoints) {
  // Where sums round, a line's determinant is not exactly zero.
  CostmapConfig config;
  config.patch_half_width_m = 100.0;
  std::mt19937 random(57);
  std::uniform_int_distribution<int> steps(-3, 3), counts(6, 40), starts(0, 130);
  std::normal_distribution<float> heights(0.0f, 1.0f);
  int lines = 0;
  while (lines < 400) {
    const int dx = steps(random), dy = steps(random), n = counts(random);
    const int x0 = starts(random), y0 = starts(random);
    const int x1 = x0 + dx * (n - 1), y1 = y0 + dy * (n - 1);
    if ((dx == 0 && dy == 0) || x1 < 0 || y1 < 0 || x1 >= 131 || y1 >= 131) continue;
    ++lines;
    Map map(131, 131, 0.0, 0.0, 0.1);
    map.z.assign(map.z.size(), kNanF);
    for (int i = 0; i < n; ++i) map.at(x0 + i * dx, y0 + i * dy) = heights(random);
    const Built built(map.view, nullptr, config);
    const auto own = static_cast<std::size_t>(y0 / 4 * built.map.grid.nx + x0 / 4);
    ASSERT_TRUE(std::isnan(built.tilt[own])) << dx << " " << dy << " " << n;
    ASSERT_EQ(built.cost[own], kInfF);
  }
}

TEST(Costmap, TiltLimitIsInclusive) {
  Map map(20, 28, 0.0, 0.0, 0.1);
  map.fill([](double x, double) { return 0.5 * x; });
  CostmapConfig config;
  const double tilt = std::atan(0.5);
  config.tilt_limit_rad = tilt + 1e-4;
  EXPECT_FALSE(std::isinf(Built(map.view, nullptr, config).cost[0]));
  config.tilt_limit_rad = tilt - 1e-4;
  const Built steep(map.view, nullptr, config);
  EXPECT_TRUE(std::isinf(steep.cost[0]));
  EXPECT_NEAR(steep.tilt[0], tilt, 1e-5);  // still told
}

TEST(Costmap, KeepOutClosesItsOwnCellAlone) {
  Map map(13, 21, -4.0, 7.0, 0.1);
  for (std::size_t i = 0; i < map.z.size(); ++i) {
    std::vector<std::uint8_t> keep_out(map.z.size(), 0);
    keep_out[i] = 1;
    const Built built(map.view, keep_out.data(), CostmapConfig{});
    const int cx = static_cast<int>(i) % 13 / 4;
    const int cy = static_cast<int>(i) / 13 / 4;
    for (int c = 0; c < built.map.grid.cells(); ++c) {
      ASSERT_EQ(std::isinf(built.cost[static_cast<std::size_t>(c)]), c == cy * 4 + cx) << i;
    }
  }
  // Also over unknown ground.
  map.z.assign(map.z.size(), kNanF);
  map.z[0] = 0.0f;
  std::vector<std::uint8_t> keep_out(map.z.size(), 0);
  keep_out.back() = 1;
  EXPECT_TRUE(std::isinf(*(Built(map.view, keep_out.data(), CostmapConfig{}).cost.end() - 2)));
}

TEST(Costmap, SameInputSameBits) {
  Map map(41, 33, 0.3, 0.7, 0.1);
  std::mt19937 random(54);
  std::normal_distribution<float> heights(0.0f, 0.1f);
  for (float& z : map.z) z = heights(random);
  const Built a(map.view, nullptr, CostmapConfig{});
  const Built b(map.view, nullptr, CostmapConfig{});
  EXPECT_EQ(std::memcmp(a.cost.data(), b.cost.data(), a.cost.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(a.tilt.data(), b.tilt.data(), a.tilt.size() * sizeof(float)), 0);
}

std::vector<float> sobel(const GridView& g, double half_width_m) {
  std::vector<double> scratch(sobel_scratch_doubles(g.nx, g.ny) + 1, -12345.0);
  std::vector<float> risk(g.cells() + 1, -7.0f);
  sobel_risk(g, SobelConfig{half_width_m}, scratch.data(), risk.data());
  EXPECT_EQ(scratch.back(), -12345.0);
  EXPECT_EQ(risk.back(), -7.0f);
  risk.pop_back();
  return risk;
}

TEST(Sobel, MatchesANaiveMeanOfSquaredGradients) {
  for (const Frame& f : kFrames) {
    for (const double cells : {0.0, 1.0, 3.2, 7.0, 100.0}) {
      Map map(19, 27, f.ox, f.oy, f.res);
      std::mt19937 random(55);
      std::normal_distribution<double> noise(0.0, 0.3 * f.res);
      std::uniform_real_distribution<double> unit(0.0, 1.0);
      for (float& z : map.z) z = unit(random) < 0.05 ? kNanF : static_cast<float>(noise(random));
      const GridView& g = map.view;
      const double kernel[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
      std::vector<double> square(map.z.size(), -1.0);
      for (int y = 1; y + 1 < g.ny; ++y) {
        for (int x = 1; x + 1 < g.nx; ++x) {
          double gx = 0, gy = 0;
          for (int j = -1; j <= 1; ++j) {
            for (int i = -1; i <= 1; ++i) {
              if (i == 0 && j == 0) continue;
              const auto z = static_cast<double>(g.at(x + i, y + j));
              gx += kernel[j + 1][i + 1] * z;
              gy += kernel[i + 1][j + 1] * z;
            }
          }
          const double s = (gx * gx + gy * gy) / std::pow(8 * g.resolution_m, 2);
          if (!std::isnan(s)) square[static_cast<std::size_t>(y * g.nx + x)] = s;
        }
      }
      const std::vector<float> risk = sobel(g, cells * f.res);
      const int half = static_cast<int>(cells);
      for (int y = 0; y < g.ny; ++y) {
        for (int x = 0; x < g.nx; ++x) {
          double sum = 0, n = 0;
          for (int j = std::max(0, y - half); j <= std::min(g.ny - 1, y + half); ++j) {
            for (int i = std::max(0, x - half); i <= std::min(g.nx - 1, x + half); ++i) {
              const double s = square[static_cast<std::size_t>(j * g.nx + i)];
              if (s < 0) continue;
              sum += s;
              n += 1;
            }
          }
          const double expected = n > 0 ? 1.0 - std::exp(-sum / n) : 0.0;
          ASSERT_NEAR(risk[static_cast<std::size_t>(y * g.nx + x)], expected, 1e-6)
              << x << " " << y << " half " << half;
        }
      }
    }
  }
}

TEST(Sobel, OnAPlaneIsItsSquaredSlope) {
  for (const Frame& f : kFrames) {
    Map map(15, 24, f.ox, f.oy, f.res);
    map.fill([&f](double x, double y) { return 0.3 * (x - f.ox) - 0.4 * (y - f.oy); });
    for (const float r : sobel(map.view, 1.2)) {
      ASSERT_NEAR(-std::log(1.0 - static_cast<double>(r)), 0.25, 1e-4);
    }
  }
}

TEST(Sobel, NothingKnownIsNoRiskAndValuesStayInRange) {
  Map map(7, 5, 0.0, 0.0, 0.1);
  map.z.assign(map.z.size(), kNanF);
  for (const float r : sobel(map.view, 1.2)) EXPECT_EQ(r, 0.0f);
  Map tiny(2, 2, 0.0, 0.0, 0.1);  // no cell has its eight neighbours
  for (const float r : sobel(tiny.view, 1.2)) EXPECT_EQ(r, 0.0f);
  std::mt19937 random(56);
  std::uniform_real_distribution<float> heights(-1e5f, 1e5f);
  for (float& z : map.z) z = heights(random);
  for (const float r : sobel(map.view, 1.2)) EXPECT_TRUE(r >= 0.0f && r <= 1.0f);
}

}  // namespace
