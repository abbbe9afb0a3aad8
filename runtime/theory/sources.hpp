#pragma once
// The matrices that a task starts from, and the results that are wanted.
// Lower bounds count these words, and graphs (runtime/pebble) have them as inputs and results.
//
// O and L of a forward pass are no sources: a task that is given them need not read them.

#include <string_view>
#include <vector>

#include "runtime/theory/bounds.hpp"

namespace redblue {

struct Source {
  std::string_view name;
  Words words;  // those that some live pair needs
};

// A shared source is named once: A2 where A3 is A2, and A1 where all are one.
std::vector<Source> sources_of(const Task& task);

// The words of the results that are wanted: of dQ, dK and dV, say, or of dQ and dK + dV where keys
// are values; where all are one source, of at least one of them.
Words results(const Task& task);

// Whether a result that is wanted takes the values of each live pair, or q: all but L, and but dV
// and what is made of it.
bool needs_values(const Task& task);

}  // namespace redblue
