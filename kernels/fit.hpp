#pragma once
// Helpers that find blocks that fit in fast memory, by bisection: peaks never fall when a block
// grows. Also the windows in which blocks cut an operand.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/plan.hpp"
#include "kernels/units.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"

namespace redblue {

// Returns the largest size in [1, limit] that fits, or 1 if no size fits; the caller then finds
// that the plan's peak exceeds M. Requires: if a size fits, all smaller sizes fit.
template <class Fits>
Index largest(Index limit, Fits fits) {
  Index low = 1;
  Index high = limit;
  while (low < high) {
    const Index middle = low + (high - low + 1) / 2;
    if (fits(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Returns the words of all levels of fast memory, weighted by cost. `cost` returns the cost of a
// level.
template <class CostOf>
double weighted_words(const Memory& memory, const CostOf& cost) {
  std::vector<Words> moved;
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    const PhaseCost all = cost(level);
    moved.push_back(all.reads + all.writes);
  }
  return memory.weighted(moved);
}

// Largest size up to which a search tries every size. Under a mask, counting takes longer.
inline Index sizes_tried(const Problem& problem) {
  return problem.mask.full() ? 4096 : 64;
}

// A number of rows, and the largest amount of something else that fits with them.
struct RowsBeside {
  Index rows, other;
};

// Returns the pair (rows, other(rows)) with the fewest words. It tries sizes that cut n rows
// evenly, from `most_rows` down. Above `tried` it skips sizes, so that plans are made quickly.
// Requires: words fall as either number grows, and the other number is at most `all`.
template <class Other, class WordsOf>
RowsBeside fewest_words_beside(Index n, Index most_rows, Index all, const Other& other,
                               const WordsOf& words, Index tried) {
  RowsBeside best{most_rows, other(most_rows)};
  for (Index r = most_rows; r > 0; r -= r <= tried ? 1 : std::max<Index>(r / (tried / 8), 1)) {
    r = even(n, r);
    if (words(r, all) >= words(best.rows, best.other)) {
      break;  // smaller sizes are worse, too
    }
    if (const Index k = other(r); words(r, k) < words(best.rows, best.other)) {
      best = {r, k};
    }
  }
  return best;
}

// Returns the side of the largest square with `share` times its words at most M; at least 1.
inline Index square_side(Index M, Index share) {
  return largest(M, [&](Index side) { return Words(side) * side * share <= Words(M); });
}

// Returns the most rows of a block in plans of least time, for n rows: queries or keys, as
// `units_of` says. Workers share the blocks of a head, so there are four blocks, or two of few
// rows. Each is large enough to keep the registers busy. The number of workers does not count,
// because bits must not depend on it. If rows have unequal work under a mask, blocks are small
// enough that no worker gets much more than its share.
inline Index most_dealt_out(const Problem& problem, Index n,
                            Units (*units_of)(const Problem&, Index)) {
  constexpr Index kBlocks = 24;
  constexpr Index kBusy = 96;
  constexpr double kEven = 1.25;  // times the mean
  const Index rows = std::min(n, std::max(ceil_div(n, kBlocks), kBusy));
  const Index shares = n >= 8 * kBusy ? 4 : n >= 2 * kBusy ? 2 : 1;
  const Index share = std::min(n, ceil_div(ceil_div(n, shares), kPanel) * kPanel);
  if (problem.mask.full()) {
    return share;
  }
  const auto pairs_of_row = [](const Units::Sum& of) {
    return static_cast<double>(of.pairs.value()) / static_cast<double>(of.rows);
  };
  const Units units = units_of(problem, rows);
  const double mean = pairs_of_row(units.sum());
  for (Index unit = 0; unit < units.size(); ++unit) {
    if (pairs_of_row(units.sum({unit, unit + 1})) > kEven * mean) {
      return rows;
    }
  }
  return share;
}

// Returns at most `rows` rows for a block of n rows. If whole panels allow it, the number of blocks
// is even, so that two workers get equal work.
inline Index in_even_blocks(Index n, Index rows) {
  if (rows >= n) {
    return rows;
  }
  const Index r = ceil_div(ceil_div(n, 2), ceil_div(ceil_div(n, rows), 2));
  return std::min(rows, ceil_div(r, kPanel) * kPanel);
}

// Returns a window of these rows and columns, cut at the operand's extents.
inline Window window_of(const Signature& operand, const Problem& problem, Index rows, Index cols) {
  return {std::min(rows, operand.rows_of(problem.shape)),
          std::min(cols, operand.cols_of(problem.shape))};
}

// Returns the window of kernels with square blocks, called B.
inline Window square_window(const Signature& operand, const Problem& problem,
                            const Blocks& blocks) {
  return window_of(operand, problem, blocks["B"], blocks["B"]);
}

}  // namespace redblue
