#pragma once
// The graphs of products and of attention. Inputs are the sources of the task
// (runtime/theory/sources.hpp), with O and L where it is given them, and results those that are
// wanted. Vertices are words A1(i,k), s(i,j), g(k,l); the terms
// s(i,j)*k of a sum, and its partial sums s(i,j)+k. Of t terms a sum has 2 t - 1 vertices, or t + 1
// where one vertex adds all of them; a single term is the word itself.
//
// With D = D(t) vertices of a sum of t terms, all pairs live:
//
//   product    n k + k m + n m D(k)
//   forward    n d + 2 m d + 2 d^2 + (n + m) d D(d) + n m (D(d) + 1) + n max(m - 1, 1)
//              + n d (D(m) + 1) + n
//   backward   2 n d + 2 m d + 2 d^2 + (n + m) d D(d) + 2 n m D(d) + 3 n m + n max(m - 1, 1)
//              + n D(m) + m d D(n) + d^2 D(m)                (from nothing: the paper's Algorithm
//              1) where O and L are given, n (d + 1) inputs, n D(d) for v, and no e, l or n D(m)
//   gradients  n (3 d + 1) + 2 m d + n m (2 D(d) + 2) + n D(d) + n d D(m) + 2 m d D(n)
//              (given O and L)
//
// (max(m - 1, 1) where sums are binary.) Under a mask, and of sparse operands, sums are over live
// pairs and over entries that both factors have; a sum of nothing has no vertex, and is no operand,
// and what no result is made of is not there.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// How sums of more than two terms are made: term by term; in halves; at once.
enum class Sums : std::uint8_t { chain, tree, any };

// How the values of a row are made. Forward: usual, O = (e h) / l; other, f = e / l and O = f h.
// Backward and gradients from nothing: usual, v is the sum of f q, as in the paper; other, v = u /
// l of the sum u of e q; one_pass, W = (U - (u / l) Z) / l of U = (e q) A2 and Z = e A2.
enum class RowValues : std::uint8_t { usual, other, one_pass };

// The order of what may be made in several orders. The paper's is the first of each.
struct GraphOrder {
  bool keys_first = false;    // s = A1 R of R = X A2^T; else s = S A2^T of S = A1 X
  bool values_last = false;   // q = G A3^T of G = dO Y^T, O = (f A3) Y; else of h = A3 Y
  bool queries_last = false;  // g = A1^T W of W = p A2; else g = T A2 of T = p^T A1
  RowValues rows = RowValues::usual;
  // A score and its exponential are one word, and so are the sum of a row and L.
  bool in_place = false;
};

// Whether a problem has graphs.
bool has_graph(Pass pass);

// Throws: std::length_error where it has more than kMostVertices, or a matrix far more words.
inline constexpr Index kMostVertices = 4'000'000;
// Of a product n is the rows, m the columns, d the depth. Requires: has_graph(task.pass), softmax,
// and no shared sources; of sparse operands no order but the first.
Dag dag_of(const Task& task, Sums sums, const GraphOrder& order = {});

// All orders of a task of dense operands, in place. Those that are given O and L are not those
// from nothing.
std::vector<GraphOrder> orders_of(const Task& task);
// "S, h, T, v": the products that are made, for a table.
std::string to_string(const GraphOrder& order, Pass pass);

}  // namespace redblue
