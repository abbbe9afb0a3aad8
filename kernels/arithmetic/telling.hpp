#pragma once
// Reports the steps of a function of arithmetic.hpp to the machine's listeners, as views of tiles.

#include <initializer_list>
#include <string_view>

#include "memsim/machine.hpp"

namespace redblue {

// A part of a view, as an operand of a step.
struct ToldPart {
  template <class Word>
  ToldPart(const BasicView<Word>& all)  // NOLINT(google-explicit-constructor): in lists of them
      : view(all), rows{0, all.rows()}, columns{0, all.cols()} {}
  template <class Word>
  ToldPart(const Transposed<BasicView<Word>>& all)  // NOLINT(google-explicit-constructor)
      : ToldPart(all.of) {
    transposed = true;
  }
  template <class Word>
  ToldPart(const BasicView<Word>& all, Range of_rows, Range of_columns)
      : view(all), rows(of_rows), columns(of_columns) {}

  ConstView view;
  Range rows, columns;
  bool transposed = false;
  TilePart::Of of = TilePart::Of::words;
};

// of_rows: a column with one word for each row. of_columns: a column with one word for each column.
inline ToldPart of_rows(ToldPart term) {
  term.of = TilePart::Of::rows;
  return term;
}
inline ToldPart of_columns(ToldPart term) {
  term.of = TilePart::Of::columns;
  return term;
}

enum class Old { overwritten, taken };

struct ToldStep {
  Operation::Form form;
  std::string_view name;
  ToldPart result;
  Old old;
  std::initializer_list<ToldPart> operands;
  float constant = 0;
};

// Reports a step, unless it has no words. Requires: the machine has a listener.
void tell(const ToldStep& step);

// A product with sums in registers, for which a tile `home` is charged. The function `name`
// combines the sums with `changed`, and with one word of `shift` for each column if `shift` is set.
// It is reported in parts that fill `home`, column by column of the product.
struct Homefuls {
  std::string_view name;
  ConstView a, b, changed, home;
  const ConstView* shift = nullptr;
};
void tell(const Homefuls& told);

}  // namespace redblue
