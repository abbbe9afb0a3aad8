#pragma once
// Projections C = A W of r rows, and their gradients dW = A^T dC and dA = dC W^T. A layer has the
// projections Q = A1 X and V = A3 Y. If there is room, W and the sum dW stay while rows of dC, dA
// and A stream:
//
//   reads   2 r d + d^2;   writes  r d + d^2;   peak  2 d^2 + 2 d Br
//
// The peak is for sums of one word. dW are sums, and so are rows of dA while they are made. Without
// that room the gradients are two products, and dC is read twice. If only one gradient is wanted,
// it is one product.
//
// Several machines share a product by its rows. They share dW and dA together by columns of A, with
// the same rows of W and dW. No sum is then cut, so the results have the same bits as on one
// machine. Each machine reads all of dC.

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
  // Whether dA or dW is wanted.
  [[nodiscard]] bool wanted(const Problem& problem) const {
    return problem.wants(dA) || problem.wants(dW);
  }
};

// The wanted gradients: two phases dW and dA, or one phase dW that makes both.
void plan_gradients(const Projection& of, const Problem& problem, Index M, Objective objective,
                    Blocks& blocks);
std::vector<PhaseCost> gradients_cost(const Projection& of, const Problem& problem,
                                      const Blocks& blocks);
void gradients_nest(NestWriter& nest, const Projection& of, const Problem& problem,
                    const Blocks& blocks);

// The stages: C if it is needed, and its gradients. dC is then among the results in Operands.
SplitStage projection_stage(const Projection& of,
                            const std::function<bool(const Problem&)>& needed);
std::vector<SplitStage> gradients_stages(const Projection& of);

}  // namespace redblue
