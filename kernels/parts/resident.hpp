#pragma once
// Building blocks of the resident kernels, for fast memories in which nearly everything fits.
//
// X and Y (where there are weights) are read once and stay. Up to `resident` keys stay with their
// values. Queries stream in blocks of Br rows, and each block of queries streams its other keys in
// blocks of Bc. With all keys resident, or with one block of queries, each word moves once, and no
// algorithm moves fewer.
//
// Under a mask a key stays while the next block of queries also meets it. With a window mask, the
// resident keys roll along with the window. If fast memory has room for all keys that two
// neighbouring blocks share, a key is read once, provided that the blocks that meet it are
// neighbours. If it has room for all keys, every key is read once. A mask that is data is read for
// each block of queries.
//
// Queries that meet far more keys than others may stay, too. They meet each key when it is first in
// fast memory for another query, so that no block of queries streams all keys for them. Keys that
// only staying queries meet come last.

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {

// The problem, with Br, Bc and the number of resident keys.
struct ResidentPlan : RowPlan {
  ResidentPlan(const Problem& of, const Blocks& blocks)
      : RowPlan(of, blocks["Br"], blocks["Bc"], of.shape.d),
        resident(std::min(blocks["resident"], of.shape.m)) {
    if (of.staying > 0) {
      last = of.mask.keys_alone(of.staying_queries());
    }
  }

  Index resident;  // number of keys that fast memory has room for
  Ranges last;     // keys that only staying queries meet

  // The most key blocks, resident and streaming.
  [[nodiscard]] Index key_blocks() const;
  // The words of X, Y and the room for keys with their values.
  [[nodiscard]] Words resident_words() const;
  // The number of keys that are resident before the first queries.
  [[nodiscard]] Index first_resident() const;
  // The keys that all blocks of queries stream, in total. The words of one block of them, and of a
  // block of `last` keys.
  [[nodiscard]] Words passing_keys() const;
  [[nodiscard]] Words block_words() const;
  [[nodiscard]] Words last_block_words() const;
};

// Holds X, Y and the resident keys. The constructor reads X, Y and the first keys in a phase
// "resident". Requires: weights, for X() and Y().
class Resident {
 public:
  Resident(Machine& machine, const ResidentPlan& by, const Operands& io);
  [[nodiscard]] const Tile& X() const { return X_; }
  [[nodiscard]] const Tile& Y() const { return Y_; }

  // Calls visit_unit(keys) for all keys that the queries of a unit meet, block by block: first the
  // resident keys, then the streaming keys. Some streaming keys then stay for the next unit. Calls
  // first(keys) for the keys that the staying queries have not met before. Requires: calls in the
  // order of the units.
  template <class Visit, class First>
  void each_key_block(Index unit, const Visit& visit_unit, const First& first) {
    const auto visit = [&](const KeyTiles& keys) {
      visit_unit(keys);
      if (unmet_.empty()) {
        return;
      }
      for (const Range J : common(Ranges{keys.J}, unmet_)) {
        first(KeyTiles{J, keys.a2, keys.a3, keys.rows_of(J)});
      }
      unmet_ = without(unmet_, {keys.J});
    };
    const Tile index = units_.read_index(machine_, units_[unit]);
    for (const Held& held : held_) {
      for (const Range part : blocks(held.keys.size(), by_.keys)) {
        visit(KeyTiles{part_of(held.keys, part),
                       A2_,
                       A3_ ? *A3_ : A2_,
                       {held.slot + part.begin, held.slot + part.end}});
      }
    }
    for (const auto& [J, stays] : passing(unit)) {
      const Tile a2 = machine_.read(io_.in(input_names(by_.problem).keys).row_block(J));
      const std::optional<Tile> a3 = own_values(J);
      visit(KeyTiles{J, a2, a3 ? *a3 : a2, {0, J.size()}});
      if (stays) {
        hold(J, a2, a3);
      }
    }
  }
  // Calls first(keys) for the keys that no unit has met.
  template <class First>
  void each_last_block(const First& first) const {
    const Pieces pieces(by_.last, by_.keys);
    for (Index k = 0; k < pieces.size(); ++k) {
      const Tile a2 = machine_.read(io_.in(input_names(by_.problem).keys).row_block(pieces[k]));
      const std::optional<Tile> a3 = own_values(pieces[k]);
      first(KeyTiles{pieces[k], a2, a3 ? *a3 : a2, {0, pieces[k].size()}});
    }
  }

 private:
  // Consecutive keys in consecutive rows of the tiles, from row `slot` on.
  struct Held {
    Range keys;
    Index slot;
  };
  struct Passing {
    Range J;
    bool stays;
  };
  // Returns the keys of a unit that are not held, in blocks. Drops held keys that the next unit
  // does not meet.
  std::vector<Passing> passing(Index unit);
  void hold(Range J, const Tile& a2, const std::optional<Tile>& a3);
  [[nodiscard]] Ranges free_slots() const;
  // Reads the values of some keys; empty if values are keys.
  [[nodiscard]] std::optional<Tile> own_values(Range J) const;

  Machine& machine_;
  const ResidentPlan& by_;
  const Operands& io_;
  Units units_;
  Tile X_, Y_, A2_;
  std::optional<Tile> A3_;
  std::vector<Held> held_;  // sorted by keys
  Ranges unmet_;            // keys that the staying queries have not met
};
PhaseCost resident_cost(const ResidentPlan& by);
// The tiles that stay (X, Y and the first keys), and the phase that reads them.
NestWriter::Tiles resident_tiles(const ResidentPlan& by);
void resident_nest(NestWriter& nest, const ResidentPlan& by);
// The loops of a block of queries: the steps before its keys (`begin`), with each block of keys
// (`meet`) and after them (`end`). `stays` returns its tiles that are resident meanwhile.
struct RowsNest {
  std::function<void(NestWriter&nest, const NestLoop&I)> begin, end;
  std::string meet;
  std::function<NestWriter::Tiles(const NestLoop& I)> stays;
};
// Writes the loops over all blocks of queries, inside the loop of the staying queries. `stays` are
// the other resident tiles.
void each_row_block_nest(NestWriter& nest, const ResidentPlan& by, const NestWriter::Tiles& stays,
                         const RowsNest& rows);
// Replaces "_I" by the variable of the loop: "S_I = A1_I X" becomes "S_R = A1_R X".
std::string text_of(std::string text, const NestLoop& I);

// Returns the fitting blocks with the fewest words. Several keys stream together, if any stream.
// For least time, all keys are resident only if enough queries fit with them to keep the registers
// busy. Otherwise row blocks are small: kernels without resident keys are then faster, and a plan
// prefers them.
Blocks most_resident(const Problem& problem, Index M, Objective objective,
                     const CostOfBlocks& cost);

}  // namespace redblue
