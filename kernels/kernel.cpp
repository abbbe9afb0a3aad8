#include "kernels/kernel.hpp"

#include <algorithm>

#include "memsim/errors.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

template <class Matrix>
Matrix& by_name(const std::vector<Matrix*>& matrices, std::string_view name) {
  const auto found =
      std::ranges::find_if(matrices, [&](const Matrix* matrix) { return matrix->name() == name; });
  if (found == matrices.end()) {
    throw ShapeMismatch("the operand " + std::string(name) + " is missing");
  }
  return **found;
}

std::string extents(Index rows, Index cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

void check_extents(const SlowMatrix& matrix, const Signature& signature, const Shape& shape) {
  const Index rows = signature.rows_of(shape);
  const Index cols = signature.cols_of(shape);
  if (matrix.rows() != rows || matrix.cols() != cols) {
    throw ShapeMismatch("the operand " + matrix.name() + " is " +
                        extents(matrix.rows(), matrix.cols()) + "; this plan asks for " +
                        extents(rows, cols));
  }
}

void check_problem(const Shape& shape, Index M) {
  require(shape.n > 0 && shape.m > 0 && shape.d > 0, "n, m and d are at least 1");
  require(M > 0, "M is at least 1");
}

void check_prefetch(const Kernel& kernel, Index prefetch) {
  if (prefetch > 1 && !streams(kernel)) {
    throw ShapeMismatch(std::string(kernel.name) + " streams no keys: its prefetch is 1, not " +
                        std::to_string(prefetch));
  }
}

}  // namespace

const SlowMatrix& Operands::in(std::string_view name) const {
  return by_name(given_, name);
}

SlowMatrix& Operands::out(std::string_view name) const {
  return by_name(returned_, name);
}

bool Operands::gives(std::string_view name) const {
  return std::ranges::any_of(given_,
                             [&](const SlowMatrix* matrix) { return matrix->name() == name; });
}

Blocks Kernel::blocks(const Shape& shape, Index M, Objective objective, Index prefetch) const {
  require(prefetch > 0, "a prefetch is at least 1");
  check_prefetch(*this, prefetch);
  if (prefetch > 1) {
    return fit_ahead(shape, M, prefetch);
  }
  return (objective == Objective::time && fit_time != nullptr ? fit_time : fit)(shape, M);
}

Plan Kernel::plan(const Shape& shape, Index M, Objective objective, Index prefetch) const {
  check_problem(shape, M);
  Plan fitted = plan(shape, M, blocks(shape, M, objective, prefetch));
  if (total(fitted.phases).peak > Words(M)) {
    throw FastMemoryTooSmall(std::string(name) + " does not fit in M = " + std::to_string(M) +
                             " words: for n = " + std::to_string(shape.n) + ", m = " +
                             std::to_string(shape.m) + ", d = " + std::to_string(shape.d) +
                             " it needs M of at least " + std::to_string(least_M(shape, prefetch)));
  }
  return fitted;
}

Plan Kernel::plan(const Shape& shape, Index M, const Blocks& blocks) const {
  check_problem(shape, M);
  for (const auto& [block, size] : blocks) {
    require(size > 0, "a block is at least 1");
  }
  check_prefetch(*this, prefetch_of(blocks));
  return {std::string(name), shape, M, blocks, cost(shape, blocks)};
}

Index Kernel::least_M(const Shape& shape, Index prefetch) const {
  check_problem(shape, 1);
  return total(cost(shape, blocks(shape, 1, Objective::words, prefetch))).peak.value();
}

void Kernel::check(const Plan& plan, const Operands& io) const {
  require(plan.kernel == name, "the plan is this kernel's own");
  check_prefetch(*this, prefetch_of(plan.blocks));
  for (const Signature& operand : given) {
    check_extents(io.in(operand.name), operand, plan.shape);
  }
  for (const Signature& operand : returns) {
    check_extents(io.out(operand.name), operand, plan.shape);
  }
}

void Kernel::run(Machine& machine, const Plan& plan, const Operands& io,
                 Workspace& workspace) const {
  check(plan, io);
  code(machine, plan, io, workspace);
}

const Signature* find_operand(const std::vector<Signature>& operands, std::string_view name) {
  const auto found = std::ranges::find(operands, name, &Signature::name);
  return found == operands.end() ? nullptr : &*found;
}

bool has_one_source(const Kernel& kernel) {
  return find_operand(kernel.given, "A2") != nullptr && find_operand(kernel.given, "A3") == nullptr;
}

}  // namespace redblue
