#include "mlnav/search/verdicts.hpp"

#include <algorithm>
#include <cmath>

#include "mlnav/rover/arc.hpp"

namespace mlnav {

Status Verdicts::init(std::size_t max_poses, AceChecker* checker, Arena* arena) noexcept {
  max_poses_ = 0;
  if (!arena->take(max_poses, &verdict_)) return Status::kArenaTooSmall;
  max_poses_ = max_poses;
  checker_ = checker;
  outline_ = rover_outline(checker->model());
  begin({}, {}, -1);
  return Status::kOk;
}

void Verdicts::begin(const GridView& map, const KeepOutMask& keep_out,
                     std::int64_t ace_budget) noexcept {
  map_ = map;
  keep_out_ = keep_out;
  evaluations_.begin(ace_budget);
  last_reasons_ = 0;
  std::fill_n(rejects_, kReasonCount, std::int64_t{0});
  std::fill_n(verdict_, max_poses_, Verdict::kNotEvaluated);
}

Reasons Verdicts::check_start(const Stance& start) noexcept {
  Reasons reasons = kKeepOutZone;
  if (!touches(keep_out_, map_, start.pose, outline_)) {
    if (!evaluations_.spend(1)) return 0;
    reasons = ask(start);
  }
  count(reasons);
  return reasons;
}

Verdict Verdicts::evaluate(int id, const Stance& stance, const Approach& approach) noexcept {
  MLNAV_ASSERT(of(id) == Verdict::kNotEvaluated);
  Reasons reasons = kKeepOutZone;
  if (!enters_zone(stance, approach)) {
    if (!evaluations_.spend(1)) return Verdict::kNotEvaluated;
    reasons = ask(stance);
  }
  count(reasons);
  verdict_[id] = reasons == 0          ? Verdict::kPassed
                 : reasons == kUnknown ? Verdict::kUnseen
                                       : Verdict::kFailed;
  return verdict_[id];
}

Reasons Verdicts::ask(const Stance& stance) noexcept {
  Reasons reasons = 0;
  // A checker that rejects and gives no reason rejects all the same.
  if (!checker_->is_safe(stance, &reasons) && reasons == 0) reasons = kBadPose;
  return reasons;
}

void Verdicts::count(Reasons reasons) noexcept {
  last_reasons_ = reasons;
  for (int bit = 0; bit < kReasonCount; ++bit) rejects_[bit] += (reasons >> bit) & 1;
}

bool Verdicts::enters_zone(const Stance& stance, const Approach& approach) const noexcept {
  if (keep_out_.cells == nullptr) return false;
  const Pose2& start = approach.start;
  const double curvature = stance.curvature_per_m;
  if (std::isinf(curvature)) {
    return touches(keep_out_, map_, {start.x_m, start.y_m, start.heading_rad + approach.middle},
                   swept_by_turn(outline_, approach.extent));
  }
  return touches(keep_out_, map_, along_arc(start, curvature, approach.middle),
                 swept_by_arc(outline_, curvature, approach.extent));
}

}  // namespace mlnav
