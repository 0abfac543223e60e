#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "common.hpp"
#include "fields.hpp"
#include "ground.hpp"
#include "mlnav/plan/enav.hpp"
#include "safety.hpp"
#include "search.hpp"

namespace mlnav::bindings {
namespace {

// What a cycle returned, detached from the planner.
struct PyPlanResult {
  std::string outcome;
  int start_reasons = 0;
  Motion commit;
  Pose2 commit_end;
  int path_index = -1;
  bool short_path = false;
  double path_cost = 0.0;
  std::vector<Pose2> path;
  Telemetry telemetry;
};

py::tuple state_of(const PyPlanResult& r) {
  const Telemetry& t = r.telemetry;
  std::vector<std::array<double, 3>> path;
  for (const Pose2& p : r.path) path.push_back({p.x_m, p.y_m, p.heading_rad});
  return py::make_tuple(
      r.outcome, r.start_reasons,
      py::make_tuple(r.commit.turn_rad, r.commit.curvature_per_m, r.commit.length_m),
      py::make_tuple(r.commit_end.x_m, r.commit_end.y_m, r.commit_end.heading_rad), r.path_index,
      r.short_path, r.path_cost, path,
      py::make_tuple(t.ace_evaluations, t.ace_floor, t.overthink, t.paths, t.paths_finite,
                     t.paths_tried, t.chosen_rank, t.risk_requested, t.risk_refused, t.risk_used,
                     t.evaluations_before_risk, t.risk_asked, t.work, t.work_exhausted,
                     t.ace_work.boxes, t.ace_work.lookups, t.ace_work.ranges),
      std::vector<std::int64_t>(t.rejects, t.rejects + kReasonCount),
      std::vector<double>(t.stage_s, t.stage_s + kStageCount), t.arena_used_bytes);
}

PyPlanResult result_of(const py::tuple& state) {
  const auto rejects = state[9].cast<std::vector<std::int64_t>>();
  const auto stages = state[10].cast<std::vector<double>>();
  if (rejects.size() != kReasonCount || stages.size() != kStageCount) {
    throw CoreError("a plan result pickled by another version of mlnav");
  }
  PyPlanResult r;
  r.outcome = state[0].cast<std::string>();
  r.start_reasons = state[1].cast<int>();
  const auto commit = state[2].cast<std::array<double, 3>>();
  r.commit = {commit[0], commit[1], commit[2]};
  const auto end = state[3].cast<std::array<double, 3>>();
  r.commit_end = {end[0], end[1], end[2]};
  r.path_index = state[4].cast<int>();
  r.short_path = state[5].cast<bool>();
  r.path_cost = state[6].cast<double>();
  for (const auto& p : state[7].cast<std::vector<std::array<double, 3>>>()) {
    r.path.push_back({p[0], p[1], p[2]});
  }
  Telemetry& t = r.telemetry;
  const py::tuple counts = state[8];
  t.ace_evaluations = counts[0].cast<std::int64_t>();
  t.ace_floor = counts[1].cast<std::int64_t>();
  t.overthink = counts[2].cast<bool>();
  t.paths = counts[3].cast<std::int32_t>();
  t.paths_finite = counts[4].cast<std::int32_t>();
  t.paths_tried = counts[5].cast<std::int32_t>();
  t.chosen_rank = counts[6].cast<std::int32_t>();
  t.risk_requested = counts[7].cast<bool>();
  t.risk_refused = counts[8].cast<bool>();
  t.risk_used = counts[9].cast<bool>();
  t.evaluations_before_risk = counts[10].cast<std::int64_t>();
  t.risk_asked = counts[11].cast<bool>();
  t.work = counts[12].cast<std::int64_t>();
  t.work_exhausted = counts[13].cast<bool>();
  t.ace_work.boxes = counts[14].cast<std::int64_t>();
  t.ace_work.lookups = counts[15].cast<std::int64_t>();
  t.ace_work.ranges = counts[16].cast<std::int64_t>();
  std::copy(rejects.begin(), rejects.end(), t.rejects);
  std::copy(stages.begin(), stages.end(), t.stage_s);
  t.arena_used_bytes = state[11].cast<std::size_t>();
  return r;
}

class PyEnavPlanner {
 public:
  PyEnavPlanner(const EnavConfig& config, const Checker& checker)
      : checker_(checker.spec(), config.max_map_cells), result_(new PlanResult) {
    require(validate(config));
    memory_ = Memory(EnavPlanner::memory_required(config));
    require(planner_.init(config, checker_.get(), memory_.arena()));
  }

  PyPlanResult plan(std::shared_ptr<Grid> grid, std::tuple<double, double, double> pose,
                    std::tuple<double, double> goal, double goal_tolerance_m,
                    const py::object& risk, double risk_resolution_m,
                    std::tuple<double, double> risk_origin_m, const py::object& keep_out,
                    std::int64_t ace_budget, double standing_curvature_per_m,
                    py::object risk_source, std::shared_ptr<Grid> cost_grid,
                    std::int64_t work_budget) {
    require_idle();
    PlanRequest request;
    request.standing_curvature_per_m = standing_curvature_per_m;
    request.map = grid->view;
    if (cost_grid != nullptr) request.cost_map = cost_grid->view;
    request.pose = {std::get<0>(pose), std::get<1>(pose), std::get<2>(pose)};
    request.goal = {std::get<0>(goal), std::get<1>(goal)};
    request.goal_tolerance_m = goal_tolerance_m;
    request.ace_budget = ace_budget;
    request.work_budget = work_budget;
    Array<std::uint8_t> keep_out_holder;
    request.keep_out = {keep_out_data(keep_out, grid->view, &keep_out_holder), grid->view.nx,
                        grid->view.ny};
    Risk given;
    if (!risk.is_none()) {
      given = Risk(risk, risk_resolution_m, risk_origin_m);
      request.risk = &given.view;
    }
    PyRiskSource on_demand(std::move(risk_source));
    request.risk_source = on_demand.source();
    request.clock.now_s = [](void*) noexcept {
      const auto now = std::chrono::steady_clock::now().time_since_epoch();
      return std::chrono::duration<double>(now).count();
    };
    const auto status = [&] {
      const Busy busy(&planning_);
      const py::gil_scoped_release release;
      return planner_.plan(request, result_.get());
    }();
    const std::exception_ptr checker_error = checker_.take_error();
    if (status != Status::kOk) {
      // Its checker may hold either map until the next one; what the last cycle left is still of the old one.
      refused_grid_ = std::move(grid);
      if (checker_error) std::rethrow_exception(checker_error);
      require(status);
    }
    grid_ = std::move(grid);
    start_ = request.pose;
    if (checker_error) std::rethrow_exception(checker_error);
    on_demand.rethrow();

    PyPlanResult out;
    out.outcome = to_string(result_->outcome);
    out.start_reasons = result_->start_reasons;
    out.commit = result_->commit;
    out.commit_end = result_->commit_end;
    out.path_index = result_->path_index;
    out.short_path = result_->short_path;
    out.path_cost = result_->path_cost;
    for (int i = 0; i < result_->path_pose_count; ++i) out.path.push_back(result_->path[i].pose);
    out.telemetry = result_->telemetry;
    return out;
  }

  void reset() {
    require_idle();
    planner_.reset();
  }
  std::size_t memory_bytes() const { return memory_.bytes(); }
  EnavConfig config() const { return planner_.config(); }

  py::dict tree() const {
    const PathTree& tree = planner_.tree();
    py::dict out;
    out["paths"] = tree.paths();
    out["arc_poses"] = tree.arc_poses();
    out["turn_poses"] = tree.turn_poses();
    out["poses_per_arc"] = tree.poses_per_arc();
    out["turns"] = tree.turns();
    out["curvatures"] = tree.curvatures();
    return out;
  }

  py::array path_costs() const {
    require_idle();
    Array<float> out(planner_.tree().paths());
    for (int i = 0; i < planner_.tree().paths(); ++i) out.mutable_data()[i] = planner_.path_cost(i);
    return out;
  }

  py::array path_verdicts() const {
    require_idle();
    const int paths = planner_.tree().paths();
    Array<std::uint8_t> out(paths);
    for (int path = 0; path < paths; ++path) {
      constexpr std::uint8_t kUnranked = 3;
      const auto verdict = static_cast<std::uint8_t>(planner_.path_verdict(path));
      out.mutable_data()[path] = std::isfinite(planner_.path_cost(path)) ? verdict : kUnranked;
    }
    return out;
  }

  Array<double> path_poses(int path) const {
    require_idle();
    if (path < 0 || path >= planner_.tree().paths()) throw py::index_error("no such path");
    std::int32_t ids[PlanResult::kMaxPathPoses];
    const int count = planner_.path_pose_ids(path, ids);
    std::vector<Pose2> poses{start_};
    for (int i = 0; i < count; ++i) poses.push_back(planner_.pose_of(ids[i]));
    return to_array(poses);
  }

  py::dict last_costmap() const {
    require_idle();
    const Costmap& costmap = planner_.costmap();
    py::dict out = costmap_columns(costmap);
    out["cost_to_go"] = copy_floats(planner_.cost_to_go(), costmap.grid.ny, costmap.grid.nx);
    out["cost_with_memory_per_m"] =
        copy_floats(planner_.cost_with_memory(), costmap.grid.ny, costmap.grid.nx);
    return out;
  }

 private:
  // Set and cleared with the interpreter's lock held.
  struct Busy {
    explicit Busy(bool* flag) : flag_(flag) { *flag_ = true; }
    ~Busy() { *flag_ = false; }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;
    bool* flag_;
  };
  void require_idle() const {
    if (planning_) throw CoreError("the planner is planning: one call at a time");
  }

  CheckerInstance checker_;  // its own: no one else can give it another map
  Memory memory_;
  EnavPlanner planner_;
  std::unique_ptr<PlanResult> result_;
  std::shared_ptr<Grid> grid_;          // the last cycle's map
  std::shared_ptr<Grid> refused_grid_;  // of a request that was refused since
  Pose2 start_;
  bool planning_ = false;
};

}  // namespace

void bind_plan(py::module_& m) {
  bind_config<EnavConfig>(m, "EnavConfig");
  using R = PyPlanResult;
  py::class_<R>(m, "PlanResult")
      .def(py::pickle(&state_of, &result_of))
      .def_readonly("outcome", &R::outcome)
      .def_readonly("start_reasons", &R::start_reasons)
      .def_property_readonly("turn_rad", [](const R& r) { return r.commit.turn_rad; })
      .def_property_readonly("curvature_per_m", [](const R& r) { return r.commit.curvature_per_m; })
      .def_property_readonly("length_m", [](const R& r) { return r.commit.length_m; })
      .def_property_readonly("commit_end",
                             [](const R& r) {
                               return py::make_tuple(r.commit_end.x_m, r.commit_end.y_m,
                                                     r.commit_end.heading_rad);
                             })
      .def_readonly("path_index", &R::path_index)
      .def_readonly("short_path", &R::short_path)
      .def_readonly("path_cost", &R::path_cost)
      .def_property_readonly("path", [](const R& r) { return to_array(r.path); })
      .def_property_readonly("ace_evaluations",
                             [](const R& r) { return r.telemetry.ace_evaluations; })
      .def_property_readonly("ace_floor", [](const R& r) { return r.telemetry.ace_floor; })
      .def_property_readonly("ace_boxes", [](const R& r) { return r.telemetry.ace_work.boxes; })
      .def_property_readonly("ace_lookups", [](const R& r) { return r.telemetry.ace_work.lookups; })
      .def_property_readonly("ace_ranges", [](const R& r) { return r.telemetry.ace_work.ranges; })
      .def_property_readonly("overthink", [](const R& r) { return r.telemetry.overthink; })
      .def_property_readonly("paths", [](const R& r) { return r.telemetry.paths; })
      .def_property_readonly("paths_finite", [](const R& r) { return r.telemetry.paths_finite; })
      .def_property_readonly("paths_tried", [](const R& r) { return r.telemetry.paths_tried; })
      .def_property_readonly("chosen_rank", [](const R& r) { return r.telemetry.chosen_rank; })
      .def_property_readonly("work", [](const R& r) { return r.telemetry.work; })
      .def_property_readonly("work_exhausted",
                             [](const R& r) { return r.telemetry.work_exhausted; })
      .def_property_readonly("risk_asked", [](const R& r) { return r.telemetry.risk_asked; })
      .def_property_readonly("risk_requested",
                             [](const R& r) { return r.telemetry.risk_requested; })
      .def_property_readonly("risk_used", [](const R& r) { return r.telemetry.risk_used; })
      .def_property_readonly("risk_refused", [](const R& r) { return r.telemetry.risk_refused; })
      .def_property_readonly("evaluations_before_risk",
                             [](const R& r) { return r.telemetry.evaluations_before_risk; })
      .def_property_readonly("rejects",
                             [](const R& r) {
                               py::dict out;
                               for (int bit = 0; bit < kReasonCount; ++bit) {
                                 out[reason_name(bit)] = r.telemetry.rejects[bit];
                               }
                               return out;
                             })
      .def_property_readonly("stage_s", [](const R& r) {
        py::dict out;
        for (int stage = 0; stage < kStageCount; ++stage) {
          out[stage_name(stage)] = r.telemetry.stage_s[stage];
        }
        return out;
      });

  py::class_<PyEnavPlanner>(m, "EnavPlanner")
      .def(py::init<const EnavConfig&, const Checker&>(), py::arg("config"), py::arg("checker"))
      .def("reset", &PyEnavPlanner::reset)
      .def("plan", &PyEnavPlanner::plan, py::arg("grid"), py::arg("pose"), py::arg("goal"),
           py::arg("goal_tolerance_m") = 1.0, py::arg("risk") = py::none(),
           py::arg("risk_resolution_m") = 0.0, py::arg("risk_origin_m") = std::make_tuple(0.0, 0.0),
           py::arg("keep_out") = py::none(), py::arg("ace_budget") = -1,
           py::arg("standing_curvature_per_m") = 0.0, py::arg("risk_source") = py::none(),
           py::arg("cost_grid") = py::none(), py::arg("work_budget") = -1)
      .def_property_readonly("memory_bytes", &PyEnavPlanner::memory_bytes)
      .def_property_readonly("config", &PyEnavPlanner::config)
      .def_property_readonly("tree", &PyEnavPlanner::tree)
      .def("path_costs", &PyEnavPlanner::path_costs)
      .def("path_poses", &PyEnavPlanner::path_poses, py::arg("path_index"))
      .def("path_verdicts", &PyEnavPlanner::path_verdicts)
      .def("costmap", &PyEnavPlanner::last_costmap);
}

}  // namespace mlnav::bindings
