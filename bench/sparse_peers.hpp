#pragma once
// Attention of sparse A1, X and A2 as one would write it without redblue: live scores in one CSR
// matrix in main memory, and one step after the other over it (SpGEMM, softmax, SpMM; SDDMM and the
// two sparse products of the gradient). As plain loops, and by SuiteSparse:GraphBLAS.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/sparsity.hpp"

namespace redblue {

// Operands in main memory: the values of stored entries row by row, and dense A3, Y and dO.
struct SparseOperands {
  const Sparsity& where;
  const float *A1, *X, *A2;
  const float *A3, *Y, *dO;
};

class SparsePeer {
 public:
  SparsePeer() = default;
  SparsePeer(const SparsePeer&) = delete;
  SparsePeer& operator=(const SparsePeer&) = delete;
  virtual ~SparsePeer() = default;

  // O; and g, given nothing.
  virtual void forward(const SparseOperands& of, int threads) = 0;
  virtual void gradient(const SparseOperands& of, int threads) = 0;

  std::vector<float> O, g;
};

std::unique_ptr<SparsePeer> sparse_loops();
std::unique_ptr<SparsePeer> graphblas();

}  // namespace redblue
