// The grid's conventions: which cell owns a point, where the map ends, what bilinear means there.
#include "mlnav/ground/grid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "maps.hpp"

namespace {

using namespace mlnav;
using mlnav_test::Frame;
using mlnav_test::kFrames;
using mlnav_test::Map;

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Validate, EachGeometryFault) {
  Map map(5, 9, 1.0, 2.0, 0.1);
  EXPECT_EQ(validate_geometry(map.view), Status::kOk);
  const auto with = [&map](auto change) {
    GridView g = map.view;
    change(g);
    EXPECT_EQ(validate(g), validate_geometry(g));
    return validate_geometry(g);
  };
  EXPECT_EQ(with([](GridView& g) { g.z = nullptr; }), Status::kMapEmpty);
  EXPECT_EQ(with([](GridView& g) { g.nx = 0; }), Status::kMapEmpty);
  EXPECT_EQ(with([](GridView& g) { g.ny = 0; }), Status::kMapEmpty);
  EXPECT_EQ(with([](GridView& g) { g.ny = -9; }), Status::kMapEmpty);
  for (const double res : {0.0, -0.1, kNan, kInf, 9.99e-4, 100.01}) {
    EXPECT_EQ(with([res](GridView& g) { g.resolution_m = res; }), Status::kMapBadResolution) << res;
  }
  EXPECT_EQ(with([](GridView& g) { g.resolution_m = kMinResolution_m; }), Status::kOk);
  EXPECT_EQ(with([](GridView& g) { g.resolution_m = kMaxResolution_m; }), Status::kOk);
  for (const double o : {kNan, kInf, -kInf, 1.0000001e7, -1.0000001e7}) {
    EXPECT_EQ(with([o](GridView& g) { g.origin_x_m = o; }), Status::kMapBadOrigin) << o;
    EXPECT_EQ(with([o](GridView& g) { g.origin_y_m = o; }), Status::kMapBadOrigin) << o;
  }
  EXPECT_EQ(with([](GridView& g) { g.origin_x_m = kMaxOrigin_m; }), Status::kOk);
}

TEST(Validate, ErrorsOfHeightsAreBounds) {
  Map map(5, 4, 0.0, 0.0, 0.1);
  std::vector<float> error(20, 0.01F);
  map.view.cell_error_m = error.data();
  EXPECT_EQ(validate(map.view), Status::kOk);
  for (const float bad : {-0.001F, NAN, INFINITY}) {
    error[13] = bad;
    EXPECT_EQ(validate(map.view), Status::kMapBadError);
  }
  error[13] = 0.05F;  // cell (3, 2)
  map.view.height_error_m = 0.1;
  EXPECT_FLOAT_EQ(static_cast<float>(height_error_m(map.view, 0.3, 0.2, 0.0)), 0.15F);
  EXPECT_FLOAT_EQ(static_cast<float>(height_error_m(map.view, 0.0, 0.0, 0.0)), 0.11F);
  EXPECT_FLOAT_EQ(static_cast<float>(height_error_m(map.view, 0.0, 0.0, 0.3)), 0.15F);
  EXPECT_EQ(height_error_m(map.view, 9.0, 9.0, 1.0), 0.1);
  map.view.height_error_m = NAN;
  EXPECT_EQ(validate(map.view), Status::kMapBadError);
}

TEST(Validate, OneBadHeightAnywhereIsFound) {
  // 5 x 9 = 45 and 7 x 7 = 49 cells: both the blocks of sixteen and the rest are crossed.
  for (const int nx : {5, 7, 16, 1}) {
    for (const int ny : {9, 7, 4, 1}) {
      Map map(nx, ny, 0.0, 0.0, 0.1);
      const auto cells = static_cast<std::size_t>(nx * ny);
      for (std::size_t i = 0; i < cells; ++i) {
        for (const float bad : {kInfF, -kInfF, 1.0001e5f, -1.0001e5f, 3e38f,
                                std::nextafter(1e5f, kInfF), -std::nextafter(1e5f, kInfF)}) {
          map.z.assign(cells, 1.0f);
          map.z[i] = bad;
          ASSERT_EQ(validate(map.view), Status::kMapBadHeight) << nx << "x" << ny << " cell " << i;
        }
        for (const float good : {kNanF, -kNanF, 1e5f, -1e5f, 0.0f, -0.0f, 1e-42f}) {
          map.z.assign(cells, 1.0f);
          map.z[i] = good;
          if (cells == 1 && std::isnan(good)) continue;
          ASSERT_EQ(validate(map.view), Status::kOk) << nx << "x" << ny << " cell " << i;
        }
      }
    }
  }
}

TEST(Validate, AllUnknownAndOneKnown) {
  Map map(5, 9, 0.0, 0.0, 0.1);
  for (std::size_t i = 0; i < 45; ++i) {
    map.z.assign(45, kNanF);
    ASSERT_EQ(validate(map.view), Status::kMapAllUnknown);
    map.z[i] = -2.0f;
    ASSERT_EQ(validate(map.view), Status::kOk) << i;
    map.z[i] = kInfF;
    ASSERT_EQ(validate(map.view), Status::kMapBadHeight) << i;
  }
}

TEST(CellOf, HalfOpenAtEveryEdgeToOneUlp) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    const GridView& g = map.view;
    CellIndex cell;
    for (int i = 0; i <= g.nx; ++i) {
      const double edge = g.origin_x_m + g.resolution_m * (i - 0.5);
      const double y = g.center_y_m(4);
      const bool below = cell_of(g, std::nextafter(edge, -kInf), y, &cell);
      EXPECT_EQ(below, i > 0);
      if (below) {
        EXPECT_EQ(cell.ix, i - 1);
        EXPECT_EQ(cell.iy, 4);
      }
      for (const double x : {edge, std::nextafter(edge, kInf)}) {
        const bool at = cell_of(g, x, y, &cell);
        EXPECT_EQ(at, i < g.nx) << f.res << " edge " << i;
        if (at) {
          EXPECT_EQ(cell.ix, i);
        }
      }
    }
    for (int i = 0; i <= g.ny; ++i) {
      const double edge = g.origin_y_m + g.resolution_m * (i - 0.5);
      const double x = g.center_x_m(1);
      const bool below = cell_of(g, x, std::nextafter(edge, -kInf), &cell);
      EXPECT_EQ(below, i > 0);
      if (below) {
        EXPECT_EQ(cell.iy, i - 1);
      }
      const bool at = cell_of(g, x, edge, &cell);
      EXPECT_EQ(at, i < g.ny);
      if (at) {
        EXPECT_EQ(cell.iy, i);
        EXPECT_EQ(cell.ix, 1);
      }
    }
  }
}

TEST(CellOf, CentresAndCornersOfAnAsymmetricMap) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    for (int iy = 0; iy < 9; ++iy) {
      for (int ix = 0; ix < 5; ++ix) {
        CellIndex cell;
        ASSERT_TRUE(cell_of(map.view, map.view.center_x_m(ix), map.view.center_y_m(iy), &cell));
        EXPECT_EQ(cell.ix, ix);
        EXPECT_EQ(cell.iy, iy);
      }
    }
    // y reaches further than x: swapping the axes shows.
    CellIndex cell;
    EXPECT_TRUE(cell_of(map.view, f.ox, f.oy + 8.0 * f.res, &cell));
    EXPECT_FALSE(cell_of(map.view, f.ox + 8.0 * f.res, f.oy, &cell));
  }
}

TEST(CellOf, HugeAndNonFinite) {
  Map map(5, 9, -3.0, 4.0, 0.1);
  CellIndex cell{77, 88};
  for (const double bad : {1e300, -1e300, 1e18, -1e18, 3e9, -3e9, kInf, -kInf, kNan}) {
    EXPECT_FALSE(cell_of(map.view, bad, 4.0, &cell)) << bad;
    EXPECT_FALSE(cell_of(map.view, -3.0, bad, &cell)) << bad;
    EXPECT_TRUE(std::isnan(height_m(map.view, bad, 4.0))) << bad;
    EXPECT_TRUE(std::isnan(height_m(map.view, -3.0, bad))) << bad;
  }
  EXPECT_EQ(cell.ix, 77);  // left alone
}

TEST(Height, ReproducesCentresExactly) {
  for (const Frame& f : kFrames) {
    if (std::fabs(f.ox) > 1e6) continue;  // centres are not whole there, to rounding
    Map map(5, 9, f.ox, f.oy, f.res);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> heights(-5.0f, 5.0f);
    for (float& z : map.z) z = heights(random);
    for (int iy = 0; iy < 9; ++iy) {
      for (int ix = 0; ix < 5; ++ix) {
        EXPECT_NEAR(height_m(map.view, map.view.center_x_m(ix), map.view.center_y_m(iy)),
                    static_cast<double>(map.at(ix, iy)), 1e-11);
      }
    }
  }
}

TEST(Height, IsExactOnBilinearSurfaces) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    const auto surface = [&f](double x, double y) {
      const double u = (x - f.ox) / f.res;
      const double v = (y - f.oy) / f.res;
      return 0.5 + 0.25 * u - 0.125 * v + 0.0625 * u * v;
    };
    map.fill(surface);
    std::mt19937 random(2);
    std::uniform_real_distribution<double> u(0.0, 4.0), v(0.0, 8.0);
    for (int i = 0; i < 500; ++i) {
      const double x = f.ox + u(random) * f.res;
      const double y = f.oy + v(random) * f.res;
      ASSERT_NEAR(height_m(map.view, x, y), surface(x, y), 1e-6);
    }
  }
}

TEST(Height, IsConstantOverTheOuterHalfCell) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> heights(-5.0f, 5.0f);
    for (float& z : map.z) z = heights(random);
    const GridView& g = map.view;
    for (const double t : {0.5, 0.49, 0.25, 0.01}) {
      EXPECT_NEAR(height_m(g, g.origin_x_m - t * g.resolution_m, g.center_y_m(3)),
                  static_cast<double>(map.at(0, 3)), 1e-6);
      EXPECT_NEAR(height_m(g, g.center_x_m(2), g.origin_y_m - t * g.resolution_m),
                  static_cast<double>(map.at(2, 0)), 1e-6);
    }
    EXPECT_NEAR(height_m(g, g.center_x_m(4) + 0.45 * g.resolution_m, g.center_y_m(3)),
                static_cast<double>(map.at(4, 3)), 1e-6);
    EXPECT_NEAR(height_m(g, g.center_x_m(2), g.center_y_m(8) + 0.45 * g.resolution_m),
                static_cast<double>(map.at(2, 8)), 1e-6);
    // All four corners.
    for (const int ix : {0, 4}) {
      for (const int iy : {0, 8}) {
        const double x = g.center_x_m(ix) + (ix == 0 ? -0.3 : 0.3) * g.resolution_m;
        const double y = g.center_y_m(iy) + (iy == 0 ? -0.3 : 0.3) * g.resolution_m;
        EXPECT_EQ(height_m(g, x, y), static_cast<double>(map.at(ix, iy)));
      }
    }
  }
}

TEST(Height, KnownExactlyWhereACellOwnsThePoint) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    const GridView& g = map.view;
    const double left = g.origin_x_m - 0.5 * g.resolution_m;
    const double right = g.origin_x_m + g.resolution_m * 4.5;
    const double y = g.center_y_m(2);
    EXPECT_FALSE(std::isnan(height_m(g, left, y)));
    EXPECT_TRUE(std::isnan(height_m(g, std::nextafter(left, -kInf), y)));
    EXPECT_TRUE(std::isnan(height_m(g, right, y)));
    EXPECT_FALSE(std::isnan(height_m(g, std::nextafter(right, -kInf), y)));
  }
}

TEST(Height, UnknownOnlyWhereItCarriesWeight) {
  Map map(5, 9, 0.0, 0.0, 0.5);  // halves: fractions are exact
  map.at(2, 4) = kNanF;
  const GridView& g = map.view;
  const auto unknown = [&g](double u, double v) {
    return std::isnan(height_m(g, 0.5 * u, 0.5 * v));
  };
  EXPECT_TRUE(unknown(2.0, 4.0));
  EXPECT_TRUE(unknown(1.5, 4.0));
  EXPECT_TRUE(unknown(2.5, 3.5));
  EXPECT_TRUE(unknown(1.0 + 1e-9, 4.0));
  EXPECT_TRUE(unknown(2.9999, 4.9999));
  // On the neighbours' own lines its weight is exactly zero.
  EXPECT_FALSE(unknown(1.0, 4.0));
  EXPECT_FALSE(unknown(3.0, 4.0));
  EXPECT_FALSE(unknown(2.0, 3.0));
  EXPECT_FALSE(unknown(2.0, 5.0));
  EXPECT_FALSE(unknown(1.0, 4.5));
  EXPECT_FALSE(unknown(2.5, 3.0));
  EXPECT_FALSE(unknown(0.5, 4.0));
}

TEST(Height, IsContinuousAcrossCellsAndCentres) {
  for (const Frame& f : kFrames) {
    Map map(5, 9, f.ox, f.oy, f.res);
    std::mt19937 random(4);
    std::uniform_real_distribution<float> heights(-1.0f, 1.0f);
    for (float& z : map.z) z = heights(random);
    const GridView& g = map.view;
    // Steepest possible: 2 m over a cell, in each direction.
    const double lipschitz = 2.0 * 2.0 / g.resolution_m;
    std::uniform_real_distribution<double> u(-0.49, 4.49), v(-0.49, 8.49);
    std::uniform_real_distribution<double> step(-1e-3, 1e-3);
    const double rounding = std::fabs(f.ox) * 1e-14 / f.res + 1e-12;
    for (int i = 0; i < 3000; ++i) {
      const double x = f.ox + std::round(u(random)) * f.res;  // across a centre line
      const double y = f.oy + v(random) * f.res;
      const double dx = step(random) * f.res;
      if (!(x + dx > f.ox - 0.5 * f.res && x + dx < f.ox + 4.5 * f.res)) continue;
      ASSERT_NEAR(height_m(g, x + dx, y), height_m(g, x, y), lipschitz * std::fabs(dx) + rounding);
    }
  }
}

TEST(Height, OneCellMap) {
  Map map(1, 1, 7.0, -3.0, 0.2);
  map.z[0] = 4.25f;
  EXPECT_EQ(height_m(map.view, 7.0, -3.0), 4.25);
  EXPECT_EQ(height_m(map.view, 6.91, -2.91), 4.25);
  EXPECT_TRUE(std::isnan(height_m(map.view, 7.11, -3.0)));
}

}  // namespace
