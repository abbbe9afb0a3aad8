#pragma once
// Formats tables for people, and cells of CSV. The first column of a table is aligned to the left,
// the others to the right. Characters that would break a line or control a terminal are escaped.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Returns 1234567 as 1,234,567.
std::string grouped(Index number);
// Returns "1 point", "1,234 points".
std::string counted(Index number, std::string_view what);

// Returns a cell of CSV, in quotes if it needs them (RFC 4180) or `always`.
std::string csv_cell(const std::string& text, bool always = false);

class Table {
 public:
  // Requires: as many cells as in the first line. The note is a sentence after the cells. It is not
  // a column.
  void add(std::vector<std::string> cells, const std::string& note = "");
  void align_left(std::size_t column) { left_.insert(column); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> lines_;
  std::vector<std::string> notes_;
  std::set<std::size_t> left_ = {0};
};

}  // namespace redblue
