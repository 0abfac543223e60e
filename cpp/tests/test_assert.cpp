// A failed assertion of the core stops the tests' build (MLNAV_ASSERT=abort).
#include <gtest/gtest.h>

#include <vector>

#include "mlnav/search/path_tree.hpp"
#include "test_maps.hpp"

namespace mlnav {
namespace {

#if MLNAV_ASSERT_MODE != MLNAV_ASSERT_ABORT
#error "the tests are built with MLNAV_ASSERT=abort"
#endif

TEST(AssertDeathTest, AnIdOutOfRangeStopsTheProgram) {
  maps::Memory memory(Arena::kAlignment + PathTree::memory_required({}));
  Arena arena(memory.data(), memory.size());
  PathTree tree;
  ASSERT_TRUE(tree.init({}, 30 * kDeg, &arena).ok());
  EXPECT_EQ(tree.second_arc_pose(0), tree.turn_poses() + tree.first_arcs() * tree.poses_per_arc());
  EXPECT_DEATH((void)tree.second_arc_pose(tree.paths()), "");
  EXPECT_DEATH((void)tree.second_arc_pose(-1), "");
  EXPECT_DEATH((void)tree.arc(tree.curvatures()), "");
  EXPECT_DEATH((void)tree.turn_pose_angle_rad(tree.turn_poses()), "");
}

}  // namespace
}  // namespace mlnav
