#pragma once
// What a block of queries sums up from nothing, one block of keys after the other: relative to the
// largest score so far, and rescaled where that rises. Scores live in strips of some queries.

#include <utility>

#include "kernels/parts/rows.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// Z = sum of e_j A3_j with e = exp(s - maximum), and the sum of e.
class ValueSums {
 public:
  ValueSums(Machine& machine, const RowPlan& by, Index rows);
  // The rows `keys` of a2, with those of a3 for values; s_t is S^T of the queries. Requires: at
  // most Bc keys.
  void add(const Tile& a2, const Tile& a3, Range keys, const Tile& s_t);
  // Z, maximum and sum, without the strip.
  struct Sums {
    Tile Z, maximum, sum;
  };
  [[nodiscard]] Sums take() { return std::move(sums_); }
  // All that it holds for r queries.
  static Words words(const RowPlan& by, Words r);

 private:
  Index queries_;
  Sums sums_;
  Tile strip_, factors_;
};

// W = p A2 by two sums: of e_j (q_j - mean) A2_j, and of e_j A2_j, which takes the running mean of
// q out of the first where it changes.
class GradientSums {
 public:
  GradientSums(Machine& machine, const RowPlan& by, Index rows);
  // As above; g_t is G^T of the queries.
  void add(const Tile& a2, const Tile& a3, Range keys, const Tile& s_t, const Tile& g_t);
  // Requires: all keys were added.
  [[nodiscard]] Tile take();
  static Words words(const RowPlan& by, Words r);

 private:
  Machine& machine_;
  Index queries_;
  Tile U_, Z_, maximum_, sum_, mean_, e_strip_, q_strip_, factors_;
};

}  // namespace redblue
