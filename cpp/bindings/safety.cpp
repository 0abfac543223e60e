#include "safety.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "fields.hpp"
#include "mlnav/safety/ace_map.hpp"

namespace mlnav::bindings {
namespace {

py::dict to_columns(const std::vector<AceReport>& rows) {
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

}  // namespace

CheckerInstance::CheckerInstance(const CheckerSpec& spec, std::size_t map_cells) {
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

Checker::Checker(CheckerSpec spec) : spec_(std::move(spec)) {
  const CheckerInstance refuses_what_is_bad(spec_, spec_.max_map_cells);
}

void Checker::set_map(std::shared_ptr<Grid> grid) {
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

py::array Checker::reasons(const Array<double>& array) const {
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

py::dict Checker::report(const Array<double>& array) const {
  const std::shared_ptr<const Mapped> mapped = require_map();
  const std::vector<Stance> poses = to_stances(array);
  std::vector<AceReport> rows(poses.size());
  {
    const py::gil_scoped_release release;
    check_stances(*mapped->checker, {poses.data(), poses.size()}, nullptr, rows.data());
  }
  return to_columns(rows);
}

py::array Checker::ace_map(int bins) const {
  const std::shared_ptr<const Mapped> mapped = require_map();
  if (spec_.name != "fixed_box") {
    throw CoreError("ace_map needs the fixed_box checker, not " + spec_.name);
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

py::dict Checker::settings() const {
  py::dict out;
  if (spec_.name == "fixed_box" || spec_.name == "probabilistic") {
    out["half_length_m"] = spec_.boxes.half_length_m;
    out["half_width_m"] = spec_.boxes.half_width_m;
  }
  if (spec_.name == "probabilistic") {
    out["sigma_fraction"] = spec_.probabilistic.sigma_fraction;
    out["risk_max"] = spec_.probabilistic.risk_max;
  }
  if (spec_.name == "verified") {
    out["enclosed_m"] = spec_.verified.enclosed_m;
    out["max_tries"] = spec_.verified.max_tries;
  }
  return out;
}

std::shared_ptr<const Checker::Mapped> Checker::require_map() const {
  if (mapped_ == nullptr) require(Status::kNotInitialized);
  return mapped_;
}

void bind_safety(py::module_& m) {
  bind_config<FixedBoxConfig>(m, "FixedBoxConfig");
  bind_config<ProbabilisticConfig>(m, "ProbabilisticConfig");
  bind_config<VerifiedConfig>(m, "VerifiedConfig");
  const auto make = [](CheckerSpec spec) { return std::make_shared<Checker>(std::move(spec)); };
  py::class_<Checker, std::shared_ptr<Checker>>(m, "Checker")
      .def_static(
          "fixed_box",
          [make](const RoverModel& model, const FixedBoxConfig& boxes, std::size_t max_map_cells) {
            return make({"fixed_box", model, boxes, {}, {}, max_map_cells});
          },
          py::arg("model"), py::arg("config"), py::arg("max_map_cells"))
      .def_static(
          "settle",
          [make](const RoverModel& model) { return make({"settle", model, {}, {}, {}, 0}); },
          py::arg("model"))
      .def_static(
          "verified",
          [make](const RoverModel& model, const VerifiedConfig& config) {
            return make({"verified", model, {}, config, {}, 0});
          },
          py::arg("model"), py::arg("config"))
      .def_static(
          "probabilistic",
          [make](const RoverModel& model, const FixedBoxConfig& boxes,
                 const ProbabilisticConfig& config, std::size_t max_map_cells) {
            return make({"probabilistic", model, boxes, {}, config, max_map_cells});
          },
          py::arg("model"), py::arg("boxes"), py::arg("config"), py::arg("max_map_cells"))
      .def_property_readonly("name", [](const Checker& self) { return self.spec().name; })
      .def_property_readonly("model", [](const Checker& self) { return self.spec().model; })
      .def_property_readonly("settings", &Checker::settings)
      .def("set_map", &Checker::set_map, py::arg("grid"))
      .def("reasons", &Checker::reasons, py::arg("poses").noconvert())
      .def("report", &Checker::report, py::arg("poses").noconvert())
      .def("ace_map", &Checker::ace_map, py::arg("bins"));
}

}  // namespace mlnav::bindings
