#pragma once
// Slow matrices that store only some of their words. Blocks are read and written as usual. A word
// that is not stored reads as 0, is not written, and is not counted.
//
// partial() stores some words of each row (the scores of live pairs, for example); the other words
// take no room. only_rows() shows another matrix with only some of its rows.

#include <algorithm>
#include <string>
#include <vector>

#include "memsim/slow_matrix.hpp"

namespace redblue {

// The words that are kept: for each row some ranges of columns, disjoint and in ascending order.
class KeptWords {
 public:
  explicit KeptWords(Index columns) : columns_(columns) {}
  void add_row(const std::vector<Range>& columns);

  [[nodiscard]] Index rows() const { return static_cast<Index>(first_of_.size()) - 1; }
  [[nodiscard]] Index columns() const { return columns_; }
  [[nodiscard]] Index words() const { return words_; }
  [[nodiscard]] Index words(Range rows, Range columns) const;
  // Calls visit(columns, number of kept words before them) for each range of the row.
  template <class Visit>
  void each_range(Index row, Range columns, const Visit& visit) const {
    const auto end = kept_.begin() + first_of_[static_cast<std::size_t>(row) + 1];
    for (auto at = first_from(row, columns.begin); at != end && at->columns.begin < columns.end;
         ++at) {
      const Range met = common(at->columns, columns);
      visit(met, at->before + met.begin - at->columns.begin);
    }
  }

 private:
  struct Kept {
    Range columns;
    Index before;  // number of kept words before the range
  };
  // Returns the first range of the row that ends after `column`.
  [[nodiscard]] std::vector<Kept>::const_iterator first_from(Index row, Index column) const;

  std::vector<Kept> kept_;
  std::vector<Index> first_of_ = {0};  // in kept_: each row's first range; last, the end
  Index columns_;
  Index words_ = 0;
};

// Makes a matrix that keeps its words in `words`. Requires: `words` is 1 x kept.words().
SlowMatrix partial(std::string name, SlowMatrix words, KeptWords kept);

// Shows some rows of a matrix, at their places in the whole. The ranges are disjoint and in
// ascending order. The matrix refers to the words of the whole, which must outlive it and must not
// be moved.
SlowMatrix only_rows(SlowMatrix& whole, std::vector<Range> rows);
// For reading only. Words of the other rows read as `others`. A write throws std::logic_error.
SlowMatrix only_rows(const SlowMatrix& whole, std::vector<Range> rows, float others = 0);

}  // namespace redblue
