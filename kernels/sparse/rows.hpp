#pragma once
// Chunks of rows stay in fast memory and keys pass, of sparse A1, X and A2 and dense A3, Y, dO, O:
//
//   sparse-rows   S = A1 X is made before, and its rows stay;
//   sparse-x      X stays throughout, and rows of A1; y = X A2_j^T is made beside each key.
//
// A chunk has as many rows as fit in so many words. It meets the keys with which it has a live
// pair. Either the indices of all keys pass, and fast memory finds these; or runs of them are
// given, in three words each (the first key, how many, and where their entries begin), and others
// do not pass. A plan with key runs takes for each chunk what is fewer words. Of a key that is met
// the values pass, too, and its row of A3.
//
// Keys pass one after the other, in two words for a score and what is made of it. Or, with the
// block `keys`, up to so many together that follow one another, and at most kKeysTogether: then a
// chunk has a tile of scores with them, a backward pass one of gradients, too, and the words of a
// chunk's rows hold these.

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
  Words entries;           // that these keys have in all
  Index longest = 0;       // the most entries of one key that the chunk meets
  Index most_passing = 0;  // the most of one that it does not meet; 0 where these do not pass
  Index runs = 0;          // the keys lie in so many runs
  bool given = false;      // runs are given
  Words index;             // the index words that pass
  // Where several keys pass together: the most that do, and the most words of their entries, and of
  // the values and rows of A3 that belong to them.
  Index together = 0;
  Words group;
};

// Calls visit(Range) for runs of keys, cut to at most so many.
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
  bool backward;  // else: O and L, or L alone
  bool dense;     // A3 passes with keys
  Activation activation;
  bool softmax;
  const BlockPattern& rows;  // of which chunks stay: of S or of A1
  Index chunk;               // the words of a chunk's rows
  bool runs;                 // of keys are given, where this is fewer words
  Index width;               // columns of O, or of G, that are made at a time
  Index together;            // keys that pass together; 0: one after the other

  // The words of a tile of scores and what else a row has of keys that pass together, of so many.
  [[nodiscard]] Index group_words(Index keys) const {
    return (backward ? 2 : 1) * keys + (softmax && !backward ? 1 : 0);
  }
  // The words that a row of a chunk takes, and those beside a chunk, at most.
  [[nodiscard]] Words row_words(Index row) const;
  [[nodiscard]] Words beside() const;
  [[nodiscard]] Words beside_gradients() const;  // in the phase g
  // Pointers to where rows go on, and X: what stays from the first chunk to the last.
  [[nodiscard]] Words throughout() const;
  template <class Visit>
  void each(const Visit& visit) const {
    each_chunk(
        n, chunk, [&](Index row) { return row_words(row); }, visit);
  }
  [[nodiscard]] Index units() const;
  // The rows of these chunks.
  [[nodiscard]] std::vector<Range> chunks(Range units) const;
  [[nodiscard]] MetKeys met(Range I) const;
  [[nodiscard]] bool live(Index row) const;

 private:
  std::vector<Index> keys_by_length_;  // the longest first
  KeyNumbers entries_of_keys_;
};

// The phases S, X, core, O or G and g.
std::vector<PhaseCost> sparse_rows_cost(const Problem& problem, const Blocks& blocks, Pass pass,
                                        SparseStays stays);
// Without the phase S, of some chunks: X and pointers are read by each such part. With partials
// each chunk writes its own rows of g, of which sparse_reduce_cost() is the sum.
std::vector<PhaseCost> sparse_part_cost(const SparseRows& by, Range units, bool partials);
std::vector<PhaseCost> sparse_reduce_cost(const SparseRows& by, Range rows);
Nest sparse_rows_nest(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays);
Blocks fit_sparse_rows(const Problem& problem, Index M, Objective objective, Pass pass,
                       SparseStays stays);

// What chunks have in all.
struct ChunkSums {
  Index chunks = 0, largest = 0;
  Words index, values, keys;   // of keys: their index words, their values, how many pass
  Words row_keys, row_values;  // rows times keys that pass, and times the entries of these
  Words core;                  // its peak
  Words y_flops;
  // Of g: columns that chunks have, and those that a chunk before has; the peak; the entries of
  // live rows.
  Words columns, columns_again, g_peak, entries;
};
ChunkSums chunk_sums(const SparseRows& by, Range units, bool partials);
// The rows of g that chunks before this row have.
std::vector<bool> columns_before(const SparseRows& by, Index row);
// Of the phase O, or G: rows times weights.
Words weights_peak(const SparseRows& by, Index largest, Index width);

// One word for a score and what is made of it, and one for a factor or a gradient.
inline constexpr Index kPairWords = 2;

}  // namespace redblue
