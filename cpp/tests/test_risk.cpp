#include "mlnav/search/risk.hpp"

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "mlnav/math.hpp"
#include "test_maps.hpp"

namespace mlnav {
namespace {

constexpr float kNanF = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfF = std::numeric_limits<float>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

struct Risk {
  Risk(int bins, int nx, int ny, double resolution = 0.5, double ox = 3.0, double oy = -7.0)
      : p(static_cast<std::size_t>(bins * nx * ny), 0.0F),
        price(p.size(), -1.0F),
        view{p.data(), bins, nx, ny, ox, oy, resolution} {}
  Risk(const Risk&) = delete;
  float& at(int bin, int ix, int iy) {
    return p[static_cast<std::size_t>((bin * view.ny + iy) * view.nx + ix)];
  }
  void run() { price_risk(view, price.data()); }
  double sample(double x, double y, double heading) const {
    return sample_price(view, price.data(), x, y, heading);
  }
  double x(int ix) const { return view.origin_x_m + ix * view.resolution_m; }
  double y(int iy) const { return view.origin_y_m + iy * view.resolution_m; }

  std::vector<float> p;
  std::vector<float> price;
  RiskView view;
};

double exact_price(double p) {
  if (!std::isfinite(p) || p <= 0.0) return 0.0;
  return -std::log1p(-std::fmin(p, static_cast<double>(kMaxRisk)));
}

TEST(Risk, PriceOfValuesThatAreNoProbability) {
  EXPECT_EQ(risk_price(0.0F), 0.0);
  EXPECT_EQ(risk_price(kNanF), 0.0);
  EXPECT_EQ(risk_price(kInfF), 0.0);
  EXPECT_EQ(risk_price(-kInfF), 0.0);
  EXPECT_EQ(risk_price(-0.3F), 0.0);
  EXPECT_EQ(risk_price(-1e38F), 0.0);
  EXPECT_EQ(risk_price(1e-45F), 0.0);
  for (const float p : {kMaxRisk, 0.995F, 1.0F, 2.0F, 1e38F}) {
    EXPECT_NEAR(risk_price(p), -std::log(0.01), 1e-6) << p;
  }
  EXPECT_NEAR(risk_price(0.5F), std::log(2.0), 1e-15);
}

TEST(Risk, TheTableIsWithinTwoPerMilleOfTheLogarithm) {
  constexpr int kValues = 200000;
  Risk risk(1, kValues, 1);
  for (int i = 0; i < kValues; ++i) {
    // Evenly, and towards both ends.
    const double u = (i + 1.0) / kValues;
    const double p = i % 3 == 0   ? u
                     : i % 3 == 1 ? std::pow(10.0, -7.0 * u)
                                  : 1.0 - std::pow(10.0, -3.0 * u);
    risk.p[static_cast<std::size_t>(i)] = static_cast<float>(p);
  }
  risk.run();
  double worst = 0.0;
  for (std::size_t i = 0; i < risk.p.size(); ++i) {
    const double exact = exact_price(static_cast<double>(risk.p[i]));
    worst = std::fmax(worst, std::fabs(static_cast<double>(risk.price[i]) - exact) / exact);
  }
  EXPECT_LT(worst, 0.002);
}

TEST(Risk, TheTableTakesAnyBits) {
  maps::Random random(3);
  Risk risk(1, 50000, 1);
  for (float& p : risk.p) {
    const auto bits = static_cast<std::uint32_t>(random.bits());
    std::memcpy(&p, &bits, sizeof p);
  }
  const float special[] = {kNanF, kInfF, -kInfF, -0.0F,  0.0F,
                           1.0F,  1e38F, -1e38F, 1e-45F, kMaxRisk};
  for (std::size_t i = 0; i < std::size(special); ++i) risk.p[i] = special[i];
  risk.run();
  for (std::size_t i = 0; i < risk.p.size(); ++i) {
    const double exact = exact_price(static_cast<double>(risk.p[i]));
    ASSERT_NEAR(risk.price[i], exact, 0.002 * exact) << risk.p[i];
  }
}

TEST(Risk, PriceGrowsWithRisk) {
  Risk risk(1, 5000, 1);
  for (int i = 0; i < 5000; ++i)
    risk.p[static_cast<std::size_t>(i)] = static_cast<float>(i) / 4990.0F;
  risk.run();
  for (std::size_t i = 1; i < risk.price.size(); ++i) {
    ASSERT_GE(risk.price[i], risk.price[i - 1]) << i;
  }
}

TEST(Risk, SamplingIsNearestInSpace) {
  Risk risk(1, 5, 3);
  for (std::size_t i = 0; i < risk.price.size(); ++i) risk.price[i] = static_cast<float>(i);
  for (int iy = 0; iy < 3; ++iy) {
    for (int ix = 0; ix < 5; ++ix) {
      for (const double d : {-0.249, 0.0, 0.249}) {
        EXPECT_EQ(risk.sample(risk.x(ix) + d, risk.y(iy) - d, 1.0), iy * 5 + ix);
      }
    }
  }
}

TEST(Risk, NothingIsKnownOutside) {
  Risk risk(2, 5, 3);
  for (float& price : risk.price) price = 7.0F;
  const double eps = 1e-9;
  EXPECT_EQ(risk.sample(risk.x(0) - 0.25 + eps, risk.y(0), 0.0), 7.0);
  EXPECT_EQ(risk.sample(risk.x(0) - 0.25 - eps, risk.y(0), 0.0), 0.0);
  EXPECT_EQ(risk.sample(risk.x(4) + 0.25 - eps, risk.y(2), 0.0), 7.0);
  EXPECT_EQ(risk.sample(risk.x(4) + 0.25 + eps, risk.y(2), 0.0), 0.0);
  EXPECT_EQ(risk.sample(risk.x(2), risk.y(0) - 0.25 - eps, 0.0), 0.0);
  EXPECT_EQ(risk.sample(risk.x(2), risk.y(2) + 0.25 + eps, 0.0), 0.0);
  for (const double far : {1e9, -1e9, 1e300, -1e300, kInf, -kInf, kNan}) {
    EXPECT_EQ(risk.sample(far, risk.y(0), 0.0), 0.0);
    EXPECT_EQ(risk.sample(risk.x(0), far, 0.0), 0.0);
  }
}

TEST(Risk, SamplingIsLinearBetweenHeadingsAndAcrossTheWrap) {
  for (const int bins : {2, 3, 8, 16}) {
    Risk risk(bins, 1, 1);
    for (int k = 0; k < bins; ++k)
      risk.price[static_cast<std::size_t>(k)] = static_cast<float>(k * k + 1);
    const double step = 2.0 * kPi / bins;
    const double x = risk.x(0);
    const double y = risk.y(0);
    for (int k = 0; k < bins; ++k) {
      const double here = k * k + 1;
      const int next = (k + 1) % bins;
      const double there = next * next + 1;
      for (const double rest : {0.0, 0.25, 0.5, 0.9}) {
        const double expected = here + rest * (there - here);
        for (const int turns : {0, -1, 1, 5, -7, 100000}) {
          const double heading = (k + rest) * step + turns * 2.0 * kPi;
          EXPECT_NEAR(risk.sample(x, y, heading), expected, 1e-8 * bins * bins) << bins << " " << k;
        }
      }
    }
    // Just short of a whole turn, from either side.
    EXPECT_NEAR(risk.sample(x, y, std::nextafter(2.0 * kPi, 0.0)), 1.0, 1e-9);
    EXPECT_NEAR(risk.sample(x, y, -1e-300), 1.0, 1e-9);
    EXPECT_NEAR(risk.sample(x, y, -1e-17), 1.0, 1e-9);
  }
  Risk one(1, 1, 1);
  one.price[0] = 3.0F;
  EXPECT_EQ(one.sample(one.x(0), one.y(0), 2.5), 3.0);
}

TEST(Risk, RaisingIsSharedByTheTwoHeadingsBeside) {
  for (const int bins : {2, 3, 8, 16}) {
    const double step = 2.0 * kPi / bins;
    for (int k = 0; k < bins; ++k) {
      for (const double rest : {0.0, 0.25, 0.5, 0.9}) {
        for (const int turns : {0, -1, 7}) {
          SCOPED_TRACE(std::to_string(bins) + " " + std::to_string(k));
          Risk risk(bins, 3, 2);
          for (float& price : risk.price) price = 0.5F;
          const double heading = (k + rest) * step + turns * 2.0 * kPi;
          raise_price(risk.view, risk.price.data(), {risk.x(1) - 0.2, risk.y(1) + 0.2, heading},
                      4.0);
          const int next = (k + 1) % bins;  // from the last heading to the first
          for (int bin = 0; bin < bins; ++bin) {
            for (int cell = 0; cell < 6; ++cell) {
              double expected = 0.5;
              if (cell == 4 && bin == k) expected += (1.0 - rest) * 4.0;
              if (cell == 4 && bin == next) expected += rest * 4.0;
              EXPECT_NEAR(risk.price[static_cast<std::size_t>(bin * 6 + cell)], expected, 1e-6);
            }
          }
        }
      }
    }
  }
}

TEST(Risk, RaisingTheOnlyHeadingRaisesItByAll) {
  Risk risk(1, 2, 1);
  for (float& price : risk.price) price = 0.25F;
  int times = 0;
  for (const double heading : {0.0, 1.0, -2.5, 6.283185307179586, 100.0}) {
    raise_price(risk.view, risk.price.data(), {risk.x(1), risk.y(0), heading}, 1.5);
    ++times;
    EXPECT_EQ(risk.price[0], 0.25F);
    EXPECT_NEAR(risk.price[1], 0.25 + 1.5 * times, 1e-5);
  }
}

TEST(Risk, RaisingOutsideOrNowhereChangesNothing) {
  for (const int bins : {1, 4}) {
    Risk risk(bins, 5, 3);
    const std::vector<float> before = risk.price;
    const double x = risk.x(2);
    const double y = risk.y(1);
    std::vector<Pose2> nowhere = {{risk.x(0) - 0.2501, y, 0.0},
                                  {risk.x(4) + 0.2501, y, 0.0},
                                  {x, risk.y(0) - 0.2501, 0.0},
                                  {x, risk.y(2) + 0.2501, 0.0}};
    for (const double bad : {kNan, kInf, -kInf}) {
      nowhere.insert(nowhere.end(), {{bad, y, 0.0}, {x, bad, 0.0}, {x, y, bad}, {bad, bad, bad}});
    }
    for (const double far : {1e9, -1e9, 1e300, -1e300}) {
      nowhere.insert(nowhere.end(), {{far, y, 0.0}, {x, far, 0.0}});
    }
    for (const Pose2& pose : nowhere) {
      raise_price(risk.view, risk.price.data(), pose, 3.0);
      EXPECT_EQ(risk.price, before);
      EXPECT_EQ(risk.sample(pose.x_m, pose.y_m, pose.heading_rad), 0.0);
    }
  }
}

// At least half of what is added at a pose is read there: the squares of both headings' shares.
TEST(Risk, ARaiseIsReadWhereItWasMade) {
  maps::Random random(12);
  for (int n = 0; n < 200; ++n) {
    Risk risk(random.between(1, 16), 4, 4);
    for (float& price : risk.price) price = static_cast<float>(random.uniform(0, 3));
    const Pose2 pose{risk.x(random.between(0, 3)), risk.y(random.between(0, 3)),
                     random.uniform(-20, 20)};
    const double by = random.uniform(0, 5);
    const double before = risk.sample(pose.x_m, pose.y_m, pose.heading_rad);
    raise_price(risk.view, risk.price.data(), pose, by);
    const double raised = risk.sample(pose.x_m, pose.y_m, pose.heading_rad) - before;
    EXPECT_GE(raised, 0.5 * by - 1e-5);
    EXPECT_LE(raised, by + 1e-5);
  }
}

// The mean over headings and over the risk cells whose centres a coarse cell holds.
TEST(Risk, CoarsePriceIsTheMean) {
  maps::Random random(11);
  for (int n = 0; n < 60; ++n) {
    Risk risk(random.between(1, 4), random.between(1, 30), random.between(1, 30),
              random.uniform(0.05, 0.6), random.uniform(-5, 5), random.uniform(-5, 5));
    for (float& price : risk.price) price = static_cast<float>(random.uniform(0, 4));
    CoarseGrid grid{random.between(1, 12), random.between(1, 9), random.uniform(-6, 6),
                    random.uniform(-6, 6), random.uniform(0.3, 1.5)};
    std::vector<float> coarse(static_cast<std::size_t>(grid.cells()), -1.0F);
    coarse_price(risk.view, risk.price.data(), grid, coarse.data());
    for (int cy = 0; cy < grid.ny; ++cy) {
      for (int cx = 0; cx < grid.nx; ++cx) {
        const double x = grid.origin_x_m + cx * grid.resolution_m;
        const double y = grid.origin_y_m + cy * grid.resolution_m;
        double sum = 0.0;
        int count = 0;
        for (int iy = 0; iy < risk.view.ny; ++iy) {
          for (int ix = 0; ix < risk.view.nx; ++ix) {
            if (std::fabs(risk.x(ix) - x) >= 0.5 * grid.resolution_m) continue;
            if (std::fabs(risk.y(iy) - y) >= 0.5 * grid.resolution_m) continue;
            for (int bin = 0; bin < risk.view.bins; ++bin) {
              sum += static_cast<double>(risk.price[static_cast<std::size_t>(
                  (bin * risk.view.ny + iy) * risk.view.nx + ix)]);
              ++count;
            }
          }
        }
        const float got = coarse[static_cast<std::size_t>(cy * grid.nx + cx)];
        if (count > 0) {
          EXPECT_NEAR(got, sum / count, 1e-5) << n;
        } else {
          // Coarser than the costmap, or beyond the map: some price of the map, or none.
          EXPECT_GE(got, 0.0F);
          EXPECT_LE(got, 4.0F);
        }
      }
    }
  }
}

// Risk cells larger than the costmap's: each coarse cell gets the risk cell it lies in.
TEST(Risk, CoarsePriceOfARiskMapThatIsCoarserStill) {
  Risk risk(2, 4, 4, 2.0, 0.0, 0.0);
  for (int i = 0; i < 16; ++i) {
    risk.price[static_cast<std::size_t>(i)] = static_cast<float>(i);
    risk.price[static_cast<std::size_t>(16 + i)] = static_cast<float>(3 * i);
  }
  CoarseGrid grid{20, 20, -1.0 + 0.2, -1.0 + 0.2, 0.4};
  std::vector<float> coarse(400, -1.0F);
  coarse_price(risk.view, risk.price.data(), grid, coarse.data());
  for (int cy = 0; cy < 20; ++cy) {
    for (int cx = 0; cx < 20; ++cx) {
      const int cell = (cy / 5) * 4 + cx / 5;
      EXPECT_FLOAT_EQ(coarse[static_cast<std::size_t>(cy * 20 + cx)],
                      2.0F * static_cast<float>(cell));
    }
  }
}

TEST(Risk, CoarsePriceIsZeroWhereTheRiskMapIsNot) {
  for (const double where : {1e3, -1e3, 1e300, -1e300}) {
    Risk risk(1, 3, 3, 0.5, where, where);
    for (float& price : risk.price) price = 5.0F;
    CoarseGrid grid{4, 4, 0.0, 0.0, 0.4};
    std::vector<float> coarse(16, -1.0F);
    coarse_price(risk.view, risk.price.data(), grid, coarse.data());
    for (const float c : coarse) EXPECT_EQ(c, 0.0F);
  }
}

TEST(Risk, Validate) {
  Risk risk(8, 5, 3);
  EXPECT_EQ(validate(risk.view), Status::kOk);
  const auto refused = [&](auto spoil) {
    RiskView view = risk.view;
    spoil(&view);
    return validate(view) == Status::kRiskBadShape;
  };
  EXPECT_TRUE(refused([](RiskView* v) { v->p = nullptr; }));
  for (const int n : {0, -1, -1000000}) {
    EXPECT_TRUE(refused([n](RiskView* v) { v->bins = n; }));
    EXPECT_TRUE(refused([n](RiskView* v) { v->nx = n; }));
    EXPECT_TRUE(refused([n](RiskView* v) { v->ny = n; }));
  }
  for (const double bad : {kNan, kInf, -kInf}) {
    EXPECT_TRUE(refused([bad](RiskView* v) { v->origin_x_m = bad; }));
    EXPECT_TRUE(refused([bad](RiskView* v) { v->origin_y_m = bad; }));
    EXPECT_TRUE(refused([bad](RiskView* v) { v->resolution_m = bad; }));
  }
  for (const double bad : {0.0, -0.5, 1e-4, 1e3}) {
    EXPECT_TRUE(refused([bad](RiskView* v) { v->resolution_m = bad; }));
  }
}

}  // namespace
}  // namespace mlnav
