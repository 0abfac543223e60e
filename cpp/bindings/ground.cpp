#include "ground.hpp"

#include <limits>
#include <tuple>
#include <utility>

#include "fields.hpp"
#include "mlnav/ground/view.hpp"

namespace mlnav::bindings {

Grid::Grid(const Array<float>& array, double resolution_m, double origin_x_m, double origin_y_m,
           const py::object& height_error_m)
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
  if (!height_error_m.is_none()) {
    if (!py::isinstance<Array<float>>(height_error_m))
      throw CoreError("height_error_m must be a C-contiguous float32 array");
    cell_error_m = Array<float>(py::cast<Array<float>>(height_error_m).request());
    if (cell_error_m.ndim() != 2 || cell_error_m.shape(0) != view.ny ||
        cell_error_m.shape(1) != view.nx) {
      throw CoreError("height_error_m must have the map's shape");
    }
    view.cell_error_m = cell_error_m.data();
    cell_error_m.attr("setflags")(py::arg("write") = false);
  }
  const auto status = [this] {
    const py::gil_scoped_release release;
    return validate(view);
  }();
  require(status);
  z.attr("setflags")(py::arg("write") = false);
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

namespace {

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

py::array sobel(const Grid& grid, double kernel_half_width_m) {
  const SobelConfig config{kernel_half_width_m};
  require(validate(config));
  Array<float> out(
      {static_cast<py::ssize_t>(grid.view.ny), static_cast<py::ssize_t>(grid.view.nx)});
  float* risk = out.mutable_data();
  {
    const py::gil_scoped_release release;
    std::vector<double> scratch(sobel_scratch_doubles(grid.view.nx, grid.view.ny));
    sobel_risk(grid.view, config, scratch.data(), risk);
  }
  return out;
}

}  // namespace

void bind_ground(py::module_& m) {
  bind_config<CostmapConfig>(m, "CostmapConfig");
  bind_config<SobelConfig>(m, "SobelConfig");
  py::class_<Grid, std::shared_ptr<Grid>>(m, "Grid")
      .def(py::init<const Array<float>&, double, double, double, const py::object&>(),
           py::arg("z").noconvert(), py::arg("resolution_m"), py::arg("origin_x_m"),
           py::arg("origin_y_m"), py::arg("height_error_m") = py::none())
      .def_property_readonly("z", [](const Grid& self) { return self.z; })
      .def_property_readonly("height_error_m",
                             [](const Grid& self) -> py::object {
                               if (self.view.cell_error_m == nullptr) return py::none();
                               return self.cell_error_m;
                             })
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
          py::arg("xy").noconvert());
  m.def("cast_view", &view, py::arg("grid"), py::arg("eye_m"), py::arg("azimuth_rad").noconvert(),
        py::arg("elevation_rad").noconvert(), py::arg("range_m"));
  m.def("costmap", &costmap, py::arg("grid"), py::arg("config"), py::arg("keep_out") = py::none());
  m.def("sobel_risk", &sobel, py::arg("grid"),
        py::arg("kernel_half_width_m") = SobelConfig{}.kernel_half_width_m);
}

}  // namespace mlnav::bindings
