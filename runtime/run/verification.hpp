#pragma once
// Whether the results of a run are right: finite, and within their bounds of the double-precision
// evaluation (runtime/theory/reference.hpp).

#include "runtime/run/buffers.hpp"
#include "runtime/run/outcome.hpp"

namespace redblue {

// Throw: std::runtime_error, with the first word that is not finite; the second of an operand's
// rows from `first_row` on, of one head, which is `where` in the message.
void check_finite(const Part& part, const Buffers& results);
void check_finite(const Kernel& kernel, const Signature& operand, const Shape& shape,
                  Index first_row, std::span<const float> words, const std::string& where = "");

// Of every head, one after the other: the element that comes nearest to its bound, and what holds
// of all. `report` says who ran, and where O and L came from; they are among the inputs.
Verdict verify(const Report& report, const Buffers& inputs, const Buffers& results);

// About the most memory that verify() takes.
Words verification_bytes(const Kernel& kernel, const Shape& shape);

}  // namespace redblue
