#include "mlnav/search/verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace mlnav {

Status Verdicts::init(std::size_t max_sweeps, AceChecker* checker, Arena* arena) noexcept {
  max_sweeps_ = 0;
  if (!arena->take(max_sweeps, &verdict_)) return Status::kArenaTooSmall;
  max_sweeps_ = max_sweeps;
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
  work_ = {};
  last_reasons_ = 0;
  std::fill_n(rejects_, kReasonCount, std::int64_t{0});
  std::fill_n(verdict_, max_sweeps_, Verdict::kNotEvaluated);
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

Verdict Verdicts::evaluate(int id, const Sweep& sweep, const Sweep* before,
                           const Sweep& checked) noexcept {
  MLNAV_ASSERT(of(id) == Verdict::kNotEvaluated);
  Reasons reasons = 0;
  if (enters_zone(sweep)) {
    reasons = kKeepOutZone;
  } else {
    for (const Sweep* part : {before, &checked}) {
      if (part == nullptr || reasons != 0) continue;
      if (!evaluations_.spend(1)) return Verdict::kNotEvaluated;
      reasons = ask(*part);
    }
  }
  count(reasons);
  verdict_[id] = reasons == 0          ? Verdict::kPassed
                 : reasons == kUnknown ? Verdict::kUnseen
                                       : Verdict::kFailed;
  return verdict_[id];
}

Reasons Verdicts::ask(const Sweep& sweep) noexcept {
  Reasons reasons = 0;
  // A checker that rejects and gives no reason rejects all the same.
  if (!checker_->check(sweep, &reasons, &work_) && reasons == 0) reasons = kBadPose;
  return reasons;
}

void Verdicts::count(Reasons reasons) noexcept {
  last_reasons_ = reasons;
  for (int bit = 0; bit < kReasonCount; ++bit) rejects_[bit] += (reasons >> bit) & 1;
}

bool Verdicts::enters_zone(const Sweep& sweep) const noexcept {
  if (keep_out_.cells == nullptr) return false;
  const Pose2 middle = sweep.pose_at(0.5);
  if (sweep.turns()) return touches(keep_out_, map_, middle, swept_by_turn(outline_, sweep.extent));
  return touches(keep_out_, map_, middle,
                 swept_by_arc(outline_, sweep.begin.curvature_per_m, std::fabs(sweep.extent)));
}

}  // namespace mlnav
