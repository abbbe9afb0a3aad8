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

#include <algorithm>
#include <cstdint>
#include <vector>

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
  Words entries;           // of them
  Index longest = 0;       // the most entries of one of them
  Index most_passing = 0;  // and of one of the others, where these pass
  Index runs = 0;          // in which they lie
  bool given = false;      // runs are given
  Words index;             // the index words that pass
};

class SparseRows {
 public:
  static constexpr const char* kRuns = "runs";

  SparseRows(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays);

  Pass pass;
  SparseStays stays;
  Index n, m, d;
  Sparsity of;
  bool backward;             // else: O and L, or L alone
  bool dense;                // A3 passes with keys
  const BlockPattern& rows;  // of which chunks stay: of S or of A1
  Index chunk;               // the words of a chunk's rows
  bool runs;                 // of keys are given, where this is fewer words
  Index width;               // columns of O, or of G, that are made at a time

  // The words that a row of a chunk takes, and those beside a chunk, at most.
  [[nodiscard]] Words row_words(Index row) const;
  [[nodiscard]] Words beside() const;
  // Pointers to where rows go on, and X: what stays from the first chunk to the last.
  [[nodiscard]] Words throughout() const;
  template <class Visit>
  void each(const Visit& visit) const {
    each_chunk(
        n, chunk, [&](Index row) { return row_words(row); }, visit);
  }
  [[nodiscard]] MetKeys met(Range I) const;
  [[nodiscard]] bool live(Index row) const;

 private:
  std::vector<Index> keys_by_length_;  // the longest first
};

// The phases S, X, core, O or G and g.
std::vector<PhaseCost> sparse_rows_cost(const Problem& problem, const Blocks& blocks, Pass pass,
                                        SparseStays stays);
Blocks fit_sparse_rows(const Problem& problem, Index M, Pass pass, SparseStays stays);

// One word for a score and what is made of it, and one for a factor or a gradient.
inline constexpr Index kPairWords = 2;

}  // namespace redblue
