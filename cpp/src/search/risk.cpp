#include "mlnav/search/risk.hpp"

#include "mlnav/math.hpp"

namespace mlnav {
namespace {

float clamp_risk(float p) noexcept {
  if (!(p > 0.0F)) return 0.0F;                             // NaN, -inf and negative values
  if (p > kMaxRisk) return p < INFINITY ? kMaxRisk : 0.0F;  // +inf says nothing either
  return p;
}

}  // namespace

Status validate(const RiskView& risk) noexcept {
  const bool shape = risk.p != nullptr && risk.bins > 0 && risk.nx > 0 && risk.ny > 0;
  const bool place = std::isfinite(risk.origin_x_m) && std::isfinite(risk.origin_y_m) &&
                     risk.resolution_m >= kMinResolution_m && risk.resolution_m <= kMaxResolution_m;
  return shape && place ? Status::kOk : Status::kRiskBadShape;
}

Fault validate(const RiskPricing& pricing) noexcept { return check_fields(pricing); }

double risk_price(float p) noexcept { return -det_log(1.0 - static_cast<double>(clamp_risk(p))); }

void price_risk(const RiskView& risk, float* price) noexcept {
  // A logarithm per value would cost more than the rest of the cycle. A table with linear interpolation is
  // within 0.2 % of it, far less than the error of any heuristic.
  constexpr int kSteps = 1024;
  float table[kSteps + 2];
  for (int i = 0; i <= kSteps; ++i) {
    table[i] = static_cast<float>(risk_price(kMaxRisk * static_cast<float>(i) / kSteps));
  }
  table[kSteps + 1] = table[kSteps];
  const std::size_t n = static_cast<std::size_t>(risk.bins) * static_cast<std::size_t>(risk.nx) *
                        static_cast<std::size_t>(risk.ny);
  for (std::size_t i = 0; i < n; ++i) {
    const float at = clamp_risk(risk.p[i]) * (kSteps / kMaxRisk);
    const int step = static_cast<int>(at);
    const float rest = at - static_cast<float>(step);
    price[i] = table[step] + rest * (table[step + 1] - table[step]);
  }
}

namespace {

// The place of a pose in a price map: a cell in each of the two nearest heading bins.
struct PricePlace {
  std::size_t at[2];  // equal if there is one bin
  double share;       // weight of the second
};

// Ranking reads some 50,000 prices a cycle. For values that are not negative, truncation replaces floor(),
// which is a function call on simple processors.
bool place_of(const RiskView& risk, double x_m, double y_m, double heading_rad,
              PricePlace* place) noexcept {
  const double gx = (x_m - risk.origin_x_m) / risk.resolution_m + 0.5;
  const double gy = (y_m - risk.origin_y_m) / risk.resolution_m + 0.5;
  if (!(gx >= 0.0 && gy >= 0.0 && gx < risk.nx && gy < risk.ny)) return false;
  const std::size_t nx = static_cast<std::size_t>(risk.nx);
  const std::size_t plane = nx * static_cast<std::size_t>(risk.ny);
  const std::size_t cell = static_cast<std::size_t>(static_cast<int>(gy)) * nx +
                           static_cast<std::size_t>(static_cast<int>(gx));
  const double turns = heading_rad * (0.5 / kPi);
  if (!(turns > -1e9 && turns < 1e9)) return false;  // no heading, or without digits
  const int whole = static_cast<int>(turns);
  double at = (turns - whole) * risk.bins;
  if (at < 0.0) at += risk.bins;
  int bin = static_cast<int>(at);
  place->share = at - bin;
  if (bin >= risk.bins) bin = 0;  // a tiny negative angle rounds up to a whole turn
  const int next = bin + 1 == risk.bins ? 0 : bin + 1;
  place->at[0] = static_cast<std::size_t>(bin) * plane + cell;
  place->at[1] = static_cast<std::size_t>(next) * plane + cell;
  return true;
}

}  // namespace

double sample_price(const RiskView& risk, const float* price, double x_m, double y_m,
                    double heading_rad) noexcept {
  PricePlace place;
  if (!place_of(risk, x_m, y_m, heading_rad, &place)) return 0.0;
  const double a = static_cast<double>(price[place.at[0]]);
  const double b = static_cast<double>(price[place.at[1]]);
  return a + place.share * (b - a);
}

void raise_price(const RiskView& risk, float* price, const Pose2& pose, double by) noexcept {
  PricePlace place;
  if (!place_of(risk, pose.x_m, pose.y_m, pose.heading_rad, &place)) return;
  price[place.at[0]] += static_cast<float>((1.0 - place.share) * by);
  price[place.at[1]] += static_cast<float>(place.share * by);
}

void coarse_price(const RiskView& risk, const float* price, const CoarseGrid& grid,
                  float* coarse) noexcept {
  const std::size_t plane = static_cast<std::size_t>(risk.nx) * static_cast<std::size_t>(risk.ny);
  const double half = 0.5 * grid.resolution_m;
  for (int cy = 0; cy < grid.ny; ++cy) {
    for (int cx = 0; cx < grid.nx; ++cx) {
      const double x = grid.origin_x_m + cx * grid.resolution_m;
      const double y = grid.origin_y_m + cy * grid.resolution_m;
      // Risk cells whose centres lie inside the coarse cell; if there are none, the nearest one.
      const auto index = [&risk](double v, double origin) {
        return (v - origin) / risk.resolution_m;
      };
      double x0 = std::ceil(index(x - half, risk.origin_x_m));
      double x1 = std::ceil(index(x + half, risk.origin_x_m)) - 1.0;
      double y0 = std::ceil(index(y - half, risk.origin_y_m));
      double y1 = std::ceil(index(y + half, risk.origin_y_m)) - 1.0;
      if (x1 < x0) x0 = x1 = std::floor(index(x, risk.origin_x_m) + 0.5);
      if (y1 < y0) y0 = y1 = std::floor(index(y, risk.origin_y_m) + 0.5);
      x0 = x0 < 0.0 ? 0.0 : x0;
      y0 = y0 < 0.0 ? 0.0 : y0;
      x1 = x1 > risk.nx - 1.0 ? risk.nx - 1.0 : x1;
      y1 = y1 > risk.ny - 1.0 ? risk.ny - 1.0 : y1;
      double sum = 0.0;
      int count = 0;
      if (x0 <= x1 && y0 <= y1) {
        for (int bin = 0; bin < risk.bins; ++bin) {
          for (int iy = static_cast<int>(y0); iy <= static_cast<int>(y1); ++iy) {
            const float* row = price + static_cast<std::size_t>(bin) * plane +
                               static_cast<std::size_t>(iy) * static_cast<std::size_t>(risk.nx);
            for (int ix = static_cast<int>(x0); ix <= static_cast<int>(x1); ++ix) {
              sum += static_cast<double>(row[ix]);
              ++count;
            }
          }
        }
      }
      const std::size_t cell = static_cast<std::size_t>(cy) * static_cast<std::size_t>(grid.nx) +
                               static_cast<std::size_t>(cx);
      coarse[cell] = count > 0 ? static_cast<float>(sum / count) : 0.0F;
    }
  }
}

}  // namespace mlnav
