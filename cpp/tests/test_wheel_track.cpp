// Bounds of the wheel-height field over regions, against H itself.
#include "mlnav/ground/wheel_track.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "maps.hpp"

namespace mlnav {
namespace {

using mlnav_test::Map;

constexpr double kSizes_m[] = {0.001, 0.01, 0.05, 0.15};

WheelFootprint default_footprint() {
  WheelFootprint footprint;
  EXPECT_EQ(make_footprint(0.263, 0.335, &footprint), Status::kOk);
  return footprint;
}

// Slope, noise, blocks with vertical sides a cell wide.
void roughen(Map* map, std::mt19937& rng) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const double gx = 0.5 * unit(rng);
  const double gy = 0.5 * unit(rng);
  const double noise = 0.05 * std::fabs(unit(rng));
  const double ox = map->view.origin_x_m;
  const double oy = map->view.origin_y_m;
  map->fill([&](double x, double y) { return gx * (x - ox) + gy * (y - oy) + noise * unit(rng); });
  for (int n = 0; n < 30; ++n) {
    const int bx = static_cast<int>(rng() % static_cast<unsigned>(map->view.nx));
    const int by = static_cast<int>(rng() % static_cast<unsigned>(map->view.ny));
    const float rise = static_cast<float>(0.3 * unit(rng));
    for (int iy = by; iy < std::min(by + 4, map->view.ny); ++iy)
      for (int ix = bx; ix < std::min(bx + 3, map->view.nx); ++ix) map->at(ix, iy) += rise;
  }
}

// A region, a trend that is anything, and points of the region: corners first.
struct Case {
  WheelTrend trend;
  WheelRegion region;

  Case(const GridView& map, std::mt19937& rng) {
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    const auto half = [&] { return kSizes_m[rng() % 4] * std::fabs(unit(rng)); };
    region.foot = {map.origin_x_m + map.resolution_m * map.nx * (0.5 + 0.25 * unit(rng)),
                   map.origin_y_m + map.resolution_m * map.ny * (0.5 + 0.25 * unit(rng))};
    region.along = det_sincos(4.0 * unit(rng));
    region.half_along_m = half();
    region.half_across_m = half();
    heading_rad = 4.0 * unit(rng);
    region.heading = det_sincos(heading_rad);
    region.half_heading_rad = half();
    region.lean_rad = 0.5 * unit(rng);
    region.lean = det_sincos(region.lean_rad);
    region.half_lean_rad = half();
    trend.foot = {region.foot.x_m + 0.1 * unit(rng), region.foot.y_m + 0.1 * unit(rng)};
    trend.lean_rad = region.lean_rad + 0.1 * unit(rng);
    trend.slope_x = 0.6 * unit(rng);
    trend.slope_y = 0.6 * unit(rng);
    trend.slope_lean_m = 0.2 * unit(rng);
  }

  struct At {
    Point2 axle;
    SinCos heading, lean;
    double trend_m;
  };
  At draw(const WheelFootprint& footprint, int n, std::mt19937& rng) const {
    std::uniform_real_distribution<double> unit(-1.0, 1.0);
    const auto u = [&] { return n < 12 ? (rng() % 2 == 0 ? 1.0 : -1.0) : unit(rng); };
    const double p = region.half_along_m * u(), q = region.half_across_m * u();
    const Point2 foot{region.foot.x_m + p * region.along.cos - q * region.along.sin,
                      region.foot.y_m + p * region.along.sin + q * region.along.cos};
    const double lean = region.lean_rad + region.half_lean_rad * u();
    At at;
    at.heading = det_sincos(heading_rad + region.half_heading_rad * u());
    at.lean = det_sincos(lean);
    const double beside = footprint.radius_m * at.lean.sin;  // the foot, left of the axle
    at.axle = {foot.x_m + beside * at.heading.sin, foot.y_m - beside * at.heading.cos};
    at.trend_m = trend.slope_x * (foot.x_m - trend.foot.x_m) +
                 trend.slope_y * (foot.y_m - trend.foot.y_m) +
                 trend.slope_lean_m * (lean - trend.lean_rad);
    return at;
  }
  double heading_rad;
};

TEST(WheelTrack, BoundsHoldEverywhereInARegion) {
  const WheelFootprint footprint = default_footprint();
  std::mt19937 rng(41);
  const auto scratch = std::make_unique<WheelTrackScratch>();
  WheelSamples everything;
  everything.all_of(footprint);
  double least_slack = INFINITY, wasted = 0.0;
  int fine = 0;
  for (int scene = 0; scene < 16; ++scene) {
    Map map(60, 57, scene % 2 == 0 ? -3.0 : 4e5, 7.0, scene % 4 == 3 ? 0.08 : 0.1);
    roughen(&map, rng);
    map.view.height_error_m = scene % 5 == 4 ? 0.01 : 0.0;
    for (int n = 0; n < 150; ++n) {
      const Case c(map.view, rng);
      WheelPatch patch;
      ASSERT_EQ(patch.fill(map.view, footprint, c.trend, c.region, 0.0, scratch.get()),
                Status::kOk);
      WheelSamples left, few;
      const WheelTrackBounds bounds = patch.bound(c.region, everything, false, &left);
      const WheelTrackBounds coarse = patch.bound(c.region, everything, true, &few);
      ASSERT_EQ(bounds.status, Status::kOk);
      EXPECT_LE(left.count, everything.count);
      EXPECT_LE(coarse.lo_m, bounds.lo_m + 1e-9);
      EXPECT_GE(coarse.hi_m, bounds.hi_m - 1e-9);
      // A part of the region, with the samples that the whole left.
      WheelRegion part = c.region;
      part.half_along_m *= 0.5;
      part.half_lean_rad *= 0.5;
      const WheelTrackBounds of_part = patch.bound(part, n % 2 == 0 ? left : few, false, nullptr);
      EXPECT_LE(of_part.hi_m, patch.bound(part, everything, false, nullptr).hi_m + 1e-12);
      const double relief = patch.relief_bound_m(c.region, 0.0);
      EXPECT_GE(patch.relief_bound_m(c.region, 1e9), relief - 1e-9);  // coarse
      double lo = INFINITY, hi = -INFINITY;
      for (int k = 0; k < 60; ++k) {
        const Case::At at = c.draw(footprint, k, rng);
        const WheelHeight h =
            wheel_height(map.view, footprint, at.axle.x_m, at.axle.y_m, at.heading, at.lean);
        ASSERT_EQ(h.status, Status::kOk);
        lo = std::min(lo, h.height_m - at.trend_m);
        hi = std::max(hi, h.height_m - at.trend_m);
        const WheelContact contact =
            wheel_contact(map.view, footprint, at.axle.x_m, at.axle.y_m, at.heading, at.lean);
        ASSERT_LE(contact.ground_max_m - contact.ground_min_m + 2.0 * map.view.height_error_m,
                  relief + 1e-9);
      }
      ASSERT_LE(bounds.lo_m, lo - map.view.height_error_m);
      ASSERT_GE(bounds.hi_m, hi + map.view.height_error_m);
      const double slack = std::min(lo - bounds.lo_m, bounds.hi_m - hi) - map.view.height_error_m;
      least_slack = std::min(least_slack, slack);
      if (c.region.reach_m(footprint) < 0.01) {
        ++fine;
        wasted = std::max(wasted, (bounds.hi_m - bounds.lo_m) - (hi - lo));
      }
    }
  }
  EXPECT_LT(least_slack, 5e-6);  // the bounds are met somewhere,
  EXPECT_GT(fine, 30);
  EXPECT_LT(wasted, 0.05);  // and are not much wider than what is there, where regions are small
}

// The parts of a region hold all that is in it: no sample that is left out carries the wheel in any of them.
TEST(WheelTrack, PartsLoseNothing) {
  const WheelFootprint footprint = default_footprint();
  std::mt19937 rng(42);
  const auto scratch = std::make_unique<WheelTrackScratch>();
  WheelSamples everything;
  everything.all_of(footprint);
  Map map(60, 60, 0.0, 0.0, 0.1);
  roughen(&map, rng);
  double left_share = 0.0;
  for (int n = 0; n < 4000; ++n) {
    const Case c(map.view, rng);
    WheelPatch patch;
    ASSERT_EQ(patch.fill(map.view, footprint, c.trend, c.region, 0.0, scratch.get()), Status::kOk);
    WheelSamples left;
    patch.bound(c.region, everything, n % 2 == 0, &left);
    left_share += static_cast<double>(left.count) / everything.count / 4000.0;
    for (int k = 0; k < 20; ++k) {
      const Case::At at = c.draw(footprint, k, rng);
      WheelRegion point = c.region;
      point.half_along_m = point.half_across_m = point.half_heading_rad = point.half_lean_rad = 0.0;
      const double side = footprint.radius_m * at.lean.sin;
      point.foot = {at.axle.x_m - side * at.heading.sin, at.axle.y_m + side * at.heading.cos};
      point.heading = at.heading;
      point.lean = at.lean;
      const WheelHeight h =
          wheel_height(map.view, footprint, at.axle.x_m, at.axle.y_m, at.heading, at.lean);
      point.lean_rad = det_asin(at.lean.sin);
      const WheelTrackBounds bounds = patch.bound(point, left, false, nullptr);
      EXPECT_NEAR(bounds.lo_m, h.height_m - at.trend_m, 3e-6);
      EXPECT_NEAR(bounds.hi_m, h.height_m - at.trend_m, 3e-6);
    }
  }
  EXPECT_LT(left_share, 0.6);
}

TEST(WheelTrack, UnknownGroundAndBordersAreNamed) {
  const WheelFootprint footprint = default_footprint();
  const auto scratch = std::make_unique<WheelTrackScratch>();
  WheelSamples everything;
  everything.all_of(footprint);
  Map map(60, 60, 0.0, 0.0, 0.1);
  map.fill([](double x, double) { return 0.1 * x; });
  map.at(30, 30) = NAN;
  const auto look = [&](double x, double y, double half_m) {
    WheelRegion region;
    region.foot = {x, y};
    region.along = region.heading = region.lean = {0.0, 1.0};
    region.half_along_m = region.half_across_m = half_m;
    WheelPatch patch;
    const Status status = patch.fill(map.view, footprint, {}, region, 0.0, scratch.get());
    if (status != Status::kOk) return status;
    EXPECT_EQ(std::isinf(patch.relief_bound_m(region, 0.0)),
              patch.bound(region, everything, false, nullptr).status != Status::kOk);
    if (patch.over_border()) return Status::kOutsideMap;
    return patch.bound(region, everything, false, nullptr).status;
  };
  EXPECT_EQ(look(1.5, 1.5, 0.05), Status::kOk);
  EXPECT_EQ(look(3.0, 3.0, 0.0), Status::kUnknownGround);
  EXPECT_EQ(look(3.3, 3.0, 0.0), Status::kUnknownGround);  // its front edge
  EXPECT_EQ(look(3.45, 3.0, 0.0), Status::kOk);
  EXPECT_EQ(look(3.45, 3.0, 0.15), Status::kUnknownGround);  // reaches it from parts of the region
  EXPECT_EQ(look(0.1, 3.0, 0.0), Status::kOutsideMap);
  EXPECT_EQ(look(-30.0, 3.0, 0.0), Status::kOutsideMap);
  EXPECT_EQ(look(NAN, 3.0, 0.0), Status::kOutsideMap);
  EXPECT_EQ(look(3.0, 3.0, 5.0), Status::kConfigBad);  // more ground than there is room for
}

}  // namespace
}  // namespace mlnav
