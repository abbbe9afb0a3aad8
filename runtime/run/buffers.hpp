#pragma once
// The operands of a kernel in main memory: a buffer each, the heads one after the other.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

using Buffers = std::map<std::string, std::vector<float>, std::less<>>;

// Words of one head of an operand.
std::size_t words_of(const Signature& operand, const Shape& shape);
std::vector<float> buffer_for(const Signature& operand, const Shape& shape, Index heads);

// The words of one head; none where there is no such operand.
std::span<const float> head_of(const Buffers& buffers, const Signature& operand, const Shape& shape,
                               Index head);

// A kernel's matrices in buffers, head by head. The buffers must outlive them.
class KernelMatrices {
 public:
  // `returned` gets a fresh buffer for each operand that the kernel returns.
  // Requires: in `given` a buffer for each that it is given.
  KernelMatrices(const Kernel& kernel, const Problem& problem, Index heads, const Buffers& given,
                 Buffers& returned);

  [[nodiscard]] const std::vector<Operands>& heads() const { return heads_; }
  // About what it takes itself, for a head.
  static Index bytes(const Kernel& kernel);

 private:
  std::vector<SlowMatrix> matrices_;  // never reallocated: `heads_` points into it
  std::vector<Operands> heads_;
};

}  // namespace redblue
