#pragma once
// Attention as a programmer would write it without redblue: OpenBLAS products with scores in main
// memory, and one vectorised pass over each row between them. There are no needless passes: 1 / l
// is applied when p is computed, or to O. Words that a later product needs are kept, so g from
// scratch takes three n m d products.

#include <vector>

#include "kernels/problem.hpp"
#include "memsim/range.hpp"

namespace redblue {

class Materialised {
 public:
  // Computes blocks of `rows` queries, one after the other. Under the causal mask, a block meets
  // only the keys up to its last query. `threads` is for OpenBLAS and for the row passes. The first
  // call allocates all memory.
  Materialised(const Shape& shape, bool causal, Index rows, int threads);

  // Arguments are row-major, in the shapes of the kernels.
  void attention(const float* Q, const float* K, const float* V, float scale);
  void gradient(const float* A1, const float* A2, const float* A3, const float* X, const float* Y,
                const float* dO);
  // Computes dQ, dK and dV from Q, K and V, in five products of n m d.
  void gradients(const float* Q, const float* K, const float* V, const float* dO, float scale);

  std::vector<float> O, g, dQ, dK, dV;

 private:
  struct Block {
    Range rows;
    Index keys;
  };
  template <class Body>
  void for_blocks(const Body& body);
  // e_ = exp(scores - their maximum), and l_ = the sums of e_.
  void exponentials(const Block& block, const float* rows, const float* keys, float scale);
  // q_ = p, and if f is kept, e_ = f.
  template <bool keeps_f>
  void derivatives(const Block& block, const float* dO, const float* values);

  Shape shape_;
  bool causal_;
  Index rows_;
  int threads_;
  std::vector<float> S_, h_, W_, e_, q_, l_;
};

}  // namespace redblue
