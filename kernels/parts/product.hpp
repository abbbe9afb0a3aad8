#pragma once
// C = A B. This header has products in blocks (product), and with a row block of A that stays
// (project). kernels/parts/stationary.hpp has the products of fewest words, in which one block
// stays; kernels/parts/generated_product.hpp those whose A is made as it is needed.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/nest.hpp"
#include "kernels/plan.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// C is rows x cols. A word of it weighs `sum_words` while it is summed up (Problem::sum_words), and
// `result_words` when it is whole.
struct ProductShape {
  Index rows, cols, depth;
  Index sum_words = 1, result_words = 1;

  // The same where sums weigh so much, and what is whole is of this kind.
  [[nodiscard]] ProductShape weighing(Index sums, Holds result = Holds::operands) const {
    return {rows, cols, depth, sums, result == Holds::sums ? sums : 1};
  }
};

using TransposedMatrix = Transposed<const SlowMatrix&>;
inline TransposedMatrix transposed(const SlowMatrix& matrix) {
  return {matrix};
}

// A matrix or its transpose, as a factor.
struct Factor {
  Factor(const SlowMatrix& matrix) : stored(matrix) {}
  Factor(TransposedMatrix matrix) : stored(matrix.of), transposed(true) {}
  const SlowMatrix& stored;
  bool transposed = false;

  [[nodiscard]] Index rows() const { return transposed ? stored.cols() : stored.rows(); }
  [[nodiscard]] Index cols() const { return transposed ? stored.rows() : stored.cols(); }
};
// A block as the product has it, whichever way it is stored.
Tile read(Machine& machine, const Factor& A, Range rows, Range cols, CutEvery cut = {});
// Throws: ShapeMismatch.
void require_conforming(const Factor& A, const Factor& B, const SlowMatrix& C);

// The matrices of C = A B, for the text of a nest; and the text of one of its steps.
struct ProductNames {
  std::string_view result, left, right;
};
std::string sum_text(const NestTile& result, const NestTile& left, const NestTile& right);

// A block of C stays while blocks of A and B pass, and is written once. With R x K and K x C
// blocks:
//   reads   rows depth ceil(cols / C) + depth cols ceil(rows / R)
//   writes  rows cols
//   peak    R C + R K + K C
//
// where sums weigh one word: of others, C does so much more while it stays.
struct ProductBlocks {
  Index rows;
  Index cols;
  Index depth;
};
constexpr ProductBlocks square(Index B) {
  return {B, B, B};
}
// Those of inner levels, from the innermost out (kernels/parts/product_levels.hpp).
using ProductLevels = std::vector<ProductBlocks>;
// Which matrix stays in fast memory while the others pass.
enum class Stays { A, B, C };

void product(Machine& machine, ProductBlocks by, const Factor& A, const Factor& B, SlowMatrix& C,
             const ProductLevels& inner = {});
// A block of C, which is not written: the sum over these pieces of the depth.
Tile product_block(Machine& machine, std::string_view name, const Factor& A, const Factor& B,
                   Range rows, Range cols, const Pieces& depth, const ProductLevels& inner = {},
                   Holds holds = Holds::sums);
PhaseCost product_cost(std::string path, const ProductShape& of, ProductBlocks by);
void product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                  ProductBlocks by);
// The same loops, in which these words move in all: of a product that leaves out some blocks.
struct ProductWords {
  Words left, right, result;
  NestWriter::Tiles of_rows = {}, of_block = {};  // what is read before rows, and before a block
};
void product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                  ProductBlocks by, const ProductWords& moved);

// S = A X, with d x d words of X, as in the paper's Algorithm 7: a row block of A stays, column
// blocks of X pass, and each block of S is written when it is made. With r rows of A and c columns
// of X, T = ceil(rows / r):
//   reads   rows d + d^2 T
//   writes  rows d
//   peak    r d + d c + r c, of which r c are sums
// The words depend on r alone, so the fitting blocks of fewest words have the largest r that
// fits beside one column of X; then r is evened out and c grows into what is left.
struct ProjectBlocks {
  Index rows;
  Index cols;
};
void project(Machine& machine, ProjectBlocks by, const SlowMatrix& A, const SlowMatrix& X,
             SlowMatrix& S);
ProjectBlocks fit_project(Index rows, Index d, Index M, Index sum_words);
PhaseCost project_cost(std::string path, Index rows, Index d, ProjectBlocks by, Index sum_words);
void project_nest(NestWriter& nest, const ProductNames& names, Index rows, Index d,
                  ProjectBlocks by);

}  // namespace redblue
