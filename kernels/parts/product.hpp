#pragma once
// Matrix products C = A B: in blocks (product), and with a resident row block of A (project).
// kernels/parts/stationary.hpp has the products that move the fewest words, with one resident
// block. kernels/parts/generated_product.hpp has products that make A during the product.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/nest.hpp"
#include "kernels/plan.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// The extents of C = A B; C is rows x cols. A word of C weighs `sum_words` while it is a sum
// (Problem::sum_words), and `result_words` when it is finished.
struct ProductShape {
  Index rows, cols, depth;
  Index sum_words = 1, result_words = 1;

  // The same extents with this weight of a sum, and with a result of this kind.
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
// Reads a block of A as the product sees it, straight or transposed.
Tile read(Machine& machine, const Factor& A, Range rows, Range cols, CutEvery cut = {});
// Throws: ShapeMismatch unless the shapes match C = A B.
void require_conforming(const Factor& A, const Factor& B, const SlowMatrix& C);

// The names of the matrices of C = A B in a nest, and the text of a step.
struct ProductNames {
  std::string_view result, left, right;
};
std::string sum_text(const NestTile& result, const NestTile& left, const NestTile& right);

// A block of C stays while blocks of A and B stream, and is written once. With R x K and K x C
// blocks:
//
//   reads   rows depth ceil(cols / C) + depth cols ceil(rows / R)
//   writes  rows cols
//   peak    R C + R K + K C
//
// These formulas are for sums of one word. With wider sums, the peak has R C sum_words for C.
struct ProductBlocks {
  Index rows;
  Index cols;
  Index depth;
};
constexpr ProductBlocks square(Index B) {
  return {B, B, B};
}
// The blocks of inner levels, from the innermost out (kernels/parts/product_levels.hpp).
using ProductLevels = std::vector<ProductBlocks>;
// The matrix that stays in fast memory while the others stream.
enum class Stays { A, B, C };

void product(Machine& machine, ProductBlocks by, const Factor& A, const Factor& B, SlowMatrix& C,
             const ProductLevels& inner = {});
// Returns a block of C, the sum over these pieces of the depth, without writing it.
Tile product_block(Machine& machine, std::string_view name, const Factor& A, const Factor& B,
                   Range rows, Range cols, const Pieces& depth, const ProductLevels& inner = {},
                   Holds holds = Holds::sums);
PhaseCost product_cost(std::string path, const ProductShape& of, ProductBlocks by);
void product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                  ProductBlocks by);

// S = A X with a d x d matrix X, as in Algorithm 7 of the paper. A row block of A stays, column
// blocks of X stream, and each block of S is written when it is made. With r rows of A, c columns
// of X, and T = ceil(rows / r):
//
//   reads   rows d + d^2 T
//   writes  rows d
//   peak    r d + d c + r c   (r c of them sums)
//
// The words moved depend on r alone. So the fitting blocks with the fewest words have the largest r
// that fits with one column of X. Then r is evened out, and c grows into the free words.
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
