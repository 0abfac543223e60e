// Instructions of the planner's stages and of its evaluations, which are of sweeps, for the modelled flight time. They are
// counted by callgrind only, which writes a dump for each. The dump's trigger is "<name> <count>", its total
// is over all of them:
//   valgrind --tool=callgrind --collect-atstart=no count_instructions WINDOW...
// WINDOW: a file of raw float32 heights, the square local map of 0.1 m that a planner gets, with the rover in
// its middle. `mlnav bench instructions` makes windows, runs this and reads the dumps.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "mlnav/ground/features.hpp"
#include "mlnav/plan/enav.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else  // it still builds, and reports that it counts nothing
#define RUNNING_ON_VALGRIND 0
#define CALLGRIND_TOGGLE_COLLECT static_cast<void>(0)
#define CALLGRIND_DUMP_STATS_AT(name) static_cast<void>(name)
#endif

namespace {

using namespace mlnav;

constexpr double kResolution_m = 0.1;
constexpr int kCyclesPerWindow = 3;
// A cycle that finds no path evaluates thousands of similar poses; these are enough.
constexpr std::int64_t kBudget = 400;
// Sweeps are dear under callgrind: the first of a cycle, in the first cycle of each window.
constexpr std::int64_t kEvaluations = 60;
// Enough for the start pose: all other stages run before the second evaluation.
constexpr std::int64_t kNoSearch = 1;

bool counting = false;

// Returns the previous setting.
bool count(bool on) {
  if (on != counting) CALLGRIND_TOGGLE_COLLECT;
  return std::exchange(counting, on);
}

// Writes what was counted since the last dump, for `times` repetitions.
void dump(const std::string& name, std::size_t times) {
  const std::string trigger = name + " " + std::to_string(times);
  CALLGRIND_DUMP_STATS_AT(trigger.c_str());
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "count_instructions: %s\n", what);
  std::exit(1);
}

// Forwards every call, uncounted, and records the sweeps: those that failed and those that passed.
class Recorder final : public AceChecker {
 public:
  explicit Recorder(AceChecker* inner) : inner_(inner) {}
  Status set_map(const GridView& map) noexcept override { return inner_->set_map(map); }
  bool check(const Sweep& sweep, Reasons* reasons, CheckWork* work) const noexcept override {
    const bool was = count(false);
    const bool safe = inner_->check(sweep, reasons, work);
    sweeps[safe ? 1 : 0].push_back(sweep);
    count(was);
    return safe;
  }
  AceReport report(const Sweep& sweep) const noexcept override { return inner_->report(sweep); }
  const RoverModel& model() const noexcept override { return inner_->model(); }
  bool sees_steering() const noexcept override { return inner_->sees_steering(); }

  mutable std::vector<Sweep> sweeps[2];

 private:
  AceChecker* inner_;
};

// The planner reads its clock when a stage begins and when it ends. Here the k-th such interval takes 2^k, so
// that the time of a stage shows which intervals belong to it. Those in `wanted` are counted.
struct Meter {
  using Intervals = std::uint64_t;  // bit k: the k-th

  Intervals wanted = 0;
  bool between = false;  // count between intervals as well
  int calls = 0;
  double time = 0.0;

  static double now(void* context) noexcept {
    Meter& meter = *static_cast<Meter*>(context);
    const int interval = meter.calls / 2;
    const bool begins = meter.calls++ % 2 == 0;
    if (!begins) meter.time += static_cast<double>(Intervals{1} << interval);
    count(begins ? (meter.wanted >> interval & 1) != 0 : meter.between);
    return meter.time;
  }
};

struct Window {
  std::vector<float> z;
  GridView view;
  std::vector<float> risk;  // of a network's shape: 16 headings, 80 x 80 cells of 0.2 m
  RiskView risk_view;
};

void read_window(const char* path, Window* window) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) fail("cannot read a window");
  float z = 0.0F;
  while (std::fread(&z, sizeof z, 1, file) == 1) window->z.push_back(z);
  std::fclose(file);
  const int side = static_cast<int>(std::sqrt(static_cast<double>(window->z.size())));
  window->view = {window->z.data(), side, side, 0.0, 0.0, kResolution_m};
  if (validate(window->view) != Status::kOk || window->view.cells() != window->z.size()) {
    fail("a window is no square of heights");
  }
}

// Sobel risk (counted), for all headings.
void make_risk(Window* window) {
  const GridView& map = window->view;
  std::vector<double> scratch(sobel_scratch_doubles(map.nx, map.ny));
  std::vector<float> sobel(map.cells());
  count(true);
  sobel_risk(map, {}, scratch.data(), sobel.data());
  count(false);
  constexpr int kBins = 16, kSide = 80;
  const double res = 2 * kResolution_m;
  const double first = 0.5 * (map.center_x_m(map.nx - 1) - res * (kSide - 1));
  for (int bin = 0; bin < kBins; ++bin) {
    for (int iy = 0; iy < kSide; ++iy) {
      for (int ix = 0; ix < kSide; ++ix) {
        CellIndex cell;
        if (!cell_of(map, first + ix * res, first + iy * res, &cell)) fail("a window is too small");
        window->risk.push_back(sobel[static_cast<std::size_t>(cell.iy * map.nx + cell.ix)]);
      }
    }
  }
  window->risk_view = {window->risk.data(), kBins, kSide, kSide, first, first, res};
}

struct Case {
  const Window* window;
  PlanRequest request;
};

// Requests from the middle of each window to goals beyond its edge, as in most cycles of a traverse.
std::vector<Case> make_cases(const std::vector<Window>& windows) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::vector<Case> cases;
  for (const Window& window : windows) {
    const double middle = 0.5 * window.view.center_x_m(window.view.nx - 1);
    for (int i = 0; i < kCyclesPerWindow; ++i) {
      PlanRequest request;
      request.map = window.view;
      request.pose = {middle + unit(random), middle + unit(random), kPi * unit(random)};
      const double bearing = request.pose.heading_rad + 30 * kDeg * unit(random);
      request.goal = {middle + 25 * std::cos(bearing), middle + 25 * std::sin(bearing)};
      cases.push_back({&window, request});
    }
  }
  return cases;
}

// A checker, a planner that uses it, and their counts.
class Bench {
 public:
  Bench(std::string checker_name, std::string limits, AceChecker* checker,
        const std::vector<Case>& cases)
      : checker_name_(std::move(checker_name)),
        limits_(std::move(limits)),
        checker_(checker),
        recorder_(checker) {
    EnavConfig config;
    config.max_map_cells = 0;
    for (const Case& c : cases) {
      config.max_map_cells = std::max(config.max_map_cells, c.request.map.cells());
    }
    memory_.resize(EnavPlanner::memory_required(config));
    Arena arena(memory_.data(), memory_.size());
    if (!planner_.init(config, &recorder_, &arena).ok()) fail("the planner does not start");
    for (const Case& c : cases) {  // those that get past the start pose
      run(c, false, kNoSearch, Meter{});
      if (result_.outcome != Outcome::kStartUnsafe) cases_.push_back(c);
    }
  }

  void set_map() {
    for (const Case& c : cases_) {
      count(true);
      checker_->set_map(c.request.map);
      count(false);
    }
    dump("set_map/" + checker_name_, cases_.size());
  }

  // Counts of the sweeps that the planner evaluates without a risk map.
  void evaluations() {
    std::vector<std::vector<Sweep>> asked[2];
    std::vector<Case> cases;
    for (const Case& c : cases_) {
      if (cases.empty() || cases.back().window != c.window) cases.push_back(c);
    }
    for (const Case& c : cases) {
      for (auto& sweeps : recorder_.sweeps) sweeps.clear();
      run(c, false, kEvaluations, Meter{});
      for (const int safe : {0, 1}) asked[safe].push_back(recorder_.sweeps[safe]);
    }
    for (const int safe : {0, 1}) {
      std::size_t times = 0;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        checker_->set_map(cases[i].request.map);
        Reasons reasons = 0;
        count(true);
        for (const Sweep& sweep : asked[safe][i]) checker_->is_safe(sweep, &reasons);
        count(false);
        times += asked[safe][i].size();
      }
      dump(checker_name_ + "/" + limits_ + (safe != 0 ? " pass" : " reject"), times);
    }
  }

  void stages() {
    stage("costmap", kStageCostmap, false);
    stage("price", kStageRisk, true);
    for (const bool risk : {false, true}) {
      const std::string mark = risk ? "_risk" : "";
      stage("cost_to_go", kStageCostToGo, risk);
      stage("rank" + mark, kStageRank, risk);
      search("search" + mark, risk);
    }
    Meter rest;
    rest.between = true;
    for (const Case& c : cases_) run(c, false, kNoSearch, rest);
    dump("other", cases_.size());
  }

 private:
  void run(const Case& c, bool risk, std::int64_t budget, Meter meter) {
    PlanRequest request = c.request;
    if (risk) request.risk = &c.window->risk_view;
    request.ace_budget = budget;
    request.clock = {Meter::now, &meter};
    planner_.reset();
    count(meter.between);
    const Status status = planner_.plan(request, &result_);
    count(false);
    if (status != Status::kOk) fail("the planner refused a request");
  }

  void run_stage(const Case& c, bool risk, std::int64_t budget, Stage stage,
                 Meter::Intervals without) {
    run(c, risk, budget, Meter{});  // to find the intervals of the stage
    Meter meter;
    meter.wanted = static_cast<Meter::Intervals>(result_.telemetry.stage_s[stage]) & ~without;
    run(c, risk, budget, meter);
  }

  void stage(const std::string& name, Stage stage, bool risk) {
    for (const Case& c : cases_) run_stage(c, risk, kNoSearch, stage, 0);
    dump(name, cases_.size());
  }

  // The search per path tried, without evaluations. The first interval is set_map and the start.
  void search(const std::string& name, bool risk) {
    std::size_t paths = 0;
    for (const Case& c : cases_) {
      run_stage(c, risk, kBudget, kStageAce, 1);
      paths += static_cast<std::size_t>(result_.telemetry.paths_tried);
    }
    dump(name, paths);
  }

  std::string checker_name_, limits_;
  AceChecker* checker_;
  Recorder recorder_;
  std::vector<Case> cases_;
  std::vector<char> memory_;
  EnavPlanner planner_;
  PlanResult result_;
};

}  // namespace

int main(int argc, char** argv) {
  if (RUNNING_ON_VALGRIND == 0) {
    std::puts("counts under valgrind's callgrind only: mlnav bench instructions --help");
    return 0;
  }
  std::vector<Window> windows(static_cast<std::size_t>(argc - 1));
  std::size_t most_cells = 0;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    read_window(argv[i + 1], &windows[i]);
    make_risk(&windows[i]);
    most_cells = std::max(most_cells, windows[i].view.cells());
  }
  dump("sobel", windows.size());

  RoverModel enav_like;
  enav_like.limits = SafetyLimits::enav_like();
  const RoverModel flight_like;
  std::vector<char> memory(FixedBoxChecker::memory_required(most_cells) +
                           VerifiedChecker::memory_required());
  Arena arena(memory.data(), memory.size());
  FixedBoxChecker fixed_box;
  VerifiedChecker verified;
  SettleChecker settle;
  if (!fixed_box.init(enav_like, {}, most_cells, &arena).ok() ||
      !verified.init(flight_like, {}, &arena).ok() || !settle.init(flight_like).ok()) {
    fail("a checker does not start");
  }
  const std::vector<Case> cases = make_cases(windows);
  static Bench benches[] = {{"fixed_box", "enav_like", &fixed_box, cases},
                            {"verified", "flight_like", &verified, cases},
                            {"settle", "flight_like", &settle, cases}};
  for (Bench& bench : benches) {
    bench.set_map();
    bench.evaluations();
  }
  benches[0].stages();  // the same with every checker
  return 0;
}
