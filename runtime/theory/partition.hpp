#pragma once
// Lower bounds from Hong and Kung's partitions of a graph. P(G, X) is the fewest parts of an
// X-partition of the graph G. Lemma E.6 says Q >= M (P(G, 2M) - 1). With parts of T moves, Q >= T
// (P(G, M+T) - 1). Lemma E.7, with its constants, limits how many products of a matrix product one
// part has. So P is at least the number of products divided by that limit. docs/theory/bounds.md
// proves all three.
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

// Returns the most products in a part of an X-partition, for matrix products with sums of d terms.
// `results` is true if all sums are results of the graph, false if no sum is one.
Real most_in_a_part(Real X, Real d, bool results);

// The bound for some of the products of a problem.
struct Partition {
  std::string_view products;  // the matrices that the counted products make
  Index all = 0;              // the number of counted products
  Index in_a_part = 0;        // the most products in a part of a 2M-partition
  Index parts = 0;            // the fewest parts of a 2M-partition
  Index words = 0;            // M (parts - 1)
  Index best_length = 0;      // the T that gives the most words
  Index best_words = 0;       // the words for this T
};

// Returns why no partition bound is proven for this task. Empty if one is proven.
std::string no_partitions(const Task& task);

// Returns a bound for each product below. The backward pass has S and s as in the paper's
// Theorem E.9.
//
//   product    C
//   forward    s = S A2^T
//   backward   S = A1 X; s; s together with q = dO h^T
//
// Requires: no_partitions() is empty. Throws: CountOverflow.
std::vector<Partition> partitions(const Task& task);

}  // namespace redblue
