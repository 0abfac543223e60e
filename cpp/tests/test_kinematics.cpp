// The chain against kinematics that share nothing with it: links placed in 3D with rotation matrices,
// libm's trigonometry, no closed form.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "mlnav/rover/kinematics.hpp"

namespace mlnav {
namespace {

struct Vec3 {
  double x, y, z;
};
Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }

struct Mat3 {
  double m[3][3];
};
Mat3 operator*(const Mat3& a, const Mat3& b) {
  Mat3 out{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 3; ++k) out.m[i][j] += a.m[i][k] * b.m[k][j];
  return out;
}
Vec3 operator*(const Mat3& a, Vec3 v) {
  return {a.m[0][0] * v.x + a.m[0][1] * v.y + a.m[0][2] * v.z,
          a.m[1][0] * v.x + a.m[1][1] * v.y + a.m[1][2] * v.z,
          a.m[2][0] * v.x + a.m[2][1] * v.y + a.m[2][2] * v.z};
}
Mat3 about_x(double a) {
  return {{{1, 0, 0}, {0, std::cos(a), -std::sin(a)}, {0, std::sin(a), std::cos(a)}}};
}
// Nose up for positive angles: minus the usual right-handed rotation about y.
Mat3 nose_up(double a) {
  return {{{std::cos(a), 0, -std::sin(a)}, {0, 1, 0}, {std::sin(a), 0, std::cos(a)}}};
}

struct Joints {
  double roll, pitch, differential, bogie[2], origin_z;
};

// Axle positions in the heading frame by composing link rotations: body, then rocker about its pivot,
// then bogie about its own.
void place_wheels(const RoverGeometry& g, const Joints& j, Vec3 axles[kWheels]) {
  const Mat3 body = about_x(j.roll) * nose_up(j.pitch);
  for (int side = 0; side < 2; ++side) {
    const double s = side == 0 ? 1.0 : -1.0;
    const Mat3 rocker = nose_up(s * j.differential);
    const Mat3 bogie = nose_up(j.bogie[side]);
    const double r = g.wheel_radius_m;
    const Vec3 pivot{g.rocker_pivot_x_m, s * 0.8, g.rocker_pivot_z_m};
    const Vec3 bogie_pivot{g.bogie_pivot_x_m, s * 0.9, g.bogie_pivot_z_m};
    const Vec3 at_rest[3] = {{g.front_x_m, s * g.front_y_m, r},
                             {0, s * g.middle_y_m, r},
                             {g.rear_x_m, s * g.rear_y_m, r}};
    const Vec3 bogie_pivot_moved = pivot + rocker * (bogie_pivot - pivot);
    for (int i = 0; i < 3; ++i) {
      const Vec3 in_body = i == 0
                               ? pivot + rocker * (at_rest[0] - pivot)
                               : bogie_pivot_moved + (rocker * bogie) * (at_rest[i] - bogie_pivot);
      axles[3 * side + i] = body * in_body + Vec3{0, 0, j.origin_z};
    }
  }
}

RoverGeometry random_rover(std::mt19937& rng) {
  std::uniform_real_distribution<double> scale(0.8, 1.25);
  RoverGeometry g;
  for (double* value :
       {&g.wheel_radius_m, &g.front_x_m, &g.rear_x_m, &g.front_y_m, &g.middle_y_m, &g.rear_y_m,
        &g.rocker_pivot_x_m, &g.rocker_pivot_z_m, &g.bogie_pivot_x_m, &g.bogie_pivot_z_m}) {
    *value *= scale(rng);
  }
  return g;
}

TEST(Kinematics, RecoversJointsOfIndependent3dModel) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (int n = 0; n < 20000; ++n) {
    const RoverGeometry g = n % 2 == 0 ? RoverGeometry{} : random_rover(rng);
    const Linkage k(g);
    // Well beyond any limit set; bogies up to 67 deg from the horizontal.
    const Joints j{35 * kDeg * unit(rng),
                   30 * kDeg * unit(rng),
                   12 * kDeg * unit(rng),
                   {25 * kDeg * unit(rng), 25 * kDeg * unit(rng)},
                   200.0 * unit(rng)};
    Vec3 axles[kWheels];
    place_wheels(g, j, axles);
    double heights[kWheels];
    for (int i = 0; i < kWheels; ++i) heights[i] = axles[i].z - g.wheel_radius_m;

    ChainState<double> s{};
    WheelPositions<double> p{};
    ASSERT_EQ(solve_chain(k, heights, &s, &p), Status::kOk) << n;
    EXPECT_NEAR(s.roll_rad, j.roll, 1e-9) << n;
    EXPECT_NEAR(s.pitch_rad, j.pitch, 1e-9) << n;
    EXPECT_NEAR(s.differential_rad, j.differential, 1e-9) << n;
    EXPECT_NEAR(s.bogie_left_rad, j.bogie[0], 1e-9) << n;
    EXPECT_NEAR(s.bogie_right_rad, j.bogie[1], 1e-9) << n;
    EXPECT_NEAR(s.origin_z_m, j.origin_z, 1e-9) << n;
    EXPECT_NEAR(tilt_rad(s), std::acos(std::cos(j.roll) * std::cos(j.pitch)), 1e-7) << n;
    for (int i = 0; i < kWheels; ++i) {
      EXPECT_NEAR(p.forward_m[i], axles[i].x, 1e-9) << n << " wheel " << i;
      EXPECT_NEAR(p.left_m[i], axles[i].y, 1e-9) << n << " wheel " << i;
    }
  }
}

TEST(Kinematics, LevelGroundIsTheRestState) {
  const Linkage k{RoverGeometry{}};
  const double heights[kWheels] = {2.5, 2.5, 2.5, 2.5, 2.5, 2.5};
  ChainState<double> s{};
  WheelPositions<double> p{};
  ASSERT_EQ(solve_chain(k, heights, &s, &p), Status::kOk);
  EXPECT_NEAR(s.roll_rad, 0.0, 1e-15);
  EXPECT_NEAR(s.pitch_rad, 0.0, 1e-15);
  EXPECT_NEAR(s.origin_z_m, 2.5, 1e-14);
  const WheelPlan plan = wheel_plan(k.g);
  for (int i = 0; i < kWheels; ++i) {
    EXPECT_NEAR(p.forward_m[i], plan.x_m[i], 1e-14);
    EXPECT_NEAR(p.left_m[i], plan.y_m[i], 1e-14);
  }
}

TEST(Kinematics, RollArmOfThePublishedRover) {
  EXPECT_NEAR(Linkage{RoverGeometry{}}.roll_arm_m, 1.10, 0.005);
}

TEST(Kinematics, SidesMirror) {
  const Linkage k{RoverGeometry{}};
  const double h[kWheels] = {0.10, -0.05, 0.03, -0.08, 0.12, 0.0};
  const double mirrored[kWheels] = {-0.08, 0.12, 0.0, 0.10, -0.05, 0.03};
  ChainState<double> a{}, b{};
  ASSERT_EQ(solve_chain(k, h, &a, nullptr), Status::kOk);
  ASSERT_EQ(solve_chain(k, mirrored, &b, nullptr), Status::kOk);
  EXPECT_NEAR(a.roll_rad, -b.roll_rad, 1e-12);
  EXPECT_NEAR(a.pitch_rad, b.pitch_rad, 1e-12);
  EXPECT_NEAR(a.differential_rad, -b.differential_rad, 1e-12);
  EXPECT_NEAR(a.bogie_left_rad, b.bogie_right_rad, 1e-12);
}

TEST(Kinematics, ImpossibleHeightsAreNamed) {
  const Linkage k{RoverGeometry{}};
  ChainState<double> s{};
  const double apart[kWheels] = {0, 1.5, 0, 0, 0, 0};
  EXPECT_EQ(solve_chain(k, apart, &s, nullptr), Status::kOutOfMechanicalRange);
  const double nan[kWheels] = {0, NAN, 0, 0, 0, 0};
  EXPECT_EQ(solve_chain(k, nan, &s, nullptr), Status::kOutOfMechanicalRange);
  const double inf[kWheels] = {0, 0, 0, INFINITY, 0, 0};
  EXPECT_EQ(solve_chain(k, inf, &s, nullptr), Status::kOutOfMechanicalRange);
}

}  // namespace
}  // namespace mlnav
