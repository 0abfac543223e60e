// A count with a limit. Budgets are counts and never times, so that a cycle ends alike on every machine.
#pragma once

#include <cstdint>

namespace mlnav {

class Budget {
 public:
  // A negative limit: unlimited.
  void begin(std::int64_t limit) noexcept {
    limit_ = limit;
    used_ = 0;
    spent_ = false;
  }
  // Takes `count` units if the limit allows it. If not, takes none and the budget is spent from then on.
  bool spend(std::int64_t count) noexcept {
    spent_ |= limit_ >= 0 && count > limit_ - used_;
    if (spent_) return false;
    used_ += count;
    return true;
  }
  std::int64_t used() const noexcept { return used_; }
  // Whether units were asked for that the limit did not allow.
  bool spent() const noexcept { return spent_; }

 private:
  std::int64_t limit_ = -1;
  std::int64_t used_ = 0;
  bool spent_ = false;
};

}  // namespace mlnav
