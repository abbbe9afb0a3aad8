#pragma once
// C = A B of sparse matrices, with C sparse too. The positions of C's entries follow from A's and
// B's (kernels/sparsity.hpp). There are two ways:
//
// - `stays`: B stays, and rows of A stream, each into a row of sums. It reads w(A) + w(B) words.
// - `passes`: a chunk of rows of A stays with its rows of sums. A row of sums takes one word per
//   column or two per entry, whichever is less. The rows of B that the chunk needs stream, with
//   pointers to their ends. They also need pointers to their beginnings, unless a row follows
//   another needed row. This reads w(A) + the sum over chunks of (needed rows + runs of them + 2
//   entries).
//
// Both write w(C) = 2 entries + rows + 1 words. The blocks have a prefix. `chunk` (second way
// alone) is the most words that the rows of a chunk and their sums take. `entries` is the number of
// streaming entries in fast memory.

#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

// Cuts rows into runs of at most `most` words, or of one row, and calls visit(run).
template <class WordsOf, class Visit>
void each_chunk(Index rows, Index most, const WordsOf& words_of, const Visit& visit) {
  for (Index begin = 0, end = 0; begin < rows; begin = end) {
    Words words = words_of(end++);
    while (end < rows && words + words_of(end) <= Words(most)) {
      words += words_of(end++);
    }
    visit(Range{begin, end});
  }
}

enum class SparseWay : std::uint8_t { stays, passes };

// Computes C = A B in the caller's phase. A, B and C are A1, X and S of the sparsity.
void sparse_product(Machine& machine, const Sparsity& of, std::string_view prefix,
                    const Blocks& blocks, const SlowMatrix& A, const SlowMatrix& B, SlowMatrix& C);
PhaseCost sparse_product_cost(std::string path, const Sparsity& of, std::string_view prefix,
                              const Blocks& blocks);
struct SparseProductNames {
  std::string_view C, A, B;
};
void sparse_product_nest(NestWriter& nest, const SparseProductNames& names, const Sparsity& of,
                         std::string_view prefix, const Blocks& blocks);

// Adds the blocks of the given way, or of the way that fits and moves fewer words. If neither fits,
// it takes the smaller peak.
void plan_sparse_product(const Sparsity& of, SparseWay way, Index M, std::string_view prefix,
                         Blocks& blocks);
void plan_sparse_product(const Sparsity& of, Index M, std::string_view prefix, Blocks& blocks);

}  // namespace redblue
