#pragma once
// Lower bounds on the words of values that problems of sparse operands move, whatever the format:
// indices are beside them. docs/theory/bounds.md proves them, under the same names.

#include <vector>

#include "runtime/theory/bounds.hpp"

namespace redblue {

// Of one head. Requires: a problem that is not dense.
std::vector<Bound> sparse_bounds(const Task& task);

}  // namespace redblue
