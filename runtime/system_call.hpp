#pragma once
// Calls of the operating system: signals that end them, and how they fail.

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

namespace redblue {

[[noreturn]] inline void fail(int error, std::string_view verb, const std::filesystem::path& file) {
  throw std::system_error(error, std::generic_category(),
                          fmt::format("cannot {} {}", verb, file.string()));
}

// Calls until it is not a signal that ended the call.
template <typename Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) {
    result = call();
  }
  return result;
}

}  // namespace redblue
