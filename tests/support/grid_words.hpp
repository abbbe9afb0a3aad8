#pragma once
// A second, independent count of the words of a grid of ranks, from docs/theory/ranks.md. For each
// pass it says what each rank owns, works on, receives, sends and stores. It also covers a backward
// pass without known O and L, and keys that arrive in stages.
//
//   const GridTask task{.problem = {n, m, d}, .unit_rows = Br, .grid = {8, 4, 4}};
//   rank_words(task, 5).received();
//   grid_words(task).largest;                      // of the rank with the busiest links
//
// Rank r of a grid is in row i = r / columns and column j = r % columns.
//   Work: row i has units share_of(T, i, rows) of the T = ceil(n / unit_rows) units of unit_rows
//     rows. Column j has key groups share_of(groups, j, columns). Keys are cut into groups as in
//     the kernels: the first m % groups have one key more than the others. A rank without rows does
//     not work.
//   Ownership: the rank owns share_of(n_i, j, columns) of the n_i rows of its grid row, in order,
//     and share_of(m_j, i, rows) of the m_j keys of its grid column.
//   Links: an owner sends each of its rows to all other ranks of the grid row. It sends each of its
//     keys to all other working ranks of the grid column. The receivers send results back: for a
//     row one part per key group, for a key one sum over the rank's rows. g passes from rank to
//     rank as one running sum, in the order of key groups, and within a group in the order of
//     units.
//
// Values and pure functions: safe to use from any thread. Throws: ShapeMismatch for a grid or a
// pass that is not supported; CountOverflow.

#include <array>
#include <string_view>

#include "kernels/problem.hpp"
#include "memsim/share.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

struct GroupedGrid {
  Index rows = 1, columns = 1;
  Index groups = 1;  // number of key groups: columns <= groups <= m

  friend bool operator==(const GroupedGrid&, const GroupedGrid&) = default;
};

struct GridTask {
  Pass pass = Pass::backward;  // or forward, attention, gradients
  Problem problem = {};        // with a full mask
  Known known = Known::O_and_L;
  Index unit_rows = 1;
  GroupedGrid grid = {};
};

// The words of one row and of one key that pass between ranks, and the words that a rank stores.
// Each pass has one such table.
struct PassWords {
  Index row_in = 0;    // sources, L and v: from the owner to each rank of the grid row
  Index row_out = 0;   // a part of a result, for each key group: to the owner
  Index row_back = 0;  // the combination of all parts: from the owner again
  Index key_in = 0;    // sources: from the owner to each rank of the grid column
  Index key_out = 0;   // a sum over the rows of a rank: to the owner
  Index running = 0;   // the sum that passes from rank to rank
  // Words stored: per row and per key that the rank owns; once per rank; and per row and key group
  // of the rank.
  Index row_owned = 0, key_owned = 0, everywhere = 0, row_kept = 0;
};
PassWords pass_words(const GridTask& task);

struct RankShare {
  Range units, groups;       // the rank's work
  Range rows, keys;          // the rows of these units and the keys of these groups
  Range own_rows, own_keys;  // the part that the rank owns; it may own keys without working

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
  // The words stored: with all keys of the grid column, or with at most two key groups in memory.
  Words home, staged_home;

  [[nodiscard]] Words received() const;
  [[nodiscard]] Words sent() const;
};
RankWords rank_words(const GridTask& task, Index rank);

struct GridWords {
  Words total;    // received by all ranks together; as many are sent
  Words largest;  // received + sent by the rank with the most
  Words path;     // sum over phases of the busiest rank's words; for the running sum, all hops
  Words home, staged_home;  // of the rank that stores the most
};
GridWords grid_words(const GridTask& task);

}  // namespace redblue
