// Rays over a heightmap against a marcher that takes one ray at a time in tiny steps, and against closed
// forms.
#include "mlnav/ground/view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "maps.hpp"
#include "test_maps.hpp"

namespace {

using namespace mlnav;
using mlnav_test::Frame;
using mlnav_test::kFrames;
using mlnav_test::Map;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> angles(double first, double step, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(first + step * i);
  return out;
}

// A lattice that owns its angles.
struct Rays {
  std::vector<double> azimuth, elevation;
  double range_min_m = 0.0;
  double range_max_m = 30.0;

  int azimuths() const { return static_cast<int>(azimuth.size()); }
  int elevations() const { return static_cast<int>(elevation.size()); }
  RayLattice lattice() const {
    return {{azimuth.data(), azimuth.size()},
            {elevation.data(), elevation.size()},
            range_min_m,
            range_max_m};
  }
};

struct View {
  Fault fault;
  Rays rays;
  std::vector<float> range_m;

  float at(int azimuth, int elevation) const {
    return range_m[static_cast<std::size_t>(azimuth * rays.elevations() + elevation)];
  }
};

View cast(const GridView& grid, const Viewpoint& eye, const Rays& rays) {
  const RayLattice lattice = rays.lattice();
  View out{{}, rays, std::vector<float>(lattice.rays() + 1, -7.0F)};
  std::vector<double> scratch(view_scratch_doubles(rays.elevation.size()) + 1, -12345.0);
  out.fault = cast_view(grid, eye, lattice, scratch.data(), out.range_m.data());
  EXPECT_EQ(scratch.back(), -12345.0);
  EXPECT_EQ(out.range_m.back(), -7.0F);
  out.range_m.pop_back();
  return out;
}

Rays all_round(double range_max_m = 30.0, int azimuths = 36, int elevations = 60) {
  return {angles(0.01, 2 * kPi / azimuths, azimuths),
          angles(-80 * kDeg, 100 * kDeg / elevations, elevations), 0.0, range_max_m};
}

struct Ray {
  double x, y, z;  // unit vector
};

Ray ray_of(const Rays& rays, int azimuth, int elevation) {
  const double a = rays.azimuth[static_cast<std::size_t>(azimuth)];
  const double e = rays.elevation[static_cast<std::size_t>(elevation)];
  return {std::cos(e) * std::cos(a), std::cos(e) * std::sin(a), std::sin(e)};
}

// Height of the ray above the ground after `s` metres; NaN where the ground is unknown or off the map. The
// weights of the four cells are written out here, apart from the core's own interpolation.
double above_ground(const GridView& g, const Viewpoint& eye, const Ray& ray, double s) {
  const double u = (eye.x_m - g.origin_x_m + s * ray.x) / g.resolution_m;
  const double v = (eye.y_m - g.origin_y_m + s * ray.y) / g.resolution_m;
  if (!(u >= -0.5 && v >= -0.5 && u < g.nx - 0.5 && v < g.ny - 0.5)) return NAN;
  double ground = 0.0;
  for (int k = 0; k < 4; ++k) {
    const int ix = static_cast<int>(std::floor(u)) + k % 2;
    const int iy = static_cast<int>(std::floor(v)) + k / 2;
    const double weight = (1.0 - std::fabs(u - ix)) * (1.0 - std::fabs(v - iy));
    ground += weight * static_cast<double>(g.at(std::clamp(ix, 0, g.nx - 1),  //
                                                std::clamp(iy, 0, g.ny - 1)));
  }
  return eye.z_m + s * ray.z - ground;
}

// Walks all rays in steps of `step_m`. A hit lies on the ground, and before it the ray is nowhere below; a
// ray without one never goes below known ground from known ground on. Rays that graze the ground within
// kRounding may go either way.
void expect_walked(const GridView& grid, const Viewpoint& eye, const View& view, double step_m) {
  constexpr double kRounding = 2e-6;  // ranges are float32
  ASSERT_TRUE(view.fault.ok());
  for (int a = 0; a < view.rays.azimuths(); ++a) {
    for (int e = 0; e < view.rays.elevations(); ++e) {
      const Ray ray = ray_of(view.rays, a, e);
      const double hit = static_cast<double>(view.at(a, e));
      const double end = std::isnan(hit) ? view.rays.range_max_m : hit;
      bool known = false;
      bool lost = false;
      for (double s = 0.0; s < end - kRounding && !lost; s += step_m) {
        const double height = above_ground(grid, eye, ray, s);
        if (std::isnan(height)) {
          known = false;
        } else if (height < -kRounding * (1.0 + s)) {
          ASSERT_FALSE(known && (!std::isnan(hit) || s >= view.rays.range_min_m + step_m))
              << "below the ground after " << s << " of " << hit << " m, ray " << a << ' ' << e;
          lost = true;  // came out of the unknown below the ground, or hit it too near
        } else {
          known = true;
        }
      }
      if (std::isnan(hit)) continue;
      ASSERT_FALSE(lost) << "seen through the ground: ray " << a << ' ' << e;
      ASSERT_GE(hit, view.rays.range_min_m - kRounding);
      ASSERT_LE(hit, view.rays.range_max_m + kRounding);
      const double back = std::fmax(0.0, hit - kRounding);  // a hit may be where known ground ends
      const double at_hit = above_ground(grid, eye, ray, hit);
      ASSERT_NEAR(std::isnan(at_hit) ? above_ground(grid, eye, ray, back) : at_hit, 0.0,
                  kRounding * (1.0 + hit))
          << "off the ground: ray " << a << ' ' << e;
    }
  }
}

TEST(View, RandomGroundAgainstAMarcher) {
  maps::Random random(71);
  int hits = 0;
  for (int n = 0; n < 40; ++n) {
    maps::Terrain terrain = maps::random_terrain(random, 6.0, random.unit());
    if (n % 4 == 0) terrain.noise(random, 0.3);
    if (n % 3 == 0) terrain.unknown_patches(random, 4, 1.0);
    const GridView grid = terrain.view();
    const Point2 at = terrain.anywhere(random);
    double ground = height_m(grid, at.x_m, at.y_m);
    if (std::isnan(ground)) ground = 0.0;
    const Viewpoint eye{at.x_m, at.y_m, ground + random.uniform(0.1, 2.5)};
    Rays rays = all_round(random.uniform(2.0, 9.0), random.between(1, 30), 40);
    for (double& azimuth : rays.azimuth) azimuth = random.uniform(-9.0, 9.0);
    for (double& elevation : rays.elevation) elevation += random.uniform(0.0, 2.0) * kDeg;
    rays.range_min_m = random.uniform(0.0, 1.0);
    const View view = cast(grid, eye, rays);
    expect_walked(grid, eye, view, 0.01 * grid.resolution_m);
    hits += static_cast<int>(std::count_if(view.range_m.begin(), view.range_m.end(),
                                           [](float range) { return !std::isnan(range); }));
  }
  EXPECT_GT(hits, 5000);
}

// Every cell another height: any mix-up of axes or ends shows.
TEST(View, AsymmetricMapInEveryFrame) {
  maps::Random random(72);
  for (const Frame& f : kFrames) {
    Map map(9, 5, f.ox, f.oy, f.res);
    for (float& z : map.z) z = static_cast<float>(f.res * random.uniform(-1.0, 1.0));
    for (int n = 0; n < 8; ++n) {
      const Viewpoint eye{f.ox + f.res * random.uniform(-4.0, 12.0),
                          f.oy + f.res * random.uniform(-4.0, 8.0), f.res * 1.5};
      expect_walked(map.view, eye, cast(map.view, eye, all_round(20.0 * f.res)), 0.01 * f.res);
    }
  }
}

TEST(View, LevelGroundInClosedForm) {
  Map map(200, 180, -3.7, 12.25, 0.1);
  map.fill([](double, double) { return 3.5; });
  const Viewpoint eye{6.0, 21.0, 5.5};
  const View view = cast(map.view, eye, all_round(12.0));
  for (int a = 0; a < view.rays.azimuths(); ++a) {
    for (int e = 0; e < view.rays.elevations(); ++e) {
      const Ray ray = ray_of(view.rays, a, e);
      const double range = ray.z < 0.0 ? -2.0 / ray.z : INFINITY;
      const double x = eye.x_m + range * ray.x;
      const double y = eye.y_m + range * ray.y;
      const bool on_map = x > -3.75 && x < 16.25 && y > 12.2 && y < 30.2;
      if (range > 12.0 || !on_map) {
        EXPECT_TRUE(std::isnan(view.at(a, e))) << range;
      } else {
        EXPECT_NEAR(static_cast<double>(view.at(a, e)), range, 1e-6 * range);
      }
    }
  }
}

// Straight up and down are out of reach of a lattice, but right below the eye is not.
TEST(View, SteepestRays) {
  Map map(40, 40, 0.0, 0.0, 0.1);
  const Rays rays{angles(0.0, 1.0, 6), angles(-kMaxElevation_rad, kMaxElevation_rad, 3), 0.0, 50.0};
  const View view = cast(map.view, {2.03, 1.96, 1.7}, rays);
  for (int a = 0; a < rays.azimuths(); ++a) {
    EXPECT_NEAR(view.at(a, 0), 1.7F, 1e-5F);
    EXPECT_TRUE(std::isnan(view.at(a, 1)));
    EXPECT_TRUE(std::isnan(view.at(a, 2)));
  }
}

// Along the lines of cell centres, in all four directions.
TEST(View, RaysAlongTheLattice) {
  Map map(41, 31, 1.0, 2.0, 0.1);
  map.fill([](double x, double) { return 0.1 * x; });
  const Viewpoint eye{map.view.center_x_m(20), map.view.center_y_m(15), 2.0};
  const Rays rays{angles(0.0, 0.5 * kPi, 4), angles(-70 * kDeg, 2 * kDeg, 12), 0.0, 9.0};
  const View view = cast(map.view, eye, rays);
  expect_walked(map.view, eye, view, 0.001);
  for (int e = 0; e < rays.elevations(); ++e) {
    EXPECT_LT(view.at(0, e), view.at(2, e)) << "uphill is nearer";
    EXPECT_NEAR(view.at(1, e), view.at(3, e), 1e-5F);
  }
}

TEST(View, AWallHidesWhatIsBehindIt) {
  Map map(100, 60, 0.0, 0.0, 0.1);
  map.fill([](double x, double) { return x > 3.95 && x < 4.25 ? 1.0 : 0.0; });
  const Viewpoint eye{1.0, 3.0, 1.5};
  const Rays rays{angles(-20 * kDeg, 1 * kDeg, 41), angles(-60 * kDeg, 0.1 * kDeg, 600), 0.0, 20.0};
  const View view = cast(map.view, eye, rays);
  expect_walked(map.view, eye, view, 0.002);
  int front = 0;
  int top = 0;
  int behind = 0;
  for (int a = 0; a < rays.azimuths(); ++a) {
    for (int e = 0; e < rays.elevations(); ++e) {
      const double range = static_cast<double>(view.at(a, e));
      if (std::isnan(range)) continue;
      const double x = eye.x_m + range * ray_of(rays, a, e).x;
      front += x < 4.0 ? 1 : 0;
      top += x >= 4.0 && x <= 4.2 ? 1 : 0;
      // The line over its far edge, x = 4.2 and z = 1, comes down at 1 + 1.5 / 0.5 * 3.2 = 10.6: off the map.
      behind += x > 4.31 ? 1 : 0;
    }
  }
  EXPECT_GT(front, 1000);
  EXPECT_GT(top, 100);
  EXPECT_EQ(behind, 0);
}

// Far ground between a near rise and a higher one behind it.
TEST(View, SeenBetweenTwoRises) {
  Map map(300, 3, 0.0, 0.0, 0.1);
  map.fill([](double x, double) {
    return x > 4.0 && x < 4.5 ? 0.4 : x > 20.0 && x < 20.5 ? 2.0 : 0.0;
  });
  const Viewpoint eye{1.0, 0.1, 1.0};
  const Rays rays{angles(0.0, 1.0, 1), angles(-45 * kDeg, 0.01 * kDeg, 6000), 0.0, 40.0};
  const View view = cast(map.view, eye, rays);
  expect_walked(map.view, eye, view, 0.002);
  bool shadow = false;
  bool between = false;
  for (int e = 0; e < rays.elevations(); ++e) {
    const double x = 1.0 + static_cast<double>(view.at(0, e)) * ray_of(rays, 0, e).x;
    shadow |= x > 4.7 && x < 6.6;  // the line over (4.4, 0.4) comes down at 6.67
    between |= x > 7.0 && x < 20.0;
    EXPECT_FALSE(x > 20.6);
  }
  EXPECT_FALSE(shadow);
  EXPECT_TRUE(between);
}

TEST(View, UnknownGroundHidesNothingAndIsNotSeen) {
  Map map(120, 40, 0.0, 0.0, 0.1);
  const Viewpoint eye{1.0, 2.0, 1.5};
  const Rays rays{angles(-5 * kDeg, 1 * kDeg, 11), angles(-60 * kDeg, 0.1 * kDeg, 700), 0.0, 20.0};
  const View before = cast(map.view, eye, rays);
  for (int iy = 0; iy < 40; ++iy) {
    for (int ix = 40; ix < 60; ++ix) map.at(ix, iy) = kNan;
  }
  const View after = cast(map.view, eye, rays);
  expect_walked(map.view, eye, after, 0.002);
  int lost = 0;
  for (int a = 0; a < rays.azimuths(); ++a) {
    for (int e = 0; e < rays.elevations(); ++e) {
      const double x = 1.0 + static_cast<double>(before.at(a, e)) * ray_of(rays, a, e).x;
      if (x > 3.9001 && x < 5.9999) {
        EXPECT_TRUE(std::isnan(after.at(a, e)));
        ++lost;
      } else if (!std::isnan(x) && (x < 3.8999 || x > 6.0001)) {
        EXPECT_EQ(after.at(a, e), before.at(a, e));
      }
    }
  }
  EXPECT_GT(lost, 100);

  // A plateau behind the gap: its edge is no wall that rays could be seen on.
  for (int iy = 0; iy < 40; ++iy) {
    for (int ix = 60; ix < 120; ++ix) map.at(ix, iy) = 1.0F;
  }
  const View plateau = cast(map.view, eye, rays);
  expect_walked(map.view, eye, plateau, 0.002);
  for (int a = 0; a < rays.azimuths(); ++a) {
    for (int e = 0; e < rays.elevations(); ++e) {
      const Ray ray = ray_of(rays, a, e);
      const double range = static_cast<double>(plateau.at(a, e));
      const double x = 1.0 + range * ray.x;
      if (x > 4.5) {
        EXPECT_NEAR(eye.z_m + range * ray.z, 1.0, 1e-6);
      }
    }
  }
}

TEST(View, FromOffTheMapAndFromUnknownGround) {
  Map map(50, 40, 10.0, -5.0, 0.1);
  const Rays rays{angles(0.0, 1.0, 1), angles(-60 * kDeg, 1 * kDeg, 60), 0.0, 30.0};
  const Viewpoint outside{8.0, -3.0, 1.0};
  const View view = cast(map.view, outside, rays);
  expect_walked(map.view, outside, view, 0.001);
  for (int e = 0; e < rays.elevations(); ++e) {
    const double x = 8.0 + 1.0 / std::tan((60.0 - e) * kDeg);
    EXPECT_EQ(std::isnan(view.at(0, e)), !(x > 9.95 && x < 14.95)) << x;
  }
  Rays away = rays;
  away.azimuth = {kPi};
  for (const float range : cast(map.view, outside, away).range_m) EXPECT_TRUE(std::isnan(range));
  away.azimuth = {0.5 * kPi};  // alongside, parallel to the border
  for (const float range : cast(map.view, outside, away).range_m) EXPECT_TRUE(std::isnan(range));

  for (const double y : {-5.06, -1.04}) {  // on either side, exactly along x
    for (const float range : cast(map.view, {8.0, y, 1.0}, rays).range_m) {
      EXPECT_TRUE(std::isnan(range));
    }
  }

  map.at(20, 20) = kNan;
  const Viewpoint above{map.view.center_x_m(20), map.view.center_y_m(20), -3.0};
  const View below = cast(map.view, above, rays);  // under the known ground all around
  for (const float range : below.range_m) EXPECT_TRUE(std::isnan(range));
}

TEST(View, TheOuterHalfCellIsLevel) {
  Map map(6, 4, 0.0, 0.0, 1.0);
  map.fill([](double x, double) { return 0.2 * x; });
  const Viewpoint eye{0.0, 1.5, 3.0};
  const Rays rays{angles(0.0, 1.0, 1), angles(-70 * kDeg, 0.01 * kDeg, 7000), 0.0, 30.0};
  const View view = cast(map.view, eye, rays);
  double last = 0.0;
  for (int e = 0; e < rays.elevations(); ++e) {
    const double range = static_cast<double>(view.at(0, e));
    if (std::isnan(range)) continue;
    const Ray ray = ray_of(rays, 0, e);
    last = range * ray.x;
    if (last > 5.0) {
      EXPECT_NEAR(3.0 + range * ray.z, 1.0, 1e-6);
    }
  }
  EXPECT_NEAR(last, 5.5, 0.01);
}

TEST(View, OneCell) {
  Map map(1, 1, 5.0, 5.0, 2.0);
  const Rays rays = all_round(10.0);
  const Viewpoint eye{5.3, 4.8, 0.5};
  expect_walked(map.view, eye, cast(map.view, eye, rays), 0.001);
}

TEST(View, RangesAreLimits) {
  Map map(300, 300, 0.0, 0.0, 0.1);
  const Viewpoint eye{15.0, 15.0, 2.0};
  Rays rays = all_round(12.0, 8, 500);
  const View whole = cast(map.view, eye, rays);
  rays.range_min_m = 4.0;
  rays.range_max_m = 7.0;
  const View cut = cast(map.view, eye, rays);
  int kept = 0;
  for (std::size_t i = 0; i < whole.range_m.size(); ++i) {
    const float range = whole.range_m[i];
    if (range >= 4.0F && range <= 7.0F) {
      EXPECT_EQ(cut.range_m[i], range);
      ++kept;
    } else {
      EXPECT_TRUE(std::isnan(cut.range_m[i]));
    }
  }
  EXPECT_GT(kept, 100);
}

// A ray's hit does not depend on which lattice it is part of.
TEST(View, RaysAreIndependent) {
  maps::Random random(73);
  const maps::Terrain terrain = maps::random_terrain(random, 8.0, 0.9);
  const Viewpoint eye{terrain.center_x_m(), terrain.center_y_m(), 2.5};
  const Rays rays = all_round(9.0, 12, 64);
  const View whole = cast(terrain.view(), eye, rays);
  for (int a = 0; a < rays.azimuths(); ++a) {
    for (int e = 0; e < rays.elevations(); e += 5) {
      Rays one = rays;
      one.azimuth = {rays.azimuth[static_cast<std::size_t>(a)]};
      one.elevation = {rays.elevation[static_cast<std::size_t>(e)]};
      const float alone = cast(terrain.view(), eye, one).range_m[0];
      const float within = whole.at(a, e);
      EXPECT_EQ(std::memcmp(&alone, &within, sizeof alone), 0) << alone << ' ' << within;
    }
  }
}

TEST(View, Repeats) {
  maps::Random random(74);
  const maps::Terrain terrain = maps::random_terrain(random, 8.0, 0.9);
  const Viewpoint eye{terrain.center_x_m(), terrain.center_y_m(), 2.5};
  const View first = cast(terrain.view(), eye, all_round());
  const View second = cast(terrain.view(), eye, all_round());
  EXPECT_EQ(std::memcmp(first.range_m.data(), second.range_m.data(),
                        first.range_m.size() * sizeof(float)),
            0);
}

TEST(View, FaultsHaveNames) {
  Map map(20, 20, 0.0, 0.0, 0.1);
  const Viewpoint eye{1.0, 1.0, 1.0};
  const Rays good = all_round(30.0, 4, 3);
  ASSERT_TRUE(cast(map.view, eye, good).fault.ok());

  const auto field_of = [&](auto change) {
    Rays rays = good;
    change(rays);
    const View view = cast(map.view, eye, rays);
    EXPECT_EQ(view.fault.status, Status::kConfigBad);
    for (const float range : view.range_m) EXPECT_EQ(range, -7.0F);
    return std::string(view.fault.field);
  };
  EXPECT_EQ(field_of([](Rays& r) { r.azimuth.clear(); }), "azimuth_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.azimuth[3] = 2e6; }), "azimuth_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.azimuth[0] = NAN; }), "azimuth_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.azimuth.resize(kMaxViewAngles + 1); }), "azimuth_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.elevation.clear(); }), "elevation_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.elevation[0] = -0.5 * kPi; }), "elevation_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.elevation[2] = 0.5 * kPi; }), "elevation_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.elevation[1] = r.elevation[0]; }), "elevation_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.elevation[1] = NAN; }), "elevation_rad");
  EXPECT_EQ(field_of([](Rays& r) { r.range_min_m = -0.1; }), "range_min_m");
  EXPECT_EQ(field_of([](Rays& r) { r.range_min_m = NAN; }), "range_min_m");
  EXPECT_EQ(field_of([](Rays& r) { r.range_max_m = 0.0; }), "range_max_m");
  EXPECT_EQ(field_of([](Rays& r) { r.range_max_m = INFINITY; }), "range_max_m");

  const auto eye_field = [&](const Viewpoint& from) {
    const View view = cast(map.view, from, good);
    for (const float range : view.range_m) EXPECT_EQ(range, -7.0F);
    return std::string(to_string(view.fault.status)) + " " + view.fault.field;
  };
  EXPECT_EQ(eye_field({NAN, 1.0, 1.0}), "configuration bad x_m");
  EXPECT_EQ(eye_field({1.0, INFINITY, 1.0}), "configuration bad y_m");
  EXPECT_EQ(eye_field({1.0, 1.0, NAN}), "configuration bad z_m");
  EXPECT_EQ(eye_field({1.0, 1.0, 0.0}), "viewpoint below ground z_m");
  EXPECT_EQ(eye_field({1.0, 1.0, -1.0}), "viewpoint below ground z_m");
  EXPECT_EQ(cast({nullptr, 3, 3, 0.0, 0.0, 0.1}, eye, good).fault.status, Status::kMapEmpty);

  // Far away is no fault.
  for (const Viewpoint& far : {Viewpoint{1e300, -1e300, 1.0}, Viewpoint{1.0, 1e17, 1e300}}) {
    for (const float range : cast(map.view, far, good).range_m) EXPECT_TRUE(std::isnan(range));
  }
}

}  // namespace
