// MLNAV_ASSERT: invariants of the core itself. Faults from outside (map, pose, goal, configuration) are
// statuses and never assertions.
//
// What a failed assertion does is chosen when the core is compiled (CMake: MLNAV_ASSERT=off|abort|hook):
//   off    nothing; the condition is not evaluated
//   abort  std::abort()
//   hook   mlnav_assert_failed(), which the program that links the core defines: log it, go to a safe mode.
//          If it returns, the core goes on as with `off`.
#pragma once

#define MLNAV_ASSERT_OFF 0
#define MLNAV_ASSERT_ABORT 1
#define MLNAV_ASSERT_HOOK 2

#ifndef MLNAV_ASSERT_MODE
#define MLNAV_ASSERT_MODE MLNAV_ASSERT_OFF
#endif

#if MLNAV_ASSERT_MODE == MLNAV_ASSERT_HOOK
extern "C" void mlnav_assert_failed(const char* condition, const char* function, int line) noexcept;
#define MLNAV_ASSERT(condition)                        \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : mlnav_assert_failed(#condition, __func__, __LINE__))
#elif MLNAV_ASSERT_MODE == MLNAV_ASSERT_ABORT
#include <cstdlib>
#define MLNAV_ASSERT(condition) (static_cast<bool>(condition) ? static_cast<void>(0) : std::abort())
#else
#define MLNAV_ASSERT(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
