#include "kernels/parts/product.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

// What differs between a factor and a transposed one: its extents and where a block of it
// lies. The left one's tile enters the multiplication as it is stored, the right one's is
// transposed on its way in.
Index rows(const SlowMatrix& A) {
  return A.rows();
}
Index rows(TransposedMatrix A) {
  return A.of.cols();
}
Index cols(const SlowMatrix& A) {
  return A.cols();
}
Index cols(TransposedMatrix A) {
  return A.of.rows();
}
ConstBlock stored(const SlowMatrix& A, Range rows, Range cols) {
  return A.block(rows, cols);
}
ConstBlock stored(TransposedMatrix A, Range rows, Range cols) {
  return A.of.block(cols, rows);
}
ConstView as(const SlowMatrix&, const Tile& tile) {
  return tile;
}
Transposed<ConstView> as(TransposedMatrix, const Tile& tile) {
  return transposed(tile);
}
ConstBlock as(const SlowMatrix&, const ConstBlock& block) {
  return block;
}
Transposed<ConstBlock> as(TransposedMatrix, const ConstBlock& block) {
  return transposed(block);
}

template <class Left, class Right>
void multiply_blocks(Machine& machine, ProductBlocks by, const Left& A, const Right& B,
                     SlowMatrix& C) {
  require(cols(A) == rows(B) && C.rows() == rows(A) && C.cols() == cols(B),
          "C = A B: the matrices conform");
  for (const Range I : blocks(C.rows(), by.rows)) {
    for (const Range J : blocks(C.cols(), by.cols)) {
      Tile c = machine.initialize(C.name(), I.size(), J.size());  // C_IJ (R, C)
      for (const Range K : blocks(cols(A), by.depth)) {
        const Tile a = machine.read(stored(A, I, K));         // A_IK (R, K), as it is stored
        const Tile b = machine.read(as(B, stored(B, K, J)));  // B_KJ (K, C)
        multiply_add(as(A, a), b, c);
      }
      machine.write(c, C.block(I, J));
    }
  }
}

}  // namespace

void product(Machine& machine, ProductBlocks by, const SlowMatrix& A, const SlowMatrix& B,
             SlowMatrix& C) {
  multiply_blocks(machine, by, A, B, C);
}

void product(Machine& machine, ProductBlocks by, const SlowMatrix& A, TransposedMatrix B,
             SlowMatrix& C) {
  multiply_blocks(machine, by, A, B, C);
}

void product(Machine& machine, ProductBlocks by, TransposedMatrix A, const SlowMatrix& B,
             SlowMatrix& C) {
  multiply_blocks(machine, by, A, B, C);
}

PhaseCost product_cost(std::string path, Index rows, Index cols, Index depth, ProductBlocks by) {
  const Words r = std::min(rows, by.rows);
  const Words c = std::min(cols, by.cols);
  const Words k = std::min(depth, by.depth);
  return {.path = std::move(path),
          .reads = Words(rows) * depth * ceil_div(cols, by.cols) +
                   Words(depth) * cols * ceil_div(rows, by.rows),
          .writes = Words(rows) * cols,
          .peak = r * c + r * k + k * c,
          .flops = Words(2) * rows * cols * depth};
}

std::string sum_text(const NestTile& result, const NestTile& left, const NestTile& right) {
  return result.text() + " += " + left.text() + " " + right.text();
}

void product_nest(NestWriter& nest, const ProductNames& names, Index rows, Index cols, Index depth,
                  ProductBlocks by) {
  const NestLoop I("I", "rows", rows, by.rows);
  const NestLoop J("J", "columns", cols, by.cols);
  const NestLoop K("K", "depth", depth, by.depth);
  const NestTile c(names.result, I, J), a(names.left, I, K), b(names.right, K, J);
  nest.loop(I, [&] {
    nest.loop(J, [&] {
      nest.loop(K, {c}, [&] { nest.step(sum_text(c, a, b), {a, b}); });
      nest.write({c});
    });
  });
}

}  // namespace redblue
