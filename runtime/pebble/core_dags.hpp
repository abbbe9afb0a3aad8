#pragma once
// The graphs of what attention does between its products with weights, without softmax's sums:
//
//   forward    s = S A2^T, O = s h
//   backward   q = dO h^T, p = s q (element by element), W = p A2
//   g          p of s, q, l(i) and v(i), which are given; g = A1^T W
//   gradients  s = Q K^T, q = dO V^T, p = s q, dQ = p K, dK = p^T Q, dV = s^T dO
//
// Names as in attention_dags.hpp. Where keys are values, A2 is h, and K is V.

#include <cstdint>

#include "runtime/pebble/attention_dags.hpp"

namespace redblue {

enum class Core : std::uint8_t { forward, backward, g, gradients };

// Throws: std::length_error as dag_of does.
Dag core_dag(Core core, const Shape& shape, bool shared_keys, Sums sums);

}  // namespace redblue
