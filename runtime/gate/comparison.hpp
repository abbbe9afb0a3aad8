#pragma once
// Two recordings held against each other, exactly and in both directions: fewer words are news as
// well. What a tolerance hides is still said. Values.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/baseline.hpp"

namespace redblue {

// How far a metric may move, up or down, in one phase or in all of them and in the total. Where the
// total changed by what phases may move and by nothing else, it passes with them.
struct Tolerance {
  std::string text;   // as a person said it: "reads=1%", "phase1/S:peak=64"
  std::string phase;  // empty: every; "total": the total alone
  std::string metric;
  std::optional<double> percent;  // of the baseline
  Index words = 0;                // where it is no percentage
};
// METRIC is reads, writes, peak or least_M. Throws: std::invalid_argument for what is not
// [PHASE:]METRIC=WORDS or [PHASE:]METRIC=SHARE%.
Tolerance parse_tolerance(const std::string& text);

// One number that is another now, or something that is gone or new.
struct Difference {
  enum class Kind {
    words,
    phase_gone,
    phase_new,
    no_longer_fits,
    fits_now,
    least_M_unknown,  // of one of the two
    gone,
    failed,
    added
  };
  Kind kind = Kind::words;
  std::string phase = {};   // empty: of the whole point
  std::string metric = {};  // of words
  Index before = 0, after = 0;
  std::string why = {};        // of gone, failed and, where it is known, no_longer_fits
  std::string hidden_by = {};  // the tolerance that lets it pass
};
// The change as a share of what it was: "+0.08%", "+<0.001%", "-100%", "+1,410,065%".
// Requires: before > 0.
std::string to_share(Index before, Index after);
// "phase1/S reads 1,234 -> 1,235 words (+1, +0.08%)"
std::string to_words(const Difference& difference);

// The differences of a point, the culprit first: phases by the words that they move more or fewer,
// then the total; and then what a tolerance lets pass.
struct Compared {
  Point point;
  std::optional<RecordedPoint> before, now;
  std::vector<Difference> differences;

  [[nodiscard]] bool fails() const;  // by what no tolerance hides
};

struct Comparison {
  std::string before, now;  // what is compared, for reports
  How how = How::run;
  std::vector<Compared> points;

  [[nodiscard]] std::size_t failing() const;
  [[nodiscard]] std::size_t hidden() const;  // differences that a tolerance lets pass
};

std::vector<Difference> differences(const RecordedPoint& before, const RecordedPoint& now,
                                    const std::vector<Tolerance>& tolerances);

// Tolerances of a phase that no point has. Perhaps a slip: nothing that they could let pass.
std::vector<std::string> idle(const std::vector<Tolerance>& tolerances,
                              const Comparison& comparison);

// Points that fail first, and of them those that differ most; equal ones last, in the order of
// `before`.
void sort_by_change(Comparison& comparison);

// Point by point. Throws: InputError where one ran and the other is from formulas.
Comparison compare(const Recording& before, const Recording& now,
                   const std::vector<Tolerance>& tolerances);

}  // namespace redblue
