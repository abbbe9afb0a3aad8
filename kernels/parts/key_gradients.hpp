#pragma once
// dK = p^T Q and dV = f^T dO with keys in fast memory: a block of c keys stays with its values and
// both gradients, while queries pass in blocks of r rows, given L and v = rowsum(dO * O). Scores
// never leave fast memory. With T = ceil(m / c):
//
//   reads   2 m d + T (2 n d + 2 n);   writes  2 m d;   peak  4 c d + 2 r d + 2 r c
//
// As queries pass, p K may be added to dQ, which is then read and written once for each block of
// keys: (T - 1) n d more reads, T n d more writes. And q - v may be stored: then neither values nor
// v are read, but n m words, and the peak is 3 c d + r d + r c + max(r d, r c).

#include <optional>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;

// Which of these it is.
struct KeyPass {
  bool adds_to_dQ = false;
  bool q_is_stored = false;
};

struct KeyPassMatrices {
  const SlowMatrix &Q, &K, &dO, &L;
  const SlowMatrix *V, *v, *q;  // V and v, or q - v; else null
  SlowMatrix& dK;
  SlowMatrix& dV;
  SlowMatrix* dQ = nullptr;  // null: not added to
  std::optional<float> scale =
      std::nullopt;  // c: K_J stays as c K_J, and dK is multiplied by it at last
};

struct KeyPassBlocks {
  Index rows, keys;
};

void key_gradients(Machine& machine, KeyPassBlocks by, const KeyPassMatrices& x);
PhaseCost key_gradients_cost(std::string path, const Shape& shape, KeyPassBlocks by, KeyPass pass);
KeyPassBlocks fit_key_gradients(const Shape& shape, Index M, KeyPass pass);
void key_gradients_nest(NestWriter& nest, const Problem& problem, KeyPassBlocks by, KeyPass pass);

}  // namespace redblue
