#pragma once
// Checks the results of a run: every word is finite, and is close to a double-precision evaluation
// (runtime/theory/reference.hpp).

#include <functional>
#include <span>
#include <string>

#include "runtime/run/buffers.hpp"
#include "runtime/run/outcome.hpp"

namespace redblue {

// Throw: std::runtime_error that names the first word that is not finite. The second function
// checks the rows of an operand from `first_row` on. `where` names their head in the message.
void check_finite(const Part& part, const Views& results);
void check_finite(const Kernel& kernel, const Signature& operand, const Problem& problem,
                  Index first_row, std::span<const float> words, const std::string& where = "");

// Compares every head, one after the other. `report` names the kernels, and says whether the
// request gave O and L. Requires: `inputs` has O and L if the kernel takes them. Calls `step`
// regularly with the completed share. An exception from it ends the comparison.
Verdict verify(const Report& report, const Views& inputs, const Views& results,
               const std::function<void(double done)>& step = nullptr);

// Estimates the most bytes of memory that verify() takes.
Words verification_bytes(const Kernel& kernel, const Problem& problem);

}  // namespace redblue
