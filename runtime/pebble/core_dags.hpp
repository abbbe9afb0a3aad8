#pragma once
// Builds graphs of attention without its products with weights and without the sums of softmax:
//
//   forward    s = S A2^T, O = s h.
//   backward   q = dO h^T, p = s q (element by element), W = p A2.
//   g          p from s, q and the given l(i) and v(i); W = p A2, g = A1^T W.
//   gradients  s = Q K^T, q = dO V^T, p = s q, dQ = p K, dK = p^T Q, dV = s^T dO.
//
// Names are as in attention_dags.hpp. If keys are values, A2 is h, and K is V.

#include <cstdint>

#include "runtime/pebble/attention_dags.hpp"

namespace redblue {

enum class Core : std::uint8_t { forward, backward, g, gradients };

// Throws: std::length_error as dag_of does.
Dag core_dag(Core core, const Shape& shape, bool shared_keys, Sums sums);

}  // namespace redblue
