#pragma once
// Attention as one would write it without redblue: OpenBLAS products with n x m matrices in main
// memory, and one vectorised pass over each row between them. Everything is allocated beforehand.
// No pass is superfluous (1 / l is applied where p is made, or to O). Words that a later product
// needs are kept: g from nothing takes three n m d products.

#include <vector>

#include "kernels/problem.hpp"

namespace redblue {

class Materialised {
 public:
  explicit Materialised(const Shape& shape);

  // Row-major, of the shapes that the kernels take. `threads` is for OpenBLAS and for the rows.
  void forward(const float* A1, const float* A2, const float* A3, const float* X, const float* Y,
               int threads);
  void gradient(const float* A1, const float* A2, const float* A3, const float* X, const float* Y,
                const float* dO, int threads);

  // dQ, dK and dV of Q, K and V, in five products of n m d.
  void gradients(const float* Q, const float* K, const float* V, const float* dO, float scale,
                 int threads);

  std::vector<float> O, g, dQ, dK, dV;

 private:
  Shape shape_;
  std::vector<float> S_, h_, W_, e_, q_, l_;
};

}  // namespace redblue
