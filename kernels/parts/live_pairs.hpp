#pragma once
// The live pairs of a tile of scores. A tile without one is not computed; one in which all are live
// is computed as without a mask; in one with some, the words of the others are set, after whatever
// made them, so that none reaches a result.

#include <algorithm>
#include <limits>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/problem.hpp"
#include "memsim/layout.hpp"

namespace redblue {

// The score of a dead pair: its exponential is 0, and it is no maximum.
inline constexpr float kDeadScore = -std::numeric_limits<float>::infinity();

class LivePairs {
 public:
  // Of the queries I and the keys J.
  LivePairs(const Problem& problem, Range I, Range J)
      : problem_(problem), I_(I), J_(J), live_(problem.pairs(I, J)) {}
  // Registers hold a multiple of so many keys.
  static constexpr Index kKeyStep = 12;
  // Of the queries I and those of the keys J from about the first to about the last that one of
  // them meets, in whole steps.
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
  [[nodiscard]] Range keys() const { return J_; }

  [[nodiscard]] bool none() const { return live_ == Words(0); }
  // The dead words of a tile with a row for each query, or of its transpose, become `value`.
  template <class Scores>
  void set_dead(const Scores& s, float value) const {
    if (live_ == Words(I_.size()) * J_.size()) {
      return;
    }
    for (Index i = 0; i < I_.size(); ++i) {
      Index dead = 0;  // from here on, up to what is live
      problem_.mask.each_range(I_.begin + i, J_, [&](Range live) {
        fill_in_row(s, i, {dead, live.begin - J_.begin}, value);
        dead = live.end - J_.begin;
      });
      fill_in_row(s, i, {dead, J_.size()}, value);
    }
  }

 private:
  const Problem& problem_;
  Range I_, J_;
  Words live_;
};

inline LivePairs all_pairs(const Problem& problem) {
  return {problem, {0, problem.shape.n}, {0, problem.shape.m}};
}

}  // namespace redblue
