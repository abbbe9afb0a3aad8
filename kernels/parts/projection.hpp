#pragma once
// C = A W of r rows, as Q = A1 X and V = A3 Y of a layer are, and the gradients dW = A^T dC and
// dA = dC W^T. Where there is room, W and the sum dW stay, and rows of dC, dA and A pass:
//
//   reads   2 r d + d^2;   writes  r d + d^2;   peak  2 d^2 + 2 d Br
//
// where sums weigh one word: dW are sums, and rows of dA while they are made. Else these are two
// products, which read dC twice; and one, where one of the two is wanted.
//
// Several machines have some rows of a product each; of dW and dA together some columns of A, with
// these rows of W and dW. Then no sum is cut, and all have the bits that they have on one machine;
// dC comes once for each of them.

#include <functional>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/product.hpp"

namespace redblue {

struct Projection {
  std::string_view C, A, W, dC, dA, dW;
  Index Shape::*row_count;

  [[nodiscard]] Index rows(const Shape& shape) const { return shape.*row_count; }
  [[nodiscard]] ProductShape extents(const Problem& problem) const {
    const Shape& shape = problem.shape;
    return ProductShape{.rows = rows(shape), .cols = shape.d, .depth = shape.d}.weighing(
        problem.sum_words);
  }
  // Whether a gradient of what it is made of is wanted.
  [[nodiscard]] bool wanted(const Problem& problem) const {
    return problem.wants(dA) || problem.wants(dW);
  }
};

// The gradients that are wanted, in phases dW and dA, or dW alone where both are made together.
void plan_gradients(const Projection& of, const Problem& problem, Index M, Objective objective,
                    Blocks& blocks);
std::vector<PhaseCost> gradients_cost(const Projection& of, const Problem& problem,
                                      const Blocks& blocks);
void gradients_nest(NestWriter& nest, const Projection& of, const Problem& problem,
                    const Blocks& blocks);

// Stages: C, where it is needed, and its gradients, of dC among the results.
SplitStage projection_stage(const Projection& of,
                            const std::function<bool(const Problem&)>& needed);
std::vector<SplitStage> gradients_stages(const Projection& of);

}  // namespace redblue
