// Terrains and random numbers for tests: any shape, origin and resolution, the same bits everywhere
// (the generator is the standard's, the distributions are ours).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "mlnav/ground/grid.hpp"

namespace mlnav::maps {

inline constexpr float kUnknownHeight = std::numeric_limits<float>::quiet_NaN();

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t bits() { return engine_(); }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double lo, double hi) { return lo + (hi - lo) * unit(); }
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  int between(int lo, int hi) { return lo + below(hi - lo + 1); }  // both included
  bool chance(double p) { return unit() < p; }

 private:
  std::mt19937_64 engine_;
};

// A heightmap that owns its cells. Makers add to what is there and can be chained:
//   Terrain(80, 60, 0.1, 12.0, -7.0).plane(0.1, 0.0).rocks(random, 20, 0.1, 0.4)
class Terrain {
 public:
  Terrain(int nx, int ny, double resolution_m, double origin_x_m = 0.0, double origin_y_m = 0.0)
      : z(static_cast<std::size_t>(nx) * static_cast<std::size_t>(ny), 0.0F),
        nx_(nx),
        ny_(ny),
        resolution_m_(resolution_m),
        origin_x_m_(origin_x_m),
        origin_y_m_(origin_y_m) {}

  std::vector<float> z;  // z[iy * nx + ix]

  // Valid as long as this terrain is neither changed in size nor destroyed; copies have their own.
  GridView view() const { return {z.data(), nx_, ny_, origin_x_m_, origin_y_m_, resolution_m_}; }
  float& at(int ix, int iy) { return z[static_cast<std::size_t>(iy * nx_ + ix)]; }

  double center_x_m() const { return origin_x_m_ + 0.5 * resolution_m_ * (nx_ - 1); }
  double center_y_m() const { return origin_y_m_ + 0.5 * resolution_m_ * (ny_ - 1); }
  double width_m() const { return resolution_m_ * nx_; }
  double height_m() const { return resolution_m_ * ny_; }

  // z += height(x, y), in world coordinates.
  template <typename Height>
  Terrain& add(Height height) {
    const GridView grid = view();
    for (int iy = 0; iy < ny_; ++iy) {
      for (int ix = 0; ix < nx_; ++ix) {
        at(ix, iy) += static_cast<float>(height(grid.center_x_m(ix), grid.center_y_m(iy)));
      }
    }
    return *this;
  }

  // Zero at the map's centre.
  Terrain& plane(double slope_x, double slope_y) {
    return add([&](double x, double y) {
      return slope_x * (x - center_x_m()) + slope_y * (y - center_y_m());
    });
  }

  // Rises by `rise_m` beyond the line through (x, y) that is normal to `heading_rad`.
  Terrain& step(double x_m, double y_m, double heading_rad, double rise_m) {
    const double c = std::cos(heading_rad);
    const double s = std::sin(heading_rad);
    return add(
        [=](double x, double y) { return (x - x_m) * c + (y - y_m) * s > 0.0 ? rise_m : 0.0; });
  }

  // A trench of `width_m` along the line through (x, y) that runs along `heading_rad`.
  Terrain& ditch(double x_m, double y_m, double heading_rad, double width_m, double depth_m) {
    const double c = std::cos(heading_rad);
    const double s = std::sin(heading_rad);
    return add([=](double x, double y) {
      return std::fabs((y - y_m) * c - (x - x_m) * s) < 0.5 * width_m ? -depth_m : 0.0;
    });
  }

  // The upper half of a sphere stands on the ground.
  Terrain& rock(double x_m, double y_m, double radius_m) {
    return add([=](double x, double y) {
      const double d2 = (x - x_m) * (x - x_m) + (y - y_m) * (y - y_m);
      return d2 < radius_m * radius_m ? std::sqrt(radius_m * radius_m - d2) : 0.0;
    });
  }

  Terrain& rocks(Random& random, int count, double radius_lo_m, double radius_hi_m) {
    for (int i = 0; i < count; ++i) {
      const Point2 p = anywhere(random);
      rock(p.x_m, p.y_m, random.uniform(radius_lo_m, radius_hi_m));
    }
    return *this;
  }

  // Independent from cell to cell.
  Terrain& noise(Random& random, double amplitude_m) {
    for (float& height : z) {
      height += static_cast<float>(random.uniform(-amplitude_m, amplitude_m));
    }
    return *this;
  }

  // A few long waves: hills and hollows.
  Terrain& hills(Random& random, double amplitude_m, double wavelength_m) {
    for (int i = 0; i < 4; ++i) {
      const double k = 2.0 * 3.14159265358979 / (wavelength_m * random.uniform(0.6, 1.6));
      const double heading = random.uniform(0.0, 6.3);
      const double phase = random.uniform(0.0, 6.3);
      const double kx = k * std::cos(heading);
      const double ky = k * std::sin(heading);
      add([=](double x, double y) {
        return 0.25 * amplitude_m *
               std::sin(kx * (x - origin_x_m_) + ky * (y - origin_y_m_) + phase);
      });
    }
    return *this;
  }

  Terrain& unknown_disc(double x_m, double y_m, double radius_m) {
    return add([=](double x, double y) {
      const double d2 = (x - x_m) * (x - x_m) + (y - y_m) * (y - y_m);
      return d2 < radius_m * radius_m ? static_cast<double>(kUnknownHeight) : 0.0;
    });
  }

  Terrain& unknown_patches(Random& random, int count, double radius_m) {
    for (int i = 0; i < count; ++i) {
      const Point2 p = anywhere(random);
      unknown_disc(p.x_m, p.y_m, random.uniform(0.2, 1.0) * radius_m);
    }
    return *this;
  }

  // Anywhere on the map.
  Point2 anywhere(Random& random) const {
    return {origin_x_m_ + resolution_m_ * random.uniform(-0.5, nx_ - 0.5),
            origin_y_m_ + resolution_m_ * random.uniform(-0.5, ny_ - 0.5)};
  }

  // In the middle, `spread` of the way to the border at most (0: the centre itself).
  Point2 near_center(Random& random, double spread) const {
    return {center_x_m() + 0.5 * spread * width_m() * random.uniform(-1.0, 1.0),
            center_y_m() + 0.5 * spread * height_m() * random.uniform(-1.0, 1.0)};
  }

 private:
  int nx_;
  int ny_;
  double resolution_m_;
  double origin_x_m_;
  double origin_y_m_;
};

// Shape, place and ground drawn at random. `roughness` from 0 (nearly all of it drivable) to 1.
inline Terrain random_terrain(Random& random, double size_m, double roughness) {
  const double resolution = random.uniform(0.08, 0.25);
  const int nx = static_cast<int>(size_m * random.uniform(0.8, 1.2) / resolution);
  const int ny = static_cast<int>(size_m * random.uniform(0.8, 1.2) / resolution);
  Terrain terrain(nx, ny, resolution, random.uniform(-300.0, 300.0), random.uniform(-300.0, 300.0));
  const double slope = std::tan(random.uniform(0.0, 0.4) * roughness);
  const double aspect = random.uniform(0.0, 6.3);
  terrain.plane(slope * std::cos(aspect), slope * std::sin(aspect));
  if (random.chance(0.5)) terrain.hills(random, 0.8 * roughness, 0.6 * size_m);
  const double area = terrain.width_m() * terrain.height_m();
  terrain.rocks(random, static_cast<int>(area * 0.2 * roughness * random.unit()), 0.05, 0.35);
  if (random.chance(0.3)) {
    const Point2 p = terrain.anywhere(random);
    terrain.step(p.x_m, p.y_m, random.uniform(0.0, 6.3), 0.4 * roughness * random.unit());
  }
  if (random.chance(0.3)) {
    const Point2 p = terrain.anywhere(random);
    terrain.ditch(p.x_m, p.y_m, random.uniform(0.0, 6.3), 0.6, 0.5 * roughness * random.unit());
  }
  if (random.chance(0.5)) terrain.noise(random, 0.03 * roughness);
  if (random.chance(0.3)) terrain.unknown_patches(random, random.between(1, 4), 0.8);
  return terrain;
}

// Memory for an arena, aligned as the core wants it.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes + 64), storage_(bytes_ / 64 + 1) {}
  void* data() { return storage_.data(); }
  std::size_t size() const { return storage_.size() * 64; }

 private:
  struct alignas(64) Line {
    unsigned char byte[64];
  };
  std::size_t bytes_;
  std::vector<Line> storage_;
};

}  // namespace mlnav::maps
