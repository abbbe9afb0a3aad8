#pragma once
// Builds the graphs of products and of attention. Inputs are the sources of the task
// (runtime/theory/sources.hpp), and O and L if the task is given them. Results are the wanted ones.
// Vertices are the words A1(i,k), s(i,j), g(k,l) and so on, the terms s(i,j)*k of a sum, and its
// partial sums s(i,j)+k. A sum of t terms has 2 t - 1 vertices, or t + 1 if one vertex adds all
// terms. A single term is the word itself.
//
// The numbers of vertices if all pairs are live, where D = D(t) is the vertices of a sum of t
// terms:
//
//   product    n k + k m + n m D(k)
//   forward    n d + 2 m d + 2 d^2 + (n + m) d D(d) + n m (D(d) + 1) + n max(m - 1, 1)
//              + n d (D(m) + 1) + n
//   backward   2 n d + 2 m d + 2 d^2 + (n + m) d D(d) + 2 n m D(d) + 3 n m + n max(m - 1, 1)
//              + n D(m) + m d D(n) + d^2 D(m)         (from scratch: the paper's Algorithm 1)
//              after a forward pass: n (d + 1) more inputs, n D(d) for v, and no e, l or n D(m)
//   gradients  n (3 d + 1) + 2 m d + n m (2 D(d) + 2) + n D(d) + n d D(m) + 2 m d D(n)
//              (after a forward pass)
//
// The term max(m - 1, 1) is for binary sums. With a mask, sums are over live pairs. With sparse
// operands, sums are over entries that both factors have. An empty sum has no vertex and is not an
// operand. Words that no result depends on have no vertex.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/pebble/dag.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// How a sum of more than two terms is made: term by term, in halves, or by one vertex.
enum class Sums : std::uint8_t { chain, tree, any };

// How the values of a row are made. The backward and gradients entries are for runs from scratch.
//
//   usual      forward: O = (e h) / l; backward, gradients: v is the sum of f q, as in the paper
//   other      forward: f = e / l, O = f h; backward, gradients: v = u / l, u is the sum of e q
//   one_pass   backward: W = (U - (u / l) Z) / l with U = (e q) A2 and Z = e A2
enum class RowValues : std::uint8_t { usual, other, one_pass };

// The order of products that can be made in several orders. The default is the paper's order.
struct GraphOrder {
  bool keys_first = false;    // R = X A2^T, s = A1 R; else S = A1 X, s = S A2^T
  bool values_last = false;   // G = dO Y^T, q = G A3^T, O = (f A3) Y; else h = A3 Y
  bool queries_last = false;  // W = p A2, g = A1^T W; else T = p^T A1, g = T^T A2
  RowValues rows = RowValues::usual;
  // A score and its exponential share one word. So do the sum of a row and L.
  bool in_place = false;
};

// Returns whether problems of this pass have graphs.
bool has_graph(Pass pass);

// The most vertices of a graph.
inline constexpr Index kMostVertices = 4'000'000;
// Returns the graph of a task. For a product, n is the rows, m the columns, d the depth. Requires:
// has_graph(task.pass), softmax, no shared sources; the default order if operands are sparse.
// Throws: std::length_error if the graph has more than kMostVertices vertices, or a matrix far more
// words.
Dag dag_of(const Task& task, Sums sums, const GraphOrder& order = {});

// Returns all orders for a task of dense operands, in place. Tasks that are given O and L have
// other orders than tasks from scratch.
std::vector<GraphOrder> orders_of(const Task& task);
// Returns the products that are made, for a table: "S, h, T, v".
std::string to_string(const GraphOrder& order, Pass pass);

}  // namespace redblue
