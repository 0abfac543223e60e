#include "mlnav/search/cost_to_go.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "mlnav/assert.hpp"

namespace mlnav {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kSqrt2 = 1.4142135623730951;

// Indexed 4-ary heap: shallower than a binary one, and the children of a node share a cache line. Ordered by
// value, then by cell index.
class Heap {
 public:
  Heap(const CostToGoScratch& scratch, const float* value) noexcept
      : heap_(scratch.heap), position_(scratch.position), value_(value) {}

  bool empty() const noexcept { return size_ == 0; }

  // For a cell that is new, or whose value was just lowered.
  void push_or_lower(std::int32_t cell) noexcept {
    const std::uint64_t own = key(cell);
    std::int32_t place = position_[cell];
    if (place < 0) place = size_++;
    while (place > 0) {
      const std::int32_t parent = (place - 1) / 4;
      if (key(heap_[parent]) < own) break;
      put(heap_[parent], place);
      place = parent;
    }
    put(cell, place);
  }

  std::int32_t pop() noexcept {
    const std::int32_t top = heap_[0];
    MLNAV_ASSERT(position_[top] == 0);
    position_[top] = -1;
    --size_;
    if (size_ > 0) sink(heap_[size_]);
    MLNAV_ASSERT(size_ == 0 || key(top) < key(heap_[0]));
    return top;
  }

 private:
  // Value and cell index in one integer: the bits of non-negative floats are in the order of their values.
  // That makes one comparison, which compilers turn into a conditional move instead of a branch.
  std::uint64_t key(std::int32_t cell) const noexcept {
    std::uint32_t bits;
    std::memcpy(&bits, value_ + cell, sizeof bits);
    return static_cast<std::uint64_t>(bits) << 32 | static_cast<std::uint32_t>(cell);
  }
  void put(std::int32_t cell, std::int32_t place) noexcept {
    heap_[place] = cell;
    position_[cell] = place;
  }
  // Inserts a cell at the top, which is free, and moves it down.
  void sink(std::int32_t cell) noexcept {
    const std::uint64_t own = key(cell);
    std::int32_t place = 0;
    for (;;) {
      const std::int32_t first = 4 * place + 1;
      if (first >= size_) break;
      std::uint64_t best = key(heap_[first]);
      if (first + 4 <= size_) {
        for (int k = 1; k < 4; ++k) {
          const std::uint64_t child = key(heap_[first + k]);
          best = child < best ? child : best;
        }
      } else {
        for (std::int32_t c = first + 1; c < size_; ++c) {
          const std::uint64_t child = key(heap_[c]);
          best = child < best ? child : best;
        }
      }
      if (own < best) break;
      const auto smallest = static_cast<std::int32_t>(best & 0xffffffffu);
      const std::int32_t from = position_[smallest];
      put(smallest, place);
      place = from;
    }
    put(cell, place);
  }

  std::int32_t* heap_;
  std::int32_t* position_;
  const float* value_;
  std::int32_t size_ = 0;
};

// Cost per metre plus the extra cost; infinite if either is, or if the cost is NaN. An extra cost that is NaN
// or negative counts as zero.
struct CellCost {
  const float* base;
  const float* extra;
  std::int32_t goal_cell;  // -1: the goal is outside

  float operator()(std::int32_t cell) const noexcept {
    float cost = base[cell];
    if (extra != nullptr && extra[cell] > 0.0f) cost += extra[cell];
    if (cost >= 0.0f && cost < kInfinity) return cost;
    return cell == goal_cell ? 1.0f : kInfinity;
  }
};

GridView view_of(const CoarseGrid& grid) noexcept {
  return {nullptr, grid.nx, grid.ny, grid.origin_x_m, grid.origin_y_m, grid.resolution_m};
}

void seed_border(const CoarseGrid& grid, const CellCost& cost, Point2 goal,
                 double outside_cost_per_m, float* cost_to_go, Heap* heap) noexcept {
  for (int iy = 0; iy < grid.ny; ++iy) {
    const bool edge_row = iy == 0 || iy == grid.ny - 1;
    const int step = edge_row || grid.nx < 2 ? 1 : grid.nx - 1;
    for (int ix = 0; ix < grid.nx; ix += step) {
      const std::int32_t cell = iy * grid.nx + ix;
      if (!(cost(cell) < kInfinity)) continue;
      const double dx = grid.origin_x_m + grid.resolution_m * ix - goal.x_m;
      const double dy = grid.origin_y_m + grid.resolution_m * iy - goal.y_m;
      const auto value = static_cast<float>(std::sqrt(dx * dx + dy * dy) * outside_cost_per_m);
      if (!(value < kInfinity)) continue;  // NaN too
      cost_to_go[cell] = value;
      heap->push_or_lower(cell);
    }
  }
}

bool on_grid(const CoarseGrid& grid, int ix, int iy) noexcept {
  return ix >= 0 && iy >= 0 && ix < grid.nx && iy < grid.ny;
}

struct Step {
  int dx;
  int dy;
};
constexpr Step kSteps[8] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}, {1, 1}, {-1, 1}, {-1, -1}, {1, -1}};

}  // namespace

void solve_cost_to_go(const CoarseGrid& grid, const float* cost_per_m,
                      const float* extra_cost_per_m, Point2 goal, double outside_cost_per_m,
                      const CostToGoScratch& scratch, float* cost_to_go) noexcept {
  const int cells = grid.cells();
  for (int i = 0; i < cells; ++i) {
    cost_to_go[i] = kInfinity;
    scratch.position[i] = -1;
  }

  // 1. Sources: the goal's cell, or the border if the goal is outside.
  Heap heap(scratch, cost_to_go);
  CellCost cost{cost_per_m, extra_cost_per_m, -1};
  CellIndex goal_index;
  if (cell_of(view_of(grid), goal.x_m, goal.y_m, &goal_index)) {
    cost.goal_cell = goal_index.iy * grid.nx + goal_index.ix;
    cost_to_go[cost.goal_cell] = 0.0f;
    heap.push_or_lower(cost.goal_cell);
  } else {
    seed_border(grid, cost, goal, outside_cost_per_m, cost_to_go, &heap);
  }

  // 2. Cells leave the heap in the order of their cost and lower that of their neighbours. Costs are not
  // negative, so the value of a cell that has left is final.
  const double half_straight = 0.5 * grid.resolution_m;
  const double half_diagonal = half_straight * kSqrt2;
  while (!heap.empty()) {
    const std::int32_t cell = heap.pop();
    const int ix = cell % grid.nx;
    const int iy = cell / grid.nx;
    const float here_float = cost_to_go[cell];
    const double here = static_cast<double>(here_float);
    const double cost_here = static_cast<double>(cost(cell));
    const bool interior = ix > 0 && iy > 0 && ix < grid.nx - 1 && iy < grid.ny - 1;
    bool open[4] = {};  // the straight neighbours, east, north, west, south
    for (int k = 0; k < 8; ++k) {
      if (k >= 4 && !(open[k - 4] && open[(k - 3) % 4])) continue;  // would cut a corner
      if (!interior && !on_grid(grid, ix + kSteps[k].dx, iy + kSteps[k].dy)) continue;
      const std::int32_t next = cell + kSteps[k].dy * grid.nx + kSteps[k].dx;
      if (cost_to_go[next] <= here_float) {  // final already, and open since it has a value
        if (k < 4) open[k] = true;
        continue;
      }
      const float cost_there = cost(next);
      if (!(cost_there < kInfinity)) continue;
      if (k < 4) open[k] = true;
      const double half_length = k < 4 ? half_straight : half_diagonal;
      const auto value =
          static_cast<float>(here + half_length * (cost_here + static_cast<double>(cost_there)));
      if (value < cost_to_go[next]) {
        cost_to_go[next] = value;
        heap.push_or_lower(next);
      }
    }
  }
}

double sample_cost_to_go(const CoarseGrid& grid, const float* cost_to_go, double x_m,
                         double y_m) noexcept {
  constexpr double kUnreachable = std::numeric_limits<double>::infinity();
  CellIndex own;
  if (!cell_of(view_of(grid), x_m, y_m, &own)) return kUnreachable;
  const auto at = [&](int ix, int iy) noexcept {
    return static_cast<double>(cost_to_go[iy * grid.nx + ix]);
  };
  if (!(at(own.ix, own.iy) < kUnreachable)) return kUnreachable;

  // Interpolate towards the neighbours on the point's side of the centre; the outer half cell has none.
  const double fx = (x_m - grid.origin_x_m) / grid.resolution_m - static_cast<double>(own.ix);
  const double fy = (y_m - grid.origin_y_m) / grid.resolution_m - static_cast<double>(own.iy);
  const int jx = own.ix + (fx < 0.0 ? -1 : 1);
  const int jy = own.iy + (fy < 0.0 ? -1 : 1);
  const double tx = jx < 0 || jx >= grid.nx ? 0.0 : std::fabs(fx);
  const double ty = jy < 0 || jy >= grid.ny ? 0.0 : std::fabs(fy);
  double sum = 0.0;
  double weights = 0.0;
  const auto add = [&](int ix, int iy, double weight) noexcept {
    if (!(weight > 0.0)) return;
    const double value = at(ix, iy);
    if (!(value < kUnreachable)) return;
    sum += weight * value;
    weights += weight;
  };
  add(own.ix, own.iy, (1.0 - tx) * (1.0 - ty));
  add(jx, own.iy, tx * (1.0 - ty));
  add(own.ix, jy, (1.0 - tx) * ty);
  add(jx, jy, tx * ty);
  return sum / weights;
}

}  // namespace mlnav
