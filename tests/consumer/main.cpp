// The least a user of the installed core can do: include its public headers, call into the library.
#include <mlnav/plan/enav.hpp>
#include <mlnav/status.hpp>

#include <cstdio>
#include <cstring>
#include <type_traits>

// What points into an arena is not copied or moved.
static_assert(!std::is_copy_constructible_v<mlnav::EnavPlanner> &&
              !std::is_move_constructible_v<mlnav::EnavPlanner> &&
              !std::is_copy_assignable_v<mlnav::PathTree> &&
              !std::is_copy_constructible_v<mlnav::Verdicts> &&
              !std::is_copy_constructible_v<mlnav::Costs>);
// A pose is not a stance by accident.
static_assert(!std::is_convertible_v<mlnav::Pose2, mlnav::Stance>);

int main() {
  const char* text = mlnav::to_string(mlnav::Status::kOk);
  std::printf("mlnav says: %s\n", text);
  return text != nullptr && std::strlen(text) > 0 && mlnav::validate(mlnav::EnavConfig{}).ok() ? 0
                                                                                               : 1;
}
