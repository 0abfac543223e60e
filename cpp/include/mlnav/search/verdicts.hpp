// What is known about the safety of a planner's sweeps in one cycle: the checker's verdicts, each asked for
// once, and the tests against keep-out zones. It knows sweeps by the ids that a planner numbers them with, and
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

class Verdicts : NoCopy {
 public:
  // Bytes of an aligned arena.
  static std::size_t memory_required(std::size_t max_sweeps) noexcept {
    return Arena::cost<Verdict>(max_sweeps);
  }
  // `checker` is kept and asked; the caller keeps it alive.
  Status init(std::size_t max_sweeps, AceChecker* checker, Arena* arena) noexcept;

  const AceChecker& checker() const noexcept { return *checker_; }

  // A cycle begins: no sweep has a verdict. `ace_budget`: evaluations it may spend; negative: unlimited. The
  // caller keeps map and mask alive until the next cycle.
  void begin(const GridView& map, const KeepOutMask& keep_out, std::int64_t ace_budget) noexcept;
  // Gives the cycle's map to the checker.
  Status set_map() noexcept { return checker_->set_map(map_); }

  // Why the rover is not safe where it stands; 0: it is. An evaluation, unless it stands in a zone.
  Reasons check_start(const Stance& start) noexcept;

  Verdict of(int id) const noexcept {
    MLNAV_ASSERT(id >= 0 && static_cast<std::size_t>(id) < max_sweeps_);
    return verdict_[id];
  }
  // The verdict of a sweep that has none yet: no part of it may touch a zone, and the checker has to pass it, after the
  // `before` (may be null: there is none) that begins it, the re-steering at its beginning. kNotEvaluated: the budget
  // is spent.
  Verdict evaluate(int id, const Sweep& sweep, const Sweep* before = nullptr) noexcept {
    return evaluate(id, sweep, before, sweep);
  }
  // The same with less put through the checker than the sweep that must keep out of zones.
  Verdict evaluate(int id, const Sweep& sweep, const Sweep* before, const Sweep& checked) noexcept;

  // Reasons of the sweep that was evaluated last.
  Reasons last_reasons() const noexcept { return last_reasons_; }
  // Sweeps put through the checker in this cycle, the start's pose included, and what they cost.
  std::int64_t evaluations() const noexcept { return evaluations_.used(); }
  const CheckWork& work() const noexcept { return work_; }
  // An evaluation was wanted that the budget did not allow.
  bool budget_spent() const noexcept { return evaluations_.spent(); }
  // kReasonCount counts: sweeps that were rejected, by reason bit.
  const std::int64_t* rejects() const noexcept { return rejects_; }

 private:
  bool enters_zone(const Sweep& sweep) const noexcept;
  Reasons ask(const Sweep& sweep) noexcept;
  void count(Reasons reasons) noexcept;

  AceChecker* checker_ = nullptr;
  RoverOutline outline_;
  Verdict* verdict_ = nullptr;
  std::size_t max_sweeps_ = 0;

  GridView map_;
  KeepOutMask keep_out_;
  Budget evaluations_;
  CheckWork work_;
  Reasons last_reasons_ = 0;
  std::int64_t rejects_[kReasonCount] = {};
};

}  // namespace mlnav
