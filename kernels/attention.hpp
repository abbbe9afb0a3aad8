#pragma once
// The operands of attention, for the signatures of kernels:
//
//   S = A1 X, h = A3 Y, f = softmax(S A2^T) by rows, O = f h, L = log of the rows' sums of
//   exp(S A2^T); given dO: q = dO h^T, v = rowsum(f * q), p = f * (q - v), g = A1^T p A2.

#include <string_view>

#include "kernels/kernel.hpp"

namespace redblue {

inline constexpr Signature kA1{"A1", &Shape::n, &Shape::d};
inline constexpr Signature kA2{"A2", &Shape::m, &Shape::d};
inline constexpr Signature kA3{"A3", &Shape::m, &Shape::d};
inline constexpr Signature kX{"X", &Shape::d, &Shape::d};
inline constexpr Signature kY{"Y", &Shape::d, &Shape::d};
inline constexpr Signature kdO{"dO", &Shape::n, &Shape::d};
inline constexpr Signature kO{"O", &Shape::n, &Shape::d};
inline constexpr Signature kL{"L", &Shape::n, nullptr, Holds::sums};
inline constexpr Signature kg{"g", &Shape::d, &Shape::d, Holds::sums};
inline constexpr Signature kdQ{"dQ", &Shape::n, &Shape::d};
inline constexpr Signature kdK{"dK", &Shape::m, &Shape::d};
inline constexpr Signature kdV{"dV", &Shape::m, &Shape::d};

// O and L, which the forward pass makes for a backward one.
inline bool made_by_forward(std::string_view operand) {
  return operand == kO.name || operand == kL.name;
}

}  // namespace redblue
