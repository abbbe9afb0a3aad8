#pragma once
// Building blocks of the row-stationary kernels.
//
// A block of Br rows of S = A1 X stays in fast memory, with everything else that belongs to its
// queries. It is transposed, so that vectors run along queries. Keys stream past in blocks of Bc
// rows of A2 and A3. Scores exist only in strips of at most Bc keys and some queries, one strip
// after another.
//
// The weights X and Y stream in blocks of Bw columns. So do the columns of A1 that meet W = p A2 at
// the end. If fast memory has room, the first `kept` columns of A1_I stay from the first use to the
// second, and are read once. With a prefetch of P, fast memory holds P key blocks, and an
// asynchronous store can fetch the next ones during the arithmetic.
//
// Row blocks are independent: several machines may work on different ones.
//
// Inner levels of fast memory have their own row blocks, key blocks and columns of weights, inside
// the blocks of the machine (kernels/parts/levels.hpp). Words moved at an inner level:
//
//   core   reads C n R - n A + m (d + dv) T1;   writes  C n A
//
// R is the number of resident words of a row; A of them are sums. T1 is the number of row blocks of
// the level, each inside one row block of the next level. C is the number of key blocks of the next
// level.
//
// With steps apart, each step of the arithmetic borrows its own tiles. C is then the number of key
// blocks of the level itself, and d + dv becomes K, the words of a key summed over all steps.

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

// The problem, with the block sizes Br, Bc and Bw, the prefetch and the number of kept columns.
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
  Index rows, keys, weights;  // Br, Bc, Bw; if the plan has no Bw, it is d
  Index prefetch, kept;
  Levels inner = {};  // from the innermost level out

  [[nodiscard]] Blocks blocks() const;
  [[nodiscard]] bool steps_apart() const { return !inner.empty() && inner.front().apart; }
  // The rows or columns of a streaming factor that the innermost level holds together during a
  // product.
  [[nodiscard]] Index passing_rows() const { return steps_apart() ? kByRows.rows : kAllOfIt; }
  [[nodiscard]] Index passing_columns() const {
    return steps_apart() ? kByColumns.columns : kAllOfIt;
  }
  // The keys that the innermost level holds together.
  [[nodiscard]] Index near_keys() const {
    return inner.empty() ? keys : std::min(keys, inner.front().keys);
  }
  // How tiles are cut: tiles with a column for each row of the block, and tiles of weights.
  [[nodiscard]] CutEvery cut_rows() const {
    return inner.empty() ? CutEvery{} : CutEvery{inner.front().rows};
  }
  [[nodiscard]] CutEvery cut_weights() const {
    return inner.empty() ? CutEvery{} : CutEvery{inner.front().weights};
  }
  // The words of the key blocks that are in fast memory together. A range has at most `longest`
  // keys, and all ranges together have at most `all`.
  [[nodiscard]] Words key_words(Index longest, Index all) const;
  [[nodiscard]] Words key_words(Index longest) const { return key_words(longest, problem.shape.m); }
  [[nodiscard]] Units units() const { return Units::of_queries(problem, rows); }
  // The queries of a strip: three panels. With few keys it is one panel, and with one key half a
  // panel: wider vectors then gain less, and M has better uses. No strip covers parts of two
  // panels. With steps apart, a strip has all rows that stay in the innermost level.
  [[nodiscard]] Index strip() const {
    if (steps_apart()) {
      return inner.front().rows;
    }
    const Index near = near_keys();
    return near == 1 ? kPanel / 2 : near < 4 ? kPanel : 3 * kPanel;
  }
  // The rows and keys of a strip, if a block has r rows. Rows that stay through all blocks may be
  // more than Br.
  [[nodiscard]] Words strip_rows(Words r) const {
    const Index most = inner.empty() ? strip() : std::min(inner.front().rows, strip());
    return std::min(r, Words(most));
  }
  [[nodiscard]] Index strip_keys() const { return std::min(near_keys(), problem.shape.m); }
};

// Return (A W)^T and (A W^T)^T for the rows I of A. `name` is the name of the tile and of the phase
// that makes it.
Tile rows_times(Machine& machine, const RowPlan& by, std::string_view name, const SlowMatrix& A,
                Range I, const SlowMatrix& W);
Tile rows_times_transposed(Machine& machine, const RowPlan& by, std::string_view name,
                           const SlowMatrix& A, Range I, const SlowMatrix& W);
PhaseCost rows_times_cost(std::string path, const RowPlan& by, const Units::Sum& of);
// Returns (A W^T)^T from A_I^T, in the phase of the caller.
Tile times_transposed(Machine& machine, const RowPlan& by, std::string_view name, const Tile& a_t,
                      const SlowMatrix& W);

// scaled_rows() returns c Q_I^T. add_row_dots() computes v += rowsum(a * b) from transposed tiles.
// Both count in the phase of the caller.
Tile scaled_rows(Machine& machine, const RowPlan& by, const SlowMatrix& Q, Range I);
void add_row_dots(Machine& machine, const RowPlan& by, const Tile& a_t, const Tile& b_t, Tile& v);

// Returns (A1_I X)^T, made in a phase S. For plain inputs it returns c Q_I^T, read in a phase Q.
Tile query_rows(Machine& machine, const RowPlan& by, const Operands& io, Range I);
PhaseCost query_rows_cost(const RowPlan& by, const Units::Sum& of);
void query_rows_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I);

// The names of a product of rows with weights. rows_times_nest() writes its loops for one row
// block, as a phase named after the result. `stays` are the other resident tiles.
struct RowProductNames {
  std::string_view result, left, right;
  bool transposed = false;  // A W^T
};
void rows_times_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                     const RowProductNames& names, const NestWriter::Tiles& stays);

// row_gradients() makes G_I^T = Y dO_I^T in a phase G, and v = rowsum(dO * O) for a softmax.
struct RowGradients {
  Tile g_t, v;
};
RowGradients row_gradients(Machine& machine, const RowPlan& by, const Operands& io, Range I);
PhaseCost row_gradients_cost(const RowPlan& by, const Units::Sum& of);
void row_gradients_nest(NestWriter& nest, const RowPlan& by, const NestLoop& I,
                        const NestWriter::Tiles& stays);

// The keys J with their values. They are the rows `at` of a2 and a3, which may be the same tile.
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
// For a nest: the tiles of some keys, and of their values if the values are another matrix. Then
// the texts for the scores of I and J, and for the values of J.
NestWriter::Tiles key_tiles(const Problem& problem, const NestExtent& keys);
std::string scores_text(const Problem& problem);
std::string values_text(const Problem& problem);
// Returns "e = exp(S_I A2_J^T - max_I); Z_I += e ", to be followed by the values.
std::string weights_text(const Problem& problem);

// Streams the keys that the queries I meet, or other given keys, block by block:
//
//   for (const KeyTiles& keys : KeyStream(machine, by, io, I)) { ... }
//
// It begins the reads of all prefetched blocks before it waits for the first one. If the mask is
// data, it first reads which keys the queries meet, and keeps this index until it dies.
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

// row_scores() makes S_I^T in a phase S, and leaves the kept columns of A1_I, transposed (0 x 0 if
// `kept` is 0).
struct RowScores {
  Tile s_t, a1_t;
};
RowScores row_scores(Machine& machine, const RowPlan& by, const Operands& io, Range I);

// Returns fitting blocks: their peak is at most M. The words moved depend only on the number of row
// blocks. `fewest_words` takes the largest Br that fits with one key. `fastest` gives up some rows
// for strips that keep the registers busy.
Blocks fewest_words(const Problem& problem, Index M, const CostOfBlocks& cost);
// Like fewest_words(), for a kernel that adds to g: it also keeps columns of A1_I, and may take
// more row blocks for that. It does so only if the plan has at most kFewRowBlocks row blocks, which
// leave much of M free. With more row blocks, a small share of M is free, and larger key blocks get
// it. Exception: an irregular mask, with row blocks that are smaller than they could be.
Blocks fewest_words_keeping(const Problem& problem, Index M, const CostOfBlocks& cost);
inline constexpr Index kFewRowBlocks = 8;
// The number of keys in a block that resident words must leave room for, so that registers stay
// busy. It does not depend on M, so the words moved never rise with M. These keys take at most a
// sixteenth of n d words.
Index busy_keys(const Problem& problem);
Blocks fastest(const Problem& problem, Index M, const CostOfBlocks& cost);
// Returns blocks for a store with latency. The key blocks of each matrix take a sixteenth of M,
// which makes requests large. Then Br is the largest that fits.
Blocks fewest_words_ahead(const Problem& problem, Index M, Index prefetch,
                          const CostOfBlocks& cost);

// The blocks of inner levels for kernels with weights, and the block that says whether steps are
// apart.
std::vector<InnerBlock> row_inner_blocks();
inline constexpr std::string_view kRowsApart = "L1.apart";

// The window of an operand, for a kernel that adds A1^T W to g, and for a kernel that returns O.
Window row_window(const Signature& operand, const Problem& problem, const Blocks& blocks);
Window forward_row_window(const Signature& operand, const Problem& problem, const Blocks& blocks);

}  // namespace redblue
