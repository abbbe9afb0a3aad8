#pragma once
// The gradients dK = p^T Q and dV = f^T dO with resident keys.
//
// A block of c keys stays with its values and both gradients, while queries stream in blocks of r
// rows. L and v = rowsum(dO * O) are given. Scores never leave fast memory: they exist in strips of
// s keys (RowPlan::strip), one strip after another. So many queries can stream together, and the
// sums are loaded and stored less often. With T = ceil(m / c), if values are as wide as keys:
//
//   reads   2 m d + T (2 n d + 2 n);   writes  2 m d;   peak  4 c d + 2 r (d + 1) + 2 r s
//
// Under a mask only queries that meet a key of the block stream.
//
// Without strips, tiles of scores have all keys of the block. Then p K may be added to dQ, too.
// Each block of keys writes dQ, and each but the first reads it:
//
//   reads   (T - 1) n d more;   writes  T n d more;   peak  4 c d + 2 r d + 2 r c
//
// If values are keys, only K_J and the single sum dK_J + dV_J stay:
//
//   reads   m d + T (2 n d + 2 n);   writes  m d;   peak  2 c d less
//
// Operands that the wanted results do not need are not read: without dK and dQ, neither values nor
// v. Other activations than softmax read no L and no v, 2 T n words fewer. They keep s until p is
// made, then turn it into f.
//
// Inner levels of fast memory work as for resident rows (kernels/parts/levels.hpp), with queries
// and keys exchanged. A block of b keys stays in a level with everything that belongs to it, while
// queries stream. Strips of scores are next to the arithmetic. A level with T1 blocks of keys, each
// inside one block of the next level, moves the following words. C is the number of blocks of
// queries of the next level.
//
//   reads   C 4 m d - 2 m d + (2 n d + 2 n) T1;   writes  C 2 m d
//
// Each has 2 m d more, because K and dK are multiplied by the factor c. If values are keys, strips
// are multiplied by it instead:
//
//   reads   C 2 m d - m d + (2 n d + 2 n) T1;   writes  C m d
//
// With steps apart, each step borrows its own tiles. C1 is the number of blocks of queries of the
// level itself:
//
//   reads   C1 4 m d - 2 m d + (4 n d + 2 n) T1;   writes  C1 2 m d
//   reads   C1 4 m d - m d + (4 n d + 2 n) T1;     writes  C1 2 m d      values are keys

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
  const SlowMatrix *L, *v;   // null for other activations; v is for dK and dQ
  SlowMatrix *dK, *dV, *dQ;  // p K is added to dQ; null if not made
  // The factor c of the scores. K_J is multiplied by it when it is read, and dK at the end. If K is
  // also V, Q_I is multiplied instead, and p before it meets K.
  std::optional<float> scale = std::nullopt;
  // False if dK is one of several sums, over some queries each, that are added up before the
  // scaling.
  bool scales_dK = true;
  bool in_strips = false;  // as in KeySums
};

struct KeyBlocks {
  Index rows, keys;
  Levels inner = {};  // from the innermost level out; only with strips
};

// The sums that are made. dQ is summed in slow memory. If values are keys, dK + dV is one sum, and
// either both are made or neither.
struct KeySums {
  bool dQ, dK, dV;
  bool one_of_keys = false;
  bool of_parts = false;  // over some queries each, added up later
  // Queries pass one strip of the keys after another; only if dQ is not made.
  bool in_strips = false;
  [[nodiscard]] bool needs_p() const { return dQ || dK; }
  [[nodiscard]] bool any() const { return dQ || dK || dV; }
};

// The sums of the wanted results.
KeySums key_sums(const Problem& problem);

// Computes the sums of some blocks of keys. Requires: all blocks, if p K is added to dQ.
void key_gradients(Machine& machine, const Problem& problem, const KeyBlocks& by,
                   const KeyGradients& x, Range units);
PhaseCost key_gradients_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                             KeySums of, Range units);
Range all_key_blocks(const Problem& problem, const KeyBlocks& by);
// The same from the sum over blocks of keys and the queries that they meet.
PhaseCost key_gradients_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                             KeySums sums, const Units::Sum& of);
// The same for an inner level.
PhaseCost key_gradients_level_cost(std::string path, const Problem& problem, const KeyBlocks& by,
                                   KeySums sums, Range units, std::size_t level);
// Returns the fitting blocks with the fewest words: the most keys that fit with one query. For
// least time: the most keys that fit with enough queries to keep the registers busy.
KeyBlocks fit_key_gradients(const Problem& problem, const Memory& memory, Objective objective,
                            KeySums of);
void key_gradients_nest(NestWriter& nest, const Problem& problem, const KeyBlocks& by, KeySums of);
// The same inside loops over groups of queries and groups of keys. `of_queries` is the loop over
// the groups of queries. `J` is the loop over the key blocks of a group. `of` is the sum over all
// units.
void key_gradients_nest(NestWriter& nest, const Problem& problem, const KeyBlocks& by, KeySums sums,
                        const NestLoop& of_queries, const NestLoop& J, const Units::Sum& of);

}  // namespace redblue
