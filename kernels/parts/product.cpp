#include "kernels/parts/product.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "kernels/parts/product_levels.hpp"
#include "memsim/machine.hpp"

namespace redblue {

Tile read(Machine& machine, const Factor& A, Range rows, Range cols, CutEvery cut) {
  return A.transposed ? machine.read(transposed(A.stored.block(cols, rows)), cut)
                      : machine.read(A.stored.block(rows, cols), cut);
}

void require_conforming(const Factor& A, const Factor& B, const SlowMatrix& C) {
  require(A.cols() == B.rows() && C.rows() == A.rows() && C.cols() == B.cols(),
          "C = A B: the matrices conform");
}

std::string sum_text(const NestTile& result, const NestTile& left, const NestTile& right) {
  return result.text() + " += " + left.text() + " " + right.text();
}

Tile product_block(Machine& machine, std::string_view name, const Factor& A, const Factor& B,
                   Range I, Range J, const Pieces& depth, const ProductLevels& inner, Holds holds) {
  const CutEvery cut_cols = inner.empty() ? CutEvery{} : CutEvery{inner.front().cols};
  const CutEvery cut_depth = inner.empty() ? CutEvery{} : CutEvery{inner.front().depth};
  Tile c = machine.initialize(name, I.size(), J.size(), holds, cut_cols);  // C_IJ (R, C)
  bool begins = true;
  for (const Range K : depth) {
    const Tile a = read(machine, A, I, K, cut_depth);  // A_IK (R, K)
    const Tile b = read(machine, B, K, J, cut_cols);   // B_KJ (K, C)
    add_product(machine, inner, Stays::C, {a, I.begin, K.begin}, {b, K.begin, J.begin},
                {c, I.begin, J.begin}, I, J, K, begins);
    begins = false;
  }
  return c;
}

void product(Machine& machine, ProductBlocks by, const Factor& A, const Factor& B, SlowMatrix& C,
             const ProductLevels& inner) {
  require_conforming(A, B, C);
  const Pieces depth({{0, A.cols()}}, by.depth);
  for (const Range I : blocks(C.rows(), by.rows)) {
    for (const Range J : blocks(C.cols(), by.cols)) {
      const Tile c = product_block(machine, C.name(), A, B, I, J, depth, inner);  // C_IJ
      machine.write(c, C.block(I, J));
    }
  }
}

PhaseCost product_cost(std::string path, const ProductShape& of, ProductBlocks by) {
  const auto [rows, cols, depth, of_sum, of_result] = of;
  const Words r = std::min(rows, by.rows);
  const Words c = std::min(cols, by.cols);
  const Words k = std::min(depth, by.depth);
  return {.path = std::move(path),
          .reads = Words(rows) * depth * ceil_div(cols, by.cols) +
                   Words(depth) * cols * ceil_div(rows, by.rows),
          .writes = Words(rows) * cols * of_result,
          .peak = r * c * of_sum + r * k + k * c,
          .flops = Words(2) * rows * cols * depth};
}

void product_nest(NestWriter& nest, const ProductNames& names, const ProductShape& of,
                  ProductBlocks by) {
  const NestLoop I("I", "rows", of.rows, by.rows);
  const NestLoop J("J", "columns", of.cols, by.cols);
  const NestLoop K("K", "depth", of.depth, by.depth);
  const NestTile c(names.result, I, J), a(names.left, I, K), b(names.right, K, J);
  nest.loop(I, [&] {
    nest.loop(J, [&] {
      nest.loop(K, {c}, [&] { nest.step(sum_text(c, a, b), {a, b}); });
      nest.write({c});
    });
  });
}

void project(Machine& machine, ProjectBlocks by, const SlowMatrix& A, const SlowMatrix& X,
             SlowMatrix& S) {
  require_conforming(A, X, S);
  for (const Range I : blocks(A.rows(), by.rows)) {
    const Tile a = machine.read(A.row_block(I));  // A_I (r, d)
    for (const Range J : blocks(X.cols(), by.cols)) {
      const Tile x = machine.read(X.block({0, X.rows()}, J));     // X_J (d, c)
      Tile s = machine.initialize(S.name(), I.size(), J.size());  // S_IJ (r, c)
      multiply_add(a, x, s);
      machine.write(s, S.block(I, J));
    }
  }
}

namespace {

Words project_peak(Index d, Index r, Index c, Index sum_words) {
  return Words(r) * d + Words(d) * c + Words(r) * c * sum_words;
}

}  // namespace

ProjectBlocks fit_project(Index rows, Index d, Index M, Index sum_words) {
  const auto fits = [&](Index r, Index c) { return project_peak(d, r, c, sum_words) <= Words(M); };
  const Index r =
      even(rows, largest(std::min(rows, M), [&](Index tried) { return fits(tried, 1); }));
  const Index c = even(d, largest(std::min(d, M), [&](Index tried) { return fits(r, tried); }));
  return {r, c};
}

PhaseCost project_cost(std::string path, Index rows, Index d, ProjectBlocks by, Index sum_words) {
  return {.path = std::move(path),
          .reads = Words(rows) * d + Words(d) * d * ceil_div(rows, by.rows),
          .writes = Words(rows) * d,
          .peak = project_peak(d, std::min(rows, by.rows), std::min(d, by.cols), sum_words),
          .flops = Words(2) * rows * d * d};
}

void project_nest(NestWriter& nest, const ProductNames& names, Index rows, Index d,
                  ProjectBlocks by) {
  const NestLoop I("I", "rows", rows, by.rows);
  const NestLoop J("J", "columns", d, by.cols);
  const NestTile s(names.result, I, J), a(names.left, I, d), x(names.right, d, J);
  nest.loop(I, [&] {
    nest.read({a});
    nest.loop(J, {a}, [&] { nest.step(s.text() + " = " + a.text() + " " + x.text(), {x}, {s}); });
  });
}

}  // namespace redblue
