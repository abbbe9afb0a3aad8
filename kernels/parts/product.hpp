#pragma once
// C = A B in blocks: a block of C stays while blocks of A and B pass, and is written once.
//
// With R x K and K x C blocks for a (rows x depth) by (depth x cols) product:
//   reads   rows depth ceil(cols / C) + depth cols ceil(rows / R)
//   writes  rows cols
//   peak    R C + R K + K C

#include <string>
#include <string_view>

#include "kernels/nest.hpp"
#include "kernels/plan.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;

using TransposedMatrix = Transposed<const SlowMatrix&>;
inline TransposedMatrix transposed(const SlowMatrix& matrix) {
  return {matrix};
}

struct ProductBlocks {
  Index rows;
  Index cols;
  Index depth;
};
constexpr ProductBlocks square(Index B) {
  return {B, B, B};
}

void product(Machine& machine, ProductBlocks by, const SlowMatrix& A, const SlowMatrix& B,
             SlowMatrix& C);
void product(Machine& machine, ProductBlocks by, const SlowMatrix& A, TransposedMatrix B,
             SlowMatrix& C);
void product(Machine& machine, ProductBlocks by, TransposedMatrix A, const SlowMatrix& B,
             SlowMatrix& C);

PhaseCost product_cost(std::string path, Index rows, Index cols, Index depth, ProductBlocks by);

// The matrices of C = A B, for the text of a nest.
struct ProductNames {
  std::string_view result, left, right;
};
void product_nest(NestWriter& nest, const ProductNames& names, Index rows, Index cols, Index depth,
                  ProductBlocks by);
// "S_IJ += A1_IK X_KJ".
std::string sum_text(const NestTile& result, const NestTile& left, const NestTile& right);

}  // namespace redblue
