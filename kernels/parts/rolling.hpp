#pragma once
// Rows that stay in fast memory from one unit to the next, for kernels that pass units in order.
//
// Each unit (a block of queries, or of keys) meets some of the others (keys, or queries). These
// come into fast memory in blocks, with all tiles that belong to them. The others that the next
// unit also meets stay, as many as there is room for. With a window mask they roll along with the
// window. A row that leaves before its last unit has incomplete sums. They are written as partial
// sums, and read when the row comes back.
//
// A block type has a member `rows`, and two static lists of its tiles: kTiles, and kSums for the
// tiles that are written. Each tile is empty or has one row for each of the rows. A home moves
// blocks:
//
//   Block arriving(Range rows, bool again);           // reads them; `again`: their sums, too
//   void leave(Block& block, const Ranges& later);    // writes their sums; `later`: still partial

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/units.hpp"
#include "memsim/machine.hpp"

namespace redblue {

// Returns how often the others come into fast memory, summed, if `room` of `others` may stay.
inline Words arrivals(const Units& units, Index others, Index room) {
  if (room == others) {
    return others;
  }
  const Words met = units.sum().met;
  return met.overflowed() ? met : Words(met.value() - units.shared(room).value());
}

// Returns the most others in fast memory together, in blocks of `step`, if a unit meets ranges of
// at most `longest`. It is exact without a mask.
inline Words most_together(Index others, Index room, Index step, Index longest, bool full) {
  const Words all = Words(room) + std::min(step, longest);
  return room == others ? Words(others) : full ? std::min(Words(others), all) : all;
}

template <class Block, class Home>
class Rolling {
 public:
  // Requires: `home` outlives this object.
  Rolling(Machine& machine, const Units& units, Home& home, Index others, Index room, Index step)
      : machine_(machine),
        units_(units),
        home_(home),
        others_(others),
        room_(room),
        step_(step),
        first_(static_cast<std::size_t>(others), units.size()),
        last_(static_cast<std::size_t>(others), Index{-1}) {
    for (Index unit = 0; unit < units.size(); ++unit) {
      for (const Range range : units.met(unit)) {
        for (auto other = static_cast<std::size_t>(range.begin);
             other < static_cast<std::size_t>(range.end); ++other) {
          first_[other] = std::min(first_[other], unit);
          last_[other] = unit;
        }
      }
    }
  }

  // Calls meet(blocks) for all rows that a unit meets, in several calls. Requires: calls in the
  // order of the units.
  template <class Meet>
  void pass(Index unit, const Meet& meet) {
    unit_ = unit;
    const Ranges met = units_.met(unit), new_here = without(met, held_rows());
    // With room for all, and after the last unit, all that fit stay until the end.
    const Ranges next = room_ == others_           ? Ranges{{0, others_}}
                        : unit + 1 < units_.size() ? units_.met(unit + 1)
                                                   : met;
    if (!held_.empty()) {
      meet(std::span(held_));
    }
    drop_others(next);
    const Ranges staying = first_rows(common(new_here, next), room_ - size_of(held_rows()));
    each_arrival(staying, [&](Block block) {
      meet(std::span(&block, 1));
      held_.push_back(std::move(block));
    });
    std::ranges::sort(held_, {}, [](const Block& block) { return block.rows.begin; });
    each_arrival(without(new_here, staying), [&](Block block) {
      meet(std::span(&block, 1));
      leave(block);
    });
  }
  // Writes the sums of the rows that stayed until the end.
  void finish() {
    unit_ = units_.size();
    for (Block& block : held_) {
      leave(block);
    }
    held_.clear();
  }

 private:
  // Returns the first `most` of some rows.
  static Ranges first_rows(const Ranges& rows, Index most) {
    Ranges first;
    for (const Range range : rows) {
      if (const Index size = std::min(range.size(), most); size > 0) {
        first.push_back({range.begin, range.begin + size});
        most -= size;
      }
    }
    return first;
  }
  [[nodiscard]] Ranges held_rows() const {
    Ranges rows;
    for (const Block& block : held_) {
      rows.push_back(block.rows);
    }
    return rows;
  }
  template <class Visit>
  void each_arrival(const Ranges& rows, const Visit& visit) {
    for (const bool again : {false, true}) {
      const auto arrives = [&](Index row) {
        return (first_[static_cast<std::size_t>(row)] < unit_) == again;
      };
      for (const Range some : Pieces(rows_with(rows, arrives), step_)) {
        visit(home_.arriving(some, again));
      }
    }
  }
  void leave(Block& block) {
    home_.leave(block, rows_with({block.rows}, [&](Index row) {
                  return last_[static_cast<std::size_t>(row)] > unit_;
                }));
  }

  // Keeps only the rows that are among `next`. A block is cut if only some of its rows leave.
  void drop_others(const Ranges& next) {
    std::vector<Block> kept;
    for (Block& block : held_) {
      const Ranges staying = common(next, {block.rows});
      if (size_of(staying) == block.rows.size()) {
        kept.push_back(std::move(block));
        continue;
      }
      if (staying.empty()) {
        leave(block);
        block = {};
        continue;
      }
      for (const Range rows : without({block.rows}, staying)) {
        Block leaving;
        for (const auto tile : Block::kSums) {
          copy_rows(block, tile, rows, leaving);
        }
        leave(leaving);
      }
      cut(std::move(block), staying, kept);
    }
    held_ = std::move(kept);
  }
  // Appends a block for each of the ranges, tile by tile, so that at most one tile is held twice.
  void cut(Block block, const Ranges& ranges, std::vector<Block>& to) {
    std::vector<Block> parts(ranges.size());
    for (const auto tile : Block::kTiles) {
      for (std::size_t k = 0; k < ranges.size(); ++k) {
        copy_rows(block, tile, ranges[k], parts[k]);
      }
      (block.*tile).reset();
    }
    std::ranges::move(parts, std::back_inserter(to));
  }
  void copy_rows(const Block& block, Tile Block::*tile, Range rows, Block& to) {
    to.rows = rows;
    const Tile& from = block.*tile;
    if (from.words() > 0) {
      to.*tile = machine_.initialize(from.name(), rows.size(), from.cols(), kUnset, from.holds());
      copy(from.part({rows.begin - block.rows.begin, rows.end - block.rows.begin}), to.*tile);
    }
  }

  Machine& machine_;
  const Units& units_;
  Home& home_;
  Index others_, room_, step_;
  std::vector<Index> first_, last_;  // units that meet each of the others first, last
  std::vector<Block> held_ = {};     // sorted by rows
  Index unit_ = 0;                   // passing now
};

}  // namespace redblue
