#pragma once
// The words of points through the versions of a baseline, as a table and as a picture. All types
// are values.

#include <optional>
#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/gnuplot.hpp"

namespace redblue {

// A commit that changed the baseline.
struct Commit {
  std::string hash, short_hash, date, author, subject;
};

struct Version {
  Commit commit;
  std::vector<RecordedPoint> points;
};

struct History {
  // What one version says of a point.
  struct Value {
    bool there = false;                   // the point
    bool fits = true;                     // in its M
    std::optional<Index> number = {};     // none where there is no such phase, either
    std::vector<Accepted> accepted = {};  // that the version before has not
  };
  struct Line {
    Point point;
    std::vector<Value> values;  // one a commit

    [[nodiscard]] bool changes() const;
  };
  std::string file;
  std::string metric;                // "words", "phase1/S:reads"
  std::vector<Commit> commits = {};  // the oldest first
  std::vector<Line> lines = {};      // in the order in which points came
  bool shallow = false;              // older commits are not there
};

// A phase and a metric of "[PHASE:]METRIC", of those that budgets have but over_bound.
struct MetricAsked {
  std::string phase = {}, metric = "words";
};
// Throws: std::invalid_argument.
MetricAsked parse_metric(const std::string& text);

// What was accepted in the first version counts as its own where `before` has not. Requires:
// versions, the oldest first.
History history_of(const std::string& file, const MetricAsked& asked,
                   const std::vector<Version>& versions,
                   const std::vector<RecordedPoint>& before = {});

// The commits at which a point came, went, changed or was accepted.
Description describe(const History& history);
// Of one point its words; of several the change since each came, in percent. Points that change
// most have names. Requires: a point with a number.
Picture history_picture(const History& history);

}  // namespace redblue
