#include "runtime/text/printable.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace redblue {
namespace {

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// Returns the size in bytes of the first UTF-8 letter, or 0 if the text does not begin with one.
// Surrogates and overlong forms are not letters (Unicode, table 3-7).
std::size_t letter_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t size = first >= 0xC2 && first < 0xE0   ? 2
                           : first >= 0xE0 && first < 0xF0 ? 3
                           : first >= 0xF0 && first < 0xF5 ? 4
                                                           : 0;
  if (size == 0 || size > text.size()) {
    return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool outside = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return !outside && std::ranges::all_of(text.substr(1, size - 1), continues) ? size : 0;
}

// Returns whether the letter is a control character of ASCII or is in U+0080 to U+009F. Terminals
// take U+009B for ESC [.
bool is_control(std::string_view letter) {
  const auto first = static_cast<unsigned char>(letter[0]);
  return letter.size() == 1
             ? first < ' ' || first == 0x7F
             : letter.size() == 2 && first == 0xC2 && static_cast<unsigned char>(letter[1]) < 0xA0;
}

std::string escaped(std::string_view text, bool newlines_too) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t size = letter_size(text);
    const std::string_view letter = text.substr(0, std::max<std::size_t>(size, 1));
    const bool stays = letter == "\n" && !newlines_too;
    if (size > 0 && (stays || !is_control(letter))) {
      safe += letter;
    } else {
      for (const char byte : letter) {
        safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(letter.size());
  }
  return safe;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = letter_size(text);
    if (size == 0) {
      return false;
    }
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text) {
  return escaped(text, true);
}

std::string printable_lines(std::string_view text) {
  return escaped(text, false);
}

std::string shortened(std::string_view whole, std::size_t most) {
  constexpr std::string_view kGap = "...";
  const std::string text = printable(whole);
  if (text.size() <= most) {
    return text;
  }
  // Cut between letters, not within one.
  std::size_t head = (most - kGap.size()) * 3 / 4;
  std::size_t tail = text.size() - (most - kGap.size() - head);
  while (head > 0 && continues(text[head])) {
    --head;
  }
  while (tail < text.size() && continues(text[tail])) {
    ++tail;
  }
  return fmt::format("{}{}{}", text.substr(0, head), kGap, text.substr(tail));
}

}  // namespace redblue
