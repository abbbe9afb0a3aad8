#include "runtime/run/buffers.hpp"

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

std::span<const float> head_of(const Buffers& buffers, const Signature& operand, const Shape& shape,
                               Index head) {
  const auto found = buffers.find(operand.name);
  if (found == buffers.end()) {
    return {};
  }
  const std::size_t words = words_of(operand, shape);
  return std::span(found->second).subspan(static_cast<std::size_t>(head) * words, words);
}

KernelMatrices::KernelMatrices(const Kernel& kernel, const Problem& problem, Index heads,
                               const Buffers& given, Buffers& returned) {
  const Shape& shape = problem.shape;
  const std::vector<Signature> operands = kernel.given(problem.sharing);
  for (const Signature& operand : kernel.returns) {
    returned[std::string(operand.name)] = buffer_for(operand, shape, heads);
  }
  matrices_.reserve(static_cast<std::size_t>(heads) * (operands.size() + kernel.returns.size()));
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
    for (const Signature& operand : kernel.returns) {
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
