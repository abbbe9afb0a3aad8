#pragma once
// Attention as a programmer would write it without redblue: OpenBLAS products with n x m matrices
// in main memory, and one vectorised pass over each row between them. All memory is allocated
// beforehand. There are no needless passes: 1 / l is applied when p is computed, or to O. Words
// that a later product needs are kept, so g from scratch takes three n m d products.

#include <vector>

#include "kernels/problem.hpp"

namespace redblue {

class Materialised {
 public:
  explicit Materialised(const Shape& shape);

  // Arguments are row-major, in the shapes of the kernels. `threads` is for OpenBLAS and for the
  // row passes.
  void forward(const float* A1, const float* A2, const float* A3, const float* X, const float* Y,
               int threads);
  void gradient(const float* A1, const float* A2, const float* A3, const float* X, const float* Y,
                const float* dO, int threads);

  // Computes dQ, dK and dV from Q, K and V, in five products of n m d.
  void gradients(const float* Q, const float* K, const float* V, const float* dO, float scale,
                 int threads);

  std::vector<float> O, g, dQ, dK, dV;

 private:
  Shape shape_;
  std::vector<float> S_, h_, W_, e_, q_, l_;
};

}  // namespace redblue
