// Throws anything at every entry point of the core: numbers of any bits, maps of any shape, garbage
// configurations. Nothing may crash, overflow or hang (run it under ASan and UBSan), statuses must be
// what the headers promise, and what is returned must keep its invariants.
//
//   fuzz_core ITERATIONS SEED      exit 0: nothing found; a failure prints the seed to repeat it
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "mlnav/ground/wheel_height.hpp"
#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/ace_map.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"
#include "test_maps.hpp"
#include "verified_rig.hpp"

namespace mlnav {
namespace {

using maps::Random;

std::uint64_t current_seed = 0;
std::uint64_t current_iteration = 0;

// How often the interesting endings were reached: a fuzz that only meets refusals finds nothing.
struct Reached {
  long settled = 0, fixed_box_safe = 0, settle_safe = 0, verified_safe = 0, dense = 0,
       outcomes[5] = {}, short_paths = 0, risk_asked = 0, risk_requested = 0, work_exhausted = 0;
  long refused = 0, planners = 0;
} reached;

void require_that(bool ok, const char* what, int line) {
  if (ok) return;
  std::fprintf(stderr, "fuzz_core: line %d: %s\n  seed %llu, iteration %llu\n", line, what,
               static_cast<unsigned long long>(current_seed),
               static_cast<unsigned long long>(current_iteration));
  std::exit(1);
}
#define REQUIRE(condition) require_that((condition), #condition, __LINE__)

// ---- numbers -------------------------------------------------------------------------------------

constexpr double kSpecial[] = {
    0.0,      -0.0,         1.0,          -1.0,          0.5,          1e-3,   100.0,
    1e5,      1e7,          -1e7,         1e6,           -1e6,         1e9,    1e15,
    1e300,    -1e300,       1e-300,       5e-324,        -5e-324,      2e-308, 1.7e308,
    -1.7e308, 2147483647.0, 2147483648.0, -2147483649.0, 4294967296.0, 1e19,   3.14159265358979};

double any_double(Random& random) {
  switch (random.below(8)) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return random.chance(0.5) ? INFINITY : -INFINITY;
    case 2: {
      const std::uint64_t bits = random.bits();
      double x;
      std::memcpy(&x, &bits, sizeof x);
      return x;
    }
    case 3:
      return random.uniform(-1.0, 1.0);
    case 4:
      return std::ldexp(random.uniform(-1.0, 1.0), random.between(-40, 40));
    default:
      return kSpecial[static_cast<std::size_t>(
          random.below(static_cast<int>(std::size(kSpecial))))];
  }
}

float any_float(Random& random) {
  const auto bits = static_cast<std::uint32_t>(random.bits());
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return random.chance(0.5) ? x : static_cast<float>(std::clamp(any_double(random), -3e38, 3e38));
}

int any_int(Random& random) {
  constexpr int kInts[] = {0,
                           1,
                           -1,
                           2,
                           63,
                           64,
                           65,
                           1000,
                           65536,
                           std::numeric_limits<int>::max(),
                           std::numeric_limits<int>::min()};
  return random.chance(0.5) ? kInts[random.below(11)] : random.between(-5, 100);
}

// Mostly `sane`, now and then anything.
double perhaps(Random& random, double anything, double sane) {
  return random.chance(anything) ? any_double(random) : sane;
}

// ---- maps ----------------------------------------------------------------------------------------

// A map that passes validate(): tiny or thin ones too, at hard places, of ground from flat to absurd.
maps::Terrain valid_map(Random& random) {
  const bool tiny = random.chance(0.25);
  const int nx = tiny ? random.between(1, 8) : random.between(8, 90);
  const int ny = tiny || random.chance(0.1) ? random.between(1, 8) : random.between(8, 90);
  double resolution = random.uniform(0.05, 0.3);
  if (random.chance(0.15)) resolution = random.chance(0.5) ? kMinResolution_m : kMaxResolution_m;
  const auto origin = [&random] {
    return random.chance(0.2) ? (random.chance(0.5) ? kMaxOrigin_m : -kMaxOrigin_m)
                              : random.uniform(-1e3, 1e3);
  };
  const double ox = origin();
  maps::Terrain terrain(nx, ny, resolution, ox, origin());
  switch (random.below(6)) {
    case 0:
      break;
    case 1:
      terrain.plane(random.uniform(-1, 1), random.uniform(-1, 1));
      break;
    case 2:
      terrain.noise(random, random.uniform(0.0, 3.0));
      break;
    case 3:
      for (float& z : terrain.z) z = random.chance(0.5) ? 1e5F : -1e5F;
      break;
    case 4:
      for (float& z : terrain.z) z = std::clamp(any_float(random), -1e5F, 1e5F);
      break;
    default:
      terrain.hills(random, 0.5, 6.0).rocks(random, 10, 0.05, 0.5);
  }
  if (random.chance(0.3)) terrain.unknown_patches(random, 3, 0.3 * terrain.width_m());
  for (float& z : terrain.z) z = std::isnan(z) ? z : std::clamp(z, -1e5F, 1e5F);
  if (validate(terrain.view()) == Status::kMapAllUnknown) terrain.z[0] = 0.0F;
  REQUIRE(validate(terrain.view()) == Status::kOk);
  return terrain;
}

// Ground that a rover can mostly drive, large enough for it.
maps::Terrain kind_map(Random& random) {
  const double resolution = random.uniform(0.12, 0.3);
  maps::Terrain terrain(static_cast<int>(random.uniform(9.0, 10.5) / resolution),
                        static_cast<int>(random.uniform(9.0, 10.5) / resolution), resolution,
                        random.uniform(-1e6, 1e6), random.uniform(-1e6, 1e6));
  terrain.plane(random.uniform(-0.2, 0.2), random.uniform(-0.2, 0.2));
  terrain.rocks(random, random.between(0, 25), 0.05, 0.3);
  if (random.chance(0.2)) terrain.unknown_patches(random, 2, 0.6);
  if (random.chance(0.2)) terrain.noise(random, 0.02);
  return terrain;
}

Pose2 any_pose(Random& random, const maps::Terrain& terrain) {
  const Point2 at =
      random.chance(0.5) ? terrain.anywhere(random) : terrain.near_center(random, 0.3);
  return {perhaps(random, 0.05, at.x_m), perhaps(random, 0.05, at.y_m),
          perhaps(random, 0.1, random.uniform(-10, 10))};
}

// ---- models --------------------------------------------------------------------------------------

RoverModel any_model(Random& random) {
  RoverModel model;
  if (random.chance(0.5)) model.limits = SafetyLimits::enav_like();
  double* const fields = reinterpret_cast<double*>(&model);
  const int count = static_cast<int>(sizeof model / sizeof(double));
  if (random.chance(0.4)) {
    for (int n = random.between(1, 4); n > 0; --n) {
      double& field = fields[random.below(count)];
      field = random.chance(0.7) ? field * random.uniform(0.3, 3.0) : any_double(random);
    }
  }
  return model;
}

void fuzz_validation(Random& random) {
  GridView grid{nullptr,
                any_int(random),
                any_int(random),
                any_double(random),
                any_double(random),
                perhaps(random, 0.5, 0.1)};
  static const float kCell = 0.0F;
  if (random.chance(0.7)) grid.z = &kCell;
  const Status geometry = validate_geometry(grid);
  if (geometry == Status::kOk) {
    REQUIRE(grid.nx > 0 && grid.ny > 0 && grid.z != nullptr);
    REQUIRE(std::isfinite(grid.origin_x_m) && std::isfinite(grid.origin_y_m));
    REQUIRE(grid.resolution_m >= kMinResolution_m && grid.resolution_m <= kMaxResolution_m);
    CellIndex cell;
    const double x = any_double(random);
    const double y = any_double(random);
    if (cell_of(grid, x, y, &cell)) {
      REQUIRE(grid.contains_cell(cell.ix, cell.iy));
      REQUIRE(std::isfinite(x) && std::isfinite(y));
    }
  }
  const RoverModel model = any_model(random);
  const Fault fault = validate(model);
  REQUIRE(fault.ok() == (std::strlen(fault.field) == 0));
  const FixedBoxConfig box{any_double(random), any_double(random)};
  if (validate(box).ok()) {
    REQUIRE(box.half_length_m > 0.0 && box.half_width_m > 0.0);
  }
  const RiskView risk{&kCell,
                      any_int(random),
                      any_int(random),
                      any_int(random),
                      any_double(random),
                      any_double(random),
                      any_double(random)};
  if (validate(risk) == Status::kOk) {
    REQUIRE(risk.bins > 0 && risk.nx > 0 && risk.ny > 0);
    REQUIRE(risk.resolution_m > 0.0);
  }
  WheelFootprint footprint;
  if (make_footprint(any_double(random), any_double(random), &footprint) == Status::kOk) {
    REQUIRE(footprint.along > 0 && footprint.along <= WheelFootprint::kMaxAlong);
    REQUIRE(footprint.across > 0 && footprint.across <= WheelFootprint::kMaxAcross);
  }
}

void fuzz_math(Random& random) {
  const double x = any_double(random);
  const double y = any_double(random);
  const SinCos s = det_sincos(x);
  REQUIRE(!(std::fabs(s.sin) > 1.0) && !(std::fabs(s.cos) > 1.0));
  if (std::fabs(x) <= 1e6) {
    REQUIRE(std::fabs(s.sin * s.sin + s.cos * s.cos - 1.0) < 1e-14);
  }
  REQUIRE(std::isnan(det_asin(x)) == !(std::fabs(x) <= 1.0));
  REQUIRE(!(std::fabs(det_atan(x)) > kPi / 2 + 1e-15));
  REQUIRE(!(std::fabs(det_atan2(y, x)) > kPi + 1e-15));
  REQUIRE(!(det_exp(x) < 0.0));
  (void)det_log(x);
  if (std::isfinite(x)) {
    const double wrapped = wrap_angle(x);
    REQUIRE(wrapped >= -kPi && wrapped < kPi);
  }
  const double price = risk_price(any_float(random));
  REQUIRE(price >= 0.0 && price < 4.7);
}

// ---- ground and safety ---------------------------------------------------------------------------

void fuzz_ground(Random& random, const maps::Terrain& terrain) {
  const GridView map = terrain.view();
  for (int n = 0; n < 20; ++n) {
    const Pose2 pose = any_pose(random, terrain);
    CellIndex cell;
    const bool inside = cell_of(map, pose.x_m, pose.y_m, &cell);
    const double z = height_m(map, pose.x_m, pose.y_m);
    REQUIRE(inside || std::isnan(z));
    REQUIRE(!(std::fabs(z) > 1e5 + 1.0));
    WheelFootprint footprint;
    if (make_footprint(random.uniform(0.01, 0.8), random.uniform(0.01, 1.6), &footprint) !=
        Status::kOk) {
      continue;
    }
    const SinCos heading = det_sincos(std::isfinite(pose.heading_rad) ? pose.heading_rad : 0.0);
    if (!(heading.sin == heading.sin)) continue;
    const bool level = random.uniform(0.0, 1.0) < 0.3;
    const SinCos lean = level ? kLevel : det_sincos(random.uniform(-1.4, 1.4));
    const WheelContact contact = wheel_contact(map, footprint, pose.x_m, pose.y_m, heading, lean);
    const WheelHeight height = wheel_height(map, footprint, pose.x_m, pose.y_m, heading, lean);
    REQUIRE(contact.status == height.status);
    if (contact.status == Status::kOk) {
      REQUIRE(inside);
      REQUIRE(std::isfinite(contact.height_m));
      REQUIRE(contact.height_m == height.height_m);
      REQUIRE(contact.ground_min_m <= contact.ground_max_m);
      REQUIRE(!level || contact.height_m <= contact.ground_max_m);
    } else {
      REQUIRE(contact.status == Status::kOutsideMap || contact.status == Status::kUnknownGround);
      REQUIRE(std::isnan(contact.height_m));
    }
  }
}

bool all_finite(const AceReport& r) {
  const double values[] = {r.roll_rad.lo,        r.roll_rad.hi,         r.pitch_rad.lo,
                           r.pitch_rad.hi,       r.differential_rad.lo, r.differential_rad.hi,
                           r.bogie_left_rad.lo,  r.bogie_left_rad.hi,   r.bogie_right_rad.lo,
                           r.bogie_right_rad.hi, r.origin_z_m.lo,       r.origin_z_m.hi,
                           r.tilt_max_rad,       r.clearance_min_m,     r.relief_max_m,
                           r.margin_tilt_rad,    r.margin_bogie_rad,    r.margin_differential_rad,
                           r.margin_clearance_m};  // no limit of relief, infinite margin
  return std::all_of(std::begin(values), std::end(values),
                     [](double v) { return std::isfinite(v); });
}

bool check_report(const AceChecker& checker, const Stance& pose) {
  Reasons reasons = 0xffff;
  const bool safe = checker.is_safe(pose, &reasons);
  const AceReport r = checker.report(pose);
  REQUIRE(safe == r.safe);
  REQUIRE(safe == (reasons == 0));
  REQUIRE(safe == (r.reasons == 0));
  REQUIRE((reasons & ~r.reasons) == 0);
  REQUIRE((r.reasons >> kReasonCount) == 0);
  if (!stance_ok(pose)) {
    REQUIRE(r.reasons == kBadPose);
  }
  if (!safe) return false;
  REQUIRE(all_finite(r));
  const SafetyLimits& l = checker.model().limits;
  constexpr double kSlack = 1e-9;
  REQUIRE(r.margin_tilt_rad >= -kSlack && r.tilt_max_rad <= l.tilt_max_rad + kSlack);
  REQUIRE(r.margin_bogie_rad >= -kSlack && r.margin_differential_rad >= -kSlack);
  REQUIRE(r.margin_clearance_m >= 0.0 && r.clearance_min_m >= l.clearance_min_m - kSlack);
  REQUIRE(r.margin_relief_m >= 0.0 &&
          r.relief_max_m <= std::max(l.wheel_drop_max_m, l.relief_max_m));
  for (const Bounds& b : {r.roll_rad, r.pitch_rad, r.differential_rad, r.bogie_left_rad,
                          r.bogie_right_rad, r.origin_z_m}) {
    REQUIRE(b.lo <= b.hi);
  }
  return true;
}

void fuzz_settle(Random& random, const maps::Terrain& terrain, const RoverModel& model) {
  SettleModel settle_model;
  REQUIRE(make_settle_model(model.geometry, &settle_model) == Status::kOk);
  for (int n = 0; n < 4; ++n) {
    const Pose2 pose = any_pose(random, terrain);
    if (!stance_ok(Stance{pose})) continue;
    double start[kWheels];
    for (double& h : start) h = perhaps(random, 0.2, random.uniform(-1, 1));
    const SettledState s =
        settle(terrain.view(), settle_model, Stance{pose}, random.chance(0.5) ? start : nullptr);
    REQUIRE(s.steps <= kSettleMaxSteps);
    REQUIRE(s.status == Status::kOk || s.status == Status::kNotConverged ||
            s.status == Status::kUnknownGround || s.status == Status::kOutsideMap ||
            s.status == Status::kOutOfMechanicalRange);
    if (s.status != Status::kOk) continue;
    ++reached.settled;
    REQUIRE(s.residual_m < kSettleTolerance_m);
    REQUIRE(std::isfinite(s.state.roll_rad) && std::isfinite(s.state.pitch_rad));
    REQUIRE(std::isfinite(s.state.origin_z_m) && s.relief_max_m >= 0.0);
    const Clearance clearance = pan_clearance(terrain.view(), model.geometry, pose, s.state);
    REQUIRE((clearance.status == Status::kOk) == std::isfinite(clearance.clearance_m));
  }
  ChainState<double> state;
  double heights[kWheels];
  for (double& h : heights) h = perhaps(random, 0.1, random.uniform(-2, 2));
  if (solve_chain(settle_model.linkage, heights, &state, nullptr) == Status::kOk) {
    REQUIRE(std::isfinite(state.roll_rad) && std::isfinite(state.origin_z_m));
    REQUIRE(tilt_rad(state) >= 0.0 && tilt_rad(state) <= kPi);
  }
}

void fuzz_checkers(Random& random, const maps::Terrain& terrain, const RoverModel& model) {
  const GridView map = terrain.view();
  const std::size_t cells = map.cells();
  SettleChecker settle_checker;
  REQUIRE(settle_checker.init(model).ok());
  REQUIRE(settle_checker.set_map(map) == Status::kOk);
  FixedBoxConfig config{random.uniform(0.01, 0.4), random.uniform(0.01, 0.4)};
  if (random.chance(0.2)) config = {random.uniform(0.01, 1.0), random.uniform(0.01, 1.0)};
  maps::Memory memory(FixedBoxChecker::memory_required(cells));
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker fixed_box;
  REQUIRE(fixed_box.init(model, config, cells, &arena).ok());
  REQUIRE(fixed_box.set_map(map) == Status::kOk);
  for (int n = 0; n < 20; ++n) {
    reached.fixed_box_safe += check_report(fixed_box, Stance{any_pose(random, terrain)});
  }
  for (int n = 0; n < 4; ++n) {
    reached.settle_safe += check_report(settle_checker, Stance{any_pose(random, terrain)});
  }
  VerifiedConfig verified_config{std::pow(10.0, random.uniform(-8.0, -1.0)), random.between(1, 9)};
  rig::Verified verified_own;
  VerifiedChecker& verified = verified_own.checker;
  REQUIRE(verified_own.init(model, verified_config).ok());
  REQUIRE(verified.set_map(map) == Status::kOk);
  for (int n = 0; n < 6; ++n) {
    const Stance stance{any_pose(random, terrain),
                        perhaps(random, 0.2, random.chance(0.5) ? 0.0 : INFINITY)};
    const bool passed = check_report(verified, stance);
    reached.verified_safe += passed;
    if (!passed) continue;
    const AceReport settled = settle_checker.report(stance);
    REQUIRE(settled.safe || settled.reasons == kNotSettled);
  }

  // A map that is refused leaves the last one in place.
  GridView bad = map;
  bad.resolution_m = 0.0;
  REQUIRE(fixed_box.set_map(bad) != Status::kOk);
  REQUIRE(settle_checker.set_map(bad) != Status::kOk);

  maps::Memory map_memory(AceMapper::memory_required(cells));
  Arena map_arena(map_memory.data(), map_memory.size());
  AceMapper mapper;
  REQUIRE(mapper.init(cells, &map_arena) == Status::kOk);
  const int bins = random.between(1, 3);
  std::vector<Reasons> reasons(static_cast<std::size_t>(bins) * cells, 0xffff);
  const Status status = mapper.compute(fixed_box, bins, {reasons.data(), reasons.size()});
  REQUIRE(mapper.compute(fixed_box, bins, {reasons.data(), reasons.size() - 1}) ==
          Status::kOutputTooSmall);
  if (status != Status::kOk) return;
  ++reached.dense;
  for (int n = 0; n < 30; ++n) {
    const int bin = random.below(bins);
    const bool central = random.chance(0.5);
    const int ix = central ? map.nx / 2 + random.below((map.nx + 7) / 8) : random.below(map.nx);
    const int iy = central ? map.ny / 2 + random.below((map.ny + 7) / 8) : random.below(map.ny);
    const Pose2 pose{map.center_x_m(ix), map.center_y_m(iy), heading_of_bin(bin, bins)};
    Reasons one;
    fixed_box.is_safe(Stance{pose}, &one);
    REQUIRE(one == reasons[(static_cast<std::size_t>(bin) * static_cast<std::size_t>(map.ny) +
                            static_cast<std::size_t>(iy)) *
                               static_cast<std::size_t>(map.nx) +
                           static_cast<std::size_t>(ix)]);
  }
}

// ---- costs ---------------------------------------------------------------------------------------

void fuzz_costs(Random& random, const maps::Terrain& terrain) {
  const GridView map = terrain.view();
  CostmapConfig config;
  config.coarsening = random.chance(0.1) ? any_int(random) : random.between(1, 8);
  config.patch_half_width_m = perhaps(random, 0.2, random.uniform(0.1, 3.0));
  config.tilt_scale_rad = perhaps(random, 0.1, 0.35);
  config.roughness_scale_m = perhaps(random, 0.1, 0.08);
  config.tilt_limit_rad = perhaps(random, 0.1, 0.5);
  config.unknown_cost = perhaps(random, 0.1, 1.4);
  if (!validate(config).ok()) config = CostmapConfig{};
  std::vector<std::uint8_t> keep_out(map.cells());
  for (std::uint8_t& cell : keep_out) cell = static_cast<std::uint8_t>(random.chance(0.02));
  const CoarseGrid grid = coarse_grid(map, config.coarsening);
  REQUIRE(grid.nx >= 1 && grid.ny >= 1);
  const auto n = static_cast<std::size_t>(grid.cells());
  std::vector<float> cost(n), tilt(n), roughness(n), extra(n), to_go(n);
  std::vector<double> scratch(costmap_scratch_doubles(map.nx, map.ny, config.coarsening));
  Costmap costmap{grid, cost.data(), tilt.data(), roughness.data()};
  build_costmap(map, random.chance(0.5) ? keep_out.data() : nullptr, config, scratch.data(),
                &costmap);
  for (std::size_t i = 0; i < n; ++i) {
    REQUIRE(cost[i] >= 1.0F);  // NaN is not
    REQUIRE(std::isnan(tilt[i]) || (tilt[i] >= 0.0F && tilt[i] < 1.5709F));
    REQUIRE(std::isnan(roughness[i]) || roughness[i] >= 0.0F);
  }

  SobelConfig sobel{perhaps(random, 0.2, random.uniform(0.1, 3.0))};
  if (!std::isfinite(sobel.kernel_half_width_m)) sobel = SobelConfig{};
  std::vector<double> sobel_scratch(sobel_scratch_doubles(map.nx, map.ny));
  std::vector<float> risk(map.cells(), -1.0F);
  sobel_risk(map, sobel, sobel_scratch.data(), risk.data());
  for (const float p : risk) REQUIRE(p >= 0.0F && p <= 1.0F);

  for (float& e : extra)
    e = random.chance(0.1) ? any_float(random) : static_cast<float>(random.unit());
  std::vector<std::int32_t> heap(n), position(n);
  const Point2 goal{perhaps(random, 0.3, terrain.anywhere(random).x_m),
                    perhaps(random, 0.3, terrain.anywhere(random).y_m)};
  solve_cost_to_go(grid, cost.data(), random.chance(0.5) ? extra.data() : nullptr, goal,
                   random.uniform(0.0, 2.0), {heap.data(), position.data()}, to_go.data());
  for (const float c : to_go) REQUIRE(c >= 0.0F);
  for (int k = 0; k < 10; ++k) {
    const Point2 at = terrain.anywhere(random);
    REQUIRE(sample_cost_to_go(grid, to_go.data(), perhaps(random, 0.2, at.x_m),
                              perhaps(random, 0.2, at.y_m)) >= 0.0);
  }
}

// ---- planner -------------------------------------------------------------------------------------

EnavConfig any_config(Random& random) {
  EnavConfig config;
  config.max_map_cells = 100 * 100;
  config.max_risk_cells = 4 * 1000;
  config.tree.turn_count = random.between(1, 5);
  for (int i = 0; i < config.tree.turn_count; ++i) {
    config.tree.turn_rad[i] = random.chance(0.3) ? 0.0 : random.uniform(-kPi, kPi);
  }
  config.tree.curvature_count = random.between(1, 5);
  for (int i = 0; i < config.tree.curvature_count; ++i) {
    config.tree.curvature_per_m[i] = random.uniform(-2.0, 2.0);
  }
  config.memory_poses = random.between(0, 3);
  config.memory_failures = random.between(0, 3);
  config.short_paths = random.chance(0.5);
  config.riskiest_first = random.chance(0.5);
  config.risk_policy.ask = random.chance(0.5) ? AskRisk::kAlways : AskRisk::kOnFailure;
  config.risk_policy.persist_cycles = random.between(0, 2);
  if (random.chance(0.1)) config.max_risk_cells = 0;
  if (random.chance(0.05)) {
    const std::size_t keep = config.max_map_cells;
    config = EnavConfig{};
    config.max_map_cells = keep;
    config.max_risk_cells = 4 * 1000;
  }
  // Some field of it, anything.
  double* const fields[] = {&config.costmap.patch_half_width_m,
                            &config.costmap.tilt_scale_rad,
                            &config.costmap.roughness_scale_m,
                            &config.costmap.tilt_limit_rad,
                            &config.costmap.unknown_cost,
                            &config.tree.turn_rad[0],
                            &config.tree.curvature_per_m[0],
                            &config.tree.arc_length_m,
                            &config.tree.ace_step_m,
                            &config.tree.turn_step_rad,
                            &config.risk.weight_per_m,
                            &config.risk.to_go_fraction,
                            &config.risk.fail_price,
                            &config.turn_cost,
                            &config.turn_cost_per_rad,
                            &config.commit_length_m,
                            &config.commit_turn_rad,
                            &config.visit_cost_per_m,
                            &config.visit_radius_m,
                            &config.flip_cost};
  if (random.chance(0.4)) {
    double& field = *fields[random.below(static_cast<int>(std::size(fields)))];
    field = random.chance(0.5) ? any_double(random) : field * random.uniform(0.1, 3.0);
  }
  int* const counts[] = {&config.costmap.coarsening, &config.tree.turn_count,
                         &config.tree.curvature_count, &config.memory_poses,
                         &config.risk_policy.persist_cycles};
  if (random.chance(0.1)) *counts[random.below(5)] = any_int(random);
  return config;
}

// What the planner's header promises about any result.
void check_result(const PlanRequest& request, const PlanResult& result, const EnavConfig& config,
                  const AceChecker& checker) {
  const Telemetry& t = result.telemetry;
  REQUIRE(request.ace_budget < 0 || t.ace_evaluations <= request.ace_budget);
  REQUIRE(request.work_budget < 0 || t.work <= request.work_budget);
  REQUIRE(!t.work_exhausted || result.outcome == Outcome::kBudgetExhausted);
  REQUIRE(!t.risk_asked || (request.risk == nullptr && config.max_risk_cells > 0));
  REQUIRE(!t.risk_requested || t.risk_asked);
  if (result.status != Status::kOk || result.outcome != Outcome::kPath) {
    REQUIRE(result.commit.turn_rad == 0.0 && result.commit.length_m == 0.0);
    REQUIRE(result.path_pose_count == 0 && result.path_index == -1);
    return;
  }
  REQUIRE(result.path_pose_count >= 2 && result.path_pose_count <= PlanResult::kMaxPathPoses);
  bool ends_on_path = false;
  for (int i = 0; i < result.path_pose_count; ++i) {
    const Pose2& pose = result.path[i].pose;
    REQUIRE(checker.report(Stance{pose}).safe);
    REQUIRE(request.keep_out.cells == nullptr ||
            !touches(request.keep_out, request.map, pose, rover_outline(checker.model())));
    if (i == 0) continue;
    const Pose2& before = result.path[i - 1].pose;
    REQUIRE(std::hypot(pose.x_m - before.x_m, pose.y_m - before.y_m) <=
            config.tree.ace_step_m + 1e-8);
    ends_on_path |= std::memcmp(&pose, &result.commit_end, sizeof pose) == 0;
  }
  REQUIRE(ends_on_path);
  REQUIRE((result.commit.turn_rad == 0.0) != (result.commit.length_m == 0.0));
  REQUIRE(std::isfinite(result.path_cost));
  REQUIRE(result.telemetry.ace_floor == result.path_pose_count);
  REQUIRE(result.telemetry.ace_floor <= result.telemetry.ace_evaluations);
}

bool give_risk(void* context, RiskView* risk) noexcept {
  *risk = *static_cast<const RiskView*>(context);
  return true;
}

void fuzz_planner(Random& random, const maps::Terrain& first, const maps::Terrain& second,
                  const RoverModel& model) {
  const EnavConfig config = any_config(random);
  const std::size_t bytes = EnavPlanner::memory_required(config);
  const Fault fault = validate(config);
  REQUIRE(fault.ok() == (bytes > 0));
  if (bytes > (std::size_t{1} << 26)) return;
  maps::Memory memory(bytes);
  Arena arena(memory.data(), memory.size());
  maps::Memory box_memory(FixedBoxChecker::memory_required(100 * 100));
  Arena box_arena(box_memory.data(), box_memory.size());
  FixedBoxChecker checker;
  REQUIRE(checker.init(model, {0.1, 0.1}, 100 * 100, &box_arena).ok());
  EnavPlanner planner;
  const auto result = std::make_unique<PlanResult>();
  const Fault init = planner.init(config, &checker, &arena);
  REQUIRE(fault.ok() || !init.ok());
  REQUIRE(init.status != Status::kArenaTooSmall);
  reached.planners += init.ok() ? 1 : 0;

  std::vector<float> p(1000);
  for (float& value : p) value = any_float(random);
  for (int cycle = 0; cycle < 3; ++cycle) {
    const maps::Terrain& terrain = random.chance(0.1) ? second : first;
    const GridView map = terrain.view();
    std::vector<float> garbage;
    std::vector<std::uint8_t> keep_out(map.cells());
    for (std::uint8_t& cell : keep_out) cell = static_cast<std::uint8_t>(random.chance(0.0001));
    PlanRequest request;
    request.map = map;
    const Point2 at = terrain.near_center(random, 0.4);
    request.pose = {perhaps(random, 0.03, at.x_m), perhaps(random, 0.03, at.y_m),
                    perhaps(random, 0.05, random.uniform(-10, 10))};
    const Point2 goal = terrain.anywhere(random);
    request.goal = {perhaps(random, 0.1, goal.x_m), perhaps(random, 0.1, goal.y_m)};
    request.goal_tolerance_m = perhaps(random, 0.1, random.uniform(0.05, 1.0));
    if (random.chance(0.3)) request.ace_budget = any_int(random);
    if (random.chance(0.2)) request.work_budget = any_int(random);
    if (random.chance(0.1)) request.work_budget = random.below(20000);
    if (random.chance(0.3)) request.keep_out = {keep_out.data(), map.nx, map.ny};
    RiskView risk{p.data(), random.between(1, 10), 10, 10, map.origin_x_m, map.origin_y_m, 1.0};
    if (random.chance(0.2)) risk.origin_x_m = any_double(random);
    if (random.chance(0.2)) risk.origin_y_m = any_double(random);
    if (random.chance(0.2)) risk.resolution_m = any_double(random);
    if (random.chance(0.4)) request.risk = &risk;
    if (random.chance(0.5)) request.risk_source = {give_risk, &risk};
    if (random.chance(0.05)) {
      // Heights of any bits: plan() looks before it lets anybody use them.
      garbage.resize(map.cells());
      for (float& z : garbage) z = any_float(random);
      request.map.z = garbage.data();
    }
    if (random.chance(0.02)) request.map.nx = any_int(random) % (map.nx + 1);
    if (random.chance(0.02)) request.map.z = nullptr;
    if (random.chance(0.02)) request.map.origin_x_m = any_double(random);
    if (random.chance(0.02)) request.map.resolution_m = any_double(random);
    if (random.chance(0.1)) planner.reset();
    const Status status = planner.plan(request, result.get());
    REQUIRE(status == result->status);
    REQUIRE(init.ok() || status == Status::kNotInitialized);
    check_result(request, *result, config, checker);
    if (status == Status::kOk) {
      ++reached.outcomes[static_cast<int>(result->outcome)];
      reached.short_paths += result->short_path ? 1 : 0;
      reached.risk_asked += result->telemetry.risk_asked ? 1 : 0;
      reached.risk_requested += result->telemetry.risk_requested ? 1 : 0;
      reached.work_exhausted += result->telemetry.work_exhausted ? 1 : 0;
      REQUIRE(!result->telemetry.risk_used || validate(risk) == Status::kOk);
    } else {
      ++reached.refused;
    }
  }
}

void run(std::uint64_t iterations, std::uint64_t seed) {
  current_seed = seed;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    current_iteration = i;
    Random random(seed * 0x9e3779b97f4a7c15U + i);
    for (int n = 0; n < 50; ++n) fuzz_validation(random);
    for (int n = 0; n < 50; ++n) fuzz_math(random);
    const maps::Terrain terrain = random.chance(0.5) ? valid_map(random) : kind_map(random);
    RoverModel model = any_model(random);
    if (!validate(model).ok()) model = RoverModel{};
    fuzz_ground(random, terrain);
    fuzz_settle(random, terrain, model);
    fuzz_checkers(random, terrain, model);
    fuzz_costs(random, terrain);
    fuzz_planner(random, terrain, valid_map(random), model);
  }
}

}  // namespace
}  // namespace mlnav

int main(int argc, char** argv) {
  const std::uint64_t iterations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  mlnav::run(iterations, seed);
  const auto& r = mlnav::reached;
  std::printf("fuzz_core: %llu iterations, nothing found\n",
              static_cast<unsigned long long>(iterations));
  std::printf(
      "  settled %ld; safe: fixed_box %ld, settle %ld, verified %ld; dense maps %ld; planners "
      "%ld\n",
      r.settled, r.fixed_box_safe, r.settle_safe, r.verified_safe, r.dense, r.planners);
  std::printf(
      "  plans: path %ld (%ld short), goal %ld, no path %ld, budget %ld, start unsafe %ld, "
      "refused %ld; out of search work %ld; risk asked for %ld, on failure %ld\n",
      r.outcomes[0], r.short_paths, r.outcomes[1], r.outcomes[2], r.outcomes[3], r.outcomes[4],
      r.refused, r.work_exhausted, r.risk_asked, r.risk_requested);
  return 0;
}
