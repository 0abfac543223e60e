#include "mlnav/rover/settle.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "mlnav/safety/settle_checker.hpp"

namespace mlnav {
namespace {

struct Map {
  std::vector<float> z;
  GridView view;
  template <typename Height>
  Map(int nx, int ny, double resolution, double ox, double oy, Height height) {
    z.resize(static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny));
    view = {z.data(), nx, ny, ox, oy, resolution};
    for (int iy = 0; iy < ny; ++iy)
      for (int ix = 0; ix < nx; ++ix)
        z[static_cast<std::size_t>(iy * nx + ix)] =
            static_cast<float>(height(view.center_x_m(ix), view.center_y_m(iy)));
  }
};

SettleModel default_model() {
  SettleModel model;
  EXPECT_EQ(make_settle_model(RoverGeometry{}, &model), Status::kOk);
  return model;
}

// On a plane the body lies parallel to it, whatever the heading: the plane's slope along the heading is
// the pitch, in the convention Rx(roll) Ry(-pitch) tan(pitch) = slope_forward cos(roll), tan(roll) =
// slope_left. All wheels stand alike, so no suspension moves.
TEST(Settle, OnAPlaneTheBodyIsParallelToIt) {
  const SettleModel model = default_model();
  std::mt19937 rng(2);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (int n = 0; n < 60; ++n) {
    const double slope = std::tan(25 * kDeg * std::fabs(unit(rng)));
    const double aspect = kPi * unit(rng);
    const double gx = slope * std::cos(aspect);
    const double gy = slope * std::sin(aspect);
    const double resolution = 0.05 + 0.15 * std::fabs(unit(rng));
    const int cells = static_cast<int>(7.0 / resolution);
    const double ox = 50 * unit(rng);
    const double oy = 50 * unit(rng);
    const Map map(cells + 3, cells, resolution, ox, oy,
                  [&](double x, double y) { return gx * (x - ox) + gy * (y - oy); });
    const Pose2 pose{ox + 3.5 + 0.3 * unit(rng), oy + 3.5 + 0.3 * unit(rng), kPi * unit(rng)};
    const SettledState s = settle(map.view, model, Stance{pose});
    ASSERT_EQ(s.status, Status::kOk) << n;
    const double c = std::cos(pose.heading_rad);
    const double h = std::sin(pose.heading_rad);
    const double forward = gx * c + gy * h;
    const double left = -gx * h + gy * c;
    const double roll = std::atan(left);
    // Float heights are rounded, and H samples the rim: a few 1e-5 rad.
    EXPECT_NEAR(s.state.roll_rad, roll, 1e-4) << n;
    EXPECT_NEAR(s.state.pitch_rad, std::atan(forward * std::cos(roll)), 1e-4) << n;
    EXPECT_NEAR(tilt_rad(s.state), std::atan(slope), 1e-4) << n;
    EXPECT_NEAR(s.state.differential_rad, 0.0, 1e-4) << n;
    EXPECT_NEAR(s.state.bogie_left_rad, 0.0, 1e-4) << n;
    EXPECT_LT(s.residual_m, kSettleTolerance_m);
    // Wheels lean as the plane does, so everything is as on level ground, turned: the origin in the plane
    // and the pan at its height above it. H's samples miss up to 0.001 m of the rim.
    EXPECT_NEAR(s.state.origin_z_m, gx * (pose.x_m - ox) + gy * (pose.y_m - oy), 1e-3) << n;
    const Clearance clearance = pan_clearance(map.view, model.linkage.g, pose, s.state);
    ASSERT_EQ(clearance.status, Status::kOk);
    EXPECT_NEAR(clearance.clearance_m, 0.60 / std::cos(std::atan(slope)), 1.2e-3) << n;
  }
}

// Every settled state is consistent by its own equations: wheels at H, chain on those heights.
TEST(Settle, SettledStatesAreFixedPointsFromAnyStart) {
  const SettleModel model = default_model();
  std::mt19937 rng(3);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  int settled = 0;
  int total = 0;
  for (int n = 0; n < 40; ++n) {
    const double resolution = n % 3 == 0 ? 0.05 : 0.1;
    std::vector<double> rocks;
    for (int i = 0; i < 60; ++i) {
      rocks.insert(rocks.end(), {5 * unit(rng), 5 * unit(rng), 0.05 + 0.2 * std::fabs(unit(rng))});
    }
    const double slope = 0.2 * unit(rng);
    const int cells = static_cast<int>(10.0 / resolution);
    const Map map(cells, cells + 7, resolution, -5.0, -5.0, [&](double x, double y) {
      double z = slope * x;
      for (std::size_t i = 0; i < rocks.size(); i += 3) {
        const double r2 = rocks[i + 2] * rocks[i + 2] - (x - rocks[i]) * (x - rocks[i]) -
                          (y - rocks[i + 1]) * (y - rocks[i + 1]);
        if (r2 > 0) z = std::max(z, slope * x + std::sqrt(r2));
      }
      return z;
    });
    for (int p = 0; p < 50; ++p) {
      const Pose2 pose{2.5 * unit(rng), 2.5 * unit(rng), kPi * unit(rng)};
      for (int start = 0; start < 3; ++start) {
        double guess[kWheels];
        for (double& h : guess) h = 0.3 * unit(rng);
        const SettledState s = settle(map.view, model, Stance{pose}, start == 0 ? nullptr : guess);
        ++total;
        if (s.status != Status::kOk) continue;
        ++settled;
        ChainState<double> state{};
        WheelPositions<double> at{};
        ASSERT_EQ(solve_chain(model.linkage, s.heights_m, &state, &at), Status::kOk);
        const SinCos heading = det_sincos(pose.heading_rad);
        const SinCos lean{state.sin_roll, state.cos_roll};  // straight wheels lean as the body
        for (int i = 0; i < kWheels; ++i) {
          const double x = pose.x_m + at.forward_m[i] * heading.cos - at.left_m[i] * heading.sin;
          const double y = pose.y_m + at.forward_m[i] * heading.sin + at.left_m[i] * heading.cos;
          const WheelContact contact =
              wheel_contact(map.view, model.footprint, x, y, heading, lean);
          EXPECT_NEAR(contact.height_m, s.heights_m[i], 1e-5);
        }
      }
    }
  }
  EXPECT_GE(settled, total * 0.9995) << settled << " of " << total;
}

// Settled wheels, as solid cylinders in space: each on its axle, as the links, the joint that steers it and the
// body turn it, touches the ground and does not sink in. Points a centimetre apart, transformed one by one.
TEST(Settle, SettledWheelsTouchTheGroundAsCylinders) {
  const SettleModel model = default_model();
  const RoverGeometry& g = model.linkage.g;
  std::mt19937 rng(6);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  double steepest_lean = 0.0;
  for (int n = 0; n < 120; ++n) {
    const double gx = 0.3 * unit(rng);
    const double gy = 0.3 * unit(rng);
    const double rough = n % 3 == 0 ? 0.0 : 0.05;
    const Map map(90, 90, 0.1, 0.0, 0.0,
                  [&](double x, double y) { return gx * x + gy * y + rough * unit(rng); });
    const Pose2 pose{4.5 + 0.5 * unit(rng), 4.5 + 0.5 * unit(rng), kPi * unit(rng)};
    const double curvature = n % 4 == 0 ? 0.0 : n % 4 == 1 ? INFINITY : 0.4 * unit(rng);
    const SettledState settled = settle(map.view, model, Stance{pose, curvature});
    if (settled.status != Status::kOk) continue;
    const ChainState<double>& q = settled.state;
    SinCos steering[kWheels];
    wheel_steering(g, curvature, steering);
    for (int i = 0; i < kWheels; ++i) {
      const bool left = i < 3;
      const double rocker =
          left ? q.pitch_rad + q.differential_rad : q.pitch_rad - q.differential_rad;
      const double bogie = rocker + (left ? q.bogie_left_rad : q.bogie_right_rad);
      const double link = i % 3 == 0 ? rocker : bogie;
      // The axle points along (-sin, cos, 0) in the link; links turn nose up, the body rolls left up.
      const double x = -steering[i].sin * std::cos(link);
      const double z = -steering[i].sin * std::sin(link);
      const double y = steering[i].cos;
      const double up = y * q.sin_roll + z * q.cos_roll;
      steepest_lean = std::max(steepest_lean, std::fabs(up));
      // Its azimuth is the wheel's nominal heading, by definition of H: it differs in second order.
      const double azimuth = std::atan2(y * q.cos_roll - z * q.sin_roll, x) - kPi / 2;
      EXPECT_NEAR(std::remainder(azimuth - std::atan2(steering[i].sin, steering[i].cos), 2 * kPi),
                  0.0, 0.16);
      const double heading = pose.heading_rad + std::atan2(steering[i].sin, steering[i].cos);
      const double level = std::sqrt(1.0 - up * up);
      const double axle[3] = {
          pose.x_m + settled.positions.forward_m[i] * std::cos(pose.heading_rad) -
              settled.positions.left_m[i] * std::sin(pose.heading_rad),
          pose.y_m + settled.positions.forward_m[i] * std::sin(pose.heading_rad) +
              settled.positions.left_m[i] * std::cos(pose.heading_rad),
          settled.heights_m[i] + g.wheel_radius_m};
      double least = INFINITY;
      for (int a = -90; a <= 90; a += 2) {
        for (int b = -17; b <= 17; ++b) {
          const double along = g.wheel_radius_m * std::sin(a * kDeg);
          const double below = g.wheel_radius_m * std::cos(a * kDeg);
          const double aside = 0.5 * g.wheel_width_m * b / 17;
          const double across = aside * level + below * up;
          const double height = axle[2] + aside * up - below * level;
          least = std::min(
              least,
              height - height_m(map.view,
                                axle[0] + along * std::cos(heading) - across * std::sin(heading),
                                axle[1] + along * std::sin(heading) + across * std::cos(heading)));
        }
      }
      // The lattice of H is coarser, so it misses some of a sharp bump; these points miss some as well.
      EXPECT_LE(least, rough == 0.0 ? 1e-3 : 4e-3) << n << " wheel " << i;
      EXPECT_GE(least, rough == 0.0 ? -1.5e-3 : -0.03) << n << " wheel " << i;
    }
  }
  EXPECT_GT(steepest_lean, 0.3);
}

// Steered wheels roll about the centre of the arc: each one's heading is at a right angle to the line from
// there to its axle. So does turning in place, about the rover's own origin.
TEST(Settle, WheelsAreSteeredAboutTheCentreOfTheArc) {
  const RoverGeometry g;
  const WheelPlan plan = wheel_plan(g);
  std::mt19937 rng(5);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (int n = 0; n < 200; ++n) {
    const bool in_place = n % 10 == 0;
    const double curvature = in_place ? INFINITY : unit(rng);
    const double center = in_place ? 0.0 : 1.0 / curvature;  // left of the rover
    const double heading = 3 * unit(rng);
    SinCos steering[kWheels];
    wheel_steering(g, curvature, steering);
    for (int i = 0; i < kWheels; ++i) {
      const SinCos wheel = wheel_heading(det_sincos(heading), steering[i]);
      EXPECT_NEAR(wheel.sin * wheel.sin + wheel.cos * wheel.cos, 1.0, 1e-14);
      // In the rover's frame.
      const double forward = wheel.cos * std::cos(heading) + wheel.sin * std::sin(heading);
      const double left = wheel.sin * std::cos(heading) - wheel.cos * std::sin(heading);
      const double from_x = plan.x_m[i];
      const double from_y = plan.y_m[i] - center;
      EXPECT_NEAR((forward * from_x + left * from_y) / std::hypot(from_x, from_y), 0.0, 1e-12);
      EXPECT_GE(forward, 0.0);  // within +-90 deg of straight ahead
      if (i == kMiddleLeft || i == kMiddleRight) {
        EXPECT_NEAR(left, 0.0, 1e-15);
      }
    }
  }
  SinCos straight[kWheels];
  wheel_steering(g, 0.0, straight);
  const SinCos ahead = det_sincos(0.3);
  for (const SinCos& steering : straight) {
    EXPECT_EQ(steering.sin, 0.0);
    EXPECT_EQ(steering.cos, 1.0);
    EXPECT_EQ(wheel_heading(ahead, steering).sin, ahead.sin);
    EXPECT_EQ(wheel_heading(ahead, steering).cos, ahead.cos);
  }
}

// A steered wheel bridges other ground than a straight one.
TEST(Settle, SteeringChangesWhereTheRoverSettles) {
  const SettleModel model = default_model();
  const Map map(90, 90, 0.1, 0.0, 0.0,
                [](double x, double y) { return 0.06 * std::sin(9 * x) * std::cos(7 * y); });
  const Pose2 pose{4.5, 4.5, 0.4};
  const SettledState straight = settle(map.view, model, Stance{pose});
  const SettledState turning = settle(map.view, model, Stance{pose, INFINITY});
  ASSERT_EQ(straight.status, Status::kOk);
  ASSERT_EQ(turning.status, Status::kOk);
  EXPECT_GT(std::fabs(straight.heights_m[kFrontLeft] - turning.heights_m[kFrontLeft]), 1e-3);
}

TEST(Settle, AnyCurvatureSteersSomewhere) {
  SinCos in_place[kWheels], steering[kWheels];
  wheel_steering(RoverGeometry{}, INFINITY, in_place);
  for (const double curvature : {1e5, -1e5, 1e7, -1e9, 1e160, -1e300, 1.7e308}) {
    wheel_steering(RoverGeometry{}, curvature, steering);
    for (int i = 0; i < kWheels; ++i) {
      EXPECT_NEAR(steering[i].sin * steering[i].sin + steering[i].cos * steering[i].cos, 1.0,
                  1e-12);
      EXPECT_NEAR(steering[i].sin, in_place[i].sin, 1e-4);
      EXPECT_NEAR(steering[i].cos, in_place[i].cos, 1e-4);
    }
  }
}

TEST(Settle, WheelsMayBeSteeredOneByOne) {
  const SettleModel model = default_model();
  const Map map(90, 90, 0.1, 0.0, 0.0,
                [](double x, double y) { return 0.06 * std::sin(9 * x) * std::cos(7 * y); });
  const Pose2 pose{4.5, 4.5, 0.4};
  SinCos steering[kWheels];
  for (const double curvature : {0.0, 0.3, -0.2, static_cast<double>(INFINITY)}) {
    wheel_steering(RoverGeometry{}, curvature, steering);
    const SettledState by_arc = settle(map.view, model, Stance{pose, curvature});
    const SettledState by_wheel = settle(map.view, model, pose, steering);
    ASSERT_EQ(by_arc.status, Status::kOk);
    double largest = 0.0;
    for (int i = 0; i < kWheels; ++i) {
      EXPECT_EQ(by_arc.heights_m[i], by_wheel.heights_m[i]);
      EXPECT_EQ(by_arc.relief_m[i], by_wheel.relief_m[i]);
      EXPECT_GT(by_arc.relief_m[i], 0.0);
      if (by_arc.relief_m[i] > largest) largest = by_arc.relief_m[i];
    }
    EXPECT_EQ(largest, by_arc.relief_max_m);
  }
  // One wheel alone, half way round.
  wheel_steering(RoverGeometry{}, 0.0, steering);
  const SettledState straight = settle(map.view, model, pose, steering);
  steering[kFrontLeft] = det_sincos(-0.4);
  const SettledState turned = settle(map.view, model, pose, steering);
  EXPECT_GT(std::fabs(straight.heights_m[kFrontLeft] - turned.heights_m[kFrontLeft]), 1e-3);
}

TEST(Settle, FaultsAreNamed) {
  const SettleModel model = default_model();
  Map map(60, 70, 0.1, 0.0, 0.0, [](double, double) { return 1.0; });
  EXPECT_EQ(settle(map.view, model, Stance{3, 3, 0}).status, Status::kOk);
  EXPECT_EQ(settle(map.view, model, Stance{0.5, 3, 0}).status, Status::kOutsideMap);
  EXPECT_EQ(settle(map.view, model, Stance{1e9, 3, 0}).status, Status::kOutsideMap);
  const double absurd[kWheels] = {0, 5, 0, 0, 0, 0};
  EXPECT_EQ(settle(map.view, model, Stance{3, 3, 0}, absurd).status, Status::kOutOfMechanicalRange);
  // Unknown ground under the left middle wheel.
  map.z[static_cast<std::size_t>(42 * 60 + 30)] = NAN;
  EXPECT_EQ(settle(map.view, model, Stance{3, 3, 0}).status, Status::kUnknownGround);
}

// The clearance against dense sampling of pan points over the bilinear ground.
TEST(Settle, ClearanceIsTheLeastGapUnderThePan) {
  const SettleModel model = default_model();
  const RoverGeometry& g = model.linkage.g;
  std::mt19937 rng(4);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (int n = 0; n < 60; ++n) {
    const double resolution = 0.08 + 0.04 * std::fabs(unit(rng));
    const int cells = static_cast<int>(8.0 / resolution);
    const Map map(cells, cells, resolution, 10.0, -4.0,
                  [&](double, double) { return 0.15 * unit(rng); });
    const Pose2 pose{14 + 0.5 * unit(rng), 0.5 * unit(rng), kPi * unit(rng)};
    const SettledState s = settle(map.view, model, Stance{pose});
    if (s.status != Status::kOk) continue;
    const Clearance clearance = pan_clearance(map.view, g, pose, s.state);
    ASSERT_EQ(clearance.status, Status::kOk);
    const ChainState<double>& q = s.state;
    // Gap from body point (x, y, pan) straight down to the ground.
    const auto gap = [&](double x, double y) {
      const double up = x * q.sin_pitch + g.pan_height_m * q.cos_pitch;
      const double forward = x * q.cos_pitch - g.pan_height_m * q.sin_pitch;
      const double left = y * q.cos_roll - up * q.sin_roll;
      const double z = q.origin_z_m + up * q.cos_roll + y * q.sin_roll;
      const double c = std::cos(pose.heading_rad);
      const double h = std::sin(pose.heading_rad);
      return z - height_m(map.view, pose.x_m + forward * c - left * h,
                          pose.y_m + forward * h + left * c);
    };
    const auto least = [&](double margin) {
      double lowest = INFINITY;
      for (double x = g.pan_rear_x_m - margin; x <= g.pan_front_x_m + margin; x += 0.01)
        for (double y = -g.pan_half_width_m - margin; y <= g.pan_half_width_m + margin; y += 0.01)
          lowest = std::min(lowest, gap(x, y));
      return lowest;
    };
    EXPECT_LE(clearance.clearance_m, least(0.0) + 1e-9);               // never more than the truth
    EXPECT_GE(clearance.clearance_m, least(1.6 * resolution) - 0.02);  // nor much less
  }
}

TEST(SettleChecker, JudgesByTheLimits) {
  RoverModel model;
  SettleChecker checker;
  ASSERT_TRUE(checker.init(model).ok());
  // One wheel on a tall post: bogie or differential give out long before tilt.
  const Map map(70, 70, 0.1, 0.0, 0.0, [](double x, double y) {
    return std::hypot(x - 3.5, y - (3.5 + 1.1845)) < 0.35 ? 0.45 : 0.0;
  });
  ASSERT_EQ(checker.set_map(map.view), Status::kOk);
  const AceReport on_post = checker.report(Stance{3.5, 3.5, 0.0});
  EXPECT_FALSE(on_post.safe);
  EXPECT_NE(on_post.reasons & kBogie, 0);
  EXPECT_LT(on_post.margin_bogie_rad, 0.0);
  const AceReport beside = checker.report(Stance{3.5, 2.9, 0.0});
  EXPECT_TRUE(beside.safe);
  EXPECT_GT(beside.margin_bogie_rad, 0.0);
  Reasons reasons = 0;
  EXPECT_FALSE(checker.is_safe(Stance{NAN, 0, 0}, &reasons));
  EXPECT_EQ(reasons, kBadPose);
}

}  // namespace
}  // namespace mlnav
