#pragma once
// A problem in buffers, for benchmarks: all operands and results of a kernel.

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

class BenchProblem {
 public:
  // Operands are generated from seed 1. If the kernel takes O and L, forward/rows or attention/rows
  // computes them.
  BenchProblem(const KernelName& kernel, const Shape& shape);

  [[nodiscard]] const Operands& io() const { return io_; }
  [[nodiscard]] const float* words(std::string_view operand) const {
    return buffers_.at(operand).data();
  }

 private:
  std::span<float> add(const Signature& operand);
  void make_forward();

  const Kernel& kernel_;
  Problem problem_;
  std::map<std::string_view, std::vector<float>> buffers_;
  std::map<std::string_view, SlowMatrix> matrices_;
  Operands io_;
};

}  // namespace redblue
