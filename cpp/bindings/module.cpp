// Python bindings: thin. Arrays arrive with the exact dtype and C order (mlnav.core converts);
// everything that computes releases the GIL. The stub python/mlnav/_core.pyi documents the API.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mlnav/ground/features.hpp"
#include "mlnav/ground/grid.hpp"
#include "mlnav/ground/view.hpp"
#include "mlnav/ground/wheel_height.hpp"
#include "mlnav/plan/enav.hpp"
#include "mlnav/rover/settle.hpp"
#include "mlnav/safety/ace_map.hpp"
#include "mlnav/safety/fixed_box.hpp"
#include "mlnav/safety/probabilistic.hpp"
#include "mlnav/safety/settle_checker.hpp"
#include "mlnav/safety/verified.hpp"
#include "mlnav/search/cost_to_go.hpp"

namespace py = pybind11;
using namespace mlnav;

namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

struct CoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const char* explain(Status status) {
  switch (status) {
    case Status::kOk:
      return "no fault";
    case Status::kNotInitialized:
      return "used before it was set up (no map set, or init failed)";
    case Status::kMapEmpty:
      return "the map has no cells";
    case Status::kMapTooLarge:
      return "the map has more cells than max_map_cells reserves memory for";
    case Status::kMapBadResolution:
      return "the map's resolution must be 0.001 to 100 m";
    case Status::kMapBadOrigin:
      return "the map's origin must be finite and within 1e7 m of zero";
    case Status::kMapBadHeight:
      return "a height is infinite or beyond 1e5 m";
    case Status::kMapAllUnknown:
      return "every cell of the map is unknown (NaN)";
    case Status::kMapResolutionChanged:
      return "the map's resolution changed between cycles";
    case Status::kPoseNotFinite:
      return "the pose is not finite";
    case Status::kPoseHeadingTooLarge:
      return "|heading| is beyond 1e6 rad: wrap it first";
    case Status::kPoseOutsideMap:
      return "the pose lies outside the map";
    case Status::kGoalNotFinite:
      return "the goal is not finite";
    case Status::kGoalToleranceBad:
      return "the goal tolerance must be finite and positive";
    case Status::kRiskBadShape:
      return "the risk map is empty, too large or badly placed";
    case Status::kKeepOutBadShape:
      return "the keep-out mask does not have the map's shape";
    case Status::kConfigBad:
      return "a configuration value is out of range";
    case Status::kArenaTooSmall:
      return "the memory given is too small";
    case Status::kOutputTooSmall:
      return "the output buffer is too small";
    case Status::kNotConverged:
      return "settling did not converge";
    case Status::kUnknownGround:
      return "needed ground is unknown";
    case Status::kOutsideMap:
      return "needed ground lies beyond the map";
    case Status::kOutOfMechanicalRange:
      return "wheel heights beyond the linkage";
    case Status::kViewpointBelowGround:
      return "the viewpoint is not above the ground that it is over";
    case Status::kCostMapBadShape:
      return "cost_grid does not have the shape, resolution and origin of the grid";
  }
  return "";
}

void require(Status status, const char* field = "") {
  if (status == Status::kOk) return;
  std::string message = std::string(to_string(status)) + ": " + explain(status);
  if (*field != '\0') message += std::string(" [") + field + "]";
  throw CoreError(message);
}

// With the range that a value is out of; angles in degrees, as people write them.
void require(const Fault& fault) {
  if (fault.ok()) return;
  if (std::isnan(fault.lo)) require(fault.status, fault.field);
  const std::string field = fault.field;
  const bool angle = field.size() > 4 && field.compare(field.size() - 4, 4, "_rad") == 0;
  const double scale = angle ? 1.0 / kDeg : 1.0;
  std::ostringstream message;
  message << to_string(fault.status) << ": [" << field << "] is " << fault.value * scale
          << (angle ? " deg" : "") << ", must be ";
  if (std::isinf(fault.hi)) {
    message << "at least " << fault.lo * scale;
  } else {
    message << fault.lo * scale << " to " << fault.hi * scale;
  }
  message << (angle ? " deg" : "");
  throw CoreError(message.str());
}

// A heightmap with heights of its own: whoever holds the array that it was made of cannot change it.
struct Grid {
  Grid(const Array<float>& array, double resolution_m, double origin_x_m, double origin_y_m)
      : z(array.request()) {
    if (z.ndim() != 2) throw CoreError("map_empty: a map has two dimensions (ny, nx)");
    constexpr py::ssize_t kMax = std::numeric_limits<int>::max();
    if (z.shape(0) > kMax || z.shape(1) > kMax) require(Status::kMapTooLarge);
    view = {z.data(),
            static_cast<int>(z.shape(1)),
            static_cast<int>(z.shape(0)),
            origin_x_m,
            origin_y_m,
            resolution_m};
    const auto status = [this] {
      const py::gil_scoped_release release;
      return validate(view);
    }();
    require(status);
    z.attr("setflags")(py::arg("write") = false);
  }
  Array<float> z;  // a copy, read-only
  GridView view;
};

// Owns the aligned memory an Arena hands out.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes) : bytes_(bytes + Arena::kAlignment), data_(new char[bytes_]) {
    arena_ = Arena(data_.get(), bytes_);
  }
  Arena* arena() { return &arena_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  std::unique_ptr<char[]> data_;
  Arena arena_;
};

std::vector<Stance> to_stances(const Array<double>& array) {
  if (array.ndim() != 2 || (array.shape(1) != 3 && array.shape(1) != 4)) {
    throw CoreError(
        "poses must have shape (n, 3): x_m, y_m, heading_rad, or (n, 4): curvature_per_m too");
  }
  std::vector<Stance> stances(static_cast<std::size_t>(array.shape(0)));
  const bool steered = array.shape(1) == 4;
  const double* row = array.data();
  for (Stance& stance : stances) {
    stance = Stance{Pose2{row[0], row[1], row[2]}, steered ? row[3] : 0.0};
    row += array.shape(1);
  }
  return stances;
}

// A column of a report: one value, or two bounds, per row.
template <typename T, typename Row, typename Get>
py::array column(const std::vector<Row>& rows, Get get) {
  Array<T> out(static_cast<py::ssize_t>(rows.size()));
  T* p = out.mutable_data();
  for (std::size_t i = 0; i < rows.size(); ++i) p[i] = static_cast<T>(get(rows[i]));
  return out;
}
template <typename Row, typename Get>
py::array bounds_column(const std::vector<Row>& rows, Get get) {
  Array<double> out({static_cast<py::ssize_t>(rows.size()), py::ssize_t{2}});
  double* p = out.mutable_data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Bounds b = get(rows[i]);
    p[2 * i] = b.lo;
    p[2 * i + 1] = b.hi;
  }
  return out;
}
template <typename Row, typename Get>
py::array wheel_column(const std::vector<Row>& rows, Get get) {
  Array<double> out({static_cast<py::ssize_t>(rows.size()), py::ssize_t{kWheels}});
  double* p = out.mutable_data();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double* six = get(rows[i]);
    for (int w = 0; w < kWheels; ++w) p[kWheels * i + static_cast<std::size_t>(w)] = six[w];
  }
  return out;
}

// What a checker is made of.
struct CheckerSpec {
  std::string name;
  RoverModel model;
  FixedBoxConfig boxes;
  VerifiedConfig verified;
  ProbabilisticConfig probabilistic;
  std::size_t max_map_cells = 0;  // of those that prepare tables; 0: of the others
};

// A checker of the core, with memory of its own.
class CheckerInstance {
 public:
  CheckerInstance(const CheckerSpec& spec, std::size_t map_cells) {
    if (spec.name == "fixed_box") {
      require(validate(spec.boxes));
      memory_ = Memory(FixedBoxChecker::memory_required(map_cells));
      require(fixed_box_.init(spec.model, spec.boxes, map_cells, memory_.arena()));
      checker_ = &fixed_box_;
    } else if (spec.name == "probabilistic") {
      require(validate(spec.boxes));
      require(validate(spec.probabilistic));
      memory_ = Memory(ProbabilisticChecker::memory_required(map_cells));
      require(probabilistic_.init(spec.model, spec.boxes, spec.probabilistic, map_cells,
                                  memory_.arena()));
      checker_ = &probabilistic_;
    } else if (spec.name == "verified") {
      require(verified_.init(spec.model, spec.verified));
      checker_ = &verified_;
    } else {
      require(settle_.init(spec.model));
      checker_ = &settle_;
    }
  }
  CheckerInstance(const CheckerInstance&) = delete;
  CheckerInstance& operator=(const CheckerInstance&) = delete;

  AceChecker* get() { return checker_; }
  const AceChecker& operator*() const { return *checker_; }
  const FixedBoxChecker& fixed_box() const { return fixed_box_; }

 private:
  Memory memory_;
  FixedBoxChecker fixed_box_;
  SettleChecker settle_;
  VerifiedChecker verified_;
  ProbabilisticChecker probabilistic_;
  AceChecker* checker_ = nullptr;
};

// Any checker behind one Python class. It owns its map: set_map() makes a new checker for the new map and
// leaves the old pair to those that still ask it, so that a verdict is always of one whole map, whatever other
// threads do. Planners have checkers of their own.
class Checker {
 public:
  explicit Checker(CheckerSpec spec) : spec_(std::move(spec)) {
    const CheckerInstance refuses_what_is_bad(spec_, spec_.max_map_cells);
  }
  static std::shared_ptr<Checker> fixed_box(const RoverModel& model, const FixedBoxConfig& config,
                                            std::size_t max_map_cells) {
    CheckerSpec spec{"fixed_box", model, config, {}, {}, max_map_cells};
    return std::make_shared<Checker>(std::move(spec));
  }
  static std::shared_ptr<Checker> settle(const RoverModel& model) {
    return std::make_shared<Checker>(CheckerSpec{"settle", model, {}, {}, {}, 0});
  }
  static std::shared_ptr<Checker> verified(const RoverModel& model, const VerifiedConfig& config) {
    return std::make_shared<Checker>(CheckerSpec{"verified", model, {}, config, {}, 0});
  }
  static std::shared_ptr<Checker> probabilistic(const RoverModel& model,
                                                const FixedBoxConfig& boxes,
                                                const ProbabilisticConfig& config,
                                                std::size_t max_map_cells) {
    CheckerSpec spec{"probabilistic", model, boxes, {}, config, max_map_cells};
    return std::make_shared<Checker>(std::move(spec));
  }

  void set_map(std::shared_ptr<Grid> grid) {
    const std::size_t cells = grid->view.cells();
    if (spec_.max_map_cells > 0 && cells > spec_.max_map_cells) require(Status::kMapTooLarge);
    auto mapped = std::make_shared<Mapped>(spec_, std::move(grid));
    const auto status = [&] {
      const py::gil_scoped_release release;
      return mapped->checker.get()->set_map(mapped->grid->view);
    }();
    require(status);
    mapped_ = std::move(mapped);
  }

  py::array reasons(const Array<double>& array) const {
    const std::shared_ptr<const Mapped> mapped = require_map();
    const std::vector<Stance> poses = to_stances(array);
    Array<Reasons> out(static_cast<py::ssize_t>(poses.size()));
    Reasons* p = out.mutable_data();
    {
      const py::gil_scoped_release release;
      check_stances(*mapped->checker, {poses.data(), poses.size()}, p, nullptr);
    }
    return out;
  }

  py::dict report(const Array<double>& array) const {
    const std::shared_ptr<const Mapped> mapped = require_map();
    const std::vector<Stance> poses = to_stances(array);
    std::vector<AceReport> rows(poses.size());
    {
      const py::gil_scoped_release release;
      check_stances(*mapped->checker, {poses.data(), poses.size()}, nullptr, rows.data());
    }
    return to_columns(rows);
  }

  static py::dict to_columns(const std::vector<AceReport>& rows) {
    using R = const AceReport&;
    py::dict out;
    out["safe"] = column<bool>(rows, [](R r) { return r.safe; });
    out["reasons"] = column<Reasons>(rows, [](R r) { return r.reasons; });
    out["roll_rad"] = bounds_column(rows, [](R r) { return r.roll_rad; });
    out["pitch_rad"] = bounds_column(rows, [](R r) { return r.pitch_rad; });
    out["differential_rad"] = bounds_column(rows, [](R r) { return r.differential_rad; });
    out["bogie_left_rad"] = bounds_column(rows, [](R r) { return r.bogie_left_rad; });
    out["bogie_right_rad"] = bounds_column(rows, [](R r) { return r.bogie_right_rad; });
    out["origin_z_m"] = bounds_column(rows, [](R r) { return r.origin_z_m; });
    out["tilt_max_rad"] = column<double>(rows, [](R r) { return r.tilt_max_rad; });
    out["clearance_min_m"] = column<double>(rows, [](R r) { return r.clearance_min_m; });
    out["relief_max_m"] = column<double>(rows, [](R r) { return r.relief_max_m; });
    out["margin_tilt_rad"] = column<double>(rows, [](R r) { return r.margin_tilt_rad; });
    out["margin_bogie_rad"] = column<double>(rows, [](R r) { return r.margin_bogie_rad; });
    out["margin_differential_rad"] =
        column<double>(rows, [](R r) { return r.margin_differential_rad; });
    out["margin_clearance_m"] = column<double>(rows, [](R r) { return r.margin_clearance_m; });
    out["margin_relief_m"] = column<double>(rows, [](R r) { return r.margin_relief_m; });
    out["risk"] = column<double>(rows, [](R r) { return r.risk; });
    out["inner_steps"] = column<std::int32_t>(rows, [](R r) { return r.inner_steps; });
    out["lookups"] = column<std::int32_t>(rows, [](R r) { return r.lookups; });
    return out;
  }

  py::array ace_map(int bins) const {
    const std::shared_ptr<const Mapped> mapped = require_map();
    if (name() != "fixed_box") {
      throw CoreError("ace_map needs the fixed_box checker, not " + name());
    }
    if (bins < 1 || bins > 1024) throw CoreError("ace_map: bins must be 1 to 1024");
    const GridView& view = mapped->grid->view;
    Array<Reasons> out({static_cast<py::ssize_t>(bins), static_cast<py::ssize_t>(view.ny),
                        static_cast<py::ssize_t>(view.nx)});
    const Span<Reasons> span{out.mutable_data(), static_cast<std::size_t>(out.size())};
    const auto status = [&] {
      const py::gil_scoped_release release;
      Memory memory(AceMapper::memory_required(view.cells()));
      AceMapper mapper;
      const Status init = mapper.init(view.cells(), memory.arena());
      return init != Status::kOk ? init : mapper.compute(mapped->checker.fixed_box(), bins, span);
    }();
    require(status);
    return out;
  }

  const CheckerSpec& spec() const { return spec_; }
  // The values it is set to, by name.
  py::dict settings() const {
    py::dict out;
    if (name() == "fixed_box" || name() == "probabilistic") {
      out["half_length_m"] = spec_.boxes.half_length_m;
      out["half_width_m"] = spec_.boxes.half_width_m;
    }
    if (name() == "probabilistic") {
      out["sigma_fraction"] = spec_.probabilistic.sigma_fraction;
      out["risk_max"] = spec_.probabilistic.risk_max;
    }
    if (name() == "verified") {
      out["enclosed_m"] = spec_.verified.enclosed_m;
      out["max_tries"] = spec_.verified.max_tries;
    }
    return out;
  }
  const std::string& name() const { return spec_.name; }
  const RoverModel& model() const { return spec_.model; }

 private:
  // A checker that has been given its map, and the map; not changed from then on.
  struct Mapped {
    Mapped(const CheckerSpec& spec, std::shared_ptr<Grid> map)
        : grid(std::move(map)), checker(spec, grid->view.cells()) {}
    std::shared_ptr<Grid> grid;
    CheckerInstance checker;
  };
  std::shared_ptr<const Mapped> require_map() const {
    if (mapped_ == nullptr) require(Status::kNotInitialized);
    return mapped_;
  }

  CheckerSpec spec_;
  std::shared_ptr<const Mapped> mapped_;
};

// Six numbers a pose, or none at all; `holder` keeps them alive.
const double* wheel_rows(const char* name, const py::object& given, py::ssize_t poses,
                         Array<double>* holder) {
  if (given.is_none()) return nullptr;
  if (!py::isinstance<Array<double>>(given)) {
    throw CoreError(std::string(name) + " must be a C-contiguous float64 array");
  }
  *holder = py::cast<Array<double>>(given);
  if (holder->ndim() != 2 || holder->shape(0) != poses || holder->shape(1) != kWheels) {
    throw CoreError(std::string(name) + " must have shape (n, 6), as many rows as poses");
  }
  return holder->data();
}

py::dict settle_poses(const Grid& grid, const RoverModel& model, const Array<double>& pose_array,
                      const py::object& start_heights, const py::object& steering_angles) {
  const std::vector<Stance> poses = to_stances(pose_array);
  Array<double> starts, angles;
  const double* const start =
      wheel_rows("start_heights_m", start_heights, pose_array.shape(0), &starts);
  const double* const steering_rad =
      wheel_rows("steering_rad", steering_angles, pose_array.shape(0), &angles);
  SettleModel settle_model;
  require(make_settle_model(model.geometry, &settle_model), "wheel_radius_m");
  SettleChecker checker;
  require(checker.init(model));
  require(checker.set_map(grid.view));
  std::vector<SettledState> rows(poses.size());
  std::vector<AceReport> reports(poses.size());
  {
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < poses.size(); ++i) {
      const double* const from = start == nullptr ? nullptr : start + kWheels * i;
      if (!stance_ok(poses[i])) {
        rows[i].status = Status::kPoseNotFinite;
      } else if (steering_rad == nullptr) {
        rows[i] = settle(grid.view, settle_model, poses[i], from);
      } else {
        SinCos steering[kWheels];
        bool finite = true;
        for (int w = 0; w < kWheels; ++w) {
          const double angle = steering_rad[kWheels * i + static_cast<std::size_t>(w)];
          finite &= std::fabs(angle) <= kMaxHeading_rad;  // not so for NaN
          steering[w] = finite ? det_sincos(angle) : SinCos{0.0, 1.0};
        }
        rows[i].status = Status::kPoseNotFinite;
        if (finite) rows[i] = settle(grid.view, settle_model, poses[i].pose, steering, from);
      }
      reports[i] = checker.judge(poses[i].pose, rows[i]);
    }
  }
  using S = const SettledState&;
  using R = const AceReport&;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Where nothing settled there is no state to report.
  const auto state = [nan, &rows](double ChainState<double>::* field) {
    return column<double>(rows,
                          [=](S s) { return s.status == Status::kOk ? s.state.*field : nan; });
  };
  py::dict out;
  out["status"] = column<std::uint8_t>(rows, [](S s) { return s.status; });
  out["roll_rad"] = state(&ChainState<double>::roll_rad);
  out["pitch_rad"] = state(&ChainState<double>::pitch_rad);
  out["differential_rad"] = state(&ChainState<double>::differential_rad);
  out["bogie_left_rad"] = state(&ChainState<double>::bogie_left_rad);
  out["bogie_right_rad"] = state(&ChainState<double>::bogie_right_rad);
  out["origin_z_m"] = state(&ChainState<double>::origin_z_m);
  out["tilt_rad"] = column<double>(reports, [](R r) { return r.tilt_max_rad; });
  out["clearance_m"] = column<double>(reports, [](R r) { return r.clearance_min_m; });
  out["relief_max_m"] = column<double>(reports, [](R r) { return r.relief_max_m; });
  out["relief_m"] = wheel_column(rows, [](S s) { return s.relief_m; });
  out["residual_m"] = column<double>(rows, [](S s) { return s.residual_m; });
  out["heights_m"] = wheel_column(rows, [](S s) { return s.heights_m; });
  out["forward_m"] = wheel_column(rows, [](S s) { return s.positions.forward_m; });
  out["left_m"] = wheel_column(rows, [](S s) { return s.positions.left_m; });
  out["steps"] = column<std::int32_t>(rows, [](S s) { return s.steps; });
  out["lookups"] = column<std::int32_t>(rows, [](S s) { return s.lookups; });
  out["safe"] = column<bool>(reports, [](R r) { return r.safe; });
  out["reasons"] = column<Reasons>(reports, [](R r) { return r.reasons; });
  return out;
}

// Clearance of the belly pan of rovers whose attitude and height are known, settled or not.
py::array clearance_of(const Grid& grid, const RoverModel& model, const Array<double>& pose_array,
                       const Array<double>& attitudes) {
  const std::vector<Stance> poses = to_stances(pose_array);
  if (attitudes.ndim() != 2 || attitudes.shape(0) != pose_array.shape(0) ||
      attitudes.shape(1) != 3) {
    throw CoreError("attitudes must have shape (n, 3): roll_rad, pitch_rad, origin_z_m");
  }
  require(validate(model));
  const double* row = attitudes.data();
  Array<double> out(static_cast<py::ssize_t>(poses.size()));
  double* p = out.mutable_data();
  const py::gil_scoped_release release;
  for (const Stance& stance : poses) {
    p[0] = std::numeric_limits<double>::quiet_NaN();
    if (stance_ok(stance) && std::isfinite(row[0] + row[1] + row[2])) {
      ChainState<double> state{};
      state.roll_rad = row[0];
      state.pitch_rad = row[1];
      state.origin_z_m = row[2];
      const SinCos roll = det_sincos(row[0]);
      const SinCos pitch = det_sincos(row[1]);
      state.sin_roll = roll.sin;
      state.cos_roll = roll.cos;
      state.sin_pitch = pitch.sin;
      state.cos_pitch = pitch.cos;
      p[0] = pan_clearance(grid.view, model.geometry, stance.pose, state).clearance_m;
    }
    row += 3;
    ++p;
  }
  return out;
}

Array<float> view(const Grid& grid, const std::tuple<double, double, double>& eye,
                  const Array<double>& azimuth_rad, const Array<double>& elevation_rad,
                  const std::pair<double, double>& range_m) {
  const auto angles = [](const Array<double>& array) {
    if (array.ndim() != 1) throw CoreError("azimuths and elevations must have one dimension");
    return Span<const double>{array.data(), static_cast<std::size_t>(array.size())};
  };
  const RayLattice rays{angles(azimuth_rad), angles(elevation_rad), range_m.first, range_m.second};
  require(validate(rays));
  Array<float> out({azimuth_rad.size(), elevation_rad.size()});
  float* range = out.mutable_data();
  const auto fault = [&] {
    const py::gil_scoped_release release;
    std::vector<double> scratch(view_scratch_doubles(rays.elevation_rad.size));
    return cast_view(grid.view, {std::get<0>(eye), std::get<1>(eye), std::get<2>(eye)}, rays,
                     scratch.data(), range);
  }();
  require(fault);
  return out;
}

py::array copy_floats(const float* data, py::ssize_t ny, py::ssize_t nx) {
  return Array<float>({ny, nx}, data);
}

const std::uint8_t* keep_out_data(const py::object& keep_out, const GridView& view,
                                  Array<std::uint8_t>* holder) {
  if (keep_out.is_none()) return nullptr;
  if (!py::isinstance<Array<std::uint8_t>>(keep_out)) {
    throw CoreError("keep_out must be a C-contiguous uint8 array");
  }
  *holder = py::cast<Array<std::uint8_t>>(keep_out);
  if (holder->ndim() != 2 || holder->shape(0) != view.ny || holder->shape(1) != view.nx) {
    require(Status::kKeepOutBadShape);
  }
  return holder->data();
}

py::dict costmap_columns(const Costmap& costmap) {
  py::dict out;
  const py::ssize_t ny = costmap.grid.ny;
  const py::ssize_t nx = costmap.grid.nx;
  out["cost_per_m"] = copy_floats(costmap.cost_per_m, ny, nx);
  out["tilt_rad"] = copy_floats(costmap.tilt_rad, ny, nx);
  out["roughness_m"] = copy_floats(costmap.roughness_m, ny, nx);
  out["resolution_m"] = costmap.grid.resolution_m;
  out["origin_m"] = py::make_tuple(costmap.grid.origin_x_m, costmap.grid.origin_y_m);
  return out;
}

py::dict costmap(const Grid& grid, const CostmapConfig& config, const py::object& keep_out) {
  require(validate(config));
  Array<std::uint8_t> holder;
  const std::uint8_t* mask = keep_out_data(keep_out, grid.view, &holder);
  const CoarseGrid coarse = coarse_grid(grid.view, config.coarsening);
  const std::size_t cells = static_cast<std::size_t>(coarse.cells());
  std::vector<float> cost(cells), tilt(cells), roughness(cells);
  std::vector<double> scratch(
      costmap_scratch_doubles(grid.view.nx, grid.view.ny, config.coarsening));
  Costmap out{coarse, cost.data(), tilt.data(), roughness.data()};
  {
    const py::gil_scoped_release release;
    build_costmap(grid.view, mask, config, scratch.data(), &out);
  }
  return costmap_columns(out);
}

py::array cost_to_go(const Array<float>& cost, double resolution_m, double origin_x_m,
                     double origin_y_m, double goal_x_m, double goal_y_m, double outside_cost_per_m,
                     const py::object& extra) {
  if (cost.ndim() != 2 || cost.size() == 0) throw CoreError("map_empty: cost_per_m has no cells");
  if (cost.size() > (py::ssize_t{1} << 28)) require(Status::kMapTooLarge);
  if (!(resolution_m >= kMinResolution_m && resolution_m <= kMaxResolution_m)) {
    require(Status::kMapBadResolution);
  }
  if (!(std::isfinite(goal_x_m) && std::isfinite(goal_y_m))) require(Status::kGoalNotFinite);
  if (!(std::isfinite(origin_x_m) && std::isfinite(origin_y_m))) require(Status::kMapBadOrigin);
  Array<float> extra_holder;
  if (!extra.is_none()) {
    if (!py::isinstance<Array<float>>(extra)) {
      throw CoreError("extra_cost_per_m must be a C-contiguous float32 array");
    }
    extra_holder = py::cast<Array<float>>(extra);
    if (extra_holder.ndim() != 2 || extra_holder.shape(0) != cost.shape(0) ||
        extra_holder.shape(1) != cost.shape(1)) {
      throw CoreError("extra_cost_per_m must have the shape of cost_per_m");
    }
  }
  const CoarseGrid grid{static_cast<int>(cost.shape(1)), static_cast<int>(cost.shape(0)),
                        origin_x_m, origin_y_m, resolution_m};
  Array<float> out({cost.shape(0), cost.shape(1)});
  float* values = out.mutable_data();
  const float* extra_data = extra.is_none() ? nullptr : extra_holder.data();
  const float* cost_data = cost.data();
  {
    const py::gil_scoped_release release;
    std::vector<std::int32_t> heap(static_cast<std::size_t>(grid.cells()));
    std::vector<std::int32_t> position(heap.size());
    solve_cost_to_go(grid, cost_data, extra_data, {goal_x_m, goal_y_m}, outside_cost_per_m,
                     {heap.data(), position.data()}, values);
  }
  return out;
}

py::array sobel(const Grid& grid, double kernel_half_width_m) {
  if (!(kernel_half_width_m > 0.0 && kernel_half_width_m <= 100.0)) {
    throw CoreError("kernel_half_width_m must be positive and at most 100 m");
  }
  Array<float> out(
      {static_cast<py::ssize_t>(grid.view.ny), static_cast<py::ssize_t>(grid.view.nx)});
  float* risk = out.mutable_data();
  {
    const py::gil_scoped_release release;
    std::vector<double> scratch(sobel_scratch_doubles(grid.view.nx, grid.view.ny));
    sobel_risk(grid.view, {kernel_half_width_m}, scratch.data(), risk);
  }
  return out;
}

// A risk map that keeps its numpy array alive.
struct Risk {
  Risk() = default;
  Risk(const py::object& p, double resolution_m, std::tuple<double, double> origin_m) {
    if (!py::isinstance<Array<float>>(p)) {
      throw CoreError("risk must be a C-contiguous float32 array");
    }
    array = py::cast<Array<float>>(p);
    if (array.ndim() != 3) require(Status::kRiskBadShape);
    view = {array.data(),
            static_cast<int>(array.shape(0)),
            static_cast<int>(array.shape(2)),
            static_cast<int>(array.shape(1)),
            std::get<0>(origin_m),
            std::get<1>(origin_m),
            resolution_m};
  }
  Array<float> array;
  RiskView view;
};

// A Python callable as a RiskSource. What it raises waits here until the cycle is over: the core knows
// no exceptions.
class PyRiskSource {
 public:
  explicit PyRiskSource(py::object callable) : callable_(std::move(callable)) {
    if (!callable_.is_none() && PyCallable_Check(callable_.ptr()) == 0) {
      throw py::type_error("risk_source must be callable or None");
    }
  }
  RiskSource source() { return callable_.is_none() ? RiskSource{} : RiskSource{&fill, this}; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static bool fill(void* context, RiskView* risk) noexcept {
    auto& self = *static_cast<PyRiskSource*>(context);
    const py::gil_scoped_acquire acquire;
    try {
      return self.ask(risk);
    } catch (...) {
      self.error_ = std::current_exception();
      return false;
    }
  }
  bool ask(RiskView* risk) {
    const py::object answer = callable_();
    if (answer.is_none()) return false;
    std::tuple<py::object, double, std::tuple<double, double>> parts;
    try {
      parts = answer.cast<decltype(parts)>();
    } catch (const py::cast_error&) {
      throw py::type_error("risk_source must return None or (p, resolution_m, (x, y) origin)");
    }
    risk_ = Risk(std::get<0>(parts), std::get<1>(parts), std::get<2>(parts));
    *risk = risk_.view;
    return true;
  }

  py::object callable_;
  Risk risk_;
  std::exception_ptr error_;
};

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
                     t.evaluations_before_risk, t.risk_asked, t.work, t.work_exhausted),
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
  std::copy(rejects.begin(), rejects.end(), t.rejects);
  std::copy(stages.begin(), stages.end(), t.stage_s);
  t.arena_used_bytes = state[11].cast<std::size_t>();
  return r;
}

Array<double> to_array(const std::vector<Pose2>& poses) {
  Array<double> out({static_cast<py::ssize_t>(poses.size()), py::ssize_t{3}});
  double* p = out.mutable_data();
  for (std::size_t i = 0; i < poses.size(); ++i) {
    p[3 * i] = poses[i].x_m;
    p[3 * i + 1] = poses[i].y_m;
    p[3 * i + 2] = poses[i].heading_rad;
  }
  return out;
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
    if (status != Status::kOk) {
      // Its checker may hold either map until the next one; what the last cycle left is still of the old one.
      refused_grid_ = std::move(grid);
      require(status);
    }
    grid_ = std::move(grid);
    start_ = request.pose;
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

// Fixed-size C arrays with a count, as Python lists.
template <int N>
void assign_list(const std::vector<double>& values, double (&array)[N], int* count,
                 const char* field) {
  if (values.empty() || values.size() > static_cast<std::size_t>(N)) {
    throw CoreError(std::string(field) + " needs 1 to " + std::to_string(N) + " values");
  }
  for (std::size_t i = 0; i < values.size(); ++i) array[i] = values[i];
  *count = static_cast<int>(values.size());
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "Compiled core of mlnav; see _core.pyi.";
  m.attr("__version__") = MLNAV_VERSION;
  py::register_exception<CoreError>(m, "CoreError", PyExc_ValueError);

  py::list reasons;
  for (int bit = 0; bit < kReasonCount; ++bit) reasons.append(reason_name(bit));
  m.attr("REASONS") = py::tuple(reasons);
  py::list stages;
  for (int stage = 0; stage < kStageCount; ++stage) stages.append(stage_name(stage));
  m.attr("STAGES") = py::tuple(stages);

#define FIELD(name) .def_readwrite(#name, &Self::name)
  {
    using Self = RoverGeometry;
    py::class_<Self>(m, "RoverGeometry")
        .def(py::init<>()) FIELD(wheel_radius_m) FIELD(wheel_width_m) FIELD(front_x_m)
            FIELD(rear_x_m) FIELD(front_y_m) FIELD(middle_y_m) FIELD(rear_y_m)
                FIELD(rocker_pivot_x_m) FIELD(rocker_pivot_z_m) FIELD(bogie_pivot_x_m)
                    FIELD(bogie_pivot_z_m) FIELD(pan_rear_x_m) FIELD(pan_front_x_m)
                        FIELD(pan_half_width_m) FIELD(pan_height_m);
  }
  {
    using Self = SafetyLimits;
    py::class_<Self>(m, "SafetyLimits")
        .def(py::init<>())
        .def_static("flight_like", &Self::flight_like)
        .def_static("enav_like", &Self::enav_like) FIELD(clearance_min_m) FIELD(tilt_max_rad)
            FIELD(bogie_max_rad) FIELD(differential_max_rad) FIELD(wheel_drop_max_m)
                FIELD(relief_max_m);
  }
  {
    using Self = RoverModel;
    py::class_<Self>(m, "RoverModel")
        .def(py::init<>()) FIELD(geometry) FIELD(limits)
        .def("validate", [](const Self& self) { require(validate(self)); })
        .def(
            "wheel_steering_rad",
            [](const Self& self, double curvature_per_m) {
              if (std::isnan(curvature_per_m)) throw CoreError("curvature_per_m must be a number");
              SinCos steering[kWheels];
              wheel_steering(self.geometry, curvature_per_m, steering);
              Array<double> out(py::ssize_t{kWheels});
              for (int i = 0; i < kWheels; ++i) {
                out.mutable_at(i) = det_atan2(steering[i].sin, steering[i].cos);
              }
              return out;
            },
            py::arg("curvature_per_m"))
        .def("wheel_plan", [](const Self& self) {
          const WheelPlan plan = wheel_plan(self.geometry);
          Array<double> out({py::ssize_t{kWheels}, py::ssize_t{2}});
          for (int i = 0; i < kWheels; ++i) {
            out.mutable_at(i, 0) = plan.x_m[i];
            out.mutable_at(i, 1) = plan.y_m[i];
          }
          return out;
        });
  }
  {
    using Self = FixedBoxConfig;
    py::class_<Self>(m, "FixedBoxConfig")
        .def(py::init<>()) FIELD(half_length_m) FIELD(half_width_m);
  }
  {
    using Self = ProbabilisticConfig;
    py::class_<Self>(m, "ProbabilisticConfig")
        .def(py::init<>()) FIELD(sigma_fraction) FIELD(risk_max);
  }
  {
    using Self = VerifiedConfig;
    py::class_<Self>(m, "VerifiedConfig").def(py::init<>()) FIELD(enclosed_m) FIELD(max_tries);
  }
  {
    using Self = CostmapConfig;
    py::class_<Self>(m, "CostmapConfig")
        .def(py::init<>()) FIELD(coarsening) FIELD(patch_half_width_m) FIELD(tilt_scale_rad)
            FIELD(roughness_scale_m) FIELD(tilt_limit_rad) FIELD(unknown_cost);
  }
  {
    using Self = RiskPricing;
    py::class_<Self>(m, "RiskPricing")
        .def(py::init<>()) FIELD(weight_per_m) FIELD(to_go_fraction) FIELD(fail_price);
  }
  {
    using Self = RiskPolicy;
    py::class_<Self>(m, "RiskPolicy")
        .def(py::init<>()) FIELD(persist_cycles)
        .def_property(
            "ask",
            [](const Self& self) { return self.ask == AskRisk::kAlways ? "always" : "on_failure"; },
            [](Self& self, const std::string& ask) {
              if (ask != "always" && ask != "on_failure") {
                throw CoreError("config_bad: [ask] must be always or on_failure, not " + ask);
              }
              self.ask = ask == "always" ? AskRisk::kAlways : AskRisk::kOnFailure;
            });
  }
  {
    using Self = PathTreeConfig;
    py::class_<Self>(m, "PathTreeConfig")
        .def(py::init<>()) FIELD(arc_length_m) FIELD(ace_step_m) FIELD(turn_step_rad)
        .def_property(
            "turn_rad",
            [](const Self& self) {
              return std::vector<double>(self.turn_rad, self.turn_rad + self.turn_count);
            },
            [](Self& self, const std::vector<double>& values) {
              assign_list(values, self.turn_rad, &self.turn_count, "turn_rad");
            })
        .def_property(
            "curvature_per_m",
            [](const Self& self) {
              return std::vector<double>(self.curvature_per_m,
                                         self.curvature_per_m + self.curvature_count);
            },
            [](Self& self, const std::vector<double>& values) {
              assign_list(values, self.curvature_per_m, &self.curvature_count, "curvature_per_m");
            });
  }
  {
    using Self = EnavConfig;
    py::class_<Self>(m, "EnavConfig")
        .def(py::init<>()) FIELD(costmap) FIELD(tree) FIELD(risk) FIELD(risk_policy)
            FIELD(turn_cost) FIELD(turn_cost_per_rad) FIELD(commit_length_m) FIELD(commit_turn_rad)
                FIELD(short_paths) FIELD(riskiest_first) FIELD(overthink_evaluations)
                    FIELD(memory_poses) FIELD(memory_failures) FIELD(visit_cost_per_m)
                        FIELD(visit_radius_m) FIELD(flip_cost) FIELD(max_map_cells)
                            FIELD(max_risk_cells)
        .def("validate", [](const Self& self) { require(validate(self)); });
  }
#undef FIELD

  py::class_<Grid, std::shared_ptr<Grid>>(m, "Grid")
      .def(py::init<const Array<float>&, double, double, double>(), py::arg("z").noconvert(),
           py::arg("resolution_m"), py::arg("origin_x_m"), py::arg("origin_y_m"))
      .def_property_readonly("z", [](const Grid& self) { return self.z; })
      .def_property_readonly("resolution_m",
                             [](const Grid& self) { return self.view.resolution_m; })
      .def_property_readonly("origin_m",
                             [](const Grid& self) {
                               return py::make_tuple(self.view.origin_x_m, self.view.origin_y_m);
                             })
      .def(
          "heights",
          [](const Grid& self, const Array<double>& xy) {
            if (xy.ndim() != 2 || xy.shape(1) != 2)
              throw CoreError("points must have shape (n, 2)");
            Array<double> out(xy.shape(0));
            double* z = out.mutable_data();
            const double* p = xy.data();
            const py::ssize_t n = xy.shape(0);
            const py::gil_scoped_release release;
            for (py::ssize_t i = 0; i < n; ++i) z[i] = height_m(self.view, p[2 * i], p[2 * i + 1]);
            return out;
          },
          py::arg("xy").noconvert())
      .def(
          "wheel_heights",
          [](const Grid& self, const RoverModel& model, const Array<double>& array) {
            SettleModel settle_model;
            require(make_settle_model(model.geometry, &settle_model), "wheel_radius_m");
            const std::vector<Stance> poses = to_stances(array);
            Array<double> out(static_cast<py::ssize_t>(poses.size()));
            double* h = out.mutable_data();
            const py::gil_scoped_release release;
            for (std::size_t i = 0; i < poses.size(); ++i) {
              const Pose2& wheel = poses[i].pose;
              const WheelContact contact =
                  stance_ok(poses[i]) ? wheel_contact(self.view, settle_model.footprint, wheel.x_m,
                                                      wheel.y_m, det_sincos(wheel.heading_rad))
                                      : WheelContact{Status::kPoseNotFinite, 0.0, 0.0, 0.0};
              h[i] = contact.status == Status::kOk ? contact.height_m
                                                   : std::numeric_limits<double>::quiet_NaN();
            }
            return out;
          },
          py::arg("model"), py::arg("poses").noconvert());

  py::class_<Checker, std::shared_ptr<Checker>>(m, "Checker")
      .def_static("fixed_box", &Checker::fixed_box, py::arg("model"), py::arg("config"),
                  py::arg("max_map_cells"))
      .def_static("settle", &Checker::settle, py::arg("model"))
      .def_static("verified", &Checker::verified, py::arg("model"), py::arg("config"))
      .def_static("probabilistic", &Checker::probabilistic, py::arg("model"), py::arg("boxes"),
                  py::arg("config"), py::arg("max_map_cells"))
      .def_property_readonly("name", &Checker::name)
      .def_property_readonly("model", [](const Checker& self) { return self.model(); })
      .def_property_readonly("settings", &Checker::settings)
      .def("set_map", &Checker::set_map, py::arg("grid"))
      .def("reasons", &Checker::reasons, py::arg("poses").noconvert())
      .def("report", &Checker::report, py::arg("poses").noconvert())
      .def("ace_map", &Checker::ace_map, py::arg("bins"));

  m.def("settle", &settle_poses, py::arg("grid"), py::arg("model"), py::arg("poses").noconvert(),
        py::arg("start_heights_m") = py::none(), py::arg("steering_rad") = py::none());
  m.def("clearance", &clearance_of, py::arg("grid"), py::arg("model"), py::arg("poses").noconvert(),
        py::arg("attitudes").noconvert());
  m.def("cast_view", &view, py::arg("grid"), py::arg("eye_m"), py::arg("azimuth_rad").noconvert(),
        py::arg("elevation_rad").noconvert(), py::arg("range_m"));
  m.def(
      "status_name", [](int status) { return to_string(static_cast<Status>(status)); },
      py::arg("status"));
  m.def("costmap", &costmap, py::arg("grid"), py::arg("config"), py::arg("keep_out") = py::none());
  m.def("cost_to_go", &cost_to_go, py::arg("cost_per_m").noconvert(), py::arg("resolution_m"),
        py::arg("origin_x_m"), py::arg("origin_y_m"), py::arg("goal_x_m"), py::arg("goal_y_m"),
        py::arg("outside_cost_per_m") = 1.0, py::arg("extra_cost_per_m") = py::none());
  m.def("sobel_risk", &sobel, py::arg("grid"), py::arg("kernel_half_width_m") = 1.2);

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
