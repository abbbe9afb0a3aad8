#include "tools/cli/print.hpp"

#include <cerrno>
#include <cstdio>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "runtime/system/whole_file.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {

void print(std::string_view text, std::FILE* stream) {
  if (caller() != nullptr) {
    caller()->data += text;
    return;
  }
  if (std::fwrite(text.data(), 1, text.size(), stream) != text.size() || std::fflush(stream) != 0) {
    throw std::system_error(errno, std::generic_category(),
                            stream == stdout ? "standard output" : "standard error");
  }
}

void print_to(const std::string& target, const std::string& text) {
  if (is_standard_output(target)) {
    print(text);
  } else {
    write_whole(target, text);
  }
}

void say(std::string_view line) noexcept {
  try {
    constexpr std::size_t kMost = 2000;  // long file names must not make endless lines
    std::string text = shortened(line, kMost);
    if (caller() != nullptr) {
      caller()->words.push_back(std::move(text));
      return;
    }
    std::fprintf(stderr, "redblue: %s\n", text.c_str());
  } catch (const std::bad_alloc&) {
    std::fputs("redblue: out of memory\n", stderr);
  }
}

void StatusLine::clear() noexcept {
  shown_ = true;
  show("");
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
