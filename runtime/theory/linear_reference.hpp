#pragma once
// The result of linear attention, in double precision, and how far from it any float32 order of its
// operations may end: runtime/theory/reference.hpp for products alone.

#include "runtime/theory/reference.hpp"

namespace redblue {

// O, or g where dO is given; X is not read for g. A word is a sum of products of one word of each
// operand; each of these passes through as many roundings as it has factors and as the sums have
// terms, in whatever order products are made, and through `further` ones, where sums are made in
// parts. O(n d^2 + m d^2 + d^3) time on one thread. Throws: ShapeMismatch if a span does not have
// its size, or for another mask than causal.
[[nodiscard]] Bounded evaluate_linear(const AttentionInput& input, double further = 0);

}  // namespace redblue
