#include "search.hpp"

#include <cmath>
#include <cstdint>
#include <string>

#include "fields.hpp"
#include "mlnav/search/cost_to_go.hpp"
#include "mlnav/search/path_tree.hpp"
#include "mlnav/search/risk_schedule.hpp"

namespace mlnav::bindings {
namespace {

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

}  // namespace

void bind_search(py::module_& m) {
  bind_config<RiskPricing>(m, "RiskPricing");
  bind_config<RiskPolicy>(m, "RiskPolicy");
  bind_config<PathTreeConfig>(m, "PathTreeConfig");
  m.def("cost_to_go", &cost_to_go, py::arg("cost_per_m").noconvert(), py::arg("resolution_m"),
        py::arg("origin_x_m"), py::arg("origin_y_m"), py::arg("goal_x_m"), py::arg("goal_y_m"),
        py::arg("outside_cost_per_m") = 1.0, py::arg("extra_cost_per_m") = py::none());
}

}  // namespace mlnav::bindings
