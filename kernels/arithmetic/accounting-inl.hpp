#pragma once
// Checks of tiles and reports to listeners, for the source files of arithmetic.hpp.

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

// Returns whether the words are consecutive. In a column of a wider panel they are not.
inline bool is_column_of(const ConstView& column, Index rows) {
  return column.cols() == 1 && Unchecked(column).stride(0) == 1 && column.rows() == rows;
}

// Throws if fewer rows or columns of the streaming factor are in fast memory than registers hold.
inline void check_passing(Index there, Index in_registers) {
  require(there >= in_registers, "what passes is there in as many lines as registers hold");
}

// Throws unless c can be the product of a rows x depth factor and a depth x cols factor.
inline void check_product(const ConstView& c, Index rows, Index depth, const ConstView& b,
                          const char* what) {
  require(depth == b.rows() && c.rows() == rows && c.cols() == b.cols(), what);
}

// The end of every function of arithmetic.hpp: counts the operations that changed c, and reports
// the steps. It calls tell_steps() only if the machine has a listener.
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

// Constructors of steps. Their operands live until the end of the full expression.
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
