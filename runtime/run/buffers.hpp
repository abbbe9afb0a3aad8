#pragma once
// The operands of a kernel in main memory: one buffer for each, with the heads one after the other.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

using Buffers = std::map<std::string, std::vector<float>, std::less<>>;

// The heads that an operand has in so many problems: in each, one, and of queries all that are
// stacked.
Index heads_of(const Signature& operand, const Problem& problem, Index problems);
// The number of words of one head.
std::size_t words_of(const Signature& operand, const Shape& shape);
std::vector<float> buffer_for(const Signature& operand, const Shape& shape, Index heads);

// The words of one head; empty where `buffers` has no such operand.
std::span<const float> head_of(const Buffers& buffers, const Signature& operand, const Shape& shape,
                               Index head);

// A kernel's matrices over buffers, head by head. The buffers must outlive them.
class KernelMatrices {
 public:
  // Puts a fresh buffer into `returned` for each operand that the kernel returns.
  // Requires: a buffer in `given` for each operand that the kernel is given.
  KernelMatrices(const Kernel& kernel, const Problem& problem, Index heads, const Buffers& given,
                 Buffers& returned);

  [[nodiscard]] const std::vector<Operands>& heads() const { return heads_; }
  // An estimate of its own size for one head, without the buffers.
  static Index bytes(const Kernel& kernel);

 private:
  std::vector<SlowMatrix> matrices_;  // never reallocated: `heads_` points into it
  std::vector<Operands> heads_;
};

}  // namespace redblue
