#pragma once
// Things of different sizes, dealt out to ranks: row blocks and groups of keys that meet more
// pairs, or fewer, under a mask.

#include <vector>

#include "memsim/words.hpp"

namespace redblue {

// The numbers of the things of each share, in their order. The first of these ways of which the
// largest share is within a hundredth of the smallest that any of them has: in a row, so that a sum
// which passes along them changes hands least often; as a zigzag, a run of things from the one end
// and one from the other; or the largest thing to the smallest share, one after the other.
std::vector<std::vector<Index>> dealt_out(const std::vector<Words>& sizes, Index shares);
// One to each share in turn.
std::vector<std::vector<Index>> dealt_in_turn(Index things, Index shares);

}  // namespace redblue
