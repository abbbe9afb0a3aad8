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

void Table::add(std::vector<std::string> cells) {
  std::ranges::transform(cells, cells.begin(), printable);
  lines_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(lines_.front().size());
  for (const auto& cells : lines_) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  std::string text;
  for (const auto& cells : lines_) {
    text += fmt::format("{:<{}}", cells[0], widths[0]);
    for (std::size_t i = 1; i < cells.size(); ++i) {
      text += fmt::format("  {:>{}}", cells[i], widths[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace redblue
