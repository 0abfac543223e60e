#include "mlnav/search/keep_out.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "maps.hpp"
#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/search/path_tree.hpp"
#include "test_maps.hpp"

namespace mlnav {
namespace {

// Whether a rectangle meets a cell: no side of either keeps them apart by more than `slack`.
bool meets(const GridView& grid, int ix, int iy, const Pose2& pose, const RoverOutline& outline,
           double slack) {
  const double half = 0.5 * grid.resolution_m;
  const double dx = grid.center_x_m(ix) - pose.x_m;
  const double dy = grid.center_y_m(iy) - pose.y_m;
  const double c = std::cos(pose.heading_rad);
  const double s = std::sin(pose.heading_rad);
  const double reach = half * (std::fabs(c) + std::fabs(s));
  const double along = c * dx + s * dy;
  const double left = -s * dx + c * dy;
  if (along > outline.front_m + reach + slack || -along > outline.rear_m + reach + slack) {
    return false;
  }
  if (std::fabs(left) > outline.half_width_m + reach + slack) return false;
  const double middle = 0.5 * (outline.front_m - outline.rear_m);
  const double length = 0.5 * (outline.front_m + outline.rear_m);
  const double x = std::fabs(c) * length + std::fabs(s) * outline.half_width_m;
  const double y = std::fabs(s) * length + std::fabs(c) * outline.half_width_m;
  return std::fabs(dx - c * middle) <= x + half + slack &&
         std::fabs(dy - s * middle) <= y + half + slack;
}

TEST(KeepOut, AnOutlineTouchesTheCellsThatItMeets) {
  maps::Random random(1);
  int hits = 0;
  int misses = 0;
  for (const mlnav_test::Frame& frame : mlnav_test::kFrames) {
    const mlnav_test::Map map(40, 30, frame.ox, frame.oy, frame.res);
    for (int n = 0; n < 3000; ++n) {
      std::vector<std::uint8_t> mask(map.view.cells(), 0);
      const int ix = random.between(0, 39);
      const int iy = random.between(0, 29);
      mask[static_cast<std::size_t>(iy * 40 + ix)] = 1;
      const auto size = [&] { return frame.res * random.uniform(0.1, 12.0); };
      const RoverOutline outline{size(), size(), size()};
      const Pose2 pose{frame.ox + frame.res * random.uniform(-8, 48),
                       frame.oy + frame.res * random.uniform(-8, 38), random.uniform(-7, 7)};
      const bool touched = touches({mask.data(), 40, 30}, map.view, pose, outline);
      if (touched) {
        EXPECT_TRUE(meets(map.view, ix, iy, pose, outline, 4e-6));
      } else {
        EXPECT_FALSE(meets(map.view, ix, iy, pose, outline, 0.0));
      }
      ++(touched ? hits : misses);
    }
  }
  EXPECT_GT(hits, 1000);
  EXPECT_GT(misses, 3000);
}

TEST(KeepOut, FarFromTheMapNothingIsTouched) {
  const mlnav_test::Map map(4, 4, 0.0, 0.0, 0.1);
  const std::vector<std::uint8_t> mask(16, 1);
  const KeepOutMask zones{mask.data(), 4, 4};
  for (const double x : {-1e12, -3.0, 3.0, 1e12}) {
    EXPECT_FALSE(touches(zones, map.view, {x, 0.1, 0.0}, {1.0, 1.0, 1.0}));
    EXPECT_FALSE(touches(zones, map.view, {0.1, x, 0.0}, {1.0, 1.0, 1.0}));
  }
  EXPECT_TRUE(touches(zones, map.view, {0.1, 0.1, 0.0}, {1e9, 1e9, 1e9}));
  EXPECT_FALSE(touches({}, map.view, {0.1, 0.1, 0.0}, {1.0, 1.0, 1.0}));
}

// Every corner at every place of a piece of way, seen from its middle.
TEST(KeepOut, ASweptOutlineHoldsTheOutlineAllTheWay) {
  maps::Random random(2);
  const RoverOutline outline = rover_outline(RoverModel{});
  for (int n = 0; n < 2000; ++n) {
    const bool turning = random.chance(0.4);
    const double curvature = random.uniform(-2.0, 2.0);
    const double amount = turning ? random.uniform(-45 * kDeg, 45 * kDeg) : random.uniform(0.01, 1);
    const RoverOutline swept =
        turning ? swept_by_turn(outline, amount) : swept_by_arc(outline, curvature, amount);
    double tightest = 1.0;
    for (int i = 0; i <= 40; ++i) {
      const double from_middle = (i / 40.0 - 0.5) * amount;
      const Pose2 pose =
          turning ? Pose2{0.0, 0.0, from_middle} : along_arc(Pose2{}, curvature, from_middle);
      for (const double along : {outline.front_m, -outline.rear_m}) {
        for (const double left : {outline.half_width_m, -outline.half_width_m}) {
          const double c = std::cos(pose.heading_rad);
          const double s = std::sin(pose.heading_rad);
          const double x = pose.x_m + c * along - s * left;
          const double y = pose.y_m + s * along + c * left;
          tightest = std::min(
              {tightest, swept.front_m - x, swept.rear_m + x, swept.half_width_m - std::fabs(y)});
        }
      }
    }
    EXPECT_GE(tightest, 0.0) << (turning ? "turn " : "arc ") << amount << " of " << curvature;
    // As planners use it, not much more than what is needed.
    if (turning ? std::fabs(amount) <= 10 * kDeg : amount <= 0.25 && std::fabs(curvature) <= 0.34) {
      EXPECT_LT(tightest, 0.05);
    }
  }
}

// Wheels and pan of rovers that settled within their limits on rough ground lie within the outline.
TEST(KeepOut, TheOutlineHoldsSettledRovers) {
  for (const SafetyLimits& limits : {SafetyLimits::flight_like(), SafetyLimits::enav_like()}) {
    const RoverModel model{{}, limits};
    const RoverGeometry& g = model.geometry;
    const RoverOutline outline = rover_outline(model);
    const double ball = std::hypot(g.wheel_radius_m, 0.5 * g.wheel_width_m);
    SettleModel settle_model;
    ASSERT_EQ(make_settle_model(g, &settle_model), Status::kOk);
    SettleChecker judge;
    ASSERT_TRUE(judge.init(model).ok());
    maps::Random random(3);
    int safe = 0;
    double nearest = 1.0;
    for (int n = 0; n < 60; ++n) {
      const auto terrain = maps::random_terrain(random, 20.0, 0.6 * random.unit());
      ASSERT_EQ(judge.set_map(terrain.view()), Status::kOk);
      for (int m = 0; m < 60; ++m) {
        const Point2 at = terrain.near_center(random, 0.5);
        const Stance stance(at.x_m, at.y_m, random.uniform(-4, 4));
        const SettledState state = settle(terrain.view(), settle_model, stance);
        if (!judge.judge(stance.pose, state).safe) continue;
        ++safe;
        for (int w = 0; w < kWheels; ++w) {
          const bool middle = w == kMiddleLeft || w == kMiddleRight;
          const double across = middle ? 0.5 * g.wheel_width_m * state.state.cos_roll +
                                             g.wheel_radius_m * std::fabs(state.state.sin_roll)
                                       : ball;
          nearest =
              std::min({nearest, outline.front_m - ball - state.positions.forward_m[w],
                        outline.rear_m - ball + state.positions.forward_m[w],
                        outline.half_width_m - across - std::fabs(state.positions.left_m[w])});
        }
      }
    }
    EXPECT_GT(safe, 500);
    EXPECT_GE(nearest, 0.0);
    EXPECT_LT(nearest, 0.15) << "the outline is far larger than any rover";
  }
}

}  // namespace
}  // namespace mlnav
