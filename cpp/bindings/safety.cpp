#include "safety.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "fields.hpp"
#include "mlnav/safety/ace_map.hpp"
#include "reports.hpp"

namespace mlnav::bindings {
namespace {

template <typename Config>
void add_settings(const Config& config, py::dict* out) {
  for_each_field<Config>([&](const auto& field) { (*out)[field.name] = config.*field.member; });
}

}  // namespace

CheckerInstance::CheckerInstance(const CheckerSpec& spec, std::size_t map_cells) {
  if (!spec.make.is_none()) {
    python_ = std::make_unique<PythonChecker>(spec.model, spec.make);
    checker_ = python_.get();
  } else if (spec.name == "fixed_box") {
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
    memory_ = Memory(VerifiedChecker::memory_required());
    require(verified_.init(spec.model, spec.verified, memory_.arena()));
    checker_ = &verified_;
  } else {
    require(settle_.init(spec.model));
    checker_ = &settle_;
  }
}

Checker::Checker(CheckerSpec spec) : spec_(std::move(spec)) {
  const CheckerInstance probe(spec_, spec_.max_map_cells);
  sees_steering_ = (*probe).sees_steering();
  if (probe.python() != nullptr) {
    settings_ = probe.python()->settings();
  } else if (spec_.name == "verified") {
    add_settings(spec_.verified, &settings_);
  } else if (spec_.name != "settle") {
    add_settings(spec_.boxes, &settings_);
    if (spec_.name == "probabilistic") add_settings(spec_.probabilistic, &settings_);
  }
}

void Checker::set_map(std::shared_ptr<Grid> grid) {
  const std::size_t cells = grid->view.cells();
  if (spec_.max_map_cells > 0 && cells > spec_.max_map_cells) require(Status::kMapTooLarge);
  auto mapped = std::make_shared<Mapped>(spec_, std::move(grid));
  const auto status = [&] {
    const py::gil_scoped_release release;
    return mapped->checker.get()->set_map(mapped->grid->view);
  }();
  if (const std::exception_ptr error = mapped->checker.take_error()) std::rethrow_exception(error);
  require(status);
  mapped_ = std::move(mapped);
}

py::array Checker::reasons(const Array<double>& array) const {
  const std::shared_ptr<const Mapped> mapped = require_map();
  const std::vector<Sweep> sweeps = to_sweeps(array);
  Array<Reasons> out(static_cast<py::ssize_t>(sweeps.size()));
  Reasons* p = out.mutable_data();
  if (const PythonChecker* const python = mapped->checker.python()) {
    const std::vector<Reasons> reasons = python->reasons(sweeps);
    std::copy(reasons.begin(), reasons.end(), p);
  } else {
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mapped->asking);
    check_sweeps(*mapped->checker, {sweeps.data(), sweeps.size()}, p, nullptr);
  }
  return out;
}

py::dict Checker::report(const Array<double>& array) const {
  const std::shared_ptr<const Mapped> mapped = require_map();
  const std::vector<Sweep> sweeps = to_sweeps(array);
  if (const PythonChecker* const python = mapped->checker.python()) {
    return to_columns(python->report(sweeps));
  }
  std::vector<AceReport> rows(sweeps.size());
  {
    const py::gil_scoped_release release;
    const std::lock_guard<std::mutex> lock(mapped->asking);
    check_sweeps(*mapped->checker, {sweeps.data(), sweeps.size()}, nullptr, rows.data());
  }
  return to_columns(rows);
}

py::array Checker::ace_map(int bins) const {
  const std::shared_ptr<const Mapped> mapped = require_map();
  if (spec_.name != "fixed_box" || !spec_.make.is_none()) {
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
      .def_static(
          "of_python",
          [make](py::object maker, const RoverModel& model, std::string name) {
            return make({std::move(name), model, {}, {}, {}, 0, std::move(maker)});
          },
          py::arg("make"), py::arg("model"), py::arg("name") = "python")
      .def_property_readonly("name", [](const Checker& self) { return self.spec().name; })
      .def_property_readonly("model", [](const Checker& self) { return self.spec().model; })
      .def_property_readonly("takes_sweeps", [](const Checker&) { return true; })
      .def_property_readonly("sees_steering", &Checker::sees_steering)
      .def_property_readonly("settings",
                             [](const Checker& self) { return self.settings().attr("copy")(); })
      .def("set_map", &Checker::set_map, py::arg("grid"))
      .def("reasons", &Checker::reasons, py::arg("sweeps").noconvert())
      .def("report", &Checker::report, py::arg("sweeps").noconvert())
      .def("ace_map", &Checker::ace_map, py::arg("bins"));
}

}  // namespace mlnav::bindings
