#pragma once
// Checks of the results of a run: all words are finite, and near those of the double-precision
// evaluation (runtime/theory/reference.hpp).

#include <functional>
#include <span>
#include <string>

#include "runtime/run/buffers.hpp"
#include "runtime/run/outcome.hpp"

namespace redblue {

// Throw: std::runtime_error with the first word that is not finite. The second function checks the
// rows of an operand from `first_row` on. `where` names their head in the message.
void check_finite(const Part& part, const Views& results);
void check_finite(const Kernel& kernel, const Signature& operand, const Problem& problem,
                  Index first_row, std::span<const float> words, const std::string& where = "");

// Compares every head, one after the other. The kernels, and whether O and L came with the request,
// are those of `report`. Requires: O and L among the inputs where the kernel is given them. `step`
// is called now and then with the part that is done; what it throws ends the comparison.
Verdict verify(const Report& report, const Views& inputs, const Views& results,
               const std::function<void(double done)>& step = nullptr);

// An estimate of the most memory that verify() takes.
Words verification_bytes(const Kernel& kernel, const Problem& problem);

}  // namespace redblue
