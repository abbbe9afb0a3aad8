#include "memsim/words.hpp"

#include "memsim/errors.hpp"

namespace redblue {

Index Words::value() const {
  if (overflowed()) {
    throw CountOverflow("the count of words does not fit 63 bits: take smaller n, m or d");
  }
  return static_cast<Index>(count_);
}

}  // namespace redblue
