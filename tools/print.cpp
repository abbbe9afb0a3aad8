#include "tools/print.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace redblue {

void print(std::string_view text, std::FILE* stream) {
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size() || std::fflush(stream) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            stream == stdout ? "standard output" : "standard error");
  }
}

void say(std::string_view line) noexcept {
  std::fprintf(stderr, "redblue: %.*s\n", static_cast<int>(line.size()), line.data());
}

void StatusLine::show(std::string_view line) noexcept {
  if (terminal_ && (shown_ || !line.empty())) {
    constexpr const char* kStartOfClearedLine = "\r\033[K";
    std::fprintf(stderr, "%s%.*s", kStartOfClearedLine, static_cast<int>(line.size()), line.data());
    std::fflush(stderr);
    shown_ = !line.empty();
  }
}

}  // namespace redblue
