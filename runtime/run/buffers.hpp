#pragma once
// The operands and results of a kernel in main memory. Each is one array with the heads one after
// the other.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"

namespace redblue {

using Buffers = std::map<std::string, std::vector<float>, std::less<>>;
// Words that belong to another object, by operand. A run writes to ViewedResults.
using Views = std::map<std::string, std::span<const float>, std::less<>>;
using ViewedResults = std::map<std::string, std::span<float>, std::less<>>;

// Returns the number of heads that an operand has in `problems` problems. An operand of queries has
// all stacked query heads in each problem, any other operand has one.
Index heads_of(const Signature& operand, const Problem& problem, Index problems);
// Returns the number of words of one head.
std::size_t words_of(const Signature& operand, const Shape& shape);
std::vector<float> buffer_for(const Signature& operand, const Shape& shape, Index heads);
// Allocates buffers for the results that the kernel returns for this problem.
Buffers result_buffers(const Kernel& kernel, const Problem& problem, Index heads);
Views views_of(const Buffers& buffers);
Views views_of(const ViewedResults& results);
ViewedResults viewed_results(Buffers& buffers);

// Returns true if the two ranges share a word.
bool overlap(std::span<const float> a, std::span<const float> b);

// Returns the words of one head, or an empty span if `views` does not have the operand.
std::span<const float> head_of(const Views& views, const Signature& operand, const Shape& shape,
                               Index head);

// The matrices of a kernel, head by head, over words that the caller owns. The words must outlive
// them.
class KernelMatrices {
 public:
  // Requires: `given` and `returned` have the words of all heads of every operand and result.
  KernelMatrices(const Kernel& kernel, const Problem& problem, Index heads, const Views& given,
                 const ViewedResults& returned);

  [[nodiscard]] const std::vector<Operands>& heads() const { return heads_; }
  // Estimates the bytes that this object takes for one head, without the words themselves.
  static Index bytes(const Kernel& kernel);

 private:
  std::vector<SlowMatrix> matrices_;  // never reallocated: `heads_` points into it
  std::vector<Operands> heads_;
};

}  // namespace redblue
