#pragma once
// One arithmetic operation as a listener hears it: the words that it computes and the words that it
// uses. Only the kernels know the meaning of a function's name. Every operation has one of three
// forms:
//
//   product   c_ij (+)= sum_k a_ik b_kj
//   map       c_ij    = name(c_ij, operands)
//   fold      c_i  (+)= name_j(operands)
//
// Every word that an operation uses is in an operand, except words that it keeps in registers
// throughout. An operand may share words with the result: each is read before it changes.

#include <cstdint>
#include <span>
#include <string_view>

#include "memsim/words.hpp"

namespace redblue {

// A rectangle of a tile.
struct TilePart {
  // The word of the operand that belongs to result word ij: word ij (`words`), word i of a column
  // (`rows`), or word j of a column (`columns`). Products always use their own indices.
  enum class Of { words, rows, columns };

  std::uint64_t tile = 0;  // the tile's number, as in events
  Index row = 0, column = 0, rows = 0, columns = 0;
  bool transposed = false;  // the operation takes the rectangle's transpose
  Of of = Of::words;
};

struct Operation {
  enum class Form { product, map, fold };

  Form form;
  std::string_view name;  // valid during the call, like the operands
  TilePart result;
  bool old = false;  // true if the operation also reads the words that it changes
  std::span<const TilePart> operands;
  float constant = 0;  // a number that the function takes, if it takes one
};

}  // namespace redblue
