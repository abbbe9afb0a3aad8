#pragma once
// What the row-stationary kernels share. A block of Br rows of S = A1 X (and of what else
// belongs to queries) stays in fast memory, transposed, so that vectors run along queries;
// keys pass in blocks of Bc rows of A2 and A3. Scores live in strips of at most Bc keys and
// some queries, one strip at a time. The weights X and Y, and the columns of A1 that meet
// W = p A2 at last, come Bw columns at a time; where there is room, the first `kept` columns of
// A1_I stay from the one to the other, and are read once. With a prefetch, so many key blocks are
// in fast memory at a time, and a store that can brings the next ones meanwhile.
//
// Row blocks know nothing of each other: several machines may work on different ones.
//
// Inner levels of fast memory have row blocks, key blocks and columns of weights within these
// (kernels/parts/levels.hpp). Words of an inner level, in which rows stay with R words, of which A
// are sums, in T1 row blocks, each of which cuts one of the next level; of which C key blocks pass:
//
//   core   reads C n R - n A + m (d + dv) T1;   writes C n A
//
// Where each step of the arithmetic borrows its own, C are the level's own key blocks, and keys of
// all steps come: K words of a key in place of d + dv.

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/fit.hpp"
#include "kernels/kernel.hpp"
#include "kernels/parts/levels.hpp"
#include "kernels/units.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/stream.hpp"
#include "memsim/tile.hpp"

namespace redblue {

// Br, Bc, Bw, the prefetch and what is kept, with the problem around them.
struct RowPlan {
  RowPlan(const Problem& of, const Blocks& blocks)
      : RowPlan(of, blocks["Br"], blocks["Bc"], blocks.contains("Bw") ? blocks["Bw"] : of.shape.d,
                prefetch_of(blocks),
                blocks.contains(kKept) ? std::min(blocks[kKept], of.shape.d) : 0) {
    inner = level_blocks(blocks);
  }
  RowPlan(const Problem& of, Index Br, Index Bc, Index Bw, Index ahead = 1, Index A1_columns = 0)
      : problem(of), rows(Br), keys(Bc), weights(Bw), prefetch(ahead), kept(A1_columns) {}

  Problem problem;
  Index rows, keys, weights;  // Br, Bc, Bw; without weights, the whole width is one block
  Index prefetch, kept;
  Levels inner = {};  // from the innermost level out

  [[nodiscard]] Blocks blocks() const;
  [[nodiscard]] bool steps_apart() const { return !inner.empty() && inner.front().apart; }
  // Rows or columns of what passes in a product that the innermost level has at a time.
  [[nodiscard]] Index passing_rows() const { return steps_apart() ? kByRows.rows : kAllOfIt; }
  [[nodiscard]] Index passing_columns() const {
    return steps_apart() ? kByColumns.columns : kAllOfIt;
  }
  // What is in the innermost level at a time.
  [[nodiscard]] Index near_keys() const {
    return inner.empty() ? keys : std::min(keys, inner.front().keys);
  }
  // Of tiles with a column for each row, and of weights.
  [[nodiscard]] CutEvery cut_rows() const {
    return inner.empty() ? CutEvery{} : CutEvery{inner.front().rows};
  }
  [[nodiscard]] CutEvery cut_weights() const {
    return inner.empty() ? CutEvery{} : CutEvery{inner.front().weights};
  }
  // What the key blocks take that are in fast memory at a time, of ranges of at most so many keys,
  // and of at most so many in all.
  [[nodiscard]] Words key_words(Index longest, Index all) const;
  [[nodiscard]] Words key_words(Index longest) const { return key_words(longest, problem.shape.m); }
  [[nodiscard]] Units units() const { return Units::of_queries(problem, rows); }
  // Queries of a strip: three panels; with few keys one, with one key half of one, for then vectors
  // gain less by width, and M has better uses for it. No strip straddles two panels in part. Where
  // steps are apart a strip is all that stays.
  [[nodiscard]] Index strip() const {
    if (steps_apart()) {
      return inner.front().rows;
    }
    const Index near = near_keys();
    return near == 1 ? kPanel / 2 : near < 4 ? kPanel : 3 * kPanel;
  }
  // Those of a strip, and its keys, where a block has so many. Rows that stay through all blocks
  // may be more than a block has.
  [[nodiscard]] Words strip_rows(Words r) const {
    const Index most = inner.empty() ? strip() : std::min(inner.front().rows, strip());
    return std::min(r, Words(most));
  }
  [[nodiscard]] Index strip_keys() const { return std::min(near_keys(), problem.shape.m); }
};

// (A W)^T for the rows I of A; and (A W^T)^T: the tile and the phase that makes it have one name.
Tile rows_times(Machine& machine, const RowPlan& by, std::string_view name, const SlowMatrix& A,
                Range I, const SlowMatrix& W);
Tile rows_times_transposed(Machine& machine, const RowPlan& by, std::string_view name,
                           const SlowMatrix& A, Range I, const SlowMatrix& W);
PhaseCost rows_times_cost(std::string path, const RowPlan& by, const Units::Sum& of);
// The second from A_I^T, in the caller's phase.
Tile times_transposed(Machine& machine, const RowPlan& by, std::string_view name, const Tile& a_t,
                      const SlowMatrix& W);

// c Q_I^T; and v += rowsum(a * b), of transposed tiles: both in the caller's phase.
Tile scaled_rows(Machine& machine, const RowPlan& by, const SlowMatrix& Q, Range I);
void add_row_dots(Machine& machine, const RowPlan& by, const Tile& a_t, const Tile& b_t, Tile& v);

// In a phase S: (A1_I X)^T; of plain inputs, in a phase Q: c Q_I^T.
Tile query_rows(Machine& machine, const RowPlan& by, const Operands& io, Range I);
PhaseCost query_rows_cost(const RowPlan& by, const Units::Sum& of);
void query_rows_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I);

// The loops of one row block: of a phase called after the product; `stays` stay beside them.
struct RowProductNames {
  std::string_view result, left, right;
  bool transposed = false;  // A W^T
};
void rows_times_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                     const RowProductNames& names, const NestWriter::Tiles& stays);

// In a phase G: G_I^T = Y dO_I^T and v = rowsum(dO * O), where there is a v.
struct RowGradients {
  Tile g_t, v;
};
RowGradients row_gradients(Machine& machine, const RowPlan& by, const Operands& io, Range I);
PhaseCost row_gradients_cost(const RowPlan& by, const Units::Sum& of);
void row_gradients_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                        const NestWriter::Tiles& stays);

// Some keys with their values, which may be one tile: the rows `at` of both tiles.
struct KeyTiles {
  Range J;
  const Tile &a2, &a3;
  Range at;

  [[nodiscard]] Range rows_of(Range keys) const {
    return {at.begin + keys.begin - J.begin, at.begin + keys.end - J.begin};
  }
};

// The loop "J" over the keys that blocks of queries meet.
NestLoop key_loop(const Problem& problem, const NestLoop& I, Index keys);
inline NestLoop key_loop(const RowPlan& by, const NestLoop& I) {
  return key_loop(by.problem, I, by.keys);
}
// The tiles of some keys, and of their values where these are another matrix; and what a text calls
// the scores of I and J, and the values of J.
NestWriter::Tiles key_tiles(const Problem& problem, const NestExtent& keys);
std::string scores_text(const Problem& problem);
std::string values_text(const Problem& problem);
// "e = exp(S_I A2_J^T - max_I); Z_I += e ", before the values.
std::string weights_text(const Problem& problem);

// The keys that the queries I meet, or others, one block after the other:
//
//   for (const KeyTiles& keys : KeyStream(machine, by, io, I)) { ... }
//
// The reads of all blocks that are to be there begin before one of them is waited for. Which keys
// these are is read first, where the mask is data, and lives as long.
class [[nodiscard]] KeyStream {
 public:
  class iterator {
   public:
    explicit iterator(KeyStream* keys) : keys_(keys) {}
    KeyTiles operator*() const {
      const Range J = keys_->blocks_[which_];
      return {J, keys_->a2_.present(), keys_->a3().present(), {0, J.size()}};
    }
    iterator& operator++() {
      ++which_;
      keys_->drop();
      keys_->advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return keys_->a2_.over(); }

   private:
    KeyStream* keys_;
    Index which_ = 0;
  };

  KeyStream(Machine& machine, const RowPlan& by, const Operands& io, Range I)
      : KeyStream(machine, by, io, I, by.problem.keys(I)) {}
  KeyStream(Machine& machine, const RowPlan& by, const Operands& io, Range I, const Ranges& keys);
  iterator begin() {
    advance();
    return iterator(this);
  }
  static std::default_sentinel_t end() { return {}; }

 private:
  [[nodiscard]] Stream& a3() { return own_a3_ ? *own_a3_ : a2_; }
  void advance();
  void drop();

  Tile index_;
  Pieces blocks_;
  Stream a2_;
  std::optional<Stream> own_a3_;
};

// In a phase S: S_I^T, and the columns of A1_I that are kept, transposed; 0 x 0 where none are.
struct RowScores {
  Tile s_t, a1_t;
};
RowScores row_scores(Machine& machine, const RowPlan& by, const Operands& io, Range I);

// The blocks for which the peak stays within M. Words depend on the number of row blocks
// alone: `fewest_words` has the largest Br that fits beside one key; `fastest` gives up some
// of it for strips that keep the registers busy.
Blocks fewest_words(const Problem& problem, Index M, const CostOfBlocks& cost);
// The same for a kernel that adds to g, with columns of A1_I kept, and perhaps more row blocks for
// that, where at most kFewRowBlocks fill M: the fewer they are, the more is left beside them. Of
// more row blocks what is left is a small share of M, and goes to larger key blocks; except of row
// blocks that are smaller than they might be, as under an irregular mask.
Blocks fewest_words_keeping(const Problem& problem, Index M, const CostOfBlocks& cost);
inline constexpr Index kFewRowBlocks = 8;
// The keys of a block that are not given up for what stays beside it, so that registers stay busy:
// of a size that does not depend on M, so that words never rise with it, and as a share of n d
// words a sixteenth at most.
Index busy_keys(const Problem& problem);
Blocks fastest(const Problem& problem, Index M, const CostOfBlocks& cost);
// For a store that is waited for: key blocks that make large requests, a sixteenth of M for those
// of each matrix, and then the largest Br.
Blocks fewest_words_ahead(const Problem& problem, Index M, Index prefetch,
                          const CostOfBlocks& cost);

// Those of inner levels, where weights are; and where steps are apart.
std::vector<InnerBlock> row_inner_blocks();
inline constexpr std::string_view kRowsApart = "L1.apart";

// The windows of a kernel that adds A1^T W to g; and of one that returns O.
Window row_window(const Signature& operand, const Problem& problem, const Blocks& blocks);
Window forward_row_window(const Signature& operand, const Problem& problem, const Blocks& blocks);

}  // namespace redblue
