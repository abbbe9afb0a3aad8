#pragma once
// S = A X by rows, as in the paper's Algorithm 7: a row block of A stays, column blocks of X
// pass, and each block of S is written when it is made.
//
// With r rows of A (all d wide) and c columns of X, T = ceil(rows / r):
//   reads   rows d + d^2 T
//   writes  rows d
//   peak    r d + d c + r c
// The words depend on r alone, so the fitting blocks of fewest words have the largest r that
// fits beside one column of X; then r is evened out and c grows into what is left.

#include <string>

#include "kernels/nest.hpp"
#include "kernels/parts/product.hpp"
#include "kernels/plan.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;

struct ProjectBlocks {
  Index rows;
  Index cols;
};

void project(Machine& machine, ProjectBlocks by, const SlowMatrix& A, const SlowMatrix& X,
             SlowMatrix& S);

ProjectBlocks fit_project(Index rows, Index d, Index M);
PhaseCost project_cost(std::string path, Index rows, Index d, ProjectBlocks by);
void project_nest(NestWriter& nest, const ProductNames& names, Index rows, Index d,
                  ProjectBlocks by);

}  // namespace redblue
