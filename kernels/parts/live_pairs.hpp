#pragma once
// The live pairs of a tile of scores under a mask.
//
// A tile without a live pair is not computed. A tile with only live pairs is computed as without a
// mask. In any other tile the words of dead pairs are set after they were computed, so that they
// reach no result. A query or key is read for a tile only if it has a live pair in the tile.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/problem.hpp"
#include "memsim/layout.hpp"
#include "memsim/machine.hpp"
#include "memsim/partial.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {

// The score of a dead pair: its exponential is 0, and it is never a maximum.
inline constexpr float kDeadScore = -std::numeric_limits<float>::infinity();

class LivePairs {
 public:
  // The pairs of the queries I and the keys J.
  LivePairs(const Problem& problem, Range I, Range J)
      : problem_(problem), I_(I), J_(J), live_(problem.pairs(I, J)) {}
  // The step of key ranges. Register tiles of 1, 2, 4 or 6 keys divide it.
  static constexpr Index kKeyStep = 12;
  // The pairs of the queries I and some keys of J: from about the first to about the last key that
  // one of the queries meets, in whole steps.
  static LivePairs near(const Problem& problem, Range I, Range J, Index step = kKeyStep) {
    if (problem.mask.full()) {
      return {problem, I, J};
    }
    const Range met = problem.mask.hull(I, J);
    return {problem,
            I,
            {J.begin + (met.begin - J.begin) / step * step,
             std::min(J.begin + ceil_div(met.end - J.begin, step) * step, J.end)}};
  }
  [[nodiscard]] Range queries() const { return I_; }
  [[nodiscard]] Range keys() const { return J_; }
  [[nodiscard]] const Problem& problem() const { return problem_; }

  // The pairs of some queries and keys, given by their places among I and J.
  [[nodiscard]] LivePairs part(Range queries, Range keys) const {
    const bool whole = queries.size() == I_.size() && keys.size() == J_.size();
    return whole ? *this : LivePairs(problem_, part_of(I_, queries), part_of(J_, keys));
  }

  [[nodiscard]] bool none() const { return live_ == Words(0); }
  // The queries that meet some of the keys. The other two: those among them that also meet earlier
  // or later keys.
  [[nodiscard]] Ranges met() const { return all() ? Ranges{I_} : meeting({I_}, J_); }
  [[nodiscard]] Ranges met_before() const { return meeting(met(), {0, J_.begin}); }
  [[nodiscard]] Ranges met_after() const { return meeting(met(), {J_.end, problem_.shape.m}); }
  // Sets the dead words to `value` in a tile with a row for each query, or in its transpose.
  void set_dead(const View& s, float value) const {
    if (s.machine().is_heard()) {
      fill_dead(s, value);
    } else if (!all()) {
      keep_words(s, bits_of_queries(), value);
    }
  }
  void set_dead(const Transposed<View>& s_t, float value) const {
    if (s_t.of.machine().is_heard()) {
      fill_dead(s_t, value);
    } else if (!all()) {
      keep_words(s_t.of, bits_of_keys(), value);
    }
  }

 private:
  [[nodiscard]] bool all() const { return live_ == Words(I_.size()) * J_.size(); }
  // The live words of a tile with a row for each query, or for each key, as keep_words() takes
  // them.
  [[nodiscard]] std::vector<std::uint64_t> bits_of_queries() const;
  [[nodiscard]] std::vector<std::uint64_t> bits_of_keys() const;
  // Sets the dead words range by range, as a listener hears it.
  template <class Scores>
  void fill_dead(const Scores& s, float value) const {
    if (all()) {
      return;
    }
    for (Index i = 0; i < I_.size(); ++i) {
      Index dead = 0;  // keys from here to the next live range are dead
      problem_.mask.each_range(I_.begin + i, J_, [&](Range live) {
        fill_in_row(s, i, {dead, live.begin - J_.begin}, value);
        dead = live.end - J_.begin;
      });
      fill_in_row(s, i, {dead, J_.size()}, value);
    }
  }
  // The queries that meet some of the keys.
  [[nodiscard]] Ranges meeting(const Ranges& queries, Range keys) const {
    if (keys.size() == 0) {
      return {};
    }
    if (problem_.mask.full()) {
      return queries;
    }
    return rows_with(queries, [&](Index i) {
      return problem_.mask.hull({i, i + 1}, keys).size() > 0;
    });
  }

  const Problem& problem_;
  Range I_, J_;
  Words live_;
};

// The keys of J that the queries I meet, as one range from about the first to about the last key.
// It may be empty.
inline Range keys_near(const Problem& problem, Range I, Range J) {
  if (problem.mask.full()) {
    return J;
  }
  const LivePairs live = LivePairs::near(problem, I, J);
  return live.none() ? Range{} : live.keys();
}

inline LivePairs all_pairs(const Problem& problem) {
  return {problem, {0, problem.shape.n}, {0, problem.shape.m}};
}

// The live rows of a matrix, which belong to queries or keys. Without a mask all rows are live, and
// this is the matrix itself.
template <class Matrix>
class LiveRows {
 public:
  // `others` is the value that words of other rows have when they are read.
  LiveRows(Matrix& all, const Mask& mask, const Ranges& rows, float others = 0) : all_(&all) {
    if (!mask.full()) {
      if constexpr (std::is_const_v<Matrix>) {
        all_ = &some_.emplace(only_rows(all, rows, others));
      } else {
        all_ = &some_.emplace(only_rows(all, rows));
      }
    }
  }
  LiveRows(const LiveRows&) = delete;
  LiveRows& operator=(const LiveRows&) = delete;

  [[nodiscard]] Matrix& operator*() const { return *all_; }
  [[nodiscard]] Matrix* operator->() const { return all_; }

 private:
  std::optional<SlowMatrix> some_;
  Matrix* all_;
};

}  // namespace redblue
