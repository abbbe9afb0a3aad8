#pragma once
// Tables for people: lines of cells, the first column to the left and all others to the right. What
// would break a line or change a terminal is escaped.

#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// 1234567 as 1,234,567.
std::string grouped(Index number);
// "1 point", "1,234 points".
std::string counted(Index number, std::string_view what);

// A cell of CSV, in quotes where it needs them (RFC 4180), or `always`.
std::string csv_cell(const std::string& text, bool always = false);

class Table {
 public:
  // Requires: every line as many cells as the first.
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

}  // namespace redblue
