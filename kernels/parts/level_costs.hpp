#pragma once
// The cost of an inner level in kernels with resident rows (kernels/parts/levels.hpp), and the
// choice of the blocks of all levels.
//
// Row blocks of a level cut each row block of the next level anew. So do key blocks and columns of
// weights. Under a mask a row block meets only the keys near it, and the costs are sums over all
// tiles.

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/parts/rows.hpp"

namespace redblue {

// One inner level of a plan.
struct PlanLevel {
  const RowPlan& by;
  std::size_t level;

  // The rows, keys or columns of its largest block, if there are `most` of them.
  [[nodiscard]] Index rows(Index most) const { return least(most, by.rows, &LevelBlocks::rows); }
  [[nodiscard]] Index keys(Index most) const { return least(most, by.keys, &LevelBlocks::keys); }
  [[nodiscard]] Index weights(Index most) const {
    return least(most, by.weights, &LevelBlocks::weights);
  }
  // The number of its blocks: in some row blocks of the machine, in some keys, and in some columns
  // of weights.
  [[nodiscard]] Words row_blocks(const Units::Sum& of) const;
  [[nodiscard]] Index key_blocks(Index keys) const;
  [[nodiscard]] Index weight_blocks(Index columns) const;
  // The same for the next level. more_row_blocks_around() leaves out the first one in each row
  // block of the machine.
  [[nodiscard]] Index key_blocks_around(Index keys) const;
  [[nodiscard]] Index weight_blocks_around(Index columns) const;
  [[nodiscard]] Words more_row_blocks_around(const Units::Sum& of) const;

 private:
  [[nodiscard]] Index least(Index most, Index outermost, Index LevelBlocks::*block) const;
  [[nodiscard]] Index blocks(std::size_t of_level, Index length, Index outermost,
                             Index LevelBlocks::*block) const;
};

// The cost of a product of all rows with d x d weights, and of v = rowsum(a * b).
PhaseCost level_rows_times_cost(std::string path, PlanLevel in, const Units::Sum& of);
PhaseCost level_row_dots_cost(std::string path, PlanLevel in, const Units::Sum& of);

// The cost of streaming keys past resident rows. `read` and `summed` are words for each row,
// `passing` words for each key, and `strips` the words of scores in fast memory. A Step has the
// same for one step of the arithmetic. `changed` are words for each row that an earlier step has
// summed. A level may hold only a part of the streaming words, or of the sums. It always holds the
// `beside` words of each key.
struct LevelSums {
  Words read, summed, passing, strips;
  struct Step {
    Words read = {}, changed = {}, summed = {}, passing = {}, beside = {};
    AtATime passing_at_a_time = {}, sums_at_a_time = {};
    [[nodiscard]] Words words(Index rows, Index keys) const {
      return rows * read + sums_at_a_time.of(Words(rows), changed + summed) +
             passing_at_a_time.of(Words(keys), passing) + keys * beside;
    }
  };
  std::vector<Step> steps;
};
PhaseCost level_core_cost(std::string path, PlanLevel in, Range units, const LevelSums& sums);
// The cost of g += A1_I^T W_I for each unit, with or without kept columns. `adding` units add to an
// existing g.
PhaseCost level_gradient_cost(PlanLevel in, const Units::Sum& of, Index adding);
// The cost of sum += part for rows of d words. It happens `times` times.
PhaseCost level_add_rows_cost(std::string path, PlanLevel in, Index rows, Words times);

// Returns the blocks of all levels for a kernel with these formulas. They make the sum of the words
// of all levels least, each weighed by `word_costs`. Without `word_costs`, the cost of a word is
// the number of words M of its level. Each level then loses an equal share over the lower bound.
Blocks fit_levels(const Problem& problem, const Memory& memory, Objective objective,
                  const CostOfBlocks& cost, const LevelCostOfBlocks& level_cost);

}  // namespace redblue
