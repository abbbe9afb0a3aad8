#pragma once
// Signatures of the operands of attention. Notation:
//
//   S = A1 X, h = A3 Y, f = softmax(S A2^T) by rows, O = f h, L = log of the rows' sums of
//   exp(S A2^T); given dO: q = dO h^T, v = rowsum(f * q), p = f * (q - v), g = A1^T p A2.
//
// For another activation phi: s = S A2^T, f = phi(s), p = phi'(s) * q for live pairs. Then L and v
// do not exist.
//
// For plain inputs: S = c Q, A2 = K, h = V; dQ = c p K, dK = p^T S, dV = f^T dO.
//
// For a layer: c = 1, Q = S, K = A2, V = h. Then dX = A1^T dQ, which is g, dA1 = dQ X^T, dA2 = dK,
// dY = A3^T dV, dA3 = dV Y^T.

#include <string_view>

#include "kernels/kernel.hpp"

namespace redblue {

inline constexpr Signature kA1{"A1", &Shape::n, &Shape::d};
inline constexpr Signature kA2{"A2", &Shape::m, &Shape::d};
inline constexpr Signature kA3{"A3", &Shape::m, &Shape::d};
inline constexpr Signature kX{"X", &Shape::d, &Shape::d};
inline constexpr Signature kY{"Y", &Shape::d, &Shape::d};
// The values of sparse operands, row by row. Problem::sparsity has their positions.
inline constexpr Signature kSparseA1{"A1", &Shape::A1_stored, nullptr};
inline constexpr Signature kSparseX{"X", &Shape::X_stored, nullptr};
inline constexpr Signature kSparseA2{"A2", &Shape::A2_stored, nullptr};
// The result g of sparse operands: rows are added to it one by one.
inline constexpr Signature kSparseg{"g", &Shape::d, &Shape::d, Holds::sums};
inline constexpr Signature kQ{"Q", &Shape::n, &Shape::d};
inline constexpr Signature kK{"K", &Shape::m, &Shape::d};
inline constexpr Signature kV{"V", &Shape::m, &Shape::dv};
inline constexpr Signature kdO{"dO", &Shape::n, &Shape::dv};
inline constexpr Signature kO{"O", &Shape::n, &Shape::dv};
inline constexpr Signature kL{"L", &Shape::n, nullptr, Holds::sums, true};
inline constexpr Signature kg{"g", &Shape::d, &Shape::d};
inline constexpr Signature kdQ{"dQ", &Shape::n, &Shape::d};
inline constexpr Signature kdK{"dK", &Shape::m, &Shape::d};
inline constexpr Signature kdV{"dV", &Shape::m, &Shape::dv};
inline constexpr Signature kdX{"dX", &Shape::d, &Shape::d};
inline constexpr Signature kdY{"dY", &Shape::d, &Shape::d};
inline constexpr Signature kdA1{"dA1", &Shape::n, &Shape::d};
inline constexpr Signature kdA2{"dA2", &Shape::m, &Shape::d};
inline constexpr Signature kdA3{"dA3", &Shape::m, &Shape::d};

// The names of a problem's matrices. `rows` is "S", or "Q" for c Q. If values are keys, `values` is
// the name of the keys. If queries are keys, too, all have the name of the queries.
struct InputNames {
  std::string_view queries, keys, values, rows;
};
constexpr InputNames input_names(const Problem& problem) {
  const bool shared = problem.sharing != Sharing::none;
  if (problem.sharing == Sharing::self && problem.inputs == Inputs::plain) {
    return {kQ.name, kQ.name, kQ.name, "Q"};
  }
  return problem.inputs == Inputs::weighted
             ? InputNames{kA1.name, kA2.name, shared ? kA2.name : kA3.name, "S"}
             : InputNames{kQ.name, kK.name, shared ? kK.name : kV.name, "Q"};
}

// Returns whether the operand is O or L, which the forward pass computes for a backward pass.
inline bool made_by_forward(std::string_view operand) {
  return operand == kO.name || operand == kL.name;
}

}  // namespace redblue
