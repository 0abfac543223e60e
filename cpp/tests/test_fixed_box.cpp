#include "mlnav/safety/fixed_box.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "mlnav/safety/ace_map.hpp"
#include "naive_fixed_box.hpp"

namespace mlnav {
namespace {

struct Scene {
  std::vector<float> z;
  GridView view;
};

// Sloping ground with hemispherical rocks and, sometimes, unknown patches.
Scene make_scene(std::mt19937& rng, int nx, int ny, double resolution, bool holes) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  Scene scene;
  scene.z.resize(static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny));
  scene.view = {scene.z.data(), nx, ny, 100 * unit(rng), 100 * unit(rng), resolution};
  const double steepest = rng() % 2 == 0 ? 0.15 : 0.5;
  const double gx = steepest * unit(rng);
  const double gy = steepest * unit(rng);
  const double noise = 0.02 * std::fabs(unit(rng));
  struct Rock {
    double x, y, r;
  };
  std::vector<Rock> rocks;
  const double area = nx * ny * resolution * resolution;
  for (int i = 0; i < area * 0.3; ++i) {
    rocks.push_back({0.5 * nx * (1 + unit(rng)), 0.5 * ny * (1 + unit(rng)),
                     (0.05 + 0.15 * unit(rng) * unit(rng)) / resolution});
  }
  for (int iy = 0; iy < ny; ++iy) {
    for (int ix = 0; ix < nx; ++ix) {
      double rise = 0.0;
      for (const Rock& rock : rocks) {
        const double r2 =
            rock.r * rock.r - (ix - rock.x) * (ix - rock.x) - (iy - rock.y) * (iy - rock.y);
        if (r2 > 0) rise = std::max(rise, 0.7 * std::sqrt(r2) * resolution);
      }
      scene.z[static_cast<std::size_t>(iy * nx + ix)] =
          static_cast<float>((gx * ix + gy * iy) * resolution + rise + noise * unit(rng) + 40 * gx);
    }
  }
  if (holes) {
    for (int i = 0; i < 3; ++i) {
      const int hx = static_cast<int>(0.5 * nx * (1 + unit(rng)));
      const int hy = static_cast<int>(0.5 * ny * (1 + unit(rng)));
      for (int iy = hy; iy < std::min(ny, hy + 3); ++iy)
        for (int ix = hx; ix < std::min(nx, hx + 2); ++ix)
          scene.z[static_cast<std::size_t>(iy * nx + ix)] = NAN;
    }
  }
  return scene;
}

struct Fixture {
  std::vector<char> memory;
  Arena arena;
  FixedBoxChecker checker;
  NaiveFixedBox naive;
  AceMapper mapper;

  explicit Fixture(const SafetyLimits& limits, double half_m = 0.2, std::size_t cells = 40000) {
    memory.resize(FixedBoxChecker::memory_required(cells) + AceMapper::memory_required(cells) +
                  Arena::kAlignment);
    arena = Arena(memory.data(), memory.size());
    naive.model.limits = limits;
    naive.config = {half_m, 0.8 * half_m};
    EXPECT_TRUE(checker.init(naive.model, naive.config, cells, &arena).ok());
    EXPECT_EQ(mapper.init(cells, &arena), Status::kOk);
  }
  void look_at(const Scene& scene) {
    naive.map = scene.view;
    ASSERT_EQ(checker.set_map(scene.view), Status::kOk);
  }
};

TEST(FixedBox, AgreesWithItsDefinitionAtRandomPoses) {
  std::mt19937 rng(11);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  int seen[kReasonCount + 1] = {};
  for (int n = 0; n < 40; ++n) {
    const double resolution = n % 4 == 0 ? 0.1 : 0.06 + 0.16 * std::fabs(unit(rng));
    const Scene scene = make_scene(rng, 85, 92, resolution, n % 5 == 0);
    SafetyLimits limits = n % 2 == 0 ? SafetyLimits::enav_like() : SafetyLimits::flight_like();
    if (n % 4 == 3)
      limits.clearance_min_m = 0.45;  // else the other limits nearly always bind first
    Fixture f(limits, 0.12 + 0.1 * std::fabs(unit(rng)));
    f.look_at(scene);
    for (int p = 0; p < 250; ++p) {
      const GridView& v = scene.view;
      const Pose2 pose{v.center_x_m(42) + 0.5 * unit(rng) * v.nx * v.resolution_m,
                       v.center_y_m(46) + 0.5 * unit(rng) * v.ny * v.resolution_m,
                       p % 7 == 0 ? kPi / 2 * (p % 5) : 10 * unit(rng)};
      const NaiveFixedBox::Result expected = f.naive.check(pose);
      Reasons reasons = 0;
      const bool safe = f.checker.is_safe(Stance{pose}, &reasons);
      ASSERT_EQ(reasons, expected.reasons) << "scene " << n << " pose " << p;
      ASSERT_EQ(safe, reasons == 0);
      const AceReport report = f.checker.report(Stance{pose});
      ASSERT_EQ(report.safe, safe);
      EXPECT_EQ(report.reasons & reasons, reasons);
      if (expected.reasons == 0 || expected.reasons == kClearance) {
        EXPECT_NEAR(report.clearance_min_m, expected.clearance_m, 1e-6);
        EXPECT_NEAR(report.roll_rad.lo, expected.roll_lo, 1e-6);
        EXPECT_NEAR(report.roll_rad.hi, expected.roll_hi, 1e-6);
        EXPECT_NEAR(report.pitch_rad.lo, expected.pitch_lo, 1e-6);
        EXPECT_NEAR(report.pitch_rad.hi, expected.pitch_hi, 1e-6);
        EXPECT_NEAR(report.margin_bogie_rad,
                    f.naive.model.limits.bogie_max_rad - expected.bogie_max, 1e-6);
        EXPECT_NEAR(report.margin_differential_rad,
                    f.naive.model.limits.differential_max_rad - expected.differential_max, 1e-6);
        EXPECT_NEAR(report.tilt_max_rad, expected.tilt_max, 1e-6);
      }
      if (reasons == 0) ++seen[kReasonCount];
      for (int bit = 0; bit < kReasonCount; ++bit) seen[bit] += (reasons >> bit) & 1;
    }
  }
  // The comparison must have met every kind of verdict.
  for (const int bit : {0, 1, 2, 3, 4, 6, 7}) EXPECT_GT(seen[bit], 5) << reason_name(bit);
  EXPECT_GT(seen[kReasonCount], 300);
}

TEST(FixedBox, DenseMapAgreesWithPoseByPose) {
  std::mt19937 rng(12);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::size_t total_safe = 0;
  for (int n = 0; n < 8; ++n) {
    const double resolution = n == 0 ? 0.1 : 0.05 + 0.15 * std::fabs(unit(rng));
    const Scene scene = make_scene(rng, 131, 118, resolution, n % 2 == 1);
    Fixture f(n % 2 == 0 ? SafetyLimits::enav_like() : SafetyLimits::flight_like());
    f.look_at(scene);
    const int bins = n == 0 ? 16 : 6;
    const std::size_t cells = scene.view.cells();
    std::vector<Reasons> reasons(static_cast<std::size_t>(bins) * cells, 0xFFFF);
    ASSERT_EQ(f.mapper.compute(f.checker, bins, {reasons.data(), reasons.size()}), Status::kOk);
    std::size_t safe_count = 0;
    for (int bin = 0; bin < bins; ++bin) {
      for (int iy = 0; iy < scene.view.ny; ++iy) {
        for (int ix = 0; ix < scene.view.nx; ++ix) {
          Reasons expected = 0;
          f.checker.is_safe(Stance{scene.view.center_x_m(ix), scene.view.center_y_m(iy),
                                   heading_of_bin(bin, bins)},
                            &expected);
          const std::size_t at = static_cast<std::size_t>(bin) * cells +
                                 static_cast<std::size_t>(iy * scene.view.nx + ix);
          ASSERT_EQ(reasons[at], expected) << "bin " << bin << " cell " << ix << ", " << iy;
          safe_count += expected == 0;
        }
      }
    }
    total_safe += safe_count;
  }
  EXPECT_GT(total_safe, 10000U);
}

// A map and a pose moved together by any amount of whole cells, and a quarter turn of both, leave the
// verdict as it is.
TEST(FixedBox, VerdictMovesWithTheGround) {
  std::mt19937 rng(17);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const Scene scene = make_scene(rng, 90, 90, 0.1, false);
  Scene turned = scene;  // quarter turn about cell (45, 45): (x, y) -> (-y, x)
  turned.view.z = turned.z.data();
  for (int iy = 0; iy < 90; ++iy) {
    for (int ix = 0; ix < 90; ++ix) {
      const int tx = 89 - iy;
      const int ty = ix;
      turned.z[static_cast<std::size_t>(ty * 90 + tx)] =
          scene.z[static_cast<std::size_t>(iy * 90 + ix)];
    }
  }
  Fixture a(SafetyLimits::enav_like());
  Fixture b(SafetyLimits::enav_like());
  a.look_at(scene);
  b.look_at(turned);
  int safe = 0;
  int differ = 0;
  for (int p = 0; p < 2000; ++p) {
    const double u = 25 * unit(rng);  // cells from the map's centre, (44.5, 44.5)
    const double v = 25 * unit(rng);
    const double heading = 3 * unit(rng);
    const double x0 = scene.view.origin_x_m + 4.45;
    const double y0 = scene.view.origin_y_m + 4.45;
    Reasons first = 0, second = 0;
    safe += a.checker.is_safe(Stance{x0 + 0.1 * u, y0 + 0.1 * v, heading}, &first);
    b.checker.is_safe(Stance{x0 - 0.1 * v, y0 + 0.1 * u, heading + kPi / 2}, &second);
    differ += first != second;
  }
  EXPECT_GT(safe, 100);
  EXPECT_LE(differ, 2);  // a panel's nearest cell may tie differently
}

TEST(FixedBox, BadInput) {
  std::mt19937 rng(14);
  const Scene scene = make_scene(rng, 70, 70, 0.1, false);
  Fixture f(SafetyLimits::enav_like());
  f.look_at(scene);
  Reasons reasons = 0;
  const double x = scene.view.center_x_m(35);
  const double y = scene.view.center_y_m(35);
  EXPECT_FALSE(f.checker.is_safe(Stance{NAN, y, 0}, &reasons));
  EXPECT_EQ(reasons, kBadPose);
  EXPECT_FALSE(f.checker.is_safe(Stance{x, y, 1e9}, &reasons));
  EXPECT_EQ(reasons, kBadPose);
  EXPECT_FALSE(f.checker.is_safe(Stance{x, INFINITY, 0}, &reasons));
  EXPECT_EQ(reasons, kBadPose);
  EXPECT_FALSE(f.checker.is_safe(Stance{1e300, -1e300, 0}, &reasons));
  EXPECT_EQ(reasons, kBorder);

  GridView huge = scene.view;
  huge.nx = 300;
  huge.ny = 300;
  EXPECT_EQ(f.checker.set_map(huge), Status::kMapTooLarge);
  GridView none;
  EXPECT_EQ(f.checker.set_map(none), Status::kMapEmpty);

  FixedBoxChecker checker;
  char small[128];
  Arena tight(small, sizeof small);
  EXPECT_EQ(checker.init({}, {}, 1000, &tight).status, Status::kArenaTooSmall);
  FixedBoxConfig config;
  config.half_width_m = NAN;
  EXPECT_STREQ(validate(config).field, "half_width_m");

  std::vector<Reasons> few(10);
  EXPECT_EQ(f.mapper.compute(f.checker, 4, {few.data(), few.size()}), Status::kOutputTooSmall);
}

// Maps smaller than the rover: everything is border, nothing is read.
TEST(FixedBox, TinyMaps) {
  for (int nx = 1; nx < 40; nx += 6) {
    for (int ny = 1; ny < 40; ny += 7) {
      std::vector<float> z(static_cast<std::size_t>(nx * ny), 1.0F);
      const GridView view{z.data(), nx, ny, 0.0, 0.0, 0.1};
      Fixture f(SafetyLimits::enav_like());
      ASSERT_EQ(f.checker.set_map(view), Status::kOk);
      Reasons reasons = 0;
      EXPECT_FALSE(f.checker.is_safe(Stance{0.05 * nx, 0.05 * ny, 0.3}, &reasons));
      EXPECT_EQ(reasons, kBorder);
      std::vector<Reasons> dense(4 * z.size(), 0);
      ASSERT_EQ(f.mapper.compute(f.checker, 4, {dense.data(), dense.size()}), Status::kOk);
      for (const Reasons r : dense) EXPECT_EQ(r, kBorder);
    }
  }
}

}  // namespace
}  // namespace mlnav
