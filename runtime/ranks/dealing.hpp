#pragma once
// Deals out row blocks or key groups to ranks. Under a mask these things have different sizes,
// because they meet different numbers of pairs.

#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// Returns the numbers of the things in each share, in rising order. It considers three ways, in
// this order:
// - Consecutive runs. A running sum along the things then changes ranks least often.
// - A zigzag: each share has a run from the front and a run from the back.
// - Greedy: the largest remaining thing goes to the smallest share.
// It takes the first way with a largest share that is at most 1% above the best of the three.
std::vector<std::vector<Index>> dealt_out(const std::vector<Words>& sizes, Index shares);
// Deals out one thing to each share in turn.
std::vector<std::vector<Index>> dealt_in_turn(Index things, Index shares);

}  // namespace redblue
