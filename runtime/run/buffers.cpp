#include "runtime/run/buffers.hpp"

#include <functional>
#include <memory>

namespace redblue {

Index heads_of(const Signature& operand, const Problem& problem, Index problems) {
  return operand.rows == &Shape::n ? problems * problem.stacked : problems;
}

std::size_t words_of(const Signature& operand, const Shape& shape) {
  return static_cast<std::size_t>(operand.rows_of(shape) * operand.cols_of(shape));
}

std::vector<float> buffer_for(const Signature& operand, const Shape& shape, Index heads) {
  return std::vector<float>(static_cast<std::size_t>(heads) * words_of(operand, shape));
}

Buffers result_buffers(const Kernel& kernel, const Problem& problem, Index heads) {
  Buffers buffers;
  for (const Signature& operand : kernel.returned(problem)) {
    buffers[std::string(operand.name)] = buffer_for(operand, problem.shape, heads);
  }
  return buffers;
}

Views views_of(const Buffers& buffers) {
  return {buffers.begin(), buffers.end()};
}

Views views_of(const ViewedResults& results) {
  return {results.begin(), results.end()};
}

ViewedResults viewed_results(Buffers& buffers) {
  ViewedResults results;
  for (auto& [name, words] : buffers) {
    results.emplace(name, words);
  }
  return results;
}

bool overlap(std::span<const float> a, std::span<const float> b) {
  const std::less<const float*> before;
  return before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

std::span<const float> head_of(const Views& views, const Signature& operand, const Shape& shape,
                               Index head) {
  const auto found = views.find(operand.name);
  if (found == views.end()) {
    return {};
  }
  const std::size_t words = words_of(operand, shape);
  return found->second.subspan(static_cast<std::size_t>(head) * words, words);
}

KernelMatrices::KernelMatrices(const Kernel& kernel, const Problem& problem, Index heads,
                               const Views& given, const ViewedResults& returned) {
  const Shape& shape = problem.shape;
  const std::vector<Signature> operands = kernel.given(problem);
  const std::vector<Signature> results = kernel.returned(problem);
  matrices_.reserve(static_cast<std::size_t>(heads) * (operands.size() + results.size()));
  for (Index head = 0; head < heads; ++head) {
    Operands& io = heads_.emplace_back();
    for (const Signature& operand : operands) {
      const Index cols = operand.cols_of(shape);
      const float* words = head_of(given, operand, shape, head).data();
      io.give(
          matrices_.emplace_back(SlowMatrix(std::string(operand.name), operand.rows_of(shape), cols,
                                            std::make_unique<BorrowedBacking>(words, cols))
                                     .holding(operand.holds)));
    }
    for (const Signature& operand : results) {
      float* words = returned.find(operand.name)->second.data() +
                     static_cast<std::size_t>(head) * words_of(operand, shape);
      io.take(matrices_.emplace_back(
          borrow(std::string(operand.name), words, operand.rows_of(shape), operand.cols_of(shape))
              .holding(operand.holds)));
    }
  }
}

Index KernelMatrices::bytes(const Kernel& kernel) {
  constexpr std::size_t kMatrix =
      sizeof(SlowMatrix) + sizeof(BorrowedBacking) + sizeof(const SlowMatrix*);
  const std::size_t matrices = kernel.operands.size() + kernel.returns.size();
  return static_cast<Index>(matrices * kMatrix + sizeof(Operands));
}

}  // namespace redblue
