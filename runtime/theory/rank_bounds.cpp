#include "runtime/theory/rank_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "memsim/errors.hpp"
#include "runtime/theory/lemmas.hpp"

namespace redblue {
namespace {

// The words of one row, and of one column, for a rank that makes whole pairs of them: words of
// sources, and of sums. In units of d.
struct Charges {
  Index row_sources, row_sums, column_sources, column_sums;
};

Charges charges(const RankTask& task) {
  const Index keys = task.problem.sharing == Sharing::kv ? 1 : 2;
  switch (task.pass) {
    case Pass::forward:
    case Pass::attention:
      return {1, 1, keys, 0};
    case Pass::backward:
      return {2, 0, keys, 0};
    case Pass::gradients:
      return {2, 1, keys, keys};
    case Pass::product:
    case Pass::logsumexp:
    case Pass::layer:
    case Pass::linear:
    case Pass::linear_gradient:
    case Pass::own:
      break;
  }
  throw ShapeMismatch("there is no bound for ranks of " + std::string(to_string(task.pass)) +
                      ": ask for forward, attention, backward or gradients");
}

void check(const RankTask& task) {
  const Problem& problem = task.problem;
  const auto [n, m, d] = problem.shape;
  require(n > 0 && m > 0 && d > 0 && problem.shape.dv > 0, "n, m, d and dv are at least 1");
  require(task.ranks > 0, "there is at least one rank");
  require(problem.sharing != Sharing::self, "a bound for ranks where A1 = A2: none is proven");
  require(problem.sparsity.dense(), "a bound for ranks of sparse operands: none is proven");
  require(problem.wanted.all(), "a bound for ranks of some results alone: none is proven");
}

// Returns the smaller of the widths of keys and values. The other columns are left out (bounds.md,
// Widths).
Index width(const Problem& problem) {
  return std::min(problem.shape.d, problem.shape.dv);
}

Rectangles rectangles(const RankTask& task) {
  const auto [row_sources, row_sums, column_sources, column_sums] = charges(task);
  const Real d = real(width(task.problem));
  return {.rows = real(size_of(task.problem.live_queries())),
          .columns = real(size_of(task.problem.live_keys())),
          .row = real(row_sources + row_sums) * d,
          .column = real(column_sources + column_sums) * d};
}

// Returns the mean of pairs over ranks. Some rank is charged with at least as many.
Real pairs_of_a_rank(const RankTask& task) {
  const Problem& problem = task.problem;
  const Real pairs = problem.mask.full() ? real(problem.shape.n) * real(problem.shape.m)
                                         : real(problem.pairs().value());
  return pairs / real(task.ranks);
}

// Returns gain - cost, rounded up, because words are whole. The gain is first lowered by more than
// all its roundings.
Index at_least(Real gain, Real cost) {
  return rounded_down(std::ceil(gain * (1 - 0x1p-50L) - cost));
}

}  // namespace

Held equal_shares(const RankTask& task) {
  const Held all = held_of(task, task.problem.shape.n, task.problem.shape.m);
  return {ceil_div(all.sources, task.ranks), ceil_div(all.results, task.ranks)};
}

Held held_of(const RankTask& task, Index queries, Index keys) {
  check(task);
  const auto [row_sources, row_sums, column_sources, column_sums] = charges(task);
  const Words d = width(task.problem);
  return {((Words(queries) * row_sources + Words(keys) * column_sources) * d).value(),
          ((Words(queries) * row_sums + Words(keys) * column_sums) * d).value()};
}

Index link_bound(const RankTask& task, const Held& held) {
  check(task);
  const Real pairs = pairs_of_a_rank(task);
  const Rectangles of = rectangles(task);
  const Real kept = real(held.sources) + real(held.results);
  // A rank that has f whole pairs needs words for these, and a word for each of its other pairs.
  // This is concave in f from the point where all held words are used. So the minimum is at that
  // point, or where all pairs are whole.
  return std::min(at_least(pairs, of.pairs(kept)), at_least(of.words(pairs), kept));
}

Index small_home_bound(const RankTask& task, const Held& held, Index words) {
  check(task);
  require(words > 0, "home and arena have at least one word");
  const Real moved =
      rectangles(task).events(pairs_of_a_rank(task), real(held.sources), real(words));
  return at_least(moved, real(held.results));
}

Index arena_bound(const RankTask& task, Index M) {
  check(task);
  require(M > 0, "M is at least 1");
  return at_least(rectangles(task).events(pairs_of_a_rank(task), 0, real(M)), 0);
}

}  // namespace redblue
