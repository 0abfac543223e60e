// The core allocates nothing after init(). Every heap call of the process is counted while a core
// function runs: malloc is replaced by a counting one (glibc), or watched through the sanitizer's hook.
#include <cstddef>
#include <cstdlib>

#include "mlnav/ground/view.hpp"
#include "mlnav/safety/ace_map.hpp"
#include "mlnav/safety/probabilistic.hpp"
#include "mlnav/safety/verified.hpp"
#include "planner_rig.hpp"
#include "verified_rig.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define MLNAV_COUNTS_BY_HOOK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MLNAV_COUNTS_BY_HOOK 1
#endif
#endif
#if !defined(MLNAV_COUNTS_BY_HOOK) && defined(__GLIBC__)
#define MLNAV_COUNTS_BY_MALLOC 1
#endif

namespace {
// Allocations of this thread since counting was switched on; -1: off. Volatile, since compilers know
// that malloc leaves the caller's variables alone.
thread_local volatile long allocations = -1;
inline void count_one() {
  if (allocations >= 0) allocations = allocations + 1;
}
}  // namespace

#if defined(MLNAV_COUNTS_BY_HOOK)
extern "C" void __sanitizer_malloc_hook(const volatile void*, std::size_t) { count_one(); }
#elif defined(MLNAV_COUNTS_BY_MALLOC)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t size) {
  count_one();
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  count_one();
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  count_one();
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  count_one();
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  count_one();
  return __libc_memalign(alignment, size);
}
}
#endif

namespace mlnav {
namespace {

// Heap calls that `work` makes.
template <typename Work>
long allocations_of(Work work) {
  allocations = 0;
  work();
  const long counted = allocations;
  allocations = -1;
  return counted;
}

class NoAllocation : public ::testing::Test {
 protected:
  void SetUp() override {
#if !defined(MLNAV_COUNTS_BY_HOOK) && !defined(MLNAV_COUNTS_BY_MALLOC)
    GTEST_SKIP() << "no way to count heap calls on this platform";
#endif
  }
};

TEST_F(NoAllocation, TheCounterCounts) {
  volatile std::size_t size = 24;
  std::vector<std::unique_ptr<char[]>> keep(4);
  EXPECT_EQ(allocations_of([&] { keep[0].reset(new char[size]); }), 1);
  EXPECT_EQ(allocations_of([&] { keep[1] = std::make_unique<char[]>(size); }), 1);
  void* memory = nullptr;
  EXPECT_EQ(allocations_of([&] { memory = std::malloc(size); }), 1);
  EXPECT_EQ(allocations_of([&] { memory = std::realloc(memory, 100 * size); }), 1);
  std::free(memory);
  struct alignas(256) Wide {
    char byte[256];
  };
  std::unique_ptr<Wide> wide;
  EXPECT_GE(allocations_of([&] { wide.reset(new Wide); }), 1);
  EXPECT_EQ(allocations_of([] {}), 0);
}

TEST_F(NoAllocation, Checkers) {
  maps::Random random(61);
  rig::Box box;
  SettleChecker settle_checker;
  ASSERT_TRUE(settle_checker.init(RoverModel{}).ok());
  maps::Memory memory(ProbabilisticChecker::memory_required(rig::kMaxCells));
  Arena arena(memory.data(), memory.size());
  ProbabilisticChecker probabilistic;
  ASSERT_TRUE(probabilistic.init(RoverModel{}, {}, {}, rig::kMaxCells, &arena).ok());
  rig::Verified verified_own;
  VerifiedChecker& verified = verified_own.checker;
  ASSERT_TRUE(verified_own.init(RoverModel{}, {}).ok());
  AceChecker* const checkers[] = {&box.checker, &settle_checker, &probabilistic, &verified};
  for (int n = 0; n < 6; ++n) {
    const maps::Terrain terrain = maps::random_terrain(random, 12.0, 0.8);
    for (AceChecker* checker : checkers) {
      EXPECT_EQ(allocations_of([&] { checker->set_map(terrain.view()); }), 0);
      for (int i = 0; i < 40; ++i) {
        const Point2 at = terrain.anywhere(random);
        const Pose2 pose{at.x_m, at.y_m, random.uniform(-9, 9)};
        Reasons reasons;
        EXPECT_EQ(allocations_of([&] { checker->is_safe(Stance{pose}, &reasons); }), 0);
        EXPECT_EQ(allocations_of([&] { checker->report(Stance{pose}); }), 0);
      }
      Reasons reasons;
      EXPECT_EQ(allocations_of([&] { checker->is_safe(Stance{NAN, 0.0, INFINITY}, &reasons); }), 0);
    }
  }
}

TEST_F(NoAllocation, Settling) {
  maps::Random random(62);
  const maps::Terrain terrain = maps::random_terrain(random, 12.0, 0.8);
  SettleModel model;
  EXPECT_EQ(allocations_of([&] { make_settle_model(RoverGeometry{}, &model); }), 0);
  for (int i = 0; i < 60; ++i) {
    const Point2 at = terrain.near_center(random, 0.6);
    const Pose2 pose{at.x_m, at.y_m, random.uniform(-9, 9)};
    SettledState settled;
    EXPECT_EQ(allocations_of([&] { settled = settle(terrain.view(), model, Stance{pose}); }), 0);
    if (settled.status != Status::kOk) continue;
    EXPECT_EQ(allocations_of(
                  [&] { pan_clearance(terrain.view(), RoverGeometry{}, pose, settled.state); }),
              0);
  }
}

TEST_F(NoAllocation, DenseAce) {
  maps::Random random(63);
  const maps::Terrain terrain = maps::random_terrain(random, 12.0, 0.5);
  rig::Box box;
  ASSERT_EQ(box.checker.set_map(terrain.view()), Status::kOk);
  const std::size_t cells = terrain.view().cells();
  maps::Memory memory(AceMapper::memory_required(cells));
  Arena arena(memory.data(), memory.size());
  AceMapper mapper;
  ASSERT_EQ(mapper.init(cells, &arena), Status::kOk);
  std::vector<Reasons> reasons(3 * cells);
  EXPECT_EQ(
      allocations_of([&] { mapper.compute(box.checker, 3, {reasons.data(), reasons.size()}); }), 0);
  const std::vector<Sweep> poses(5, Stance{terrain.center_x_m(), terrain.center_y_m(), 1.0});
  std::vector<AceReport> reports(5);
  EXPECT_EQ(allocations_of([&] {
              check_sweeps(box.checker, {poses.data(), 5}, reasons.data(), reports.data());
            }),
            0);
}

TEST_F(NoAllocation, Plan) {
  maps::Random random(64);
  SettleChecker settle_checker;
  ASSERT_TRUE(settle_checker.init(RoverModel{}).ok());
  rig::Verified verified_own;
  VerifiedChecker& verified = verified_own.checker;
  ASSERT_TRUE(verified_own.init(RoverModel{}, {}).ok());
  rig::Box box;
  // The planner meets the checkers themselves here: a spy would allocate.
  const EnavConfig config = rig::small_config();
  bool seen[5] = {};
  int requested = 0;
  AceChecker* const checkers[] = {&box.checker, &settle_checker, &verified};
  for (AceChecker* checker : checkers) {
    maps::Memory memory(EnavPlanner::memory_required(config));
    Arena arena(memory.data(), memory.size());
    EnavPlanner planner;
    Fault fault;
    EXPECT_EQ(allocations_of([&] { fault = planner.init(config, checker, &arena); }), 0);
    ASSERT_TRUE(fault.ok());
    const auto result = std::make_unique<PlanResult>();
    for (int n = 0; n < 40; ++n) {
      const maps::Terrain terrain = maps::random_terrain(random, 14.0, 0.7 * random.unit());
      std::vector<float> p(8 * 30 * 30);
      for (float& value : p) value = static_cast<float>(random.uniform(-0.2, 1.2));
      const GridView map = terrain.view();
      const RiskView risk{p.data(), 8, 30, 30, map.origin_x_m, map.origin_y_m, 0.5};
      std::vector<std::uint8_t> keep_out(map.cells(), 0);
      for (std::size_t i = 0; i < keep_out.size(); i += 9973) keep_out[i] = 1;
      Pose2 pose{terrain.center_x_m(), terrain.center_y_m(), random.uniform(-4, 4)};
      PlanRequest request = rig::request_on(terrain, pose, terrain.anywhere(random));
      rig::OnDemand on_demand(risk);
      if (n % 2 == 0) request.risk = &risk;
      if (n % 4 != 0) request.risk_source = on_demand.source();
      if (n % 3 == 0) request.keep_out = {keep_out.data(), map.nx, map.ny};
      request.ace_budget = checker != &box.checker ? 60 : n % 5 == 0 ? 20 : -1;
      if (n % 10 == 9) request.goal = {pose.x_m, pose.y_m};
      planner.reset();
      for (int cycle = 0; cycle < 2; ++cycle) {
        EXPECT_EQ(allocations_of([&] { planner.plan(request, result.get()); }), 0);
        if (result->status == Status::kOk) seen[static_cast<int>(result->outcome)] = true;
        requested += result->telemetry.risk_requested ? 1 : 0;
        request.pose = result->commit_end;
      }
      request.pose.heading_rad = 1e9;
      EXPECT_EQ(allocations_of([&] { planner.plan(request, result.get()); }), 0);
      EXPECT_EQ(allocations_of([&] { planner.reset(); }), 0);
    }
  }
  for (const Outcome outcome :
       {Outcome::kPath, Outcome::kGoalReached, Outcome::kBudgetExhausted, Outcome::kStartUnsafe}) {
    EXPECT_TRUE(seen[static_cast<int>(outcome)]) << to_string(outcome);
  }
  EXPECT_GT(requested, 5);
}

TEST_F(NoAllocation, MapsAndCosts) {
  maps::Random random(65);
  const maps::Terrain terrain = maps::random_terrain(random, 14.0, 0.5);
  const GridView map = terrain.view();
  EXPECT_EQ(allocations_of([&] { (void)validate(map); }), 0);
  const CostmapConfig config;
  const CoarseGrid grid = coarse_grid(map, config.coarsening);
  const auto n = static_cast<std::size_t>(grid.cells());
  std::vector<float> cost(n), tilt(n), roughness(n), to_go(n);
  std::vector<double> scratch(std::max(costmap_scratch_doubles(map.nx, map.ny, config.coarsening),
                                       sobel_scratch_doubles(map.nx, map.ny)));
  Costmap costmap{grid, cost.data(), tilt.data(), roughness.data()};
  EXPECT_EQ(allocations_of([&] { build_costmap(map, nullptr, config, scratch.data(), &costmap); }),
            0);
  std::vector<float> risk(map.cells());
  EXPECT_EQ(allocations_of([&] { sobel_risk(map, {}, scratch.data(), risk.data()); }), 0);
  std::vector<std::int32_t> heap(n), position(n);
  EXPECT_EQ(allocations_of([&] {
              solve_cost_to_go(grid, cost.data(), nullptr, {0.0, 0.0}, 1.0,
                               {heap.data(), position.data()}, to_go.data());
            }),
            0);
}

TEST_F(NoAllocation, Views) {
  maps::Random random(66);
  const maps::Terrain terrain = maps::random_terrain(random, 14.0, 0.5);
  std::vector<double> azimuth, elevation;
  for (int i = 0; i < 120; ++i) azimuth.push_back(0.05 * i);
  for (int i = 0; i < 60; ++i) elevation.push_back(-1.2 + 0.02 * i);
  const RayLattice rays{
      {azimuth.data(), azimuth.size()}, {elevation.data(), elevation.size()}, 0.5, 20.0};
  std::vector<double> scratch(view_scratch_doubles(elevation.size()));
  std::vector<float> range(rays.rays());
  const Viewpoint eye{terrain.center_x_m(), terrain.center_y_m(), 3.0};
  Fault fault;
  EXPECT_EQ(allocations_of([&] {
              fault = cast_view(terrain.view(), eye, rays, scratch.data(), range.data());
            }),
            0);
  EXPECT_TRUE(fault.ok());
}

// What memory_required() says is enough at any address; less is refused, and so are larger maps.
TEST(CheckerMemory, IsSizedExactly) {
  constexpr std::size_t kCells = 60 * 50;
  const maps::Terrain fits(60, 50, 0.2);
  const maps::Terrain larger(60, 51, 0.2);
  const std::size_t box_bytes = FixedBoxChecker::memory_required(kCells);
  const std::size_t mapper_bytes = AceMapper::memory_required(kCells);
  std::vector<Reasons> reasons(2 * kCells);
  for (std::size_t shift = 0; shift < 64; shift += 3) {
    // Blocks of exactly that size, so that a sanitizer sees a cell too many.
    std::vector<unsigned char> memory(box_bytes + shift);
    std::vector<unsigned char> mapper_memory(mapper_bytes + shift);
    Arena arena(memory.data() + shift, box_bytes);
    Arena mapper_arena(mapper_memory.data() + shift, mapper_bytes);
    FixedBoxChecker checker;
    ASSERT_TRUE(checker.init(RoverModel{}, {}, kCells, &arena).ok()) << shift;
    EXPECT_EQ(checker.set_map(larger.view()), Status::kMapTooLarge);
    ASSERT_EQ(checker.set_map(fits.view()), Status::kOk);
    AceMapper mapper;
    ASSERT_EQ(mapper.init(kCells, &mapper_arena), Status::kOk) << shift;
    EXPECT_EQ(mapper.compute(checker, 2, {reasons.data(), reasons.size()}), Status::kOk);

    Arena short_arena(memory.data() + shift, box_bytes - 128);
    EXPECT_EQ(checker.init(RoverModel{}, {}, kCells, &short_arena).status, Status::kArenaTooSmall);
    Arena short_mapper_arena(mapper_memory.data() + shift, mapper_bytes - 128);
    EXPECT_EQ(mapper.init(kCells, &short_mapper_arena), Status::kArenaTooSmall);
  }
}

}  // namespace
}  // namespace mlnav
