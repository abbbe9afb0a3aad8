#pragma once
// The groups in which rows are worked on: the queries of a problem that pass, `step` at a time, or
// its keys where these stay; and what they meet under the problem's mask. Where that is data, a
// pass over what a group meets reads which these are (kernels/mask_index.hpp):
//
//   const Tile index = units.read_index(machine, I);     // before the pass, until its end
//   with_index({.path = ..., .peak = ... + of.index_live}, of)    // in the formula
//   index_nest(nest, of);                                          // in the loops
//
// Where the mask is a formula all three do nothing.

#include <optional>

#include "kernels/mask.hpp"
#include "kernels/nest.hpp"
#include "kernels/plan.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Machine;

class Units : public BlockRanges {
 public:
  static Units of_queries(const Problem& problem, Index step);
  // Of the rows of a mask, or of its columns, of which `others` are the other side.
  static Units of_rows(const Mask& mask, Index rows, Index others, Index step);
  static Units of_columns(const Mask& mask, Index columns, Index others, Index step);
  static Units of_keys(const Problem& problem, Index step);

  // What some rows meet, and what a unit meets.
  [[nodiscard]] Ranges met(Range rows) const {
    return mask_.full() ? Ranges{{0, others_}} : mask_.keys(rows);
  }
  [[nodiscard]] Ranges met(Index which) const {
    return which < size() ? met((*this)[which]) : Ranges();
  }
  // The same in whole blocks of so many: those with a live pair.
  [[nodiscard]] Pieces met_blocks(Range rows, Index block) const {
    return {in_blocks(met(rows), others_, block), block};
  }
  // Of the tiles of a unit and such a block that have a live pair: their rows, what they meet, and
  // their words, each summed up; and the most that those of one unit meet.
  struct Tiles {
    Words rows, met, words;
    Index most = 0;
  };
  [[nodiscard]] Tiles live_tiles(Index block) const;

  // Of some units: how many, their rows, and the most rows of one; the sum over them of what they
  // meet, the longest range that one meets, and the most that one meets; the live pairs; the words
  // that a pass over all of it reads to know it, and those of them that live at a time.
  struct Sum {
    Index units = 0, rows = 0, largest = 0;
    Words met;
    Index longest = 0, most = 0;
    Words pairs;
    Words index;
    Index index_live = 0;
    Grouping grouping = {};
    bool regrouped = false;  // a pattern is kept for these groups
  };
  [[nodiscard]] Sum sum(Range which) const;
  [[nodiscard]] Sum sum() const { return sum({0, size()}); }
  // Of the queries that stay, as one unit.
  [[nodiscard]] Sum staying() const;
  // The part of Sum::met from an index on.
  [[nodiscard]] Words met_from(Index first, Range which) const;
  [[nodiscard]] Words met_from(Index first) const { return met_from(first, {0, size()}); }
  // The first range that each of some units meets, but at most so much of each.
  [[nodiscard]] Words first_met(Index most, Range which) const;
  // What each unit and the next both meet, but at most so much of each two.
  [[nodiscard]] Words shared(Index most) const;

  // What a pass over what some rows meet reads to know it.
  [[nodiscard]] Tile read_index(Machine& machine, Range rows) const;

 private:
  Units(Mask mask, Index rows, Index others, Index step);
  [[nodiscard]] Sum sum_of(Range rows, Index size) const;

  Mask mask_;
  Index rows_, others_, step_;
};

// The same without units.
Tile read_index(Machine& machine, const Mask& mask, Range rows);

// Of rows and others of which some pairs live, as those of queries and keys; all, where the mask is
// full(): their number, and the sum over blocks of rows of what each meets.
Words all_pairs(const Mask& mask, Index rows, Index others);
Words met_by_blocks(const Mask& mask, Index rows, Index block, Index others);

// The cost with that of so many passes over what units meet, but for its peak, which knows best
// what lives beside it; and the line of a nest, inside the loops over the units and passes, or its
// tile alone, where there is any.
PhaseCost with_index(PhaseCost cost, const Units::Sum& of, Index passes = 1);
void index_nest(NestWriter& nest, const Units::Sum& of, Index passes = 1);
NestWriter::Tiles index_tiles(const Units::Sum& of, Index passes = 1);

}  // namespace redblue
