#pragma once
// The words of an inner level for what kernels of row blocks do (kernels/parts/levels.hpp), and the
// blocks of all levels. Row blocks of a level cut those of the next one anew, as key blocks and
// columns of weights do. Under a mask what is near a row block comes alone, and the sums are taken
// over all tiles.

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/parts/rows.hpp"

namespace redblue {

// A level in a plan.
struct PlanLevel {
  const RowPlan& by;
  std::size_t level;

  // The most that a block has, of so many.
  [[nodiscard]] Index rows(Index most) const { return least(most, by.rows, &LevelBlocks::rows); }
  [[nodiscard]] Index keys(Index most) const { return least(most, by.keys, &LevelBlocks::keys); }
  [[nodiscard]] Index weights(Index most) const {
    return least(most, by.weights, &LevelBlocks::weights);
  }
  // Its blocks in row blocks of the machine, in keys and in columns of weights.
  [[nodiscard]] Words row_blocks(const Units::Sum& of) const;
  [[nodiscard]] Index key_blocks(Index keys) const;
  [[nodiscard]] Index weight_blocks(Index columns) const;
  // Those of the next level; of row blocks those after the first in each of the machine's.
  [[nodiscard]] Index key_blocks_around(Index keys) const;
  [[nodiscard]] Index weight_blocks_around(Index columns) const;
  [[nodiscard]] Words more_row_blocks_around(const Units::Sum& of) const;

 private:
  [[nodiscard]] Index least(Index most, Index outermost, Index LevelBlocks::*block) const;
  [[nodiscard]] Index blocks(std::size_t of_level, Index length, Index outermost,
                             Index LevelBlocks::*block) const;
};

// A product of all rows with d x d weights; and v = rowsum(a * b) of them.
PhaseCost level_rows_times_cost(std::string path, PlanLevel in, const Units::Sum& of);
PhaseCost level_row_dots_cost(std::string path, PlanLevel in, const Units::Sum& of);

// Keys pass rows: words of a row that are read, and that are summed up; those of a key; and what is
// beside them in fast memory, strips of scores. And the same of each step of the arithmetic, where
// what an earlier step has summed up is changed; a level may have a part of what passes, beside
// which `beside` words of each key are whole, and of what is summed up or changed.
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
// g += A1_I^T W_I for each of these units, with kept columns or without.
PhaseCost level_gradient_cost(PlanLevel in, const Units::Sum& of, Index adding);
// sum += part, so many times, of so many rows of d words.
PhaseCost level_add_rows_cost(std::string path, PlanLevel in, Index rows, Words times);

// The blocks of all levels, of a kernel with these formulas: those for which the sum over levels of
// their words, each weighed by `word_costs`, is least. Without these a word of a level costs as
// much as the level has words, which loses an equal share over the bound at each level.
Blocks fit_levels(const Problem& problem, const Memory& memory, Objective objective,
                  const CostOfBlocks& cost, const LevelCostOfBlocks& level_cost);

}  // namespace redblue
