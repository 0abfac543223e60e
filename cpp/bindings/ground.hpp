#pragma once

#include <cstdint>

#include "common.hpp"
#include "mlnav/ground/features.hpp"
#include "mlnav/ground/grid.hpp"

namespace mlnav::bindings {

// A heightmap with heights of its own: whoever holds the array that it was made of cannot change it.
struct Grid {
  Grid(const Array<float>& array, double resolution_m, double origin_x_m, double origin_y_m,
       const py::object& height_error_m = py::none());
  Array<float> z, cell_error_m;  // copies, read-only
  GridView view;
};

// Cells of a keep-out mask of the grid's shape; nullptr for None. `holder` keeps them alive.
const std::uint8_t* keep_out_data(const py::object& keep_out, const GridView& view,
                                  Array<std::uint8_t>* holder);

py::dict costmap_columns(const Costmap& costmap);

}  // namespace mlnav::bindings
