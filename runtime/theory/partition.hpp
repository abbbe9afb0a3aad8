#pragma once
// What Hong and Kung's partitions say of a graph: Lemma E.6, Q >= M (P(G, 2M) - 1), and with parts
// of T moves, Q >= T (P(G, M+T) - 1), where P is the fewest parts of an X-partition. A part has at
// most so many of the products of a matrix product, Lemma E.7 with its constants, so P is at least
// the products over that. docs/theory/bounds.md proves all three.
//
//   for (const Partition& of : partitions({Pass::backward, {n, m, d}, M})) {
//     of.words;   // of the strict pebble game with M red pebbles, by Lemma E.6
//   }
//
// Values and functions of values: safe to use from any thread.

#include <string>
#include <string_view>
#include <vector>

#include "runtime/theory/bounds.hpp"
#include "runtime/theory/lemmas.hpp"

namespace redblue {

// The most products in a part of an X-partition, of matrix products whose sums have d terms, all of
// them results of the graph, or none.
Real most_in_a_part(Real X, Real d, bool results);

// The products that are counted, of those that a problem has.
struct Partition {
  std::string_view products;  // the matrices that they make
  Index all = 0;              // of these products
  Index in_a_part = 0;        // of a 2M-partition, at most
  Index parts = 0;            // of a 2M-partition, at least
  Index words = 0;            // M (parts - 1)
  Index best_length = 0;      // the T of the most words, and these words
  Index best_words = 0;
};

// Why nothing is proven here of the partitions of a task's graph; empty where something is.
std::string no_partitions(const Task& task);

// Of the product C; of forward s = S A2^T; of backward S = A1 X and s, as the paper's Theorem E.9
// has them, and s with q = dO h^T. Requires: no_partitions() is empty. Throws: CountOverflow.
std::vector<Partition> partitions(const Task& task);

}  // namespace redblue
