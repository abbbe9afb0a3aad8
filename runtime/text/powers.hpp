#pragma once
// Rewrites powers in a text, such as n^2 or x^-1, for an output format.

#include <algorithm>
#include <string>
#include <string_view>

namespace redblue {

// Returns the text with each `caret` and the whole number after it replaced by write(exponent).
template <class Write>
std::string with_powers(std::string_view text, std::string_view caret, const Write& write) {
  constexpr std::string_view kDigits = "0123456789";
  std::string written;
  while (true) {
    const std::size_t at = text.find(caret);
    if (at == std::string_view::npos) {
      return written.append(text);
    }
    const std::string_view after = text.substr(at + caret.size());
    const std::size_t sign = after.starts_with('-') ? 1 : 0;
    const std::size_t end = std::min(after.find_first_not_of(kDigits, sign), after.size());
    written.append(text.substr(0, at));
    if (end > sign) {
      written.append(write(after.substr(0, end)));
      text = after.substr(end);
    } else {
      written.append(caret);
      text = after;
    }
  }
}

}  // namespace redblue
