#pragma once
// dK = p^T Q and dV = f^T dO with keys in fast memory: a block of c keys stays with its values and
// both gradients, while queries pass in blocks of r rows, given L and v = rowsum(dO * O). Scores
// never leave fast memory. With T = ceil(m / c):
//
//   reads   2 m d + T (2 n d + 2 n);   writes  2 m d;   peak  4 c d + 2 r d + 2 r c
//
// where values are as wide as keys.
//
// Under a mask the queries that pass are those that meet a key of the block.
//
// As queries pass, p K may be added to dQ. dQ is then read and written once for each block of keys:
//
//   reads   (T - 1) n d more;   writes  T n d more
//
// Where values are keys, K_J and dK_J + dV_J, one sum, are all that stays:
//
//   reads   m d + T (2 n d + 2 n);   writes  m d;   peak  2 c d + 2 r d + 2 r c
//
// What is not wanted does not come: without dK and dQ, neither values nor v. Nor do L and v of
// another activation than softmax, where f takes the place of s when p is made: 2 T n words less.
//
// Inner levels of fast memory are those of rows that stay (kernels/parts/levels.hpp) with queries
// and keys in each other's place: a block of b keys stays in a level with what belongs to it,
// while queries pass. Scores live in strips of some keys, next to the arithmetic. Of a level with
// T1 blocks of keys, each of which cuts one of the next level, where C blocks of queries pass:
//
//   reads   C 4 m d - 2 m d + (2 n d + 2 n) T1;   writes  C 2 m d
//
// and 2 m d more each, since K and dK meet the factor c. Where values are keys, strips meet it:
//
//   reads   C 2 m d - m d + (2 n d + 2 n) T1;   writes  C m d
//
// With steps apart, where C1 blocks of the level's own queries pass, all of it comes for each step:
//
//   reads   C1 4 m d - 2 m d + (4 n d + 2 n) T1;   writes  C1 2 m d
//   reads   C1 4 m d - m d + (4 n d + 2 n) T1;     writes  C1 2 m d      values are keys
//
// Fast memory then holds, in place of 2 r c scores, a strip of f and one of p.

#include <cstddef>
#include <optional>
#include <string>

#include "kernels/kernel.hpp"
#include "kernels/nest.hpp"
#include "kernels/parts/levels.hpp"
#include "kernels/units.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

class Machine;

struct KeyGradients {
  const SlowMatrix &Q, &K, &V, &dO;
  const SlowMatrix *L, *v;   // of a softmax; v for dK and dQ
  SlowMatrix *dK, *dV, *dQ;  // p K is added to dQ; null: not wanted, or no result
  // The factor c of the scores: K_J stays as c K_J, and dK is multiplied by it at last. Where K is
  // V, too, Q_I is multiplied by it, and p before it meets K.
  std::optional<float> scale = std::nullopt;
  // Unless dK is one of several sums, of some queries each, that are to be added up before.
  bool scales_dK = true;
};

struct KeyBlocks {
  Index rows, keys;
  Levels inner = {};  // of rows and keys, from the innermost level out: where dQ is not made
};

// Which sums are made, that of dQ in the slow store. Where values are keys dK + dV are one sum, of
// both or neither.
struct KeySums {
  bool dQ, dK, dV;
  bool one_of_keys = false;
  bool of_parts = false;  // of some queries each, which are to be added up
  [[nodiscard]] bool needs_p() const { return dQ || dK; }
  [[nodiscard]] bool any() const { return dQ || dK || dV; }
};

// Those that are wanted.
KeySums key_sums(const Problem& problem);

// Of some blocks of keys: all of them, where p K is added to dQ.
void key_gradients(Machine& machine, const Problem& problem, const KeyBlocks& by,
                   const KeyGradients& x, Range units);
PhaseCost key_gradients_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                             KeySums of, Range units);
Range all_key_blocks(const Problem& problem, const KeyBlocks& by);
// Of a sum over blocks of keys, and what passes them.
PhaseCost key_gradients_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                             KeySums sums, const Units::Sum& of);
// The same of an inner level.
PhaseCost key_gradients_level_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                                   KeySums sums, Range units, std::size_t level);
// The fitting blocks of fewest words: the most keys beside one query. For least time, the most keys
// beside enough queries to keep the registers busy.
KeyBlocks fit_key_gradients(const Problem& problem, const Memory& memory, Objective objective,
                            KeySums of);
void key_gradients_nest(NestWriter& nest, const Problem& problem, const KeyBlocks& by, KeySums of);
// The same inside loops over groups of queries and of keys, of which these are the blocks; with the
// sum over all units.
void key_gradients_nest(NestWriter& nest, const Problem& problem, const KeyBlocks& by, KeySums sums,
                        const NestLoop& of_queries, const NestLoop& J, const Units::Sum& of);

}  // namespace redblue
