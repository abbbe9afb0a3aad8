#include "kernels/arithmetic/telling.hpp"

#include <algorithm>
#include <array>

namespace redblue {
namespace {

constexpr std::size_t kMostOperands = 4;

TilePart part_of(const Machine& machine, const ToldPart& told) {
  TilePart part = machine.part_of(told.view);
  part.row += told.rows.begin;
  part.column += told.columns.begin;
  part.rows = told.rows.size();
  part.columns = told.columns.size();
  part.transposed = told.transposed;
  part.of = told.of;
  return part;
}

}  // namespace

void tell(const ToldStep& step) {
  if (step.result.rows.size() == 0 || step.result.columns.size() == 0) {
    return;
  }
  Machine& machine = step.result.view.machine();
  require(step.operands.size() <= kMostOperands, "a step has few operands");
  std::array<TilePart, kMostOperands> operands;
  std::ranges::transform(step.operands, operands.begin(),
                         [&](const ToldPart& told) { return part_of(machine, told); });
  machine.tell(Operation{.form = step.form,
                         .name = step.name,
                         .result = part_of(machine, step.result),
                         .old = step.old == Old::taken,
                         .operands = std::span(operands).first(step.operands.size()),
                         .constant = step.constant});
}

void tell(const Homefuls& told) {
  const auto& [name, a, b, changed, home, shift] = told;
  for (Index j = 0; j < changed.cols(); ++j) {
    const Range column = {j, j + 1};
    for (const Range rows : blocks(changed.rows(), home.words())) {
      const ToldPart sums(home, {0, rows.size()}, {0, 1});
      const ToldPart passed(changed, rows, column);
      tell(ToldStep{Operation::Form::product,
                    "product",
                    sums,
                    Old::overwritten,
                    {ToldPart(a, rows, {0, a.cols()}), ToldPart(b, {0, b.rows()}, column)}});
      if (shift != nullptr) {
        tell(ToldStep{Operation::Form::map,
                      name,
                      passed,
                      Old::taken,
                      {sums, of_columns(ToldPart(*shift, column, {0, 1}))}});
      } else {
        tell(ToldStep{Operation::Form::map, name, passed, Old::taken, {sums}});
      }
    }
  }
}

}  // namespace redblue
