#pragma once
// Reads the text of an input file line by line, and each line word by word. All functions throw
// InputError with the file, the line and the fault.

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "memsim/words.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {

class Lines {
 public:
  // The file name and the separators `between` must outlive this object.
  Lines(std::string_view text, const std::filesystem::path& file,
        std::string_view between = " \t\r")
      : text_(text), file_(file), between_(between) {}

  // Goes to the next line; returns false at the end. Skips lines that begin with `skipped`. If
  // `skipped` is not 0, it also skips lines without a word.
  bool next(char skipped = '\0') {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      line_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      skip_spaces();
      if (skipped == '\0' || (!line_.empty() && line_.front() != skipped)) {
        return true;
      }
    }
    line_ = {};
    return false;
  }
  // Cuts the line at the first word that begins with this character.
  void drop_comment(char begins) {
    for (std::size_t at = line_.find(begins); at != std::string_view::npos;
         at = line_.find(begins, at + 1)) {
      if (at == 0 || between_.find(line_[at - 1]) != std::string_view::npos) {
        line_ = line_.substr(0, at);
        return;
      }
    }
  }
  // Returns the next word; empty at the end of the line.
  std::string_view word() {
    const std::string_view found = line_.substr(0, line_.find_first_of(between_));
    line_.remove_prefix(found.size());
    skip_spaces();
    return found;
  }
  template <class Number>
  Number number(const char* what) {
    const std::string_view text = word();
    Number value = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    if (text.empty() || end != last || error != std::errc()) {
      refuse(fmt::format("{} is {}", what,
                         text.empty() ? "missing" : "'" + shortened(std::string(text)) + "'"));
    }
    return value;
  }
  Index whole_number(const char* what) { return number<Index>(what); }
  void end() {
    if (!line_.empty()) {
      refuse(fmt::format("'{}' is too much", shortened(std::string(word()))));
    }
  }
  [[nodiscard]] bool at_end() const { return line_.empty(); }
  // Return the number of the line, and the rest of the line.
  [[nodiscard]] Index at() const { return number_; }
  [[nodiscard]] std::string_view rest() const { return line_; }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("{}: line {}: {}", file_.string(), number_, why));
  }

 private:
  void skip_spaces() {
    line_.remove_prefix(std::min(line_.find_first_not_of(between_), line_.size()));
  }

  std::string_view text_, line_;
  const std::filesystem::path& file_;
  std::string_view between_;
  Index number_ = 0;
};

}  // namespace redblue
