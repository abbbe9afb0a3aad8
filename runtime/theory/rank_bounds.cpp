#include "runtime/theory/rank_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "memsim/errors.hpp"
#include "runtime/theory/lemmas.hpp"

namespace redblue {
namespace {

// What a rank that makes whole pairs of a row, and of a column, has of them, in times d: words of
// sources, and of sums.
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
    default:
      throw ShapeMismatch("there is no bound for ranks of " + std::string(to_string(task.pass)) +
                          ": ask for forward, attention, backward or gradients");
  }
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

// Columns that values, or keys, have more of than the others have are left out (bounds.md, Widths).
Index width(const Problem& problem) {
  return std::min(problem.shape.d, problem.shape.dv);
}

// Rectangles of whole pairs: x rows and y columns, x <= n and y <= m, that take a x + b y words.
class Rectangles {
 public:
  explicit Rectangles(const RankTask& task) {
    const auto [row_sources, row_sums, column_sources, column_sums] = charges(task);
    const Real d = real(width(task.problem));
    const Real n = real(size_of(task.problem.live_queries()));
    const Real m = real(size_of(task.problem.live_keys()));
    const Real of_row = real(row_sources + row_sums) * d;
    const Real of_column = real(column_sources + column_sums) * d;
    const bool rows_end_first = of_row * n <= of_column * m;
    most_ = rows_end_first ? n : m;
    each_ = rows_end_first ? of_row : of_column;
    other_ = rows_end_first ? of_column : of_row;
  }

  // The fewest words for so many pairs. Concave: a square root while both sides may grow, then
  // linear, all rows being there, or all columns.
  [[nodiscard]] Real words(Real pairs) const {
    return pairs * other_ <= each_ * most_ * most_ ? 2 * std::sqrt(each_ * other_ * pairs)
                                                   : each_ * most_ + other_ * pairs / most_;
  }
  // The most pairs of so many words: convex.
  [[nodiscard]] Real pairs(Real words) const {
    return words <= 2 * each_ * most_ ? words * words / (4 * each_ * other_)
                                      : most_ * (words - each_ * most_) / other_;
  }

 private:
  Real most_;          // of the side that ends first: rows, or columns
  Real each_, other_;  // words of one of these, and of one of the other side
};

// The pairs of the rank that is charged with the most.
Real pairs_of_a_rank(const RankTask& task) {
  const Problem& problem = task.problem;
  const Real pairs = problem.mask.full() ? real(problem.shape.n) * real(problem.shape.m)
                                         : real(problem.pairs().value());
  return pairs / real(task.ranks);
}

// Lemma 2 on one rank: the events of a run that is charged with so many pairs, has `first` words of
// rows and columns at the start, and at most `words` words at a time. Of a pair that crosses into a
// phase, one word is there at its start or is an event.
Real events(const Rectangles& rectangles, Real pairs, Real first, Real words) {
  const auto whole = [&](Real of_words) { return rectangles.pairs(of_words); };
  return over_lengths([&](Real T) {
    const Real of_first = std::max(whole(first + T), whole(first) + T);
    const Real of_phase =
        std::max({whole(words + T), whole(T) + words, whole(words) + T, words + T});
    return T * (pairs - of_first) / of_phase;
  });
}

// gain - cost, rounded up, as words are whole. The gain is lowered by more than all its roundings.
Index at_least(Real gain, Real cost) {
  return rounded_down(std::ceil(gain * (1 - 0x1p-50L) - cost));
}

}  // namespace

Held equal_shares(const RankTask& task) {
  check(task);
  const auto [row_sources, row_sums, column_sources, column_sums] = charges(task);
  const Shape& shape = task.problem.shape;
  const Words d = width(task.problem);
  const auto share = [&](Index of_row, Index of_column) {
    return ceil_div(((Words(shape.n) * of_row + Words(shape.m) * of_column) * d).value(),
                    task.ranks);
  };
  return {share(row_sources, column_sources), share(row_sums, column_sums)};
}

Index link_bound(const RankTask& task, const Held& held) {
  check(task);
  const Real pairs = pairs_of_a_rank(task);
  const Rectangles rectangles(task);
  const Real kept = real(held.sources) + real(held.results);
  // Of f whole pairs and pairs - f words of others: concave in f from where held words are all
  // used, so that the fewest are there or where all pairs are whole.
  return std::min(at_least(pairs, rectangles.pairs(kept)), at_least(rectangles.words(pairs), kept));
}

Index small_home_bound(const RankTask& task, const Held& held, Index words) {
  check(task);
  require(words > 0, "home and arena have at least one word");
  const Real moved =
      events(Rectangles(task), pairs_of_a_rank(task), real(held.sources), real(words));
  return at_least(moved, real(held.results));
}

Index arena_bound(const RankTask& task, Index M) {
  check(task);
  require(M > 0, "M is at least 1");
  return at_least(events(Rectangles(task), pairs_of_a_rank(task), 0, real(M)), 0);
}

}  // namespace redblue
