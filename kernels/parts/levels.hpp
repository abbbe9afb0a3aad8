#pragma once
// How kernels with resident rows use inner levels of fast memory (memsim/level.hpp).
//
// In the machine a row block meets keys, or columns of weights. Each level has a smaller row block,
// which stays in it while smaller blocks of keys or columns stream past, and so on inward:
//
//   for I1 in I:                          // rows of the level
//     borrow the tiles of the rows I1
//     for J1 in J:                        // keys or columns of the level
//       borrow the tiles of J1
//       the next level inward, or arithmetic
//     give back the tiles that were made or changed
//
// Without inner levels a walk borrows no tiles, and the arithmetic is on whole tiles.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/plan.hpp"
#include "memsim/machine.hpp"
#include "memsim/range.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// Returns the number of blocks of size `step` in a length that outer levels cut first. `outer` has
// the block sizes of the outer levels, from the innermost out.
Index pieces(Index length, Index step, std::span<const Index> outer);

// How the rows or columns of a tile follow a walk: always the whole extent, the resident range, or
// the streaming range.
enum class Axis : std::uint8_t { whole, staying, passing };

// How the arithmetic uses the words of a tile:
//
//    scratch  made anew and used at once
//    makes    made anew each time they come
//    reads    read; later changes to them are not used
//    changes  read and changed
//    sums     summed up: made anew the first time, changed after that
//
// A tile of several steps has the last of their uses in this order.
enum class Use : std::uint8_t { scratch, makes, reads, changes, sums };

// How much of a part the innermost level holds together during one step of the arithmetic. It is
// all of the part, some rows or columns as products take them, or the words that registers hold.
struct AtATime {
  Index rows = kAllOfIt, columns = kAllOfIt, words = kAllOfIt;
  // The words held together of a part of this size. Count is Index or Words.
  template <class Count>
  [[nodiscard]] Count of(Count all_rows, Count all_columns) const {
    return std::min(std::min(all_rows, Count(rows)) * std::min(all_columns, Count(columns)),
                    Count(words));
  }
};
inline constexpr AtATime kByRows{.rows = kRegisterRows};
inline constexpr AtATime kByColumns{.columns = 2 * kRegisterColumns};
inline constexpr AtATime kInRegisters{.words = kRegisterCharge};
inline constexpr AtATime kByPanels{.columns = kPanel};  // for transposed rows, down their columns

// The part of a tile that a walk borrows: the ranges of the walk along its rows and columns. Row 0
// and column 0 of the tile are first_row and first_column of the walk. A walk ignores an empty
// tile.
struct Near {
  Near(const Tile& of, Axis along_rows, Axis along_columns, Use as, Index row = 0, Index column = 0)
      : tile(&of),
        rows(along_rows),
        columns(along_columns),
        use(as),
        first_row(row),
        first_column(column) {}
  const Tile* tile;
  Axis rows, columns;
  Use use;
  Index first_row, first_column;
  AtATime some = {};  // the share held together, if one step takes it in the innermost level
  [[nodiscard]] Near at_a_time(const AtATime& of) const {
    Near near = *this;
    near.some = of;
    return near;
  }
};

// Remembers which sums have begun in each level, by the first resident row or column.
class Begun {
 public:
  Begun(const Machine& machine, Index staying)
      : of_levels_(machine.inner().size(), std::vector<bool>(static_cast<std::size_t>(staying))) {}
  // Returns whether this is the first time.
  [[nodiscard]] bool begins(std::size_t level, Index first) {
    auto begun = of_levels_[level][static_cast<std::size_t>(first)];
    const bool fresh = !begun;
    begun = true;
    return fresh;
  }

 private:
  std::vector<std::vector<bool>> of_levels_;
};

// A scratch tile of the arithmetic, borrowed in all levels until it dies.
struct NearTile {
  NearTile(Machine& machine, Tile words);
  Tile tile;

 private:
  std::vector<Loan> loans_;
};

// The tiles that each step of the arithmetic takes in a walk. A tile may be in several steps.
using NearSteps = std::vector<std::vector<Near>>;

// A walk through the inner levels of a machine. Each level borrows the tiles of all steps together.
// If a plan has several steps apart (LevelBlocks::apart), the innermost level differs: there each
// step borrows its own tiles, whole or in parts, and gives them back.
class LevelWalk {
 public:
  // The block sizes of a level, for the resident or for the streaming range.
  using Step = Index LevelBlocks::*;
  // `begun` is for tiles of Use::sums. Requires: `levels` and `begun` outlive the walk.
  LevelWalk(Machine& machine, const Levels& levels, Step staying, Step passing,
            const NearSteps& steps, Begun* begun = nullptr);

  // Calls visit(staying, passing) for the ranges that the innermost level works on together.
  // narrow(staying, passing) returns the part of the streaming range that these resident rows need,
  // perhaps an empty one.
  template <class Narrow, class Visit>
  void each(Range staying, Range passing, const Narrow& narrow, const Visit& visit) {
    walk(levels_.size(), staying, passing, narrow, visit);
  }
  template <class Visit>
  void each(Range staying, Range passing, const Visit& visit) {
    each(
        staying, passing, [](Range, Range all) { return all; }, visit);
  }

  // Does one step of the arithmetic, in a visit. Requires: `staying` is the whole resident range of
  // the visit, because sums begin for all of it or for no part. `passing` may be a part.
  template <class Arithmetic>
  void step(std::size_t number, Range staying, Range passing, const Arithmetic& arithmetic) {
    if (!apart_) {
      arithmetic();
      return;
    }
    const Borrowed borrowed(*this, 0, staying, passing, of_steps_[number]);
    arithmetic();
  }

 private:
  template <class Narrow, class Visit>
  void walk(std::size_t levels, Range staying, Range passing, const Narrow& narrow,
            const Visit& visit) {
    if (levels == 0) {
      visit(staying, passing);
      return;
    }
    const std::size_t level = levels - 1;
    for (const Range part : blocks(staying.size(), levels_[level].*staying_)) {
      const Range S = part_of(staying, part);
      const Range met = narrow(S, passing);
      if (met.size() <= 0) {
        continue;
      }
      fresh_.reset();
      const Borrowed of_rows(*this, level, S, met, of_levels_[level].staying);
      for (const Range piece : blocks(met.size(), levels_[level].*passing_)) {
        const Range P = part_of(met, piece);
        fresh_.reset();
        const Borrowed of_passing(*this, level, S, P, of_levels_[level].passing);
        walk(level, S, P, narrow, visit);
      }
    }
  }

  // A part of a tile in a level, with the description that selects it.
  struct NearPart {
    explicit NearPart(const Near& of) : near(of), part(*of.tile) {}
    Near near;
    Level::Part part;
  };
  using NearParts = std::vector<NearPart>;
  // Borrows the parts of some tiles until it dies.
  class Borrowed {
   public:
    Borrowed(LevelWalk& walk, std::size_t level, Range staying, Range passing, NearParts& all);
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    ~Borrowed() { give_back(); }

   private:
    Borrowed(Level& in, NearParts& all) : in_(in), all_(all) {}
    void give_back() noexcept;
    Level& in_;
    NearParts& all_;
    std::size_t taken_ = 0;
  };
  void add_to_levels(const Near& near);

  Machine& machine_;
  const Levels& levels_;
  Step staying_, passing_;
  bool apart_, one_step_;
  std::vector<NearParts> of_steps_;  // the tiles of each step, for steps apart
  struct OfLevel {
    NearParts staying, passing;  // the tiles of all steps, each once
  };
  std::vector<OfLevel> of_levels_;
  Begun* begun_;
  std::optional<bool> fresh_;  // whether the current sums begin
};

// A walk with no streaming range: calls visit(rows) for the rows that the innermost level holds
// together.
template <class Visit>
void each_rows(Machine& machine, const Levels& levels, LevelWalk::Step step, Index rows,
               std::vector<Near> near, const Visit& visit) {
  LevelWalk(machine, levels, step, step, {std::move(near)})
      .each({0, rows}, {0, 1}, [&](Range S, Range) { visit(S); });
}

}  // namespace redblue
