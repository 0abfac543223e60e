// Cost-to-go: Dijkstra over the costmap, from the goal outwards, 8-connected.
#pragma once

#include <cstdint>

#include "mlnav/ground/features.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// Scratch for solve_cost_to_go: an indexed 4-ary heap over the cells. All arrays have at least
// grid.cells() entries.
struct CostToGoScratch {
  std::int32_t* heap = nullptr;      // cell ids in heap order
  std::int32_t* position = nullptr;  // cell id -> place in the heap, -1 if not in it
};

// Fills cost_to_go[cell] with the least sum of length x mean cost per metre to the goal; +inf where
// the goal cannot be reached. Edges: 8 neighbours, length 1 or sqrt(2) cells; a diagonal is closed
// when either cell beside it is infinite (no cutting of corners). Goal inside the grid: the cell that
// holds it is the source (if its own cost is infinite it counts as 1: the goal was commanded).
// Goal outside: every border cell with finite cost is a source with value distance(cell centre, goal)
// x outside_cost_per_m. Deterministic: ties by cell index.
//
// extra_cost_per_m may be null; it is added to cost_per_m cell by cell (risk). Any values are safe: NaN and
// negative ones count as zero, infinite ones close the cell.
void solve_cost_to_go(const CoarseGrid& grid, const float* cost_per_m,
                      const float* extra_cost_per_m, Point2 goal, double outside_cost_per_m,
                      const CostToGoScratch& scratch, float* cost_to_go) noexcept;

// Bilinear between cell centres over the finite cells (weights renormalised). +inf if the cell that holds the
// point is infinite or the point lies outside the grid.
double sample_cost_to_go(const CoarseGrid& grid, const float* cost_to_go, double x_m,
                         double y_m) noexcept;

}  // namespace mlnav
