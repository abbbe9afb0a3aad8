#include "runtime/text/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/text/printable.hpp"

namespace redblue {

std::string grouped(Index number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) {
    digits.insert(i - 3, 1, ',');
  }
  return digits;
}

std::string counted(Index number, std::string_view what) {
  return fmt::format("{} {}{}", grouped(number), what, number == 1 ? "" : "s");
}

std::string csv_cell(const std::string& text, bool always) {
  if (!always && text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + '"';
}

void Table::add(std::vector<std::string> cells, const std::string& note) {
  std::ranges::transform(cells, cells.begin(), printable);
  lines_.push_back(std::move(cells));
  notes_.push_back(note.empty() ? "" : "  " + printable(note));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(lines_.front().size());
  for (const auto& cells : lines_) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  std::string text;
  for (std::size_t line = 0; line < lines_.size(); ++line) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string& cell = lines_[line][i];
      text += i == 0 ? "" : "  ";
      text += left_.contains(i) ? fmt::format("{:<{}}", cell, widths[i])
                                : fmt::format("{:>{}}", cell, widths[i]);
    }
    text += notes_[line];
    text.resize(text.find_last_not_of(' ') + 1);  // the last cells may be empty
    text += "\n";
  }
  return text;
}

}  // namespace redblue
