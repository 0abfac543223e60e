// MLNAV_ASSERT switched off. This file sees nothing of the core but the macro.
#include <gtest/gtest.h>

#undef MLNAV_ASSERT_MODE
#include "mlnav/assert.hpp"

static_assert(MLNAV_ASSERT_MODE == MLNAV_ASSERT_OFF, "the default");

namespace {

TEST(Assert, SwitchedOffItEvaluatesNothing) {
  int evaluated = 0;
  MLNAV_ASSERT(++evaluated > 1);
  EXPECT_EQ(evaluated, 0);
}

}  // namespace
