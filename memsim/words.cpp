#include "memsim/words.hpp"

#include <string>

#include "memsim/errors.hpp"

namespace redblue {

Index Words::value() const {
  if (overflowed()) {
    throw CountOverflow("a count of words does not fit 63 bits: the sizes are too large");
  }
  return static_cast<Index>(count_);
}

void Words::refuse_negative(Index n) {
  throw ShapeMismatch("a count of words cannot be negative: " + std::to_string(n));
}

}  // namespace redblue
