#pragma once
// Finds the kind of algorithm that a backward pass ran, from the graph of its run.

#include "runtime/pebble/pebbling.hpp"

namespace redblue {

// Returns whether the run is two-step. In a two-step run a term of g has one of two forms. It is a
// product of A1 and a sum over all keys of its query, or of A2 and a sum over all queries of its
// key. A sum over only some keys would bring the same word of A1 into the same word of g again.
// Bounds for two-step algorithms hold for such runs.
bool is_two_step(const Pebbling& run);

}  // namespace redblue
