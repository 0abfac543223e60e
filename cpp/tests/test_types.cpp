// Value types, the arena, and the names of statuses.
#include "mlnav/types.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "mlnav/status.hpp"

namespace {

using namespace mlnav;

alignas(Arena::kAlignment) unsigned char memory[1024];

TEST(Arena, GivesAlignedDisjointRoom) {
  Arena arena(memory, sizeof memory);
  double* a = arena.take<double>(3);
  std::uint8_t* b = arena.take<std::uint8_t>(1);
  float* c = arena.take<float>(16);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  ASSERT_NE(c, nullptr);
  for (const void* p : {static_cast<void*>(a), static_cast<void*>(b), static_cast<void*>(c)}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % Arena::kAlignment, 0u);
  }
  EXPECT_GE(static_cast<void*>(b), static_cast<void*>(a + 3));
  EXPECT_GE(static_cast<void*>(c), static_cast<void*>(b + 1));
  EXPECT_EQ(arena.used_bytes(), 3 * Arena::kAlignment);
}

TEST(Arena, CostIsWhatTakeUses) {
  Arena arena(memory, sizeof memory);
  const std::size_t cost =
      Arena::cost<double>(9) + Arena::cost<float>(1) + Arena::cost<char>(0) + Arena::cost<int>(16);
  arena.take<double>(9);
  arena.take<float>(1);
  arena.take<char>(0);
  arena.take<int>(16);
  EXPECT_EQ(arena.used_bytes(), cost);
}

TEST(Arena, FitsExactlyAndNotOneByteMore) {
  const std::size_t cost = Arena::cost<double>(9) + Arena::cost<float>(5);
  Arena fits(memory, cost);
  EXPECT_NE(fits.take<double>(9), nullptr);
  EXPECT_NE(fits.take<float>(5), nullptr);
  EXPECT_EQ(fits.take<char>(1), nullptr);

  Arena small(memory, Arena::cost<double>(9) - Arena::kAlignment);
  EXPECT_EQ(small.take<double>(9), nullptr);
  EXPECT_EQ(small.used_bytes(), 0u);  // a refusal takes nothing
  EXPECT_NE(small.take<double>(8), nullptr);
}

TEST(Arena, ASizeThatIsNoMultipleOfTheAlignmentIsNotOverrun) {
  Arena arena(memory, 100);
  EXPECT_NE(arena.take<char>(70), nullptr);  // its padding reaches beyond the end
  EXPECT_LE(arena.used_bytes(), 100u);
  EXPECT_EQ(arena.take<char>(1), nullptr);
}

TEST(Arena, UnalignedMemoryCostsAtMostOneAlignment) {
  for (std::size_t shift = 0; shift < Arena::kAlignment; ++shift) {
    const std::size_t need = Arena::cost<double>(4) + Arena::cost<char>(3);
    Arena arena(memory + shift, need + Arena::kAlignment - 1);
    double* a = arena.take<double>(4);
    char* b = arena.take<char>(3);
    ASSERT_NE(a, nullptr);
    ASSERT_NE(b, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % Arena::kAlignment, 0u);
    EXPECT_LE(b + 3, reinterpret_cast<char*>(memory) + shift + need + Arena::kAlignment - 1);
  }
}

TEST(Arena, RefusesNonsense) {
  Arena none;
  EXPECT_EQ(none.take<int>(1), nullptr);
  Arena null(nullptr, 100);
  EXPECT_EQ(null.take<int>(1), nullptr);
  Arena tiny(memory + 1, 5);
  EXPECT_EQ(tiny.take<char>(1), nullptr);
  Arena arena(memory, sizeof memory);
  EXPECT_EQ(arena.take<char>(SIZE_MAX), nullptr);
  EXPECT_EQ(arena.take<double>(SIZE_MAX / 8 + 2), nullptr);  // count * size wraps round
  EXPECT_EQ(arena.take<char>(SIZE_MAX - 10), nullptr);       // padding wraps round
  EXPECT_NE(arena.take<char>(sizeof memory), nullptr);
}

TEST(Bounds, IsClosed) {
  const Bounds bounds{-1.0, 2.0};
  EXPECT_TRUE(bounds.contains(-1.0));
  EXPECT_TRUE(bounds.contains(2.0));
  EXPECT_FALSE(bounds.contains(2.0000001));
  EXPECT_FALSE(bounds.contains(-1.0000001));
  EXPECT_EQ(bounds.width(), 3.0);
}

TEST(Span, Iterates) {
  int values[] = {3, 4, 5};
  const Span<int> span{values, 3};
  int sum = 0;
  for (int v : span) sum += v;
  EXPECT_EQ(sum, 12);
  EXPECT_EQ(span[2], 5);
}

TEST(Status, EveryValueHasItsOwnName) {
  std::set<std::string> names;
  const int last = static_cast<int>(Status::kCostMapBadShape);
  for (int i = 0; i <= last; ++i) {
    const char* name = to_string(static_cast<Status>(i));
    ASSERT_NE(name, nullptr);
    EXPECT_STRNE(name, "invalid status") << i;
    names.insert(name);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last + 1));
  EXPECT_STREQ(to_string(static_cast<Status>(last + 1)), "invalid status");
  EXPECT_STREQ(to_string(static_cast<Status>(255)), "invalid status");
  EXPECT_TRUE(Fault{}.ok());
  EXPECT_FALSE((Fault{Status::kConfigBad, "x"}.ok()));
}

}  // namespace
