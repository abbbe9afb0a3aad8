#pragma once
// The result of attention with an activation that is no softmax, in double precision, and how far
// from it any float32 order of its operations may end: runtime/theory/reference.hpp without sums of
// rows.

#include "runtime/theory/reference.hpp"

namespace redblue {

// O; and g where there are weights, dQ, dK and dV where dO is given. Of Chains `g`, `X_meets_keys`,
// `Y_meets_rows` and `joins_dK_and_dV` count. Sums are made in any order. At s = 0 the derivative
// of relu is 0. Where an error of s may take it to the other side of 0, the bound has all of q.
// What is expected assumes that kernels pass through rows and keys in order. O(n m d) time on one
// thread, O((n + m) d) memory.
[[nodiscard]] Reference evaluate_activation(const AttentionInput& input, const Chains& chains = {});

}  // namespace redblue
