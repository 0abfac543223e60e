// The certified checker with memory of its own.
#pragma once

#include <vector>

#include "mlnav/safety/verified.hpp"

namespace mlnav::rig {

class Verified {
 public:
  Fault init(const RoverModel& model, const VerifiedConfig& config = {}) {
    memory_.resize(VerifiedChecker::memory_required());
    Arena arena(memory_.data(), memory_.size());
    return checker.init(model, config, &arena);
  }
  VerifiedChecker checker;

 private:
  std::vector<unsigned char> memory_;
};

}  // namespace mlnav::rig
