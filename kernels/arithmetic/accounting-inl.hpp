#pragma once
// For the sources of arithmetic.hpp: checks of their tiles, and reports to listeners.

#include <initializer_list>
#include <string_view>

#include "kernels/arithmetic/telling.hpp"
#include "memsim/machine.hpp"
#include "memsim/tile.hpp"
#include "memsim/unchecked.hpp"

namespace redblue {

inline bool same_shape(const ConstView& a, const ConstView& b) {
  return a.rows() == b.rows() && a.cols() == b.cols();
}

// A column of a wider panel has its words apart.
inline bool is_column_of(const ConstView& column, Index rows) {
  return column.cols() == 1 && Unchecked(column).stride(0) == 1 && column.rows() == rows;
}

// `there`: the rows, or columns, of the passing factor in fast memory. Throws unless registers hold
// at most as many.
inline void check_passing(Index there, Index in_registers) {
  require(there >= in_registers, "what passes is there in as many lines as registers hold");
}

// Throws unless c can be the product of a rows x depth and a depth x cols factor.
inline void check_product(const ConstView& c, Index rows, Index depth, const ConstView& b,
                          const char* what) {
  require(depth == b.rows() && c.rows() == rows && c.cols() == b.cols(), what);
}

// Where every function of arithmetic.hpp ends: how many operations changed c; and in which steps,
// which are put together only where somebody hears them.
template <class Tell>
inline void account(Operations operations, const View& c, const Tell& tell_steps) {
  c.machine().computed(operations);
  if (c.machine().is_heard()) [[unlikely]] {
    tell_steps();
  }
}

inline void tell_all(std::initializer_list<ToldStep> steps) {
  for (const ToldStep& step : steps) {
    tell(step);
  }
}

// Steps. Their operands live until the end of the expression that names them.
inline constexpr Old kTaken = Old::taken;
inline constexpr Old kOverwritten = Old::overwritten;
inline ToldStep products(const ToldPart& c, Old old, std::initializer_list<ToldPart> factors) {
  return {Operation::Form::product, "product", c, old, factors};
}
inline ToldStep maps(std::string_view name, const ToldPart& c, Old old,
                     std::initializer_list<ToldPart> operands, float constant = 0) {
  return {Operation::Form::map, name, c, old, operands, constant};
}
inline ToldStep folds(std::string_view name, const ToldPart& c,
                      std::initializer_list<ToldPart> operands) {
  return {Operation::Form::fold, name, c, kTaken, operands};
}

inline Operations product(const View& c, Index depth, Index elementwise = 0) {
  return {.flops = 2 * c.words() * depth, .elementwise = elementwise * c.words()};
}

inline Operations elementwise(Index operations) {
  return {.elementwise = operations};
}

}  // namespace redblue
