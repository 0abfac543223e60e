// Golden plans: a scene made by integer arithmetic, so that it has the same bits everywhere, and the
// plans it gave. A difference means that planning, ACE or the costs changed: look why, then print the
// new table with
//
//   MLNAV_PRINT_GOLDEN=1 mlnav_tests --gtest_filter='PlannerGolden.*'
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "mlnav/safety/verified.hpp"
#include "planner_rig.hpp"
#include "verified_rig.hpp"

namespace mlnav {
namespace {

// A hash of two integers (Wellons' lowbias32).
std::uint32_t hash(std::uint32_t x, std::uint32_t y) {
  std::uint32_t h = x * 0x9e3779b9U + y;
  h = (h ^ (h >> 16)) * 0x21f0aaadU;
  h = (h ^ (h >> 15)) * 0x735a2d97U;
  return h ^ (h >> 15);
}

// Heights in 1/4096 m: hills between knots 16 cells apart, rocks (square pyramids), a ditch, a hole.
int height_of(int ix, int iy) {
  const int kx = ix / 16;
  const int ky = iy / 16;
  const int fx = ix % 16;
  const int fy = iy % 16;
  const auto knot = [](int x, int y) {
    return static_cast<int>(hash(static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)) %
                            1600);
  };
  int z = (knot(kx, ky) * (16 - fx) * (16 - fy) + knot(kx + 1, ky) * fx * (16 - fy) +
           knot(kx, ky + 1) * (16 - fx) * fy + knot(kx + 1, ky + 1) * fx * fy) /
          256;
  for (std::uint32_t rock = 0; rock < 26; ++rock) {
    const int rx = static_cast<int>(hash(rock, 77) % 128);
    const int ry = static_cast<int>(hash(rock, 78) % 112);
    const int top = 400 + static_cast<int>(hash(rock, 79) % 1200);
    const int away = std::max(std::abs(ix - rx), std::abs(iy - ry));
    z += std::max(0, top - 420 * away);
  }
  if (std::abs(3 * ix + iy - 300) < 5) z -= 900;
  return z;
}

maps::Terrain scene() {
  maps::Terrain terrain(128, 112, 0.125, -3.0, 11.0);
  for (int iy = 0; iy < 112; ++iy) {
    for (int ix = 0; ix < 128; ++ix) {
      terrain.at(ix, iy) = static_cast<float>(height_of(ix, iy)) / 4096.0F;
      if (std::max(std::abs(ix - 100), std::abs(iy - 30)) < 5)
        terrain.at(ix, iy) = maps::kUnknownHeight;
    }
  }
  return terrain;
}

// All choices written out, so that tuned defaults leave these plans alone.
EnavConfig golden_config() {
  EnavConfig config;
  config.costmap = {4, 1.0, 0.349066, 0.08, 0.523599, 1.4};
  const double turns_deg[] = {0, 10, -10, 20, -20, 40, -40, 60, -60, 90, -90, 130, -130, 180};
  config.tree.turn_count = 14;
  for (int i = 0; i < 14; ++i) config.tree.turn_rad[i] = turns_deg[i] * kDeg;
  config.tree.curvature_count = 11;
  for (int i = 0; i < 11; ++i) {
    config.tree.curvature_per_m[i] = (i % 2 == 1 ? 1.0 : -1.0) * ((i + 1) / 2) / 15.0;
  }
  config.tree.arc_length_m = 3.0;
  config.tree.ace_step_m = 0.25;
  config.tree.turn_step_rad = 10 * kDeg;
  config.risk = {10.0, 0.3, 0.0};
  config.turn_cost = 1.0;
  config.turn_cost_per_rad = 1.6;
  config.commit_length_m = 1.0;
  config.commit_turn_rad = 30 * kDeg;
  config.memory_poses = 256;
  config.memory_failures = 0;
  config.visit_cost_per_m = 0.25;
  config.visit_radius_m = 0.8;
  config.flip_cost = 2.0;
  config.riskiest_first = false;
  config.max_map_cells = rig::kMaxCells;
  config.max_risk_cells = 16 * 100 * 100;
  return config;
}

struct Golden {
  Outcome outcome;
  int path_index;
  std::int64_t evaluations;
  int paths_tried;
  Pose2 commit_end;
};

std::vector<Golden> drive_with(AceChecker* checker, bool with_risk, const EnavConfig& config);

// Twelve cycles across, with and without a risk map (integers too).
std::vector<Golden> drive(bool with_risk, const EnavConfig& config = golden_config()) {
  RoverModel model;
  model.limits = {0.06, 30 * kDeg, 25 * kDeg, 12 * kDeg, 0.22, 0.22};
  rig::Box box(model);
  return drive_with(&box.checker, with_risk, config);
}

std::vector<Golden> drive_with(AceChecker* checker, bool with_risk, const EnavConfig& config) {
  const maps::Terrain terrain = scene();
  rig::Rig rig(checker, config);
  std::vector<float> p(4 * 32 * 28);
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i] = static_cast<float>(hash(static_cast<std::uint32_t>(i), 5) % 64) / 128.0F;
  }
  const RiskView risk{p.data(), 4, 32, 28, -3.0, 11.0, 0.5};
  Pose2 pose{6.0, 15.0, 0.5};
  std::vector<Golden> out;
  for (int cycle = 0; cycle < 12; ++cycle) {
    PlanRequest request = rig::request_on(terrain, pose, {-0.5, 22.0});
    if (with_risk) request.risk = &risk;
    const PlanResult& result = rig.plan(request);
    rig::expect_result_is_sound(request, result, rig, checker);
    out.push_back({result.outcome, result.path_index, result.telemetry.ace_evaluations,
                   result.telemetry.paths_tried, result.commit_end});
    pose = result.commit_end;
  }
  return out;
}

void expect_golden(const std::vector<Golden>& got, const std::vector<Golden>& expected) {
  if (std::getenv("MLNAV_PRINT_GOLDEN") != nullptr) {
    for (const Golden& g : got) {
      std::printf("      {Outcome{%d}, %d, %" PRId64 ", %d, {%a, %a, %a}},\n",
                  static_cast<int>(g.outcome), g.path_index, g.evaluations, g.paths_tried,
                  g.commit_end.x_m, g.commit_end.y_m, g.commit_end.heading_rad);
    }
  }
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("cycle " + std::to_string(i));
    EXPECT_EQ(got[i].outcome, expected[i].outcome);
    EXPECT_EQ(got[i].path_index, expected[i].path_index);
    EXPECT_EQ(got[i].evaluations, expected[i].evaluations);
    EXPECT_EQ(got[i].paths_tried, expected[i].paths_tried);
    EXPECT_TRUE(rig::same_pose(got[i].commit_end, expected[i].commit_end))
        << got[i].commit_end.x_m << " " << got[i].commit_end.y_m << " "
        << got[i].commit_end.heading_rad;
  }
}

TEST(PlannerGolden, WithoutRisk) {
  expect_golden(
      drive(false),
      {
          {Outcome{0}, 925, 42, 4, {0x1.8p+2, 0x1.ep+3, 0x1.060a91c16b9b2p+0}},
          {Outcome{0}, 712, 29, 1, {0x1.8p+2, 0x1.ep+3, 0x1.8c152382d7364p+0}},
          {Outcome{0},
           78,
           36,
           4,
           {0x1.790306db05887p+2, 0x1.ffb69f2279216p+3, 0x1.d05967c71b7a8p+0}},
          {Outcome{0},
           79,
           35,
           3,
           {0x1.618e7d4e304dep+2, 0x1.0eb1499654708p+4, 0x1.0a4ed605afdf6p+1}},
          {Outcome{0}, 59, 37, 7, {0x1.3cf7d2c619ab6p+2, 0x1.1bc998422e05p+4, 0x1.23e86f9f4979p+1}},
          {Outcome{0},
           121,
           31,
           4,
           {0x1.3cf7d2c619ab6p+2, 0x1.1bc998422e05p+4, 0x1.3a3f87ea30bd8p+1}},
          {Outcome{0},
           0,
           25,
           1,
           {0x1.0b779aa2f4fc2p+2, 0x1.25eddeb252a1ap+4, 0x1.3a3f87ea30bd8p+1}},
          {Outcome{0},
           1,
           21,
           1,
           {0x1.b3eec4ffa099bp+1, 0x1.30122522773e4p+4, 0x1.3a3f87ea30bd8p+1}},
          {Outcome{0},
           7,
           17,
           1,
           {0x1.50ee54b9573b2p+1, 0x1.3a366b929bdaep+4, 0x1.3a3f87ea30bd8p+1}},
          {Outcome{0},
           0,
           13,
           1,
           {0x1.dbdbc8e61bb92p+0, 0x1.445ab202c0778p+4, 0x1.3a3f87ea30bd8p+1}},
          {Outcome{0},
           11,
           9,
           1,
           {0x1.1098477ed195bp+0, 0x1.4e137c2bbba83p+4, 0x1.42c81072b9461p+1}},
          {Outcome{0},
           33,
           5,
           1,
           {0x1.b782320964d6cp-3, 0x1.5679f73ab68aep+4, 0x1.53d92183ca572p+1}},
      });
}

TEST(PlannerGolden, WithRisk) {
  expect_golden(drive(true),
                {
                    {Outcome{0}, 885, 31, 1, {0x1.8p+2, 0x1.ep+3, 0x1.060a91c16b9b2p+0}},
                    {Outcome{0}, 1089, 60, 12, {0x1.8p+2, 0x1.ep+3, 0x1.8c152382d7364p+0}},
                    {Outcome{0},
                     38,
                     46,
                     2,
                     {0x1.7d3f1dbf0f922p+2, 0x1.fff257b227275p+3, 0x1.ae3745a4f9586p+0}},
                    {Outcome{0},
                     109,
                     37,
                     3,
                     {0x1.6bdcabe12ab12p+2, 0x1.0f4b7c1025c17p+4, 0x1.01c64d7d2756ep+1}},
                    {Outcome{0},
                     1,
                     25,
                     1,
                     {0x1.506ca2a8c300dp+2, 0x1.1dbffa44cfa7fp+4, 0x1.01c64d7d2756ep+1}},
                    {Outcome{0},
                     5,
                     71,
                     4,
                     {0x1.34fc99705b508p+2, 0x1.2c347879798e7p+4, 0x1.01c64d7d2756ep+1}},
                    {Outcome{0},
                     81,
                     23,
                     1,
                     {0x1.1235964e50f4bp+2, 0x1.399482df50ab4p+4, 0x1.23e86f9f4979p+1}},
                    {Outcome{0},
                     36,
                     20,
                     1,
                     {0x1.cacb1a1b84302p+1, 0x1.44fc98c7877d2p+4, 0x1.34f980b05a8a1p+1}},
                    {Outcome{0},
                     64,
                     15,
                     1,
                     {0x1.635e0d58493cep+1, 0x1.4e5e33b65a6bdp+4, 0x1.4e931a49f423bp+1}},
                    {Outcome{0},
                     55,
                     11,
                     1,
                     {0x1.de2f8e622bb71p+0, 0x1.54fe69aba73b5p+4, 0x1.682cb3e38dbd5p+1}},
                    {Outcome{0},
                     22,
                     7,
                     1,
                     {0x1.dd790b70fe8edp-1, 0x1.5aa52126b04c6p+4, 0x1.5fa42b5b0534cp+1}},
                    {Outcome{0},
                     110,
                     3,
                     1,
                     {0x1.f4cb5fba8492ep-2, 0x1.5e51a28b24271p+4, 0x1.4a4ed605afdf7p+1}},
                });
}

// The same plans for fewer evaluations.
TEST(PlannerGolden, RiskiestFirst) {
  std::vector<Golden> expected = drive(true);
  const std::int64_t evaluations[] = {31, 60, 42, 33, 25, 61, 23, 20, 15, 11, 7, 3};
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i].evaluations = evaluations[i];
  EnavConfig config = golden_config();
  config.riskiest_first = true;
  expect_golden(drive(true, config), expected);
}

// Other plans, since failures raise the price around them.
TEST(PlannerGolden, Failures) {
  EnavConfig config = golden_config();
  config.riskiest_first = true;
  config.risk.fail_price = 1.5;
  config.memory_failures = 8;  // fewer than there are
  expect_golden(drive(true, config),
                {
                    {Outcome{0}, 885, 31, 1, {0x1.8p+2, 0x1.ep+3, 0x1.060a91c16b9b2p+0}},
                    {Outcome{0}, 1089, 41, 10, {0x1.8p+2, 0x1.ep+3, 0x1.8c152382d7364p+0}},
                    {Outcome{0}, 847, 31, 1, {0x1.8p+2, 0x1.ep+3, 0x1.090fdaa22168bp+1}},
                    {Outcome{0}, 428, 69, 4, {0x1.8p+2, 0x1.ep+3, 0x1.35be0b37eff1cp+1}},
                    {Outcome{0},
                     65,
                     25,
                     1,
                     {0x1.4c10183985d7fp+2, 0x1.f29b6c145af38p+3, 0x1.4f57a4d1898b6p+1}},
                    {Outcome{0},
                     67,
                     52,
                     3,
                     {0x1.182030730bafep+2, 0x1.029b6c145af38p+4, 0x1.35be0b37eff1cp+1}},
                    {Outcome{0},
                     44,
                     25,
                     1,
                     {0x1.d6149a74b6fcbp+1, 0x1.0df240cd87273p+4, 0x1.24acfa26dee0bp+1}},
                    {Outcome{0},
                     249,
                     30,
                     2,
                     {0x1.d6149a74b6fcbp+1, 0x1.0df240cd87273p+4, 0x1.0e55e1dbf79c3p+1}},
                    {Outcome{0},
                     7,
                     25,
                     1,
                     {0x1.9423b13a09c78p+1, 0x1.1ba8e62e6ff6ap+4, 0x1.0e55e1dbf79c3p+1}},
                    {Outcome{0},
                     254,
                     37,
                     2,
                     {0x1.9423b13a09c78p+1, 0x1.1ba8e62e6ff6ap+4, 0x1.effd932220af5p+0}},
                    {Outcome{0},
                     12,
                     22,
                     1,
                     {0x1.624d984fd275p+1, 0x1.2a64ddcab836ep+4, 0x1.0087521998e03p+1}},
                    {Outcome{0},
                     12,
                     18,
                     1,
                     {0x1.28b99cc946428p+1, 0x1.38ae373fb8c0bp+4, 0x1.090fdaa22168cp+1}},
                });
}

// The certified checker, under the limits that flight keeps to.
TEST(PlannerGolden, Verified) {
  rig::Verified checker_own;
  VerifiedChecker& checker = checker_own.checker;
  ASSERT_TRUE(checker_own.init({RoverGeometry{}, SafetyLimits::flight_like()}, {}).ok());
  EnavConfig config = golden_config();
  expect_golden(drive_with(&checker, true, config),
                {
                    {Outcome{0}, 885, 34, 1, {0x1.8p+2, 0x1.ep+3, 0x1.060a91c16b9b2p+0}},
                    {Outcome{0}, 446, 56, 2, {0x1.8p+2, 0x1.ep+3, 0x1.5f66f2ed08ad4p+0}},
                    {Outcome{0},
                     83,
                     27,
                     1,
                     {0x1.8421c5e36b8b7p+2, 0x1.ffd69b841ea9ap+3, 0x1.a3ab37314cf18p+0}},
                    {Outcome{0},
                     57,
                     40,
                     2,
                     {0x1.796a20a74097ep+2, 0x1.0faa8b1332219p+4, 0x1.d6de6a648024bp+0}},
                    {Outcome{0},
                     33,
                     36,
                     2,
                     {0x1.646071f4d3aebp+2, 0x1.1ec3b632c442ap+4, 0x1.f9008c86a246dp+0}},
                    {Outcome{0},
                     39,
                     27,
                     1,
                     {0x1.477f3e707c59dp+2, 0x1.2d07952a6bc59p+4, 0x1.0d91575462348p+1}},
                    {Outcome{0},
                     57,
                     27,
                     1,
                     {0x1.2196287c5ba4ep+2, 0x1.39e32c8a9e7c4p+4, 0x1.272af0edfbce2p+1}},
                    {Outcome{0},
                     35,
                     23,
                     1,
                     {0x1.e740d1ef276f8p+1, 0x1.450147e061be3p+4, 0x1.383c01ff0cdf3p+1}},
                    {Outcome{0},
                     62,
                     18,
                     1,
                     {0x1.7df31d27a0c99p+1, 0x1.4e0dd466d3f06p+4, 0x1.51d59b98a678dp+1}},
                    {Outcome{0},
                     0,
                     13,
                     1,
                     {0x1.0dc2166a42a32p+1, 0x1.55c1ae28d9ff5p+4, 0x1.51d59b98a678dp+1}},
                    {Outcome{0},
                     33,
                     9,
                     1,
                     {0x1.3397fa0c9c1e2p+0, 0x1.5c80b4c1d9c8fp+4, 0x1.62e6aca9b789ep+1}},
                    {Outcome{0},
                     11,
                     5,
                     1,
                     {0x1.fb6d0d9283aeap-2, 0x1.608c705072e7fp+4, 0x1.694d13101df04p+1}},
                });
}

}  // namespace
}  // namespace mlnav
