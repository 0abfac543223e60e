// A risk map: the probability, per heading bin and cell, that ACE rejects the rover there. It comes from a
// heuristic (Sobel, network, oracle). The planner prices it and never trusts it.
#pragma once

#include <cmath>
#include <cstdint>

#include "mlnav/fields.hpp"
#include "mlnav/ground/features.hpp"
#include "mlnav/status.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

// p[(bin * ny + iy) * nx + ix]; bin k is heading k * 2 pi / bins (one bin: all headings). A value that
// is not finite carries no information and counts as 0; others are clamped to [0, kMaxRisk].
struct RiskView {
  const float* p = nullptr;
  int bins = 0;
  int nx = 0;
  int ny = 0;
  double origin_x_m = 0.0;  // centre of cell (0, 0)
  double origin_y_m = 0.0;
  double resolution_m = 0.0;
};

inline constexpr float kMaxRisk = 0.99F;

Status validate(const RiskView& risk) noexcept;

// -log(1 - p) after clamping: the cost of risk per metre, before its weight. 0 for non-finite p.
double risk_price(float p) noexcept;

// How risk enters costs.
struct RiskPricing {
  double weight_per_m = 5.0;
  double to_go_fraction = 0.1;
  double fail_price = 2.0;  // paths that pass close by a failed pose would mostly fail as well
};
template <>
inline constexpr auto kFields<RiskPricing> = std::tuple{
    number("weight_per_m", "", &RiskPricing::weight_per_m, 0.0, 1e6,
           "Path cost per metre = weight x -log(1 - risk), of a risk of at most 0.99."),
    number("to_go_fraction", "", &RiskPricing::to_go_fraction, 0.0, 1e3,
           "Of that weight, in the cost-to-go (mean over headings)."),
    number("fail_price", "", &RiskPricing::fail_price, 0.0, 1e3,
           "Added to -log(1 - risk) around a pose that failed, in this cycle and later ones."),
};
Fault validate(const RiskPricing& pricing) noexcept;

// price[bin][iy][ix] = risk_price(p), once a cycle, so that sampling needs no logarithm.
void price_risk(const RiskView& risk, float* price) noexcept;

// Price at a pose: linear between the two nearest heading bins, nearest cell in space; 0 outside and
// at a pose that is not finite.
double sample_price(const RiskView& risk, const float* price, double x_m, double y_m,
                    double heading_rad) noexcept;

// Adds to the price at a pose's cell, for the two nearest heading bins, with the weights of sample_price().
// Poses outside, or not finite, change nothing.
void raise_price(const RiskView& risk, float* price, const Pose2& pose, double by) noexcept;

// Mean price over all headings and over the risk cells inside each coarse cell, for the cost-to-go.
void coarse_price(const RiskView& risk, const float* price, const CoarseGrid& grid,
                  float* coarse) noexcept;

}  // namespace mlnav
