#pragma once
// Slow matrices of which some words are there. Their blocks are read and written as any others; but
// words that are not there are 0 when they are read, they are not written, and do not count.
//
// partial() keeps some words of each row, of scores, say, those of live pairs; others take no room
// in the store. only_rows() is another matrix with some of its rows alone.

#include <algorithm>
#include <string>
#include <vector>

#include "memsim/slow_matrix.hpp"

namespace redblue {

// Which words: for each row some columns, in ranges apart from each other and in their order.
class KeptWords {
 public:
  explicit KeptWords(Index columns) : columns_(columns) {}
  void add_row(const std::vector<Range>& columns);

  [[nodiscard]] Index rows() const { return static_cast<Index>(first_of_.size()) - 1; }
  [[nodiscard]] Index columns() const { return columns_; }
  [[nodiscard]] Index words() const { return words_; }
  [[nodiscard]] Index words(Range rows, Range columns) const;
  // Those of one row: calls visit(columns, the number of kept words before them) for each range.
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
    Index before;  // words
  };
  // The first range of a row that ends after a column.
  [[nodiscard]] std::vector<Kept>::const_iterator first_from(Index row, Index column) const;

  std::vector<Kept> kept_;
  std::vector<Index> first_of_ = {0};  // the first range of each row; and their number
  Index columns_;
  Index words_ = 0;
};

// Requires: `words` is 1 x kept.words().
SlowMatrix partial(std::string name, SlowMatrix words, KeptWords kept);

// Some rows of a matrix, in ranges apart from each other and in their order, each where it is in
// the whole; `others` is what words of other rows are when they are read. It refers to the words of
// the whole, which must outlive it and must not be moved.
SlowMatrix only_rows(SlowMatrix& whole, std::vector<Range> rows);
// For reading only: a write to it throws std::logic_error.
SlowMatrix only_rows(const SlowMatrix& whole, std::vector<Range> rows, float others = 0);

}  // namespace redblue
