// The least a user of the installed core can do: include a public header, call into the library.
#include <mlnav/status.hpp>

#include <cstdio>
#include <cstring>

int main() {
  const char* text = mlnav::to_string(mlnav::Status::kOk);
  std::printf("mlnav says: %s\n", text);
  return text != nullptr && std::strlen(text) > 0 ? 0 : 1;
}
