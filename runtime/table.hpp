#pragma once
// Tables for people: lines of cells, the first column to the left and all others to the right.

#include <string>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// 1234567 as 1,234,567.
std::string grouped(Index number);

// A cell of CSV, in quotes where it needs them (RFC 4180).
std::string csv_cell(const std::string& text);

class Table {
 public:
  // Requires: every line as many cells as the first.
  void add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> lines_;
};

}  // namespace redblue
