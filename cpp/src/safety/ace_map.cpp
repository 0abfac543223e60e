#include "mlnav/safety/ace_map.hpp"

#include "fixed_box_impl.hpp"

namespace mlnav {
namespace {

constexpr int kBlock = 64;        // cells of a row per pass: all filters stay in the L1 cache
constexpr int kMaxRuns = 512;     // rows of the six wheel boxes together
constexpr int kMaxRunCells = 64;  // two overlapping runs of 32

struct Run {
  std::ptrdiff_t first;   // offsets from the pose's cell to the starts of two overlapping runs,
  std::ptrdiff_t second;  // which together cover the row of the box
  int level;
};

}  // namespace

double heading_of_bin(int bin, int bins) noexcept { return 2.0 * kPi * bin / bins; }

std::size_t AceMapper::memory_required(std::size_t max_map_cells) noexcept {
  return Arena::kAlignment + 2 * kLevels * Arena::cost<float>(max_map_cells);
}

Status AceMapper::init(std::size_t max_map_cells, Arena* arena) noexcept {
  max_map_cells_ = max_map_cells;
  for (int level = 0; level < kLevels; ++level) {
    run_max_[level] = arena->take<float>(max_map_cells);
    run_min_[level] = arena->take<float>(max_map_cells);
    if (run_max_[level] == nullptr || run_min_[level] == nullptr) return Status::kArenaTooSmall;
  }
  return Status::kOk;
}

// Unknown cells become +inf: in the maxima, so that any run over them is +inf; in the minima, so that they do
// not hide the lowest known cell.
void AceMapper::build_runs(const GridView& map) noexcept {
  const std::size_t cells = map.cells();
  for (std::size_t i = 0; i < cells; ++i) {
    const float z = map.z[i];
    run_max_[0][i] = run_min_[0][i] = z == z ? z : INFINITY;
  }
  for (int level = 1; level < kLevels; ++level) {
    const std::size_t half = std::size_t{1} << (level - 1);
    const float* max_below = run_max_[level - 1];
    const float* min_below = run_min_[level - 1];
    float* max_here = run_max_[level];
    float* min_here = run_min_[level];
    const std::size_t end = cells > half ? cells - half : 0;
    for (std::size_t i = 0; i < end; ++i) {
      max_here[i] = max_below[i] > max_below[i + half] ? max_below[i] : max_below[i + half];
      min_here[i] = min_below[i] < min_below[i + half] ? min_below[i] : min_below[i + half];
    }
    for (std::size_t i = end; i < cells; ++i) {
      max_here[i] = max_below[i];
      min_here[i] = min_below[i];
    }
  }
}

Status AceMapper::compute(const FixedBoxChecker& checker, int bins,
                          Span<Reasons> reasons) noexcept {
  const GridView& map = checker.map_;
  if (map.z == nullptr || run_max_[0] == nullptr) return Status::kNotInitialized;
  if (bins <= 0) return Status::kRiskBadShape;
  const std::size_t cells = map.cells();
  if (cells > max_map_cells_) return Status::kMapTooLarge;
  if (reasons.size < static_cast<std::size_t>(bins) * cells) return Status::kOutputTooSmall;
  if (2.0 * (checker.half_length_cells_ + checker.half_width_cells_) > kMaxRunCells) {
    return Status::kMapBadResolution;  // the boxes have more cells than the runs can cover
  }
  build_runs(map);

  const std::ptrdiff_t nx = map.nx;
  const int reach = checker.reach_cells_;
  for (int bin = 0; bin < bins; ++bin) {
    Reasons* out = reasons.data + static_cast<std::size_t>(bin) * cells;
    for (std::size_t i = 0; i < cells; ++i) out[i] = kBorder;

    FixedBoxChecker::CellPose at{};
    const SinCos heading = det_sincos(heading_of_bin(bin, bins));
    at.sin = heading.sin;
    at.cos = heading.cos;
    const auto shape = checker.box_shape(at.sin, at.cos);
    const auto panels = checker.panel_cells(at);
    Run runs[kMaxRuns];
    int runs_end[kWheels];
    int run_count = 0;
    for (int wheel = 0; wheel < kWheels; ++wheel) {
      checker.visit_box(at, shape, wheel, [&](int dy, int first, int last) {
        if (first > last) return;
        int level = 0;
        while ((2 << level) <= last - first + 1) ++level;
        runs[run_count++] = {dy * nx + first, dy * nx + last + 1 - (1 << level), level};
      });
      runs_end[wheel] = run_count;
    }

    for (int iy = reach; iy < map.ny - reach; ++iy) {
      for (int ix = reach; ix < map.nx - reach; ix += kBlock) {
        const int n = map.nx - reach - ix < kBlock ? map.nx - reach - ix : kBlock;
        const std::ptrdiff_t base = iy * nx + ix;
        float lo[kWheels][kBlock];
        float hi[kWheels][kBlock];
        for (int wheel = 0, r = 0; wheel < kWheels; ++wheel) {
          for (int k = 0; k < n; ++k) {
            lo[wheel][k] = INFINITY;
            hi[wheel][k] = -INFINITY;
          }
          for (; r < runs_end[wheel]; ++r) {
            const float* max1 = run_max_[runs[r].level] + base + runs[r].first;
            const float* max2 = run_max_[runs[r].level] + base + runs[r].second;
            const float* min1 = run_min_[runs[r].level] + base + runs[r].first;
            const float* min2 = run_min_[runs[r].level] + base + runs[r].second;
            for (int k = 0; k < n; ++k) {
              const float highest = max1[k] > max2[k] ? max1[k] : max2[k];
              const float lowest = min1[k] < min2[k] ? min1[k] : min2[k];
              hi[wheel][k] = highest > hi[wheel][k] ? highest : hi[wheel][k];
              lo[wheel][k] = lowest < lo[wheel][k] ? lowest : lo[wheel][k];
            }
          }
        }
        for (int k = 0; k < n; ++k) {
          WheelBoxes boxes;
          bool unknown = false;
          for (int wheel = 0; wheel < kWheels; ++wheel) {
            boxes.lo_m[wheel] = lo[wheel][k];
            boxes.hi_m[wheel] = hi[wheel][k];
            unknown |= hi[wheel][k] == INFINITY;
          }
          at.ix = ix + k;
          at.iy = iy;
          out[base + k] = unknown ? Reasons{kUnknown} : checker.judge_boxes(boxes, &panels, at);
        }
      }
    }
  }
  return Status::kOk;
}

void check_sweeps(const AceChecker& checker, Span<const Sweep> sweeps, Reasons* reasons,
                  AceReport* reports) noexcept {
  for (std::size_t i = 0; i < sweeps.size; ++i) {
    if (reports != nullptr) {
      reports[i] = checker.report(sweeps[i]);
      if (reasons != nullptr) reasons[i] = reports[i].reasons;
    } else if (checker.is_safe(sweeps[i], &reasons[i])) {
      reasons[i] = 0;
    }
  }
}

}  // namespace mlnav
