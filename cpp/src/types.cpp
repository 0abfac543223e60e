#include "mlnav/types.hpp"

namespace mlnav {

Arena::Arena(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::size_t skip = (kAlignment - address % kAlignment) % kAlignment;
  if (bytes < skip) return;
  base_ = static_cast<unsigned char*>(memory) + skip;
  size_ = bytes - skip;
}

void* Arena::take_bytes(std::size_t bytes) noexcept {
  const std::size_t room = size_ - used_;
  if (base_ == nullptr || bytes > room) return nullptr;
  unsigned char* const taken = base_ + used_;
  // `bytes` is at most `room`, so this cannot wrap round. The last values need no padding behind
  // them, but then the arena is full.
  const std::size_t padding = (kAlignment - bytes % kAlignment) % kAlignment;
  used_ += padding < room - bytes ? bytes + padding : room;
  return taken;
}

}  // namespace mlnav
