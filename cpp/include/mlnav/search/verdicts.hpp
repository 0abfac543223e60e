// What is known about the safety of a planner's poses in one cycle: the checker's verdicts, each asked for
// once, and the tests against keep-out zones. It knows poses by the ids that a planner numbers them with, and
// no tree, lattice or list; any planner can use it.
#pragma once

#include <cstdint>

#include "mlnav/assert.hpp"
#include "mlnav/safety/checker.hpp"
#include "mlnav/search/budget.hpp"
#include "mlnav/search/keep_out.hpp"
#include "mlnav/types.hpp"

namespace mlnav {

enum class Verdict : std::uint8_t {
  kNotEvaluated,
  kPassed,
  kFailed,
  kUnseen,  // failed for unknown ground alone: no known hazard
};

// The last piece of motion before a pose, for keep-out zones: it has to stay clear of them along the way. The
// stance of the pose says which motion it is: an arc of its curvature or, with an infinite one, a turn in
// place.
struct Approach {
  Pose2 start;    // of the arc or the turn
  double middle;  // from there to the middle of the piece: metres or radians (left positive)
  double extent;  // of the piece: metres or radians
};

class Verdicts : NoCopy {
 public:
  // Bytes of an aligned arena.
  static std::size_t memory_required(std::size_t max_poses) noexcept {
    return Arena::cost<Verdict>(max_poses);
  }
  // `checker` is kept and asked; the caller keeps it alive.
  Status init(std::size_t max_poses, AceChecker* checker, Arena* arena) noexcept;

  // A cycle begins: no pose has a verdict. `ace_budget`: evaluations it may spend; negative: unlimited. The
  // caller keeps map and mask alive until the next cycle.
  void begin(const GridView& map, const KeepOutMask& keep_out, std::int64_t ace_budget) noexcept;
  // Gives the cycle's map to the checker.
  Status set_map() noexcept { return checker_->set_map(map_); }

  // Why the rover is not safe where it stands; 0: it is. An evaluation, unless it stands in a zone.
  Reasons check_start(const Stance& start) noexcept;

  Verdict of(int id) const noexcept {
    MLNAV_ASSERT(id >= 0 && static_cast<std::size_t>(id) < max_poses_);
    return verdict_[id];
  }
  // The verdict of a pose that has none yet. kNotEvaluated: the budget is spent.
  Verdict evaluate(int id, const Stance& stance, const Approach& approach) noexcept;

  // Reasons of the pose that was evaluated last.
  Reasons last_reasons() const noexcept { return last_reasons_; }
  // Poses put through the checker in this cycle, the start included.
  std::int64_t evaluations() const noexcept { return evaluations_.used(); }
  // An evaluation was wanted that the budget did not allow.
  bool budget_spent() const noexcept { return evaluations_.spent(); }
  // kReasonCount counts: poses that were rejected, by reason bit.
  const std::int64_t* rejects() const noexcept { return rejects_; }

 private:
  bool enters_zone(const Stance& stance, const Approach& approach) const noexcept;
  Reasons ask(const Stance& stance) noexcept;
  void count(Reasons reasons) noexcept;

  AceChecker* checker_ = nullptr;
  RoverOutline outline_;
  Verdict* verdict_ = nullptr;
  std::size_t max_poses_ = 0;

  GridView map_;
  KeepOutMask keep_out_;
  Budget evaluations_;
  Reasons last_reasons_ = 0;
  std::int64_t rejects_[kReasonCount] = {};
};

}  // namespace mlnav
