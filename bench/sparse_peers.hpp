#pragma once
// Attention of sparse A1, X and A2 as a programmer would write it without redblue. The live scores
// are one CSR matrix in main memory, and each step runs over all of it: SpGEMM, softmax and SpMM;
// for the gradient also SDDMM and two sparse products. There are two versions: plain loops, and
// SuiteSparse:GraphBLAS.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/sparsity.hpp"

namespace redblue {

// Operands in main memory: the values of stored entries by rows, and dense A3, Y and dO.
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

  // Compute O, or g from scratch.
  virtual void forward(const SparseOperands& of, int threads) = 0;
  virtual void gradient(const SparseOperands& of, int threads) = 0;

  std::vector<float> O, g;
};

std::unique_ptr<SparsePeer> sparse_loops();
std::unique_ptr<SparsePeer> graphblas();

}  // namespace redblue
