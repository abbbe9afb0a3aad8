#pragma once
// Units: the groups of rows that a kernel works on together. A unit is a block of `step` streaming
// queries, or of keys if keys are resident. This header counts which keys (or queries) the units
// meet under the problem's mask. If the mask is data, each pass over them reads indices
// (kernels/mask_index.hpp):
//
//   const Tile index = units.read_index(machine, I);     // before the pass, until its end
//   with_index({.path = ..., .peak = ... + of.index_live}, of)    // in the formula
//   index_nest(nest, of);                                          // in the loops
//
// If the mask is a formula, all three do nothing.

#include <algorithm>
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
  // Units of the rows of a mask, or of its columns. `others` is the extent of the other side.
  static Units of_rows(const Mask& mask, Index rows, Index others, Index step);
  static Units of_columns(const Mask& mask, Index columns, Index others, Index step);
  static Units of_keys(const Problem& problem, Index step);

  // Returns the others (keys or queries) that some rows, or one unit, meet.
  [[nodiscard]] Ranges met(Range rows) const {
    return mask_.full() ? Ranges{{0, others_}} : mask_.keys(rows);
  }
  [[nodiscard]] Ranges met(Index which) const {
    return which < size() ? met((*this)[which]) : Ranges();
  }
  // Same, in whole blocks of `block` others. A block counts if it has a live pair.
  [[nodiscard]] Pieces met_blocks(Range rows, Index block) const {
    return {in_blocks(met(rows), others_, block), block};
  }
  // Sums over the live tiles, which are the tiles of a unit and a block with a live pair: rows,
  // others met and words. `most` is the largest number of others that one unit meets.
  struct Tiles {
    Words rows, met, words;
    Index most = 0;
  };
  [[nodiscard]] Tiles live_tiles(Index block) const;

  // Sums over some units.
  // - units, rows: their numbers; `largest`: the most rows of one unit.
  // - met: the others that each unit meets, summed up. `longest` is the longest range that one unit
  //   meets, and `most` is the most that one unit meets.
  // - pairs: the number of live pairs.
  // - index: the words of the mask's indices that one pass over all of it reads. `index_live` of
  //   them are live at once.
  // - full, last: the rows of one unit, and the longest range and the most that it meets; for units
  //   of `largest` rows, and for the last one if it has fewer. Perhaps only the last one meets
  //   most.
  struct Unit {
    Index rows = 0, longest = 0, most = 0;
  };
  struct Sum {
    Index units = 0, rows = 0, largest = 0;
    Words met;
    Index longest = 0, most = 0;
    Words pairs;
    Words index;
    Index index_live = 0;
    Grouping grouping = {};
    bool regrouped = false;  // true if the indices of a pattern are stored for these groups
    Unit full = {}, last = {};

    // Returns the most words that a unit needs.
    template <class WordsOf>
    [[nodiscard]] Words peak(const WordsOf& words_of) const {
      return std::max<Words>(words_of(full), words_of(last));
    }
  };
  [[nodiscard]] Sum sum(Range which) const;
  [[nodiscard]] Sum sum() const { return sum({0, size()}); }
  // Returns the sums of the resident queries, as one unit.
  [[nodiscard]] Sum staying() const;
  // Returns the same units, which meet the others from `first` on.
  [[nodiscard]] Units from(Index first) const;
  // Returns the part of Sum::met with an index of at least `first`.
  [[nodiscard]] Words met_from(Index first, Range which) const;
  [[nodiscard]] Words met_from(Index first) const { return met_from(first, {0, size()}); }
  // Returns the sizes of the first range that each unit meets, each at most `most`, summed.
  [[nodiscard]] Words first_met(Index most, Range which) const;
  // Returns the number of others that each unit and the next both meet, at most `most` for each
  // two, summed.
  [[nodiscard]] Words shared(Index most) const;

  // Reads the indices that say which others the rows meet.
  [[nodiscard]] Tile read_index(Machine& machine, Range rows) const;

 private:
  Units(Mask mask, Index rows, Index others, Index step);
  [[nodiscard]] Sum sum_of(Range rows, Index size) const;

  Mask mask_;
  Index rows_, others_, step_;
};

// Same, without units.
Tile read_index(Machine& machine, const Mask& mask, Range rows);

// For rows and others with some live pairs, such as queries and keys; all pairs are live if the
// mask is full(). Return the number of live pairs, and the sum over blocks of rows of the others
// that each block meets.
Words all_pairs(const Mask& mask, Index rows, Index others);
Words met_by_blocks(const Mask& mask, Index rows, Index block, Index others);

// with_index() adds the indices of `passes` passes to a cost. The caller adds them to the peak,
// because it knows which other tiles are live. index_nest() writes the line of a nest, inside the
// loops over units and passes.
PhaseCost with_index(PhaseCost cost, const Units::Sum& of, Index passes = 1);
void index_nest(NestWriter& nest, const Units::Sum& of, Index passes = 1);

}  // namespace redblue
