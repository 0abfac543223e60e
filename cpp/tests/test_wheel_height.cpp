// The wheel's dilation against a plain version bit by bit, against closed forms, and its continuity.
#include "mlnav/ground/wheel_height.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "maps.hpp"
#include "naive_wheel.hpp"

namespace {

using namespace mlnav;
using mlnav_test::Frame;
using mlnav_test::kFrames;
using mlnav_test::Map;

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kRadius = 0.263;
constexpr double kWidth = 0.335;

WheelFootprint wheel(double radius = kRadius, double width = kWidth) {
  WheelFootprint footprint;
  EXPECT_EQ(make_footprint(radius, width, &footprint), Status::kOk);
  return footprint;
}

SinCos heading(double radians) { return det_sincos(radians); }

// Level every third time, otherwise up to 35 deg to either side.
SinCos any_lean(std::mt19937& random) {
  std::uniform_real_distribution<double> lean(-0.6, 0.6);
  return random() % 3 == 0 ? kLevel : det_sincos(lean(random));
}

void expect_same(const GridView& g, const WheelFootprint& f, double x, double y, SinCos h,
                 SinCos lean) {
  const WheelContact expected = naive::wheel_contact(g, f, x, y, h, lean);
  const WheelContact got = wheel_contact(g, f, x, y, h, lean);
  const WheelHeight only = wheel_height(g, f, x, y, h, lean);
  ASSERT_EQ(got.status, expected.status) << x << " " << y;
  ASSERT_EQ(only.status, expected.status) << x << " " << y;
  if (expected.status != Status::kOk) {
    ASSERT_TRUE(std::isnan(got.height_m) && std::isnan(only.height_m));
    ASSERT_TRUE(std::isnan(got.ground_min_m) && std::isnan(got.ground_max_m));
    return;
  }
  ASSERT_EQ(got.height_m, expected.height_m) << x << " " << y;
  ASSERT_EQ(only.height_m, expected.height_m) << x << " " << y;
  ASSERT_EQ(got.ground_min_m, expected.ground_min_m) << x << " " << y;
  ASSERT_EQ(got.ground_max_m, expected.ground_max_m) << x << " " << y;
}

TEST(Footprint, LatticeOfAPerseveranceWheel) {
  const WheelFootprint f = wheel();
  EXPECT_EQ(f.along, 13);
  EXPECT_EQ(f.across, 9);
  EXPECT_EQ(f.u_m[0], -kRadius);
  EXPECT_EQ(f.u_m[6], 0.0);
  EXPECT_EQ(f.u_m[12], kRadius);
  EXPECT_EQ(f.v_m[0], -kWidth / 2);
  EXPECT_EQ(f.v_m[4], 0.0);
  EXPECT_EQ(f.v_m[8], kWidth / 2);
  EXPECT_EQ(f.v_m[9], kWidth / 2);  // the last one is there twice
}

TEST(Footprint, SamplesAreDenseSymmetricAndOdd) {
  std::mt19937 random(31);
  std::uniform_real_distribution<double> radii(0.01, 0.8), widths(0.01, 1.6);
  for (int i = 0; i < 2000; ++i) {
    const double radius = radii(random);
    const double width = widths(random);
    const WheelFootprint f = wheel(radius, width);
    ASSERT_EQ(f.along % 2, 1);
    ASSERT_EQ(f.across % 2, 1);
    ASSERT_LE(f.along, WheelFootprint::kMaxAlong);
    ASSERT_LE(f.across, WheelFootprint::kMaxAcross);
    for (int k = 0; k < f.along; ++k) {
      ASSERT_EQ(f.u_m[k], -f.u_m[f.along - 1 - k]);
      ASSERT_EQ(f.drop_m[k], f.drop_m[f.along - 1 - k]);
      ASSERT_NEAR(f.drop_m[k], std::sqrt(std::fmax(0.0, radius * radius - f.u_m[k] * f.u_m[k])),
                  1e-15);
      if (k > 0) {
        ASSERT_GT(f.u_m[k], f.u_m[k - 1]);
        ASSERT_LE(f.u_m[k] - f.u_m[k - 1], kWheelSample_m + 1e-9);
      }
      // The rim rises outwards: the early end of wheel_height's search rests on it.
      if (k > f.along / 2) {
        ASSERT_LE(f.drop_m[k], f.drop_m[k - 1]);
      }
    }
    for (int k = 1; k < f.across; ++k) {
      ASSERT_GT(f.v_m[k], f.v_m[k - 1]);
      ASSERT_LE(f.v_m[k] - f.v_m[k - 1], kWheelSample_m + 1e-9);
    }
  }
}

TEST(Footprint, RefusesWhatTheLatticeCannotHold) {
  WheelFootprint f;
  EXPECT_EQ(make_footprint(0.8, 1.6, &f), Status::kOk);
  EXPECT_EQ(f.along, 33);
  EXPECT_EQ(f.across, 33);
  for (const double bad : {0.0, -0.1, 0.8001, kNan, kInf}) {
    EXPECT_EQ(make_footprint(bad, 0.3, &f), Status::kConfigBad) << bad;
    EXPECT_EQ(make_footprint(0.3, 2.0 * bad, &f), Status::kConfigBad) << bad;
  }
}

TEST(WheelContact, BitEqualToThePlainVersionOnRoughGround) {
  const WheelFootprint wheels[] = {wheel(), wheel(0.05, 0.05), wheel(0.25, 0.1), wheel(0.4, 0.6)};
  for (const Frame& frame : kFrames) {
    for (const int big : {0, 1}) {
      Map map(big ? 40 : 17, big ? 61 : 29, frame.ox, frame.oy, frame.res);
      std::mt19937 random(41);
      std::normal_distribution<float> heights(3.0f, 0.2f);
      for (float& z : map.z) z = heights(random);
      std::uniform_real_distribution<double> u(-1.0, map.view.nx), v(-1.0, map.view.ny);
      std::uniform_real_distribution<double> angle(-kPi, kPi);
      for (int i = 0; i < 1500; ++i) {
        const double x = frame.ox + u(random) * frame.res;
        const double y = frame.oy + v(random) * frame.res;
        for (const WheelFootprint& f : wheels)
          expect_same(map.view, f, x, y, heading(angle(random)), any_lean(random));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(WheelContact, BitEqualOnSmoothSlopesWhereRowsAreSkipped) {
  std::mt19937 random(42);
  std::uniform_real_distribution<double> slope(-0.6, 0.6), angle(-kPi, kPi);
  for (int round = 0; round < 60; ++round) {
    const Frame& frame = kFrames[round % 6];
    Map map(30, 41, frame.ox, frame.oy, frame.res);
    const double a = slope(random);
    const double b = slope(random);
    const double bump = round % 3 == 0 ? 0.0 : 0.01 * (round % 7);
    std::normal_distribution<double> noise(0.0, 1.0);
    map.fill([&](double x, double y) {
      return a * (x - frame.ox) + b * (y - frame.oy) + bump * noise(random);
    });
    std::uniform_real_distribution<double> u(0.0, 29.0), v(0.0, 40.0);
    for (int i = 0; i < 200; ++i) {
      expect_same(map.view, wheel(), frame.ox + u(random) * frame.res,
                  frame.oy + v(random) * frame.res, heading(angle(random)), any_lean(random));
      if (HasFatalFailure()) return;
    }
  }
}

TEST(WheelContact, BitEqualNearUnknownCellsAndOnCellLines) {
  for (const Frame& frame : kFrames) {
    Map map(30, 41, frame.ox, frame.oy, frame.res);
    std::mt19937 random(43);
    std::normal_distribution<float> heights(-1.0f, 0.1f);
    std::uniform_real_distribution<double> unit(0.0, 1.0);
    for (float& z : map.z) z = unit(random) < 0.02 ? kNanF : heights(random);
    std::uniform_real_distribution<double> u(0.0, 29.0), v(0.0, 40.0);
    int unknown = 0;
    for (int i = 0; i < 1500; ++i) {
      double gx = u(random);
      double gy = v(random);
      if (i % 3 == 0) gx = std::round(gx);
      if (i % 5 == 0) gy = std::round(gy);
      const double quarter = std::floor(4.0 * unit(random)) * kPi / 2.0;
      const SinCos h = heading(i % 2 == 0 ? quarter : 6.0 * unit(random));
      const double x = frame.ox + gx * frame.res;
      const double y = frame.oy + gy * frame.res;
      const SinCos lean = any_lean(random);
      expect_same(map.view, wheel(), x, y, h, lean);
      if (HasFatalFailure()) return;
      if (wheel_contact(map.view, wheel(), x, y, h, lean).status == Status::kUnknownGround) {
        ++unknown;
      }
    }
    EXPECT_GT(unknown, 50);
  }
}

TEST(WheelContact, UnknownWithoutWeightDoesNotCount) {
  // Cells of 0.25 m and a wheel 0.5 m long and wide, square to the grid and centred on a cell: its
  // outermost samples lie on the neighbours' centre lines, where the cells beyond have no weight.
  Map map(9, 9, 0.0, 0.0, 0.25);
  const WheelFootprint f = wheel(0.25, 0.5);
  for (int iy = 0; iy < 9; ++iy) {
    for (int ix = 0; ix < 9; ++ix) {
      if (std::abs(ix - 4) > 1 || std::abs(iy - 4) > 1) map.at(ix, iy) = kNanF;
    }
  }
  const SinCos straight{0.0, 1.0};
  EXPECT_EQ(wheel_contact(map.view, f, 1.0, 1.0, straight).status, Status::kOk);
  EXPECT_EQ(wheel_height(map.view, f, 1.0, 1.0, straight).height_m, 0.0);
  EXPECT_EQ(wheel_contact(map.view, f, 1.0 + 1e-6, 1.0, straight).status, Status::kUnknownGround);
  EXPECT_EQ(wheel_contact(map.view, f, 1.0, 1.0 - 1e-6, straight).status, Status::kUnknownGround);
  map.at(4, 4) = kNanF;
  EXPECT_EQ(wheel_contact(map.view, f, 1.0, 1.0, straight).status, Status::kUnknownGround);
}

TEST(WheelContact, OutsideIsReportedBeforeUnknown) {
  Map map(20, 30, 2.0, -1.0, 0.1);
  for (float& z : map.z) z = kNanF;
  const SinCos h = heading(0.4);
  EXPECT_EQ(wheel_contact(map.view, wheel(), 3.0, 0.5, h).status, Status::kUnknownGround);
  EXPECT_EQ(wheel_contact(map.view, wheel(), 2.0, 0.5, h).status, Status::kOutsideMap);
  for (const double bad : {1e300, -1e300, kInf, kNan}) {
    EXPECT_EQ(wheel_contact(map.view, wheel(), bad, 0.5, h).status, Status::kOutsideMap);
    EXPECT_EQ(wheel_height(map.view, wheel(), 3.0, bad, h).status, Status::kOutsideMap);
  }
  // A heading that is no sine and cosine must not lead out of memory.
  for (const SinCos bad : {SinCos{kNan, 1.0}, SinCos{3.0, 3.0}, SinCos{kInf, 0.0}}) {
    EXPECT_EQ(wheel_contact(map.view, wheel(), 3.0, 0.5, bad).status, Status::kOutsideMap);
    EXPECT_EQ(wheel_contact(map.view, wheel(), 3.0, 0.5, h, bad).status, Status::kOutsideMap);
  }
  // Nor do leans that no axle can have lead to heights.
  EXPECT_EQ(wheel_height(map.view, wheel(), 3.0, 0.5, h, {1.0, 0.0}).status, Status::kOutsideMap);
  EXPECT_EQ(wheel_height(map.view, wheel(), 3.0, 0.5, h, {0.0, -1.0}).status, Status::kOutsideMap);
}

TEST(WheelContact, ReachesTheMapsEdgeAndNoFurther) {
  for (const Frame& frame : kFrames) {
    if (std::fabs(frame.ox) > 1e6) continue;
    Map map(30, 41, frame.ox, frame.oy, frame.res);
    const double left = frame.ox - 0.5 * frame.res;
    const double bottom = frame.oy - 0.5 * frame.res;
    const double right = left + 30 * frame.res;
    const double top = bottom + 41 * frame.res;
    const double x = 0.5 * (left + right);
    const double y = 0.5 * (bottom + top);
    const SinCos east{0.0, 1.0};
    const auto status = [&](double px, double py) {
      return wheel_contact(map.view, wheel(), px, py, east).status;
    };
    const double e = 1e-9;
    EXPECT_EQ(status(left + kRadius + e, y), Status::kOk);
    EXPECT_EQ(status(left + kRadius - e, y), Status::kOutsideMap);
    EXPECT_EQ(status(right - kRadius - e, y), Status::kOk);
    EXPECT_EQ(status(right - kRadius + e, y), Status::kOutsideMap);
    EXPECT_EQ(status(x, bottom + kWidth / 2 + e), Status::kOk);
    EXPECT_EQ(status(x, bottom + kWidth / 2 - e), Status::kOutsideMap);
    EXPECT_EQ(status(x, top - kWidth / 2 - e), Status::kOk);
    EXPECT_EQ(status(x, top - kWidth / 2 + e), Status::kOutsideMap);
  }
}

TEST(WheelContact, AgreesWithHeightsSampledInTheWorldFrame) {
  // Nothing of the lattice's own arithmetic: positions in metres, heights from height_m.
  for (const Frame& frame : kFrames) {
    if (std::fabs(frame.ox) > 1e6) continue;
    Map map(40, 61, frame.ox, frame.oy, frame.res);
    std::mt19937 random(44);
    std::normal_distribution<float> heights(0.0f, 0.2f);
    for (float& z : map.z) z = heights(random);
    std::uniform_real_distribution<double> u(0.0, 39.0), v(0.0, 60.0), angle(-kPi, kPi);
    const WheelFootprint f = wheel();
    for (int i = 0; i < 400; ++i) {
      const double x = frame.ox + u(random) * frame.res;
      const double y = frame.oy + v(random) * frame.res;
      const double psi = angle(random);
      const double phi = i % 3 == 0 ? 0.0 : 0.15 * angle(random);
      double height = -kInf, lowest = kInf, highest = -kInf;
      bool outside = false;
      for (int k = 0; k < f.along; ++k) {
        for (int j = 0; j < f.across; ++j) {
          // A point of the cylinder's lower half, turned about the heading axis, from the axle.
          const double drop = std::sqrt(std::fmax(0.0, kRadius * kRadius - f.u_m[k] * f.u_m[k]));
          const double left = f.v_m[j] * std::cos(phi) + drop * std::sin(phi);
          const double up = f.v_m[j] * std::sin(phi) - drop * std::cos(phi);
          const double px = x + std::cos(psi) * f.u_m[k] - std::sin(psi) * left;
          const double py = y + std::sin(psi) * f.u_m[k] + std::cos(psi) * left;
          const double z = height_m(map.view, px, py);
          if (std::isnan(z)) outside = true;
          height = std::fmax(height, z - up - kRadius);
          lowest = std::fmin(lowest, z);
          highest = std::fmax(highest, z);
        }
      }
      const WheelContact got = wheel_contact(map.view, f, x, y, heading(psi), heading(phi));
      ASSERT_EQ(got.status, outside ? Status::kOutsideMap : Status::kOk);
      if (outside) continue;
      ASSERT_NEAR(got.height_m, height, 1e-9);
      ASSERT_NEAR(got.ground_min_m, lowest, 1e-9);
      ASSERT_NEAR(got.ground_max_m, highest, 1e-9);
    }
  }
}

TEST(WheelContact, OnAPlaneIsTheDilatedPlane) {
  // On z = a x + b y, g the slope along the heading and c the slope across, a cylinder leaning by phi rests
  // r (sqrt(g^2 + (c sin(phi) + cos(phi))^2) - 1) + |c cos(phi) - sin(phi)| w/2 above the plane. Leaning as
  // the plane does, tan(phi) = c, it lies on it all across, its axle r from the plane. The lattice falls
  // short by at most what half a sample spacing hides.
  std::mt19937 random(45);
  std::uniform_real_distribution<double> slope(-0.5, 0.5), angle(-kPi, kPi), inside(-0.2, 0.2);
  for (int i = 0; i < 1200; ++i) {
    const Frame& frame = kFrames[i % 6];
    if (std::fabs(frame.ox) > 1e6) continue;
    const double a = slope(random);
    const double b = slope(random);
    const int n = static_cast<int>(1.6 / frame.res) + 3;
    Map map(n, n + 3, frame.ox, frame.oy, frame.res);
    const double cx = map.view.center_x_m(n / 2);
    const double cy = map.view.center_y_m(n / 2);
    map.fill([&](double x, double y) { return 1.0 + a * (x - cx) + b * (y - cy); });
    const double x = cx + inside(random);
    const double y = cy + inside(random);
    const double psi = angle(random);
    const double along = a * std::cos(psi) + b * std::sin(psi);
    const double across = -a * std::sin(psi) + b * std::cos(psi);
    const double plane = 1.0 + a * (x - cx) + b * (y - cy);
    const double phi = i % 3 == 0 ? 0.0 : i % 3 == 1 ? std::atan(across) : 0.8 * slope(random);
    const double cos = std::cos(phi);
    const double sin = std::sin(phi);
    const double below = across * sin + cos;
    const double exact = plane + kRadius * (std::sqrt(along * along + below * below) - 1.0) +
                         std::fabs(across * cos - sin) * kWidth / 2.0;
    if (i % 3 == 1) {  // the axle's perpendicular distance from the plane
      ASSERT_NEAR((exact + kRadius - plane) / std::sqrt(1.0 + a * a + b * b), kRadius, 1e-12);
    }
    const WheelContact got = wheel_contact(map.view, wheel(), x, y, heading(psi), heading(phi));
    ASSERT_EQ(got.status, Status::kOk);
    ASSERT_LE(got.height_m, exact + 1e-6);  // float32 heights
    // Curvature of the rim at the contact: (1 + g^2)^(3/2) / r, half a spacing away.
    const double hidden = 0.5 * std::pow(below * below + along * along, 1.5) / (below * below) /
                          kRadius * 0.022 * 0.022;
    ASSERT_GE(got.height_m, exact - 1.2 * hidden - 1e-6);
    if (phi != 0.0) continue;
    const double span = std::fabs(along) * kRadius + std::fabs(across) * kWidth / 2.0;
    ASSERT_NEAR(got.ground_max_m, plane + span, 1e-6);
    ASSERT_NEAR(got.ground_min_m, plane - span, 1e-6);
  }
}

TEST(WheelContact, OnFlatGroundIsTheGround) {
  for (const Frame& frame : kFrames) {
    Map map(30, 41, frame.ox, frame.oy, frame.res);
    for (float& z : map.z) z = -2.5f;
    const double x = map.view.center_x_m(15) + 0.3 * frame.res;
    const double y = map.view.center_y_m(20) - 0.1 * frame.res;
    const WheelContact got = wheel_contact(map.view, wheel(), x, y, heading(1.1));
    EXPECT_EQ(got.height_m, -2.5);
    EXPECT_EQ(got.ground_min_m, -2.5);
    EXPECT_EQ(got.ground_max_m, -2.5);
  }
}

TEST(WheelContact, ClimbsAStepAsACircleDoes) {
  // A step of height h across the map at x = s: the wheel's axle at a distance d before the edge is
  // lifted once its rim reaches the edge: H = h - (r - sqrt(r^2 - d^2)), never below 0.
  const double res = 0.05;
  const double h = 0.2;
  Map map(60, 40, -1.5, 3.0, res);
  const double edge = map.view.center_x_m(30);  // the first high cell's centre
  map.fill([&](double x, double) { return x > edge - 1e-6 ? h : 0.0; });
  const double y = map.view.center_y_m(20) + 0.013;
  for (double d = 0.6; d > -0.3; d -= 0.0037) {
    for (const double psi : {0.0, kPi}) {
      const WheelContact got = wheel_contact(map.view, wheel(), edge - d, y, heading(psi));
      const auto step = [&](double distance) {
        if (distance <= 0.0) return h;
        if (distance >= kRadius) return 0.0;
        return std::fmax(0.0, h - (kRadius - std::sqrt(kRadius * kRadius - distance * distance)));
      };
      ASSERT_EQ(got.status, Status::kOk);
      // The ramp between the last low and the first high cell is one cell long, and the nearest sample
      // up to one spacing off the edge.
      ASSERT_LE(got.height_m, step(d - res) + 1e-6);
      ASSERT_GE(got.height_m, step(d + 0.045) - 1e-6);
    }
    // Rolling along the step, the flat side face meets it.
    const WheelContact beside = wheel_contact(map.view, wheel(), edge - d, y, heading(kPi / 2));
    if (d < kWidth / 2 - 1e-9) {
      ASSERT_NEAR(beside.height_m, h, 1e-6);
    } else if (d > kWidth / 2 + res) {
      ASSERT_NEAR(beside.height_m, 0.0, 1e-6);
    }
  }
}

TEST(WheelContact, IsLipschitzInPositionHeadingAndLean) {
  // A maximum of functions is as steep as the steepest of them, and bilinear ground is as steep as its
  // steepest pair of neighbours: |dH| <= L (|dx| + |dy| + reach |dpsi|) + (L + 1) reach |dphi|.
  for (const Frame& frame : kFrames) {
    if (std::fabs(frame.ox) > 1e6) continue;
    Map map(40, 61, frame.ox, frame.oy, frame.res);
    std::mt19937 random(46);
    std::uniform_real_distribution<float> heights(-0.1f, 0.1f);
    for (float& z : map.z) z = heights(random);
    const double steepest = 0.2 / frame.res;
    const double reach = kRadius + kWidth / 2;
    std::uniform_real_distribution<double> u(0.0, 39.0), v(0.0, 60.0), angle(-kPi, kPi);
    std::uniform_real_distribution<double> step(-1.0, 1.0);
    for (int i = 0; i < 2000; ++i) {
      const double scale = std::pow(10.0, -2 - i % 6);
      // Half the starting points lie on cell centres, where the formula changes cell.
      const double gx = i % 2 == 0 ? u(random) : std::round(u(random));
      const double x = frame.ox + gx * frame.res;
      const double y = frame.oy + v(random) * frame.res;
      const double psi = angle(random);
      // And half of the leans are level.
      const double phi = i % 4 < 2 ? 0.0 : 0.2 * angle(random);
      const double dx = scale * step(random), dy = scale * step(random),
                   dpsi = scale * step(random), dphi = scale * step(random);
      const WheelHeight a = wheel_height(map.view, wheel(), x, y, heading(psi), heading(phi));
      const WheelHeight b =
          wheel_height(map.view, wheel(), x + dx, y + dy, heading(psi + dpsi), heading(phi + dphi));
      if (a.status != Status::kOk || b.status != Status::kOk) continue;
      const double limit =
          steepest * (std::fabs(dx) + std::fabs(dy) + 2.0 * reach * std::fabs(dpsi)) +
          (2.0 * steepest + 1.0) * reach * std::fabs(dphi) + 1e-10;
      ASSERT_LE(std::fabs(a.height_m - b.height_m), limit) << scale;
    }
  }
}

TEST(WheelContact, TurnsWithTheMap) {
  // A quarter turn of map, position and heading together leaves everything as it is: a swapped sine
  // or axis shows at once on a 31 x 21 map.
  for (const Frame& frame : kFrames) {
    if (std::fabs(frame.ox) > 1e6) continue;
    Map map(31, 21, frame.ox, frame.oy, frame.res);
    std::mt19937 random(47);
    std::uniform_real_distribution<float> heights(-0.3f, 0.3f);
    for (float& z : map.z) z = heights(random);
    Map turned(21, 31, -frame.oy - 20 * frame.res, frame.ox, frame.res);  // (x, y) -> (-y, x)
    for (int iy = 0; iy < 21; ++iy) {
      for (int ix = 0; ix < 31; ++ix) turned.at(20 - iy, ix) = map.at(ix, iy);
    }
    std::uniform_real_distribution<double> u(0.0, 30.0), v(0.0, 20.0), angle(-kPi, kPi);
    for (int i = 0; i < 300; ++i) {
      const double x = frame.ox + u(random) * frame.res;
      const double y = frame.oy + v(random) * frame.res;
      const double psi = angle(random);
      const SinCos lean = any_lean(random);
      const WheelContact a = wheel_contact(map.view, wheel(), x, y, heading(psi), lean);
      const WheelContact b =
          wheel_contact(turned.view, wheel(), -y, x, heading(psi + kPi / 2), lean);
      ASSERT_EQ(a.status, b.status);
      if (a.status != Status::kOk) continue;
      ASSERT_NEAR(a.height_m, b.height_m, 1e-9);
      ASSERT_NEAR(a.ground_min_m, b.ground_min_m, 1e-9);
      ASSERT_NEAR(a.ground_max_m, b.ground_max_m, 1e-9);
    }
  }
}

TEST(WheelContact, LeansToTheLeftEndUp) {
  // Heading east over a wall to the north (the left): with its left end up the axle's right end comes down,
  // and the lower half swings left, towards the wall.
  Map map(41, 41, -2.0, -2.0, 0.1);
  map.fill([](double, double y) { return y > 0.25 ? 1.0 : 0.0; });
  const SinCos east{0.0, 1.0};
  const double phi = 0.3;
  const double bare =
      0.02;  // as near as it is clear of the wall's foot, y = 0.2, leaning away from it
  const WheelHeight away = wheel_height(map.view, wheel(), 0.0, bare, east, heading(-phi));
  const WheelHeight towards = wheel_height(map.view, wheel(), 0.0, bare, east, heading(phi));
  // On its rim alone: w/2 sin(phi) - r (1 - cos(phi)) above the ground.
  const double on_rim = kWidth / 2 * std::sin(phi) - kRadius * (1.0 - std::cos(phi));
  EXPECT_NEAR(away.height_m, on_rim, 1e-6);
  EXPECT_GT(towards.height_m, away.height_m + 0.1);
  // Heading west the left end is the other one.
  const SinCos west{0.0, -1.0};
  EXPECT_NEAR(wheel_height(map.view, wheel(), 0.0, bare, west, heading(phi)).height_m, on_rim,
              1e-6);
}

TEST(WheelContact, BordersAndUnknownGroundAreThoseOfTheLeaningFootprint) {
  // Heading east, left end up: across, samples reach from -w/2 cos(phi) (at the axle's height, u = +-r) to
  // w/2 cos(phi) + r sin(phi) (below the axle).
  const double phi = 0.35;
  const double right = kWidth / 2 * std::cos(phi);
  const double left = right + kRadius * std::sin(phi);
  Map map(30, 41, 0.0, 0.0, 0.1);
  const SinCos east{0.0, 1.0};
  const auto status = [&](double x, double y, SinCos h = {0.0, 1.0}) {
    return wheel_contact(map.view, wheel(), x, y, h, heading(phi)).status;
  };
  const double e = 1e-9;
  EXPECT_EQ(status(1.5, -0.05 + right + e), Status::kOk);
  EXPECT_EQ(status(1.5, -0.05 + right - e), Status::kOutsideMap);
  EXPECT_EQ(status(1.5, 4.05 - left - e), Status::kOk);
  EXPECT_EQ(status(1.5, 4.05 - left + e), Status::kOutsideMap);
  const SinCos north{1.0, 0.0};
  EXPECT_EQ(status(2.95 - right - e, 2.0, north), Status::kOk);
  EXPECT_EQ(status(2.95 - right + e, 2.0, north), Status::kOutsideMap);
  EXPECT_EQ(status(-0.05 + left + e, 2.0, north), Status::kOk);
  EXPECT_EQ(status(-0.05 + left - e, 2.0, north), Status::kOutsideMap);
  // The cells of one row are unknown: ground is up to the row before.
  for (int ix = 0; ix < 30; ++ix) map.at(ix, 30) = kNanF;
  EXPECT_EQ(status(1.5, 2.9 - left - e), Status::kOk);
  EXPECT_EQ(status(1.5, 2.9 - left + e), Status::kUnknownGround);
  EXPECT_EQ(status(1.5, 3.1 + right + e), Status::kOk);
  EXPECT_EQ(status(1.5, 3.1 + right - e), Status::kUnknownGround);
  // A level wheel would stand on known ground there.
  EXPECT_EQ(wheel_contact(map.view, wheel(), 1.5, 2.9 - left + e, east).status, Status::kOk);
}

TEST(WheelContact, AHigherWheelDatumShiftsTheResult) {
  Map low(30, 41, 0.5, -0.5, 0.1);
  Map high(30, 41, 0.5, -0.5, 0.1);
  std::mt19937 random(48);
  std::uniform_int_distribution<int> eighths(-4, 4);  // exact in float32 at both heights
  for (std::size_t i = 0; i < low.z.size(); ++i) {
    low.z[i] = 0.125f * static_cast<float>(eighths(random));
    high.z[i] = low.z[i] + 4096.0f;
  }
  std::uniform_real_distribution<double> u(1.0, 3.0), v(0.2, 3.0), angle(-kPi, kPi);
  for (int i = 0; i < 300; ++i) {
    const double x = u(random), y = v(random);
    const SinCos h = heading(angle(random));
    const SinCos lean = any_lean(random);
    const WheelHeight a = wheel_height(low.view, wheel(), x, y, h, lean);
    const WheelHeight b = wheel_height(high.view, wheel(), x, y, h, lean);
    ASSERT_EQ(a.status, b.status);
    if (a.status == Status::kOk) {
      ASSERT_NEAR(b.height_m - a.height_m, 4096.0, 1e-11);
    }
  }
}

}  // namespace
