// Maps for tests: an owner of heights, and frames (origin and resolution) to put every geometry test
// through.
#pragma once

#include <cstddef>
#include <vector>

#include "mlnav/ground/grid.hpp"

namespace mlnav_test {

struct Frame {
  double ox, oy, res;
};

inline constexpr Frame kFrames[] = {{0.0, 0.0, 0.1},       {-3.7, 12.25, 0.05},
                                    {1234.5, -987.6, 0.2}, {0.333, -0.777, 0.0731},
                                    {9.9e6, -9.9e6, 0.1},  {-0.05, 0.05, 1.0 / 3.0}};

struct Map {
  std::vector<float> z;
  mlnav::GridView view;

  Map(int nx, int ny, double ox, double oy, double res)
      : z(static_cast<std::size_t>(nx * ny), 0.0f), view{nullptr, nx, ny, ox, oy, res, 0.0} {
    view.z = z.data();
  }
  Map(const Map&) = delete;  // `view` points into `z`
  Map& operator=(const Map&) = delete;

  float& at(int ix, int iy) { return z[static_cast<std::size_t>(iy * view.nx + ix)]; }

  // z = f(x, y) at the cell centres.
  template <typename F>
  void fill(F f) {
    for (int iy = 0; iy < view.ny; ++iy) {
      for (int ix = 0; ix < view.nx; ++ix) {
        at(ix, iy) = static_cast<float>(f(view.center_x_m(ix), view.center_y_m(iy)));
      }
    }
  }
};

}  // namespace mlnav_test
