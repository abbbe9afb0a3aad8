#pragma once
// C = A B of sparse matrices, which stay sparse: where C has entries follows from where A and B
// have them (kernels/sparsity.hpp). Two ways:
//
//   B stays, and rows of A pass, each into a row of sums: w(A) + w(B) read.
//   A chunk of rows of A stays beside as many rows of sums, and the rows of B that these need pass,
//   with the pointers of all: w(A) + the sum over chunks of (rows of B + 1 + 2 entries) read.
//
// Both write w(C) = 2 entries + rows + 1 words. In blocks, under a prefix: `chunk`, the words that
// the rows of a chunk and their sums take at most, in the second way alone; `entries`, those that
// pass at a time.

#include <string_view>

#include "kernels/kernel.hpp"
#include "kernels/sparsity.hpp"

namespace redblue {

// Rows cut into runs of at most so many words, or of one row. Calls visit(run).
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

// A, B and C are A1, X and S of the sparsity. In the phase of the caller.
void sparse_product(Machine& machine, const Sparsity& of, std::string_view prefix,
                    const Blocks& blocks, const SlowMatrix& A, const SlowMatrix& B, SlowMatrix& C);
PhaseCost sparse_product_cost(std::string path, const Sparsity& of, std::string_view prefix,
                              const Blocks& blocks);
struct SparseProductNames {
  std::string_view C, A, B;
};
void sparse_product_nest(NestWriter& nest, const SparseProductNames& names, const Sparsity& of,
                         std::string_view prefix, const Blocks& blocks);

// The blocks of one way, or of that which fits and moves fewer words; the smaller peak where
// neither fits.
void plan_sparse_product(const Sparsity& of, SparseWay way, Index M, std::string_view prefix,
                         Blocks& blocks);
void plan_sparse_product(const Sparsity& of, Index M, std::string_view prefix, Blocks& blocks);

}  // namespace redblue
