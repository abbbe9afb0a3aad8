#pragma once
// What kind of algorithm a backward pass ran, from the graph of its run.

#include "runtime/pebble/pebbling.hpp"

namespace redblue {

// Whether each term of g is of A1 and a sum over all keys of its query, or of A2 and a sum over all
// queries of its key: sums over some keys at a time would bring the same word of A1 into the same
// word of g again. Bounds of two-step algorithms are of such runs.
bool is_two_step(const Pebbling& run);

}  // namespace redblue
