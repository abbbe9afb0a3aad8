#pragma once
// Helpers for system calls: arguments, interruptions by signals, and failures.

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "memsim/store/file.hpp"

namespace redblue {

// Throws the errno of the failed call.
[[noreturn]] inline void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// Returns arguments or environment variables as the null-terminated array that exec takes.
// Requires: the strings outlive the pointers.
inline std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (const std::string& string : strings) {
    all.push_back(const_cast<char*>(string.c_str()));
  }
  all.push_back(nullptr);
  return all;
}

// Repeats the call while a signal interrupts it.
template <typename Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

}  // namespace redblue
