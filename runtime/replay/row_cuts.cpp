#include "runtime/replay/row_cuts.hpp"

#include <algorithm>
#include <utility>

namespace redblue {

CutRow::CutRow(std::vector<Index> begins, Index words)
    : count_(std::ssize(begins)), begins_(std::move(begins)) {
  begins_.push_back(words);
  for (Index piece = 0; piece < count_; ++piece) {
    pieces_.resize(at(begins_[at(piece + 1)]), piece);
  }
}

CutRow RowCuts::pieces(const std::string& matrix, Index column, Index words) const {
  if (longest == 1) {
    return CutRow(words);
  }
  const std::set<Index>& cuts = columns.at(matrix);
  std::vector<Index> begins;
  auto cut = cuts.lower_bound(column);
  for (Index begin = 0; begin < words;) {
    for (; cut != cuts.end() && *cut - column <= begin; ++cut) {
    }
    begins.push_back(begin);
    begin = std::min(begin + longest, cut == cuts.end() ? words : *cut - column);
  }
  return {std::move(begins), words};
}

CutRow RowCuts::pieces(Index words) const {
  if (longest == 1) {
    return CutRow(words);
  }
  std::vector<Index> begins;
  for (Index begin = 0; begin < words; begin += longest) {
    begins.push_back(begin);
  }
  return {std::move(begins), words};
}

RowCuts RowCutter::take() {
  check();
  return std::move(cuts_);
}

void RowCutter::follow(const Event& event) {
  if (event.block == nullptr) {
    return;
  }
  const std::string& matrix = event.block->matrix().name();
  const Range range = event.block->column_range();
  std::set<Index>& columns = cuts_.columns[matrix];
  columns.insert(range.begin);
  columns.insert(range.end);
  if (event.kind == Event::Kind::write) {
    cuts_.tiles.try_emplace(event.tile, RowCuts::Written{matrix, range.begin, event.orientation});
  }
}

}  // namespace redblue
