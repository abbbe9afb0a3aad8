#pragma once
// The graphs of products and of attention. Vertices are words A1(i,k), s(i,j), g(k,l); the terms
// s(i,j)*k of a sum, and its partial sums s(i,j)+k. Of t terms a sum has 2 t - 1 vertices, or t + 1
// where one vertex adds all of them; a single term is the word itself.
//
// With D = D(t) vertices of a sum of t terms, all pairs live:
//
//   product    n k + k m + n m D(k)
//   forward    n d + 2 m d + 2 d^2 + (n + m) d D(d) + n m (D(d) + 1) + n max(m - 1, 1)
//              + n d (D(m) + 1)
//   backward   2 n d + 2 m d + 2 d^2 + (n + m) d D(d) + 2 n m D(d) + 3 n m + n max(m - 1, 1)
//              + n D(m) + m d D(n) + d^2 D(m)                (the paper's Algorithm 1)
//   gradients  n (3 d + 1) + 2 m d + n m (2 D(d) + 2) + n D(d) + n d D(m) + 2 m d D(n)
//
// (max(m - 1, 1) where sums are binary.) Under a mask, and of sparse operands, sums are over live
// pairs and over entries that both factors have; a sum of nothing has no vertex, and is no operand,
// and what no result is made of is not there.

#include <cstdint>

#include "kernels/problem.hpp"
#include "runtime/pebble/dag.hpp"

namespace redblue {

// How sums of more than two terms are made: term by term; in halves; at once.
enum class Sums : std::uint8_t { chain, tree, any };

// Throws: std::length_error where it has more than kMostVertices, or a matrix far more words.
inline constexpr Index kMostVertices = 4'000'000;
// Of a product n is the rows, m the columns, d the depth. Requires: product, forward, backward,
// attention or gradients, and softmax.
Dag dag_of(Pass pass, const Problem& problem, Sums sums);

}  // namespace redblue
