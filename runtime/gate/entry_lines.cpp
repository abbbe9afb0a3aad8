#include "runtime/gate/entry_lines.hpp"

#include <algorithm>

namespace redblue {
namespace {

// Returns the position after the string or comment that begins at `at`, or `at` if none begins
// there.
std::size_t end_of_text(std::string_view text, std::size_t at) {
  const auto past = [&](std::string_view end, std::size_t from) {
    const std::size_t found = text.find(end, from);
    return found == std::string_view::npos ? text.size() : found + end.size();
  };
  if (text.substr(at).starts_with("//")) {
    return past("\n", at + 2);
  }
  if (text.substr(at).starts_with("/*")) {
    return past("*/", at + 2);
  }
  if (text[at] != '"') {
    return at;
  }
  std::size_t end = at + 1;
  while (end < text.size() && text[end] != '"') {
    end += text[end] == '\\' ? 2 : 1;
  }
  return std::min(end + 1, text.size());
}

}  // namespace

std::vector<std::size_t> entry_lines(std::string_view text) {
  std::vector<std::size_t> lines;
  std::size_t line = 1;
  int depth = 0;
  bool in_points = false;
  std::string_view key;  // last string at the top level of the object
  for (std::size_t at = 0; at < text.size();) {
    if (const std::size_t end = end_of_text(text, at); end != at) {
      if (text[at] == '"' && depth == 1) {
        key = text.substr(at, end - at);
      }
      line += static_cast<std::size_t>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                                  text.begin() + static_cast<std::ptrdiff_t>(end),
                                                  '\n'));
      at = end;
      continue;
    }
    const char c = text[at++];
    if (c == '\n') {
      ++line;
    } else if (c == '{' || c == '[') {
      if (depth == 2 && in_points) {
        lines.push_back(line);
      }
      if (depth++ == 1) {
        in_points = c == '[' && key == "\"points\"";
      }
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return lines;
}

}  // namespace redblue
