#pragma once
// Arithmetic as a listener hears it: which words of which tiles an operation makes of which others.
// Three forms say all of it; what a function of one word is called, and does, is for kernels to
// know:
//
//   product   c_ij (+)= sum_k a_ik b_kj
//   map       c_ij    = name(c_ij, operands)
//   fold      c_i  (+)= name_j(operands)
//
// Only words that it keeps in registers all the while are no operand. An operand may have words of
// the result: each is taken before it changes.

#include <cstdint>
#include <span>
#include <string_view>

#include "memsim/words.hpp"

namespace redblue {

// A rectangle of a tile.
struct TilePart {
  // Which word of the operand belongs to ij: its word ij; its word i, of a column; its word j, of a
  // column likewise. Products have no choice.
  enum class Of { words, rows, columns };

  std::uint64_t tile = 0;  // as in events
  Index row = 0, column = 0, rows = 0, columns = 0;
  bool transposed = false;  // the operation takes the rectangle's transpose
  Of of = Of::words;
};

struct Operation {
  enum class Form { product, map, fold };

  Form form;
  std::string_view name;  // valid during the call, as the operands are
  TilePart result;
  bool old = false;  // takes the words that it changes
  std::span<const TilePart> operands;
  float constant = 0;  // a number that the function takes, where it takes one
};

}  // namespace redblue
