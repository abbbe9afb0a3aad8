#pragma once
// What listeners hear of a function of arithmetic.hpp: its steps, in views of tiles.

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

// A column, whose word i belongs to all of row i; and one whose word j belongs to column j.
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

// Requires: somebody hears it. A step on no words is not told.
void tell(const ToldStep& step);

// A product whose sums stay in registers, for which a `home` is charged, and pass from there into
// `changed` through the function `name`, with a word of `shift` for each column where there is one.
// It is told a homeful at a time, of a column of the product.
struct Homefuls {
  std::string_view name;
  ConstView a, b, changed, home;
  const ConstView* shift = nullptr;
};
void tell(const Homefuls& told);

}  // namespace redblue
