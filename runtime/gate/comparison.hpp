#pragma once
// Compares two recordings exactly. Fewer words are a difference, too. A difference that a tolerance
// hides is still reported. All types are values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/baseline.hpp"

namespace redblue {

// How far a metric may change: up, down or both. Applies to one phase, or to each phase and the
// total, at every level of fast memory. A change of the total is also hidden if hidden changes of
// phases explain all of it.
struct Tolerance {
  enum class Side { both, up, down };
  std::string text;   // as the user typed it: "reads=1%", "reads=+1%", "phase1/S:peak=64"
  std::string phase;  // empty: all phases and the total; "total": only the total
  std::string metric;
  std::optional<double> percent;  // percent of the baseline
  Index words = 0;                // used if `percent` is empty
  Side side = Side::both;
};
// Parses [PHASE:]METRIC=WORDS or [PHASE:]METRIC=SHARE%. A sign limits it to one side. METRIC is
// reads, writes, index_reads, index_writes, peak or least_M. Throws: std::invalid_argument.
Tolerance parse_tolerance(const std::string& text);

// A changed number, or a phase or point that is new or gone.
struct Difference {
  enum class Kind {
    words,
    phase_gone,
    phase_new,
    no_longer_fits,
    fits_now,
    least_M_unknown,  // unknown in one recording, known in the other
    other_input,      // a file named by an argument has changed
    // `after` exceeds the limit `before`, or the number does not exist.
    over_budget,
    // The older recording has the budget, the newer does not. No tolerance hides this.
    budget_gone,
    budget_raised,
    gone,
    failed,
    added
  };
  Kind kind = Kind::words;
  std::size_t level = 0;    // inner level, 1 is the innermost; 0: M itself
  std::string phase = {};   // empty: the whole point
  std::string metric = {};  // for words and budgets; for Kind::other_input the argument
  Index before = 0, after = 0;
  // Set for other_input, budgets, gone, failed and, if known, no_longer_fits.
  std::string why = {};
  std::string hidden_by = {};  // text of the tolerance that hides it; empty: not hidden
};
// The change as a share of `before`: "+0.08%", "+<0.001%", "-100%", "+1,410,065%".
// Requires: before > 0.
std::string to_share(Index before, Index after);
// "phase1/S" or "total"; for an inner level "level 1, phase1/S"
std::string place_of(const Difference& difference);
// "phase1/S reads 1,234 -> 1,235 words (+1, +0.08%)"
std::string to_words(const Difference& difference);

// The differences of one point: first phases, largest change first, then the total, then hidden
// differences.
struct Compared {
  Point point;
  std::optional<RecordedPoint> before = {}, now = {};
  std::vector<Difference> differences = {};
  std::optional<Accepted> accepted = std::nullopt;  // set if the baseline accepts the differences
  std::string file = {};                            // file that lists the point; empty: unknown
  std::size_t line = 0;

  [[nodiscard]] bool fails() const;  // some difference is not hidden by a tolerance
};

struct GateComparison {
  std::string before = {}, now = {};  // names of the recordings in reports
  How how = How::run;
  std::vector<Compared> points = {};
  SuitePart part = {};           // the part of `before` that was compared
  std::string accept_with = {};  // command that accepts points with --accept; empty: none

  [[nodiscard]] std::size_t failing() const;
  [[nodiscard]] std::size_t hidden() const;  // number of hidden differences
  [[nodiscard]] std::size_t accepted() const;
};

// Returns the violated budgets of a point. A budget also fails if its number does not exist.
std::vector<Difference> over_budget(const RecordedPoint& recorded);
// Returns advice about a violated budget. Empty unless a number exceeds its limit.
std::string advice(const Difference& over);

// Returns the differences in counts, least M, fit and input files. Budgets are not compared.
std::vector<Difference> differences(const RecordedPoint& before, const RecordedPoint& now,
                                    const std::vector<Tolerance>& tolerances);

// Returns the texts of tolerances for a phase that no point has. The phase may be misspelled.
std::vector<std::string> idle(const std::vector<Tolerance>& tolerances,
                              const GateComparison& comparison);

// Sorts failing points first, by the size of their change, and equal points last. Ties keep their
// order.
void sort_by_change(GateComparison& comparison);

// Compares point by point. Checks the new counts against the budgets of both recordings. A budget
// that was removed or raised is a difference. Throws: InputError if one recording was run and the
// other counted by formulas.
GateComparison compare(const Recording& before, const Recording& now,
                       const std::vector<Tolerance>& tolerances);

}  // namespace redblue
