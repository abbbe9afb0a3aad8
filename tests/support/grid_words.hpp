#pragma once
// The words of a grid of ranks, written down a second time, from docs/theory/ranks.md: what each
// one owns, works on, receives, sends and has at home, for each pass; for gradients, from nothing
// and with keys in stages, too.
//
//   const GridTask task{.problem = {n, m, d}, .unit_rows = Br, .grid = {8, 4, 4}};
//   rank_words(task, 5).received();
//   grid_words(task).largest;                      // of the rank whose links move the most
//
// Rank r of a grid is in row i = r / columns and column j = r % columns.
//   Work: row i has units share_of(T, i, rows) of the T = ceil(n / unit_rows) units of unit_rows
//     rows; column j has key groups share_of(groups, j, columns), as the kernels cut keys into
//     groups: the first m % groups have one key more than the others. A rank without rows does not
//     work.
//   Ownership: of the n_i rows of its grid row, in order, the rank owns share_of(n_i, j, columns);
//     of the m_j keys of its grid column share_of(m_j, i, rows).
//   Links: an owner sends each of its rows to all other ranks of the grid row, and each of its keys
//     to all others of the grid column that work. These send back what they make of results: of a
//     row a part for each key group, of a key one sum over the rows of the rank. g passes as one
//     running sum from rank to rank, in the order of key groups, and within one of units.
//
// Values and functions of values: safe to use from any thread. Throw: ShapeMismatch for a grid or a
// pass that is none of these; CountOverflow.

#include <array>
#include <string_view>

#include "kernels/problem.hpp"
#include "memsim/share.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

struct GroupedGrid {
  Index rows = 1, columns = 1;
  Index groups = 1;  // of keys: columns <= groups <= m

  friend bool operator==(const GroupedGrid&, const GroupedGrid&) = default;
};

struct GridTask {
  Pass pass = Pass::backward;  // or forward, attention, gradients
  Problem problem = {};        // with a full mask
  Known known = Known::O_and_L;
  Index unit_rows = 1;
  GroupedGrid grid = {};
};

// The words of a row, and of a key, that pass between ranks and that are at home: a problem is a
// row of a table of these.
struct PassWords {
  Index row_in = 0;    // sources, L and v: from the owner to each rank of the grid row
  Index row_out = 0;   // a part of a result, for each key group: to the owner
  Index row_back = 0;  // what all parts make: from the owner again
  Index key_in = 0;    // sources: from the owner to each rank of the grid column
  Index key_out = 0;   // a sum over the rows of a rank: to the owner
  Index running = 0;   // the sum that passes from rank to rank
  // At home: of rows and keys that the rank owns, of no row or key, and of each row and key group
  // of the rank.
  Index row_owned = 0, key_owned = 0, everywhere = 0, row_kept = 0;
};
PassWords pass_words(const GridTask& task);

struct RankShare {
  Range units, groups;       // that the rank works on
  Range rows, keys;          // of these
  Range own_rows, own_keys;  // some of these; keys, too, where the rank does not work

  [[nodiscard]] bool works() const { return rows.size() > 0; }
};
Range keys_of_groups(Range groups, const GridTask& task);
RankShare share_of_rank(const GridTask& task, Index rank);

struct PhaseLinks {
  std::string_view phase;
  Words received, sent;
};

struct RankWords {
  // rows in, keys in, rows out, rows back, keys out, running sum.
  std::array<PhaseLinks, 6> phases;
  // The words at home: with all keys of the grid column; or with two groups of them at a time.
  Words home, staged_home;

  [[nodiscard]] Words received() const;
  [[nodiscard]] Words sent() const;
};
RankWords rank_words(const GridTask& task, Index rank);

struct GridWords {
  Words total;              // that all ranks receive, and send
  Words largest;            // received + sent by the rank with the most
  Words path;               // the most of any rank in each phase; of the running sum all hops
  Words home, staged_home;  // of the rank with the most
};
GridWords grid_words(const GridTask& task);

}  // namespace redblue
