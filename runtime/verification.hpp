#pragma once
// Whether the results of a run are right: finite, and within their bounds of the double-precision
// evaluation (runtime/reference.hpp).

#include "runtime/buffers.hpp"
#include "runtime/report.hpp"

namespace redblue {

// Throws: std::runtime_error, with the first word of `results` that is not finite.
void check_finite(const Part& part, const Buffers& results);

// Of every head, one after the other: the element that comes nearest to its bound, and what holds
// of all. `report` says who ran, and where O and L came from; they are among the inputs.
Verdict verify(const Report& report, const Buffers& inputs, const Buffers& results);

// About the most memory that verify() takes.
Words verification_bytes(const Kernel& kernel, const Shape& shape);

}  // namespace redblue
