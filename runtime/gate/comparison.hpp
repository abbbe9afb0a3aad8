#pragma once
// The exact comparison of two recordings. Fewer words are a difference as well as more. A
// difference that a tolerance hides is still reported. All types are values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/baseline.hpp"

namespace redblue {

// How far a metric may change, up, down or both, in one phase, or in each phase and in the total,
// at every level of fast memory. A total that changed by the hidden changes of phases alone is
// hidden, too.
struct Tolerance {
  enum class Side { both, up, down };
  std::string text;   // as a person typed it: "reads=1%", "reads=+1%", "phase1/S:peak=64"
  std::string phase;  // empty: all phases and the total; "total": the total alone
  std::string metric;
  std::optional<double> percent;  // of the baseline
  Index words = 0;                // where `percent` has no value
  Side side = Side::both;
};
// Parses [PHASE:]METRIC=WORDS or [PHASE:]METRIC=SHARE%, with a sign for one side. METRIC is reads,
// writes, index_reads, index_writes, peak or least_M.
// Throws: std::invalid_argument.
Tolerance parse_tolerance(const std::string& text);

// A number that has changed, or a phase or point that is gone or new.
struct Difference {
  enum class Kind {
    words,
    phase_gone,
    phase_new,
    no_longer_fits,
    fits_now,
    least_M_unknown,  // in one of the two recordings
    other_input,      // a file has changed that an argument names
    over_budget,  // `after` is more than `before`, which it may be at most, or cannot be counted
    budget_gone,  // of two recordings; no tolerance hides what is of a budget
    budget_raised,
    gone,
    failed,
    added
  };
  Kind kind = Kind::words;
  std::size_t level = 0;    // an inner level, from 1, the innermost; 0: M itself
  std::string phase = {};   // empty: the whole point
  std::string metric = {};  // for words and budgets; the argument for Kind::other_input
  Index before = 0, after = 0;
  std::string why = {};        // for other_input, budgets, gone, failed and, where known,
                               // no_longer_fits
  std::string hidden_by = {};  // the text of the tolerance that hides it; empty: none
};
// The change as a share of `before`: "+0.08%", "+<0.001%", "-100%", "+1,410,065%".
// Requires: before > 0.
std::string to_share(Index before, Index after);
// "phase1/S", "total", or, of an inner level of fast memory, "level 1, phase1/S".
std::string place_of(const Difference& difference);
// "phase1/S reads 1,234 -> 1,235 words (+1, +0.08%)"
std::string to_words(const Difference& difference);

// The differences of a point. Phases are first, by the size of their change, so that the culprit is
// on top; then the total, and then the hidden differences.
struct Compared {
  Point point;
  std::optional<RecordedPoint> before = {}, now = {};
  std::vector<Difference> differences = {};
  std::optional<Accepted> accepted = std::nullopt;  // the baseline takes the differences
  std::string file = {};  // where a person finds the point; empty: not known
  std::size_t line = 0;

  [[nodiscard]] bool fails() const;  // by a difference that no tolerance hides
};

struct Comparison {
  std::string before = {}, now = {};  // the names of the two recordings, for reports
  How how = How::run;
  std::vector<Compared> points = {};
  SuitePart part = {};           // of the points of `before` that the points are
  std::string accept_with = {};  // the command that takes points with --accept; empty: none

  [[nodiscard]] std::size_t failing() const;
  [[nodiscard]] std::size_t hidden() const;  // the number of hidden differences
  [[nodiscard]] std::size_t accepted() const;
};

// What is over the point's own budgets. One that is of a number that there is not fails, too.
std::vector<Difference> over_budget(const RecordedPoint& recorded);
// The advice about the first of such: empty unless a number is over.
std::string advice(const Difference& over);

// Those of counts and of what is counted; budgets are no part of them.
std::vector<Difference> differences(const RecordedPoint& before, const RecordedPoint& now,
                                    const std::vector<Tolerance>& tolerances);

// The texts of tolerances for a phase that no point has: perhaps misspelled.
std::vector<std::string> idle(const std::vector<Tolerance>& tolerances,
                              const Comparison& comparison);

// Puts points that fail first, by the size of their change, and equal points last, in the order of
// `before`.
void sort_by_change(Comparison& comparison);

// Compares point by point. What is now is held to the budgets of both, and a budget that is gone or
// larger than it was is a difference. Throws: InputError where the counts of the two were not made
// alike.
Comparison compare(const Recording& before, const Recording& now,
                   const std::vector<Tolerance>& tolerances);

}  // namespace redblue
