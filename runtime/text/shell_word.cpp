#include "runtime/text/shell_word.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace redblue {

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("+,-./:=@_%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) {
    return word;
  }
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

}  // namespace redblue
