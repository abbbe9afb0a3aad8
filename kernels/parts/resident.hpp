#pragma once
// What the resident kernels share, for fast memories in which nearly everything fits. X, Y (where
// there are weights) are read once and stay, and up to `resident` keys with their values; queries
// pass in blocks of Br rows, and each block brings its other keys in blocks of Bc. With all keys
// resident, or one block of queries, each word moves once, as few as any algorithm moves.
//
// Under a mask the keys that stay are those that the next block meets, too: of a window they roll
// along with it. With room for all of these a key whose blocks are next to each other is read once;
// with room for all keys, each is. A mask that is data says so with each key.
//
// Queries that meet far more keys than others may stay, too: they meet each key when it is first
// there for others, so that no block of queries brings all keys for them. Keys that no others meet
// come at last.

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

// Br, Bc and the resident keys with the problem around them.
struct ResidentPlan : RowPlan {
  ResidentPlan(const Problem& of, const Blocks& blocks)
      : RowPlan(of, blocks["Br"], blocks["Bc"], of.shape.d),
        resident(std::min(blocks["resident"], of.shape.m)) {
    if (of.staying > 0) {
      last = of.mask.keys_alone(of.staying_queries());
    }
  }

  Index resident;  // the room for keys
  Ranges last;     // those that only queries meet that stay

  // Keys that stay, in blocks of Bc, and others, at most.
  [[nodiscard]] Index key_blocks() const;
  // X, Y and the room for keys with their values.
  [[nodiscard]] Words resident_words() const;
  // The keys with their values that are there before the first queries.
  [[nodiscard]] Index first_resident() const;
  // The keys that blocks of queries bring, all together; and the words of a block of them, or of
  // the last.
  [[nodiscard]] Words passing_keys() const;
  [[nodiscard]] Words block_words() const;
  [[nodiscard]] Words last_block_words() const;
};

// X, Y and the resident keys, of which the first are read in a phase of that name.
// Requires: weights, for X() and Y().
class Resident {
 public:
  Resident(Machine& machine, const ResidentPlan& by, const Operands& io);
  [[nodiscard]] const Tile& X() const { return X_; }
  [[nodiscard]] const Tile& Y() const { return Y_; }

  // visit(keys) for all keys that the queries of one unit meet, some at a time: those that stayed,
  // then the others, of which some stay for the next unit. And first(keys) for those of them that
  // queries that stay have not met. Requires: the units in their order.
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
  // The same for the keys that no unit has met.
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
  // Keys next to each other, in rows next to each other, from `slot` on.
  struct Held {
    Range keys;
    Index slot;
  };
  struct Passing {
    Range J;
    bool stays;
  };
  // The keys of a unit that are not held, in blocks. Those that the next unit does not meet are
  // held no longer.
  std::vector<Passing> passing(Index unit);
  void hold(Range J, const Tile& a2, const std::optional<Tile>& a3);
  [[nodiscard]] Ranges free_slots() const;
  // The values of some keys, where they are not the keys themselves.
  [[nodiscard]] std::optional<Tile> own_values(Range J) const;

  Machine& machine_;
  const ResidentPlan& by_;
  const Operands& io_;
  Units units_;
  Tile X_, Y_, A2_;
  std::optional<Tile> A3_;
  std::vector<Held> held_;  // by their keys
  Ranges unmet_;            // by queries that stay
};
PhaseCost resident_cost(const ResidentPlan& by);
// What stays: X, Y and the resident keys; and the phase that reads it.
NestWriter::Tiles resident_tiles(const ResidentPlan& by);
void resident_nest(NestWriter& nest, const ResidentPlan& by);
// What a block of queries does before and after its keys, and with each; and what of it is there
// meanwhile.
struct RowsNest {
  std::function<void(NestWriter&nest, const NestLoop&I)> begin, end;
  std::string meet;
  std::function<NestWriter::Tiles(const NestLoop& I)> stays;
};
// The loops over all blocks, beside what `stays`; and around them the queries that stay.
void each_row_block_nest(NestWriter& nest, const ResidentPlan& by, const NestWriter::Tiles& stays,
                         const RowsNest& rows);
// "S_I = A1_I X" of the queries of a loop.
std::string text_of(std::string text, const NestLoop& I);

// The fitting blocks of fewest words, in which several keys pass at a time where some pass at all;
// for least time, all keys are resident only beside enough queries to keep the registers busy, and
// else row blocks are small: then kernels without resident keys are faster, and come first.
Blocks most_resident(const Problem& problem, Index M, Objective objective,
                     const CostOfBlocks& cost);

}  // namespace redblue
