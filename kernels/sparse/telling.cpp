#include "kernels/sparse/telling.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace redblue {
namespace {

constexpr std::size_t kMostWords = 3;

void tell_words(Machine& machine, const Operation& operation,
                std::initializer_list<const float*> operands) {
  require(operands.size() <= kMostWords, "a step of words has few operands");
  std::array<TilePart, kMostWords> parts;
  std::ranges::transform(operands, parts.begin(),
                         [&](const float* word) { return machine.part_of(word); });
  Operation told = operation;
  told.operands = std::span(parts).first(operands.size());
  machine.tell(told);
}

}  // namespace

void tell_term(Machine& machine, const float* a, const float* b, const float* sum, Old old) {
  tell_words(machine,
             {.form = Operation::Form::product,
              .name = "product",
              .result = machine.part_of(sum),
              .old = old == Old::taken,
              .operands = {}},
             {a, b});
}

void tell_map(Machine& machine, std::string_view name, const float* word, Old old,
              std::initializer_list<const float*> operands, float constant) {
  tell_words(machine,
             {.form = Operation::Form::map,
              .name = name,
              .result = machine.part_of(word),
              .old = old == Old::taken,
              .operands = {},
              .constant = constant},
             operands);
}

void tell_fold(Machine& machine, std::string_view name, const float* word, const float* term) {
  tell_words(machine,
             {.form = Operation::Form::fold,
              .name = name,
              .result = machine.part_of(word),
              .old = true,
              .operands = {}},
             {term});
}

void tell_product(const ToldPart& a, const ToldPart& b, const ToldPart& sum) {
  tell(ToldStep{Operation::Form::product, "product", sum, Old::taken, {a, b}});
}

void tell_scaled_row(const View& a, Index i, const ConstView& factors, Index k,
                     const ConstView& b) {
  tell_product(word_of(factors, k, 0), b, row_of(a, i));
}

void tell_scale_row(const View& a, Index i, const ConstView& factor) {
  tell(ToldStep{Operation::Form::map, "multiply", row_of(a, i), Old::taken, {of_rows(factor)}});
}

void tell_dot_row(const ConstView& a, Index i, const ConstView& b, const View& to, Index j,
                  Index k) {
  tell_product(row_of(a, i), transposed(b), word_of(to, j, k));
}

}  // namespace redblue
