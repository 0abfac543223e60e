// The module mlnav._core: one file a room, see common.hpp.
#include "common.hpp"
#include "mlnav/plan/telemetry.hpp"
#include "mlnav/safety/checker.hpp"

PYBIND11_MODULE(_core, m) {
  using namespace mlnav;
  namespace py = pybind11;
  m.doc() = "Compiled core of mlnav; see _core.pyi.";
  m.attr("__version__") = MLNAV_VERSION;
  py::register_exception<bindings::CoreError>(m, "CoreError", PyExc_ValueError);

  py::list reasons;
  for (int bit = 0; bit < kReasonCount; ++bit) reasons.append(reason_name(bit));
  m.attr("REASONS") = py::tuple(reasons);
  py::list stages;
  for (int stage = 0; stage < kStageCount; ++stage) stages.append(stage_name(stage));
  m.attr("STAGES") = py::tuple(stages);
  m.def(
      "status_name", [](int status) { return to_string(static_cast<Status>(status)); },
      py::arg("status"));
  m.attr("FIELDS") = py::dict();  // filled by the rooms: struct -> its fields
  bindings::bind_ground(m);
  bindings::bind_rover(m);
  bindings::bind_safety(m);
  bindings::bind_search(m);
  bindings::bind_plan(m);
}
