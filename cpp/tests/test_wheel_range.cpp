#include "mlnav/ground/wheel_range.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "maps.hpp"

namespace mlnav {
namespace {

using mlnav_test::Frame;
using mlnav_test::Map;

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
  for (int n = 0; n < 12; ++n) {
    const int bx = static_cast<int>(rng() % static_cast<unsigned>(map->view.nx));
    const int by = static_cast<int>(rng() % static_cast<unsigned>(map->view.ny));
    const float rise = static_cast<float>(0.3 * unit(rng));
    for (int iy = by; iy < std::min(by + 4, map->view.ny); ++iy)
      for (int ix = bx; ix < std::min(bx + 3, map->view.nx); ++ix) map->at(ix, iy) += rise;
  }
}

TEST(WheelRange, HoldsEverywhereInTheRectangle) {
  const WheelFootprint footprint = default_footprint();
  std::mt19937 rng(21);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  double least_slack = INFINITY;
  for (const Frame& frame : mlnav_test::kFrames) {
    if (std::fabs(frame.ox) > 1e6) continue;  // world coordinates themselves round by more
    Map map(70, 61, frame.ox, frame.oy, frame.res);
    for (int scene = 0; scene < 6; ++scene) {
      roughen(&map, rng);
      for (int n = 0; n < 120; ++n) {
        const double room_x = (map.view.nx - 1) * frame.res;
        const double room_y = (map.view.ny - 1) * frame.res;
        const double x = frame.ox + room_x * (0.5 + 0.5 * unit(rng));
        const double y = frame.oy + room_y * (0.5 + 0.5 * unit(rng));
        const SinCos heading = det_sincos(4 * unit(rng));
        const double phi = n % 4 == 0 ? 0.0 : 0.6 * unit(rng);
        const SinCos lean = det_sincos(phi);
        const double half_x = std::pow(10.0, -4 + 3 * std::fabs(unit(rng)));  // 0.1 mm to 0.1 m
        const double half_y = std::pow(10.0, -4 + 3 * std::fabs(unit(rng)));
        const double half_lean = std::pow(10.0, -4 + 3 * std::fabs(unit(rng)));  // to 0.1 rad
        const WheelPlay play{half_x, half_y, n % 5 == 0 ? 0.0 : half_lean};
        const WheelRange range = wheel_range(map.view, footprint, x, y, heading, lean, play);
        const WheelHeight center = wheel_height(map.view, footprint, x, y, heading, lean);
        if (range.status != Status::kOk) {
          // Refused only where the footprint, swept over the rectangle, leaves the map.
          EXPECT_EQ(range.status, Status::kOutsideMap);
          continue;
        }
        ASSERT_EQ(center.status, Status::kOk);
        ASSERT_NEAR(range.height_m, center.height_m, 1e-9);
        const double relief = relief_bound_m(map.view, footprint, x, y, heading, lean, play, 0.0);
        const double quick = relief_bound_m(map.view, footprint, x, y, heading, lean, play, 1e9);
        for (int k = 0; k < 40; ++k) {
          const double dx = half_x * (k < 8 ? (k & 1 ? 1 : -1) : unit(rng));
          const double dy = half_y * (k < 8 ? (k & 2 ? 1 : -1) : unit(rng));
          const double turn = play.lean_rad * (k < 8 ? (k & 4 ? 1 : -1) : unit(rng));
          // The foot moves by (dx, dy), and the axle is beside it.
          const SinCos leaning = det_sincos(phi + turn);
          const double aside = footprint.radius_m * (leaning.sin - lean.sin);
          const WheelContact there =
              wheel_contact(map.view, footprint, x + dx + aside * heading.sin,
                            y + dy - aside * heading.cos, heading, leaning);
          ASSERT_EQ(there.status, Status::kOk);
          const double residual = there.height_m - center.height_m - range.slope_x * dx -
                                  range.slope_y * dy - range.slope_lean_m * turn;
          ASSERT_GE(residual, range.residual_lo_m - 1e-9) << "half " << half_x << ", " << half_y;
          ASSERT_LE(residual, range.residual_hi_m + 1e-9) << "half " << half_x << ", " << half_y;
          ASSERT_LE(there.ground_max_m - there.ground_min_m, relief + 1e-9);
          ASSERT_LE(there.ground_max_m - there.ground_min_m, quick + 1e-9);
          least_slack = std::min(
              {least_slack, residual - range.residual_lo_m, range.residual_hi_m - residual});
        }
      }
    }
  }
  EXPECT_LT(least_slack, 1e-4);  // the bounds are met somewhere: the test is not an empty one
}

TEST(WheelRange, APlaneHasNoResidual) {
  const WheelFootprint footprint = default_footprint();
  std::mt19937 rng(22);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (const Frame& frame : mlnav_test::kFrames) {
    Map map(50, 60, frame.ox, frame.oy, frame.res);
    const double gx = 0.6 * unit(rng);
    const double gy = 0.6 * unit(rng);
    map.fill([&](double x, double y) { return gx * (x - frame.ox) + gy * (y - frame.oy); });
    const double x = frame.ox + 25 * frame.res;
    const double y = frame.oy + 30 * frame.res;
    const SinCos heading = det_sincos(unit(rng));
    const SinCos lean = det_sincos(0.4 * unit(rng));
    const WheelRange range =
        wheel_range(map.view, footprint, x, y, heading, lean, {0.02, 0.03, 0.0});
    ASSERT_EQ(range.status, Status::kOk);
    // Heights are float32: cells differ from the plane by a few micrometres.
    EXPECT_NEAR(range.slope_x, gx, 2e-4);
    EXPECT_NEAR(range.slope_y, gy, 2e-4);
    EXPECT_LT(range.residual_hi_m - range.residual_lo_m, 4e-5);
  }
}

TEST(WheelRange, UnknownGroundAndBordersAreNamed) {
  const WheelFootprint footprint = default_footprint();
  Map map(60, 50, -2.0, 1.0, 0.1);
  map.fill([](double, double) { return 0.5; });
  const SinCos east = det_sincos(0.0);
  EXPECT_EQ(wheel_range(map.view, footprint, 0.5, 3.0, east, kLevel, {0.01, 0.01, 0.0}).status,
            Status::kOk);
  EXPECT_EQ(wheel_range(map.view, footprint, -1.8, 3.0, east, kLevel, {0.01, 0.01, 0.0}).status,
            Status::kOutsideMap);
  EXPECT_EQ(wheel_range(map.view, footprint, NAN, 3.0, east, kLevel, {0.01, 0.01, 0.0}).status,
            Status::kOutsideMap);
  EXPECT_TRUE(std::isinf(
      relief_bound_m(map.view, footprint, -1.8, 3.0, east, kLevel, {0.01, 0.01, 0.0}, 1.0)));
  // A hole 0.28 m ahead: beyond the rim (0.263 m) until the rectangle reaches it.
  map.at(28, 20) = NAN;  // x = 0.8
  EXPECT_EQ(wheel_range(map.view, footprint, 0.43, 3.0, east, kLevel, {0.001, 0.001, 0.0}).status,
            Status::kOk);
  EXPECT_EQ(wheel_range(map.view, footprint, 0.43, 3.0, east, kLevel, {0.02, 0.001, 0.0}).status,
            Status::kUnknownGround);
  EXPECT_TRUE(std::isinf(
      relief_bound_m(map.view, footprint, 0.6, 3.0, east, kLevel, {0.01, 0.01, 0.0}, 1.0)));
}

}  // namespace
}  // namespace mlnav
