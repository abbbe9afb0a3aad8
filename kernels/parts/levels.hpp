#pragma once
// How kernels in which rows stay use inner levels of fast memory (memsim/level.hpp). In a tile of a
// row block and what passes it, keys or columns of weights, each level has a smaller row block,
// which stays in it while smaller blocks of what passes come, and so on inward:
//
//   for I1 in I:                          // rows of the level
//     borrow what belongs to the rows I1
//     for J1 in J:                        // what passes, of the level
//       borrow what belongs to J1
//       the next level inward, or arithmetic
//     what was made, or changed, goes back
//
// Without inner levels all of this is nothing, and the arithmetic is on whole tiles.

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

// The blocks of a level in what blocks of the levels around it cut: in a length, `outer` says how
// it is cut first, from the innermost of those levels out.
Index pieces(Index length, Index step, std::span<const Index> outer);

// The ranges that a walk is in: of what stays, of what passes, or the whole extent.
enum class Axis : std::uint8_t { whole, staying, passing };

// Words that are made anew and used at once; that are made anew each time that they come; that are
// there, and perhaps change but are not looked at again; that change; that are summed up, which are
// made anew the first time, and change after that. A tile of several steps is, of all of them
// together, what comes last here.
enum class Use : std::uint8_t { scratch, makes, reads, changes, sums };

// How much of a part is in the innermost level at a time, where it passes in one step of the
// arithmetic: all of it; or some rows or columns, as products take them; or what registers hold.
struct AtATime {
  Index rows = kAllOfIt, columns = kAllOfIt, words = kAllOfIt;
  // Of a part of Index or Words.
  template <class Count>
  [[nodiscard]] Count of(Count all_rows, Count all_columns) const {
    return std::min(std::min(all_rows, Count(rows)) * std::min(all_columns, Count(columns)),
                    Count(words));
  }
};
inline constexpr AtATime kByRows{.rows = kRegisterRows};
inline constexpr AtATime kByColumns{.columns = 2 * kRegisterColumns};
inline constexpr AtATime kInRegisters{.words = kRegisterCharge};
inline constexpr AtATime kByPanels{.columns = kPanel};  // of transposed rows, down their columns

// What a walk borrows of a tile: the part in which it is. The rows and columns of the tile begin at
// these of the walk's. Of an empty tile nothing.
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
  AtATime some = {};  // in the innermost level, where one step of the arithmetic takes it
  [[nodiscard]] Near at_a_time(const AtATime& of) const {
    Near near = *this;
    near.some = of;
    return near;
  }
};

// Which sums a level has had before, by the first row or column that stays.
class Begun {
 public:
  Begun(const Machine& machine, Index staying)
      : of_levels_(machine.inner().size(), std::vector<bool>(static_cast<std::size_t>(staying))) {}
  // Whether it is the first time.
  [[nodiscard]] bool begins(std::size_t level, Index first) {
    auto begun = of_levels_[level][static_cast<std::size_t>(first)];
    const bool fresh = !begun;
    begun = true;
    return fresh;
  }

 private:
  std::vector<std::vector<bool>> of_levels_;
};

// A tile of words that arithmetic makes and uses alone, in all levels.
struct NearTile {
  NearTile(Machine& machine, Tile words);
  Tile tile;

 private:
  std::vector<Loan> loans_;
};

// What each step of arithmetic takes that a walk comes to; a tile may be in several.
using NearSteps = std::vector<std::vector<Near>>;

// A walk through the inner levels of a machine. Where a plan has several steps apart
// (LevelBlocks::apart), each of them borrows in the innermost level what it takes, or some of it at
// a time, and gives it back; else that level, too, borrows what all of them take.
class LevelWalk {
 public:
  // Which blocks of a level stay, and which pass.
  using Step = Index LevelBlocks::*;
  // `begun` is of what is summed up. Requires: `levels` and it outlive the walk.
  LevelWalk(Machine& machine, const Levels& levels, Step staying, Step passing,
            const NearSteps& steps, Begun* begun = nullptr);

  // Calls visit(staying, passing) for what the innermost level works on at a time. Of what passes
  // some of what stays, narrow(staying, passing) is the part that comes, perhaps none.
  template <class Narrow, class Visit>
  void each(Range staying, Range passing, const Narrow& narrow, const Visit& visit) {
    walk(levels_.size(), staying, passing, narrow, visit);
  }
  template <class Visit>
  void each(Range staying, Range passing, const Visit& visit) {
    each(
        staying, passing, [](Range, Range all) { return all; }, visit);
  }

  // In a visit: a step of the arithmetic, on all that stays of it (sums begin for all of it or for
  // none), and some of what passes.
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

  // What a level has of a tile while it is there, next to what says which part that is.
  struct NearPart {
    explicit NearPart(const Near& of) : near(of), part(*of.tile) {}
    Near near;
    Level::Part part;
  };
  using NearParts = std::vector<NearPart>;
  // Of some tiles those parts, until it dies.
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
  std::vector<NearParts> of_steps_;  // where they are apart
  struct OfLevel {
    NearParts staying, passing;  // of all steps, each tile once
  };
  std::vector<OfLevel> of_levels_;
  Begun* begun_;
  std::optional<bool> fresh_;  // whether what is summed up now begins
};

// The same where nothing passes: calls visit(rows) for some rows at a time.
template <class Visit>
void each_rows(Machine& machine, const Levels& levels, LevelWalk::Step step, Index rows,
               std::vector<Near> near, const Visit& visit) {
  LevelWalk(machine, levels, step, step, {std::move(near)})
      .each({0, rows}, {0, 1}, [&](Range S, Range) { visit(S); });
}

}  // namespace redblue
