// MLNAV_ASSERT with a hook. This file sees nothing of the core but the macro.
#include <gtest/gtest.h>

#include <string>

#undef MLNAV_ASSERT_MODE
#define MLNAV_ASSERT_MODE 2
#include "mlnav/assert.hpp"

static_assert(MLNAV_ASSERT_MODE == MLNAV_ASSERT_HOOK);

namespace {
struct Failed {
  int times = 0;
  std::string condition, function;
  int line = 0;
} failed;
}  // namespace

extern "C" void mlnav_assert_failed(const char* condition, const char* function,
                                    int line) noexcept {
  failed = {failed.times + 1, condition, function, line};
}

namespace {

constexpr int kLine = __LINE__ + 2;
int asserts(int value) {
  MLNAV_ASSERT(value > 0 && "a comment");
  return value;
}

TEST(Assert, TheHookIsToldWhatFailed) {
  failed = {};
  EXPECT_EQ(asserts(1), 1);
  EXPECT_EQ(failed.times, 0);
  EXPECT_EQ(asserts(-1), -1);  // it returned: the program goes on
  EXPECT_EQ(failed.times, 1);
  EXPECT_EQ(failed.condition, "value > 0 && \"a comment\"");
  EXPECT_EQ(failed.function, "asserts");
  EXPECT_EQ(failed.line, kLine);
}

}  // namespace
