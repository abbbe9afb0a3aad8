#pragma once
// Finding the blocks that fit. Peaks never fall when a block grows, so the largest fitting
// block is found by bisection. And the windows that blocks make of an operand.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/plan.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"

namespace redblue {

// The largest size in [1, limit] that fits, or 1 where none does (the caller finds out when
// it compares the plan's peak with M). Requires: what fits, fits in all smaller sizes too.
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

// The words of all levels of fast memory, weighed, with the cost of a level.
template <class CostOf>
double weighted_words(const Memory& memory, const CostOf& cost) {
  std::vector<Words> moved;
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    const PhaseCost all = cost(level);
    moved.push_back(all.reads + all.writes);
  }
  return memory.weighted(moved);
}

// The sizes up to which a search tries all: a mask takes longer to count.
inline Index sizes_tried(const Problem& problem) {
  return problem.mask.full() ? 4096 : 64;
}

// Row blocks, and of something else as much as fits beside them.
struct RowsBeside {
  Index rows, other;
};

// Of the sizes that cut n rows evenly, from `most_rows` down, each with other(size), the pair of
// fewest words; above `tried` some sizes of each doubling, so that plans are made quickly.
// Requires: words fall with a size, and with the other, of which there are `all`.
template <class Other, class WordsOf>
RowsBeside fewest_words_beside(Index n, Index most_rows, Index all, const Other& other,
                               const WordsOf& words, Index tried) {
  RowsBeside best{most_rows, other(most_rows)};
  for (Index r = most_rows; r > 0; r -= r <= tried ? 1 : std::max<Index>(r / (tried / 8), 1)) {
    r = even(n, r);
    if (words(r, all) >= words(best.rows, best.other)) {
      break;  // nor any smaller size
    }
    if (const Index k = other(r); words(r, k) < words(best.rows, best.other)) {
      best = {r, k};
    }
  }
  return best;
}

// The side of the largest square whose `share`-fold is at most M; at least 1.
inline Index square_side(Index M, Index share) {
  return largest(M, [&](Index side) { return Words(side) * side * share <= Words(M); });
}

// For plans of least time, of n rows the most that a block has where workers share the blocks:
// where a mask gives rows unequal work, a fraction that leaves no worker much more than its share.
inline Index most_dealt_out(const Problem& problem, Index n) {
  constexpr Index kBlocks = 24;
  constexpr Index kBusy = 96;
  return problem.mask.full() ? n : std::min(n, std::max(ceil_div(n, kBlocks), kBusy));
}

// At most so many of n rows, in an even number of blocks where whole panels allow, so that two
// workers have the same to do.
inline Index in_even_blocks(Index n, Index rows) {
  if (rows >= n) {
    return rows;
  }
  const Index r = ceil_div(ceil_div(n, 2), ceil_div(ceil_div(n, rows), 2));
  return std::min(rows, ceil_div(r, kPanel) * kPanel);
}

// So many rows and columns of an operand, or all that it has.
inline Window window_of(const Signature& operand, const Problem& problem, Index rows, Index cols) {
  return {std::min(rows, operand.rows_of(problem.shape)),
          std::min(cols, operand.cols_of(problem.shape))};
}

// For kernels of square blocks, called B.
inline Window square_window(const Signature& operand, const Problem& problem,
                            const Blocks& blocks) {
  return window_of(operand, problem, blocks["B"], blocks["B"]);
}

}  // namespace redblue
