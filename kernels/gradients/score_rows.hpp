#pragma once
// The plan of gradients/score-rows: groups of row blocks, resident keys and streaming keys, and
// their cost.

#include <algorithm>
#include <vector>

#include "kernels/attention.hpp"
#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/rows.hpp"

namespace redblue {

// Queries in one product with keys.
inline constexpr Index kStrip = 3 * kPanel;

// dK and dV of the groups, stacked one below the other.
inline constexpr Signature kPartOfdK{"dK of groups", &Shape::m, &Shape::d, Holds::sums};
inline constexpr Signature kPartOfdV{"dV of groups", &Shape::m, &Shape::dv, Holds::sums};

struct ScoreRowPlan {
  ScoreRowPlan(const Problem& of, const Blocks& blocks)
      : ScoreRowPlan(of, blocks["Br"], blocks["Bc"], blocks.contains(kKept) ? blocks[kKept] : 0,
                     blocks["groups"]) {}
  ScoreRowPlan(const Problem& of, Index Br, Index Bc, Index kept_keys, Index all_groups)
      : problem(of),
        rows(std::min(Br, of.shape.n)),
        keys(Bc),
        kept(std::min(kept_keys, of.shape.m)),
        row_blocks(Units::of_queries(of, rows)),
        of_groups(row_blocks.size(), ceil_div(row_blocks.size(), all_groups)) {}

  const Problem& problem;
  Index rows, keys, kept;
  Units row_blocks;
  BlockRanges of_groups;  // row blocks

  // Returns whether values are keys, with one sum for dK + dV.
  [[nodiscard]] bool shares_keys() const { return problem.sharing != Sharing::none; }
  [[nodiscard]] Index groups() const { return of_groups.size(); }
  // Returns the streaming keys for which a group writes sums.
  [[nodiscard]] Ranges passing(Index group) const {
    const Range mine = of_groups[group];
    const Range queries{row_blocks[mine.begin].begin, row_blocks[mine.end - 1].end};
    return without(problem.keys(queries), {{0, kept}});
  }
  [[nodiscard]] Blocks blocks() const {
    Blocks blocks{{"Br", rows}, {"Bc", keys}, {"groups", groups()}};
    if (kept > 0) {
      blocks.add(std::string(kKept), kept);
    }
    return blocks;
  }
};

// Some of the keys that a row block meets, and their rows in its scores.
//
// `first`: whether no earlier row block of the group has met these keys. `later`: the keys among
// them that later row blocks meet.
struct KeyPiece {
  Range J, at;
  bool first;
  Ranges later;
};
std::vector<KeyPiece> key_pieces(const ScoreRowPlan& by, Range group, Index block);

// sum_blocks() returns the blocks of keys in which the sums of groups are added. summed() returns
// the keys in J for which a group wrote sums.
BlockRanges sum_blocks(const Problem& problem, const Blocks& blocks);
Ranges summed(const ScoreRowPlan& by, Index group, Range J);

// The costs of some groups, of some blocks of keys, and of the whole kernel.
PhaseCost score_rows_core_cost(const Problem& problem, const Blocks& blocks, Range groups);
PhaseCost score_rows_sum_cost(const Problem& problem, const Blocks& blocks, Range units);
std::vector<PhaseCost> score_rows_cost(const Problem& problem, const Blocks& blocks);
Blocks score_rows_blocks(const Problem& problem, Index M, Objective objective);
Nest score_rows_nest(const Problem& problem, const Blocks& blocks);

}  // namespace redblue
