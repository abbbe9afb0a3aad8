#pragma once
// The operands of a kernel in main memory: the words of each, with the heads one after the other.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

using Buffers = std::map<std::string, std::vector<float>, std::less<>>;
// Words that are somebody else's, by operand; ViewedResults are to be written.
using Views = std::map<std::string, std::span<const float>, std::less<>>;
using ViewedResults = std::map<std::string, std::span<float>, std::less<>>;

// The heads that an operand has in so many problems: in each, one, and of queries all that are
// stacked.
Index heads_of(const Signature& operand, const Problem& problem, Index problems);
// The number of words of one head.
std::size_t words_of(const Signature& operand, const Shape& shape);
std::vector<float> buffer_for(const Signature& operand, const Shape& shape, Index heads);
// Fresh buffers for what the kernel returns of this problem.
Buffers result_buffers(const Kernel& kernel, const Problem& problem, Index heads);
Views views_of(const Buffers& buffers);
Views views_of(const ViewedResults& results);
ViewedResults viewed_results(Buffers& buffers);

// Whether some word is in both.
bool overlap(std::span<const float> a, std::span<const float> b);

// The words of one head; empty where `views` has no such operand.
std::span<const float> head_of(const Views& views, const Signature& operand, const Shape& shape,
                               Index head);

// A kernel's matrices over these words, head by head. The words must outlive them.
class KernelMatrices {
 public:
  // Requires: words of all heads for each operand that the kernel is given or returns.
  KernelMatrices(const Kernel& kernel, const Problem& problem, Index heads, const Views& given,
                 const ViewedResults& returned);

  [[nodiscard]] const std::vector<Operands>& heads() const { return heads_; }
  // An estimate of its own size for one head, without the buffers.
  static Index bytes(const Kernel& kernel);

 private:
  std::vector<SlowMatrix> matrices_;  // never reallocated: `heads_` points into it
  std::vector<Operands> heads_;
};

}  // namespace redblue
