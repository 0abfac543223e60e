#include "mlnav/search/path_tree.hpp"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "test_maps.hpp"

namespace mlnav {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kCommitTurn = 30 * kDeg;

struct Tree {
  explicit Tree(const PathTreeConfig& config = {}, double commit_turn_rad = kCommitTurn)
      : memory(PathTree::memory_required(config)), arena(memory.data(), memory.size()) {
    const Fault fault = tree.init(config, commit_turn_rad, &arena);
    EXPECT_EQ(fault.status, Status::kOk) << fault.field;
    EXPECT_STREQ(fault.field, "");
  }
  maps::Memory memory;
  Arena arena;
  PathTree tree;
};

TEST(PathTree, DefaultsGiveThePublishedCounts) {
  const Tree t;
  EXPECT_EQ(t.tree.config().ace_step_m, 0.25);
  EXPECT_EQ(t.tree.turns(), 14);
  EXPECT_EQ(t.tree.curvatures(), 11);
  EXPECT_EQ(t.tree.poses_per_arc(), 12);
  EXPECT_EQ(t.tree.first_arcs(), 154);
  EXPECT_EQ(t.tree.paths(), 1694);
  EXPECT_EQ(t.tree.arc_poses(), 22176);
  EXPECT_EQ(t.tree.turn_poses(), 29);  // every 10 deg out to +160 and to -130 deg
  EXPECT_EQ(t.tree.poses(), 22205);
}

// What is left of a turn after its committed part is a turn again.
TEST(PathTree, DefaultTurnsAreClosedUnderCommitting) {
  const PathTreeConfig config{};
  for (int t = 0; t < config.turn_count; ++t) {
    const double turn = config.turn_rad[t];
    if (std::fabs(turn) <= kCommitTurn) continue;
    const double rest = turn - std::copysign(kCommitTurn, turn);
    bool found = false;
    for (int u = 0; u < config.turn_count; ++u) {
      found |= std::fabs(config.turn_rad[u] - rest) < 1e-9;
    }
    EXPECT_TRUE(found) << turn / kDeg;
  }
}

// Ids are dense, belong to one arc or turning angle each, and paths share those of common prefixes.
TEST(PathTree, IdsAreDenseAndSharedByPrefixesAlone) {
  const Tree t;
  const PathTree& tree = t.tree;
  std::set<int> seen;
  for (int turn = 0; turn < tree.turns(); ++turn) {
    for (int i = 0; i < tree.turn_pose_count(turn); ++i) {
      const int id = tree.turn_pose_begin(turn) + i;
      EXPECT_GE(id, 0);
      EXPECT_LT(id, tree.turn_poses());
      seen.insert(id);
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), tree.turn_poses()) << "a turning pose no path passes";

  const auto insert_arc = [&](int begin) {
    for (int i = 0; i < tree.poses_per_arc(); ++i) {
      EXPECT_GE(begin + i, tree.turn_poses());
      EXPECT_LT(begin + i, tree.poses());
      EXPECT_TRUE(seen.insert(begin + i).second) << "two arcs share pose " << begin + i;
    }
  };
  for (int turn = 0; turn < tree.turns(); ++turn) {
    for (int a = 0; a < tree.curvatures(); ++a) {
      insert_arc(tree.first_arc_pose(turn, a));
      for (int b = 0; b < tree.curvatures(); ++b) {
        insert_arc(tree.second_arc_pose((turn * tree.curvatures() + a) * tree.curvatures() + b));
      }
    }
  }
  EXPECT_EQ(static_cast<int>(seen.size()), tree.poses());
}

// From the start to each turn's end, no two poses are further apart than the step, the last one is
// the end itself, and none is on the other side.
void expect_turns_are_covered(const PathTree& tree, const PathTreeConfig& config,
                              double commit_turn_rad) {
  for (int turn = 0; turn < tree.turns(); ++turn) {
    const double target = config.turn_rad[turn];
    const int count = tree.turn_pose_count(turn);
    double angle = 0.0;
    bool passes_commit = std::fabs(target) <= commit_turn_rad;
    for (int i = 0; i < count; ++i) {
      const double next = tree.turn_pose_angle_rad(tree.turn_pose_begin(turn) + i);
      EXPECT_GT(next * target, 0.0);
      EXPECT_GT(std::fabs(next), std::fabs(angle));
      EXPECT_LE(std::fabs(next - angle), config.turn_step_rad + 1e-9);
      passes_commit |= std::fabs(std::fabs(next) - commit_turn_rad) < 1e-9;
      angle = next;
    }
    EXPECT_NEAR(angle, target, 1e-9) << "turn " << turn;
    EXPECT_TRUE(passes_commit) << "no checked pose where turn " << turn << " is committed";
  }
}

TEST(PathTree, TurningPosesAreNoFurtherApartThanTheStep) {
  expect_turns_are_covered(Tree().tree, {}, kCommitTurn);
  expect_turns_are_covered(Tree(PathTreeConfig{}).tree, {}, kCommitTurn);
  // Commit angles and steps that divide nothing.
  maps::Random random(5);
  for (int n = 0; n < 200; ++n) {
    PathTreeConfig config;
    config.turn_count = random.between(1, 20);
    for (int i = 0; i < config.turn_count; ++i) config.turn_rad[i] = random.uniform(-kPi, kPi);
    if (random.chance(0.3)) config.turn_rad[0] = 0.0;
    if (random.chance(0.3)) config.turn_rad[config.turn_count - 1] = -kPi;
    config.turn_step_rad = random.uniform(1 * kDeg, 45 * kDeg);
    const double commit = random.uniform(1 * kDeg, kPi);
    const Tree t(config, commit);
    expect_turns_are_covered(t.tree, config, commit);
  }
}

TEST(PathTree, NoTurnHasNoTurningPose) {
  PathTreeConfig config;
  config.turn_count = 4;
  config.turn_rad[1] = 10 * kDeg;
  config.turn_rad[2] = -10 * kDeg;
  config.turn_rad[3] = kPi;
  const Tree t(config);
  EXPECT_EQ(t.tree.turn_pose_count(0), 0);
  EXPECT_EQ(t.tree.turn_pose_count(1), 1);
  EXPECT_EQ(t.tree.turn_pose_count(2), 1);
  EXPECT_EQ(t.tree.turn_pose_count(3), 18);
  EXPECT_NE(t.tree.turn_pose_begin(1), t.tree.turn_pose_begin(2));
}

// A constant-curvature arc is x' = cos(heading), y' = sin(heading), heading' = curvature: integrated
// here by many small midpoint steps with libm.
Pose2 integrate(Pose2 pose, double curvature, double length) {
  constexpr int kSteps = 20000;
  const double ds = length / kSteps;
  for (int i = 0; i < kSteps; ++i) {
    const double mid = pose.heading_rad + 0.5 * curvature * ds;
    pose.x_m += ds * std::cos(mid);
    pose.y_m += ds * std::sin(mid);
    pose.heading_rad += curvature * ds;
  }
  return pose;
}

TEST(PathTree, ArcsMatchNumericIntegration) {
  maps::Random random(7);
  for (int n = 0; n < 60; ++n) {
    const Pose2 start{random.uniform(-50, 50), random.uniform(-50, 50), random.uniform(-7, 7)};
    double curvature = random.uniform(-2.0, 2.0);
    if (n < 5) curvature = 0.0;
    if (n >= 5 && n < 20) curvature *= 1e-4;  // where the series takes over
    const double length = random.uniform(0.01, 6.0);
    const Pose2 exact = integrate(start, curvature, length);
    const Pose2 pose = along_arc(start, curvature, length);
    EXPECT_NEAR(pose.x_m, exact.x_m, 3e-8) << curvature << " " << length;
    EXPECT_NEAR(pose.y_m, exact.y_m, 3e-8) << curvature << " " << length;
    EXPECT_NEAR(pose.heading_rad, exact.heading_rad, 1e-9);
  }
}

TEST(PathTree, ArcsAreContinuousInTheCurvatureAcrossTheSeries) {
  const double s = 3.0;
  const double switch_at = 2e-4 / s;  // |half turn| = 1e-4
  const Pose2 below = along_arc({}, switch_at * (1 - 1e-9), s);
  const Pose2 above = along_arc({}, switch_at * (1 + 1e-9), s);
  EXPECT_NEAR(below.x_m, above.x_m, 1e-12);
  EXPECT_NEAR(below.y_m, above.y_m, 1e-12);
}

TEST(PathTree, ArcTablesHoldPosesAndTheirSines) {
  const Tree t;
  const PathTreeConfig config{};
  for (int a = 0; a < t.tree.curvatures(); ++a) {
    double x = 0.0;
    double y = 0.0;
    for (int i = 0; i < t.tree.poses_per_arc(); ++i) {
      const PathTree::ArcPose& p = t.tree.arc(a)[i];
      const Pose2 exact = integrate({}, config.curvature_per_m[a], 0.25 * (i + 1));
      EXPECT_NEAR(p.x_m, exact.x_m, 1e-8);
      EXPECT_NEAR(p.y_m, exact.y_m, 1e-8);
      EXPECT_NEAR(p.turned_rad, exact.heading_rad, 1e-12);
      EXPECT_NEAR(p.sin, std::sin(exact.heading_rad), 1e-12);
      EXPECT_NEAR(p.cos, std::cos(exact.heading_rad), 1e-12);
      EXPECT_LE(std::hypot(p.x_m - x, p.y_m - y), config.ace_step_m + 1e-12);
      x = p.x_m;
      y = p.y_m;
    }
  }
  // Left is positive, as everywhere.
  EXPECT_GT(t.tree.arc(1)[11].y_m, 0.0);
  EXPECT_LT(t.tree.arc(2)[11].y_m, 0.0);
}

TEST(PathTree, OddSets) {
  PathTreeConfig config;
  config.turn_count = 1;
  config.turn_rad[0] = 0.0;
  config.curvature_count = 1;
  config.curvature_per_m[0] = 0.2;
  config.arc_length_m = 1.0;
  config.ace_step_m = 1.0;
  const Tree one(config);
  EXPECT_EQ(one.tree.paths(), 1);
  EXPECT_EQ(one.tree.turn_poses(), 0);
  EXPECT_EQ(one.tree.poses(), 2);
  EXPECT_EQ(one.tree.first_arc_pose(0, 0), 0);
  EXPECT_EQ(one.tree.second_arc_pose(0), 1);

  // All turns to one side, the same one twice, none of them a multiple of the step; the commit angle
  // lies beyond the widest and adds nothing.
  config = {};
  config.turn_count = 3;
  config.turn_rad[0] = -25 * kDeg;
  config.turn_rad[1] = -25 * kDeg;
  config.turn_rad[2] = -7 * kDeg;
  config.curvature_count = 3;
  const Tree odd(config);
  EXPECT_EQ(odd.tree.turn_poses(), 4);  // -7, -10, -20, -25
  EXPECT_EQ(odd.tree.turn_pose_count(0), 4);
  EXPECT_EQ(odd.tree.turn_pose_count(1), 4);
  EXPECT_EQ(odd.tree.turn_pose_count(2), 1);
  EXPECT_EQ(odd.tree.paths(), 27);
  EXPECT_EQ(odd.tree.arc_poses(), (9 + 27) * 12);
}

TEST(PathTree, ArenaOneByteShortIsRefused) {
  const std::size_t bytes = PathTree::memory_required({});
  maps::Memory memory(bytes);
  for (const std::size_t size : {std::size_t{0}, std::size_t{64}, bytes / 2, bytes - 64}) {
    Arena arena(memory.data(), size);
    PathTree tree;
    EXPECT_EQ(tree.init({}, kCommitTurn, &arena).status, Status::kArenaTooSmall) << size;
  }
  Arena arena(memory.data(), bytes);
  PathTree tree;
  EXPECT_EQ(tree.init({}, kCommitTurn, &arena).status, Status::kOk);
}

TEST(PathTree, ValidateNamesTheField) {
  EXPECT_TRUE(validate(PathTreeConfig{}).ok());
  struct Case {
    const char* field;
    void (*spoil)(PathTreeConfig*, double);
    double values[6];
  };
  const Case cases[] = {
      {"turn_count",
       [](PathTreeConfig* c, double v) { c->turn_count = static_cast<int>(v); },
       {0, -1, 65, 1e9, -1e9, 66}},
      {"curvature_count",
       [](PathTreeConfig* c, double v) { c->curvature_count = static_cast<int>(v); },
       {0, -1, 65, 1e9, -1e9, 66}},
      {"turn_rad",
       [](PathTreeConfig* c, double v) { c->turn_rad[0] = v; },
       {kNan, kInf, -kInf, 3.2, -3.2, 180}},
      {"turn_rad",
       [](PathTreeConfig* c, double v) { c->turn_rad[13] = v; },
       {kNan, kInf, -kInf, 3.2, -3.2, 180}},
      {"curvature_per_m",
       [](PathTreeConfig* c, double v) { c->curvature_per_m[10] = v; },
       {kNan, kInf, -kInf, 2.1, -2.1, 1e9}},
      {"arc_length_m",
       [](PathTreeConfig* c, double v) { c->arc_length_m = v; },
       {kNan, kInf, -kInf, 0.0, -3.0, 51.0}},
      {"ace_step_m",
       [](PathTreeConfig* c, double v) { c->ace_step_m = v; },
       {kNan, kInf, 0.0, -0.25, 0.001, 1.5}},
      // Does not divide the arc, or into too many.
      {"ace_step_m",
       [](PathTreeConfig* c, double v) { c->ace_step_m = v; },
       {0.26, 0.9, 0.31, 0.0100001, 0.011, 0.250001}},
      {"turn_step_rad",
       [](PathTreeConfig* c, double v) { c->turn_step_rad = v; },
       {kNan, kInf, -1.0, 0.0, 0.5 * kDeg, 46 * kDeg}},
  };
  for (const Case& c : cases) {
    for (const double value : c.values) {
      PathTreeConfig config;
      c.spoil(&config, value);
      const Fault fault = validate(config);
      EXPECT_EQ(fault.status, Status::kConfigBad) << c.field << " = " << value;
      EXPECT_STREQ(fault.field, c.field) << value;
      maps::Memory memory(1 << 16);
      Arena arena(memory.data(), memory.size());
      PathTree tree;
      EXPECT_STREQ(tree.init(config, kCommitTurn, &arena).field, c.field);
    }
  }
  // Entries beyond the counts are not looked at.
  PathTreeConfig config;
  config.turn_rad[14] = kNan;
  config.curvature_per_m[11] = kNan;
  EXPECT_TRUE(validate(config).ok());
}

}  // namespace
}  // namespace mlnav
