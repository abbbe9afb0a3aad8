#pragma once
// Chunks of rows stay in fast memory and keys stream, for sparse A1, X and A2 and dense A3, Y, dO,
// O.
//
//   sparse-rows   S = A1 X is computed first, and its rows stay;
//   sparse-x      X stays throughout, with rows of A1; y = X A2_j^T is computed for each key.
//
// A chunk has as many rows as fit in a given number of words. It meets the keys with which it has a
// live pair. There are two ways to find these keys. Either the indices of all keys stream, and the
// kernel selects keys in fast memory. Or the kernel reads runs of keys, three words each (first
// key, number of keys, beginning of their entries), and skips all other keys. A plan with key runs
// uses the cheaper way for each chunk. For a key that the chunk meets, the kernel also reads the
// values and the row of A3.
//
// By default keys stream one after the other, with two words for a score and a factor or gradient.
// The block `keys` makes up to that many consecutive keys stream together (at most kKeysTogether).
// Then a chunk has a tile of scores with these keys, and in a backward pass also a tile of
// gradients. The words of a chunk's rows include these tiles.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/activation.hpp"
#include "kernels/kernel.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparse/product.hpp"
#include "kernels/sparsity.hpp"
#include "memsim/layout.hpp"

namespace redblue {

enum class SparseStays : std::uint8_t { S, X };

// The keys that a chunk meets.
struct MetKeys {
  KeyBits keys;
  Index number = 0;
  Words entries;           // number of entries of these keys
  Index longest = 0;       // the most entries of one key that the chunk meets
  Index most_passing = 0;  // the most entries of a streamed key that the chunk does not meet; 0 if
                           // runs are given
  Index runs = 0;          // number of runs of consecutive keys
  bool given = false;      // true if the kernel reads runs, not the indices of all keys
  Words index;             // index words read
  // If keys stream together: the most keys in one group, and the most words of one group (its
  // entries, values and rows of A3).
  Index together = 0;
  Words group;
};

// Calls visit(Range) for runs of keys, cut to at most `most` keys.
template <class Visit>
void each_piece(const KeyBits& keys, Index most, const Visit& visit) {
  Range piece{0, 0};
  each_key(keys, [&](Index key) {
    if (piece.size() > 0 && (key != piece.end || piece.size() == most)) {
      visit(piece);
      piece = {key, key};
    }
    piece = {piece.size() > 0 ? piece.begin : key, key + 1};
  });
  if (piece.size() > 0) {
    visit(piece);
  }
}

class SparseRows {
 public:
  static constexpr const char* kRuns = "runs";
  static constexpr const char* kKeys = "keys";

  SparseRows(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays);

  Pass pass;
  SparseStays stays;
  Index n, m, d;
  Sparsity of;
  bool backward;  // else the pass computes O and L, or L alone
  bool dense;     // A3 streams with the keys
  Activation activation;
  bool softmax;
  const BlockPattern& rows;  // the matrix with resident chunks: S or A1
  Index chunk;               // most words of a chunk's rows
  bool runs;                 // the plan may read runs of keys, if that is fewer words
  Index width;               // columns of O or G computed together
  Index together;            // number of keys that stream together; 0: one after the other

  // Words of a row for `keys` keys that stream together: its scores and gradients, and a rescale
  // factor.
  [[nodiscard]] Index group_words(Index keys) const {
    return (backward ? 2 : 1) * keys + (softmax && !backward ? 1 : 0);
  }
  // row_words() is the most words that a row of a chunk takes. beside() is the most words needed in
  // addition to a chunk.
  [[nodiscard]] Words row_words(Index row) const;
  [[nodiscard]] Words beside() const;
  [[nodiscard]] Words beside_gradients() const;  // the same in the phase g
  // Words that stay from the first chunk to the last: pointers to the next rows, and X.
  [[nodiscard]] Words throughout() const;
  template <class Visit>
  void each(const Visit& visit) const {
    each_chunk(
        n, chunk, [&](Index row) { return row_words(row); }, visit);
  }
  [[nodiscard]] Index units() const;
  // Returns the rows of these chunks.
  [[nodiscard]] std::vector<Range> chunks(Range units) const;
  [[nodiscard]] MetKeys met(Range I) const;
  [[nodiscard]] bool live(Index row) const;

 private:
  std::vector<Index> keys_by_length_;  // longest first
  KeyNumbers entries_of_keys_;
};

// The costs of the phases S, X, core, O or G, and g.
std::vector<PhaseCost> sparse_rows_cost(const Problem& problem, const Blocks& blocks, Pass pass,
                                        SparseStays stays);
// The cost of some chunks, without the phase S. Each part reads X and pointers again. With
// `partials` each chunk writes its rows of g separately, and sparse_reduce_cost() is the cost of
// adding them.
std::vector<PhaseCost> sparse_part_cost(const SparseRows& by, Range units, bool partials);
std::vector<PhaseCost> sparse_reduce_cost(const SparseRows& by, Range rows);
Nest sparse_rows_nest(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays);
Blocks fit_sparse_rows(const Problem& problem, Index M, Objective objective, Pass pass,
                       SparseStays stays);

// Sums over chunks.
struct ChunkSums {
  Index chunks = 0, largest = 0;
  Words index, values, keys;   // for the keys met: index words, values, number of keys
  Words row_keys, row_values;  // rows times keys met, and rows times these keys' entries
  Words core;                  // peak of the core
  Words y_flops;
  // For the phase g: columns that chunks have, columns that an earlier chunk has too, the peak, and
  // the entries of live rows.
  Words columns, columns_again, g_peak, entries;
};
ChunkSums chunk_sums(const SparseRows& by, Range units, bool partials);
// True for each row of g that has a term from a row of A1 before `row`.
std::vector<bool> columns_before(const SparseRows& by, Index row);
// The peak of the phase O or G, which multiplies rows by weights.
Words weights_peak(const SparseRows& by, Index largest, Index width);

// One word for a score (and the value computed from it), and one for a factor or a gradient.
inline constexpr Index kPairWords = 2;

}  // namespace redblue
