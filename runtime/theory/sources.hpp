#pragma once
// The matrices that a task starts from, and the results that are wanted. Lower bounds count these
// words. Graphs (runtime/pebble) have them as inputs and results.
//
// O and L of a forward pass are not sources: a task that is given them need not read them.

#include <string_view>
#include <vector>

#include "runtime/theory/bounds.hpp"

namespace redblue {

struct Source {
  std::string_view name;
  Words words;  // words that some live pair needs
};

// Returns the sources. A shared source is named once: A2 if A3 is A2, and A1 if all are one.
std::vector<Source> sources_of(const Task& task);

// Returns the words of the wanted results, dQ, dK and dV for example. If keys are values, dK + dV
// is one result. If all sources are one, their gradients are one result.
Words results(const Task& task);

// Returns whether a wanted result needs values or q for each live pair. All results do, except L,
// dV and the results made from dV.
bool needs_values(const Task& task);

}  // namespace redblue
