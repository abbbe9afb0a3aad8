#include "kernels/parts/project.hpp"

#include <algorithm>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/fit.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

Words peak(Index d, Index r, Index c) {
  return Words(r) * d + Words(d) * c + Words(r) * c;
}

}  // namespace

void project(Machine& machine, ProjectBlocks by, const SlowMatrix& A, const SlowMatrix& X,
             SlowMatrix& S) {
  require(A.cols() == X.rows() && S.rows() == A.rows() && S.cols() == X.cols(),
          "S = A X: the matrices conform");
  for (const Range I : blocks(A.rows(), by.rows)) {
    const Tile a = machine.read(A.row_block(I));
    for (const Range J : blocks(X.cols(), by.cols)) {
      const Tile x = machine.read(X.block({0, X.rows()}, J));
      Tile s = machine.initialize(S.name(), I.size(), J.size());
      multiply_add(a, x, s);
      machine.write(s, S.block(I, J));
    }
  }
}

ProjectBlocks fit_project(Index rows, Index d, Index M) {
  const Index r = even(
      rows, largest(std::min(rows, M), [&](Index tried) { return peak(d, tried, 1) <= Words(M); }));
  const Index c =
      even(d, largest(std::min(d, M), [&](Index tried) { return peak(d, r, tried) <= Words(M); }));
  return {r, c};
}

PhaseCost project_cost(std::string path, Index rows, Index d, ProjectBlocks by) {
  return {.path = std::move(path),
          .reads = Words(rows) * d + Words(d) * d * ceil_div(rows, by.rows),
          .writes = Words(rows) * d,
          .peak = peak(d, std::min(rows, by.rows), std::min(d, by.cols)),
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
