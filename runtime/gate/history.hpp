#pragma once
// The history of points over the versions of a baseline, as a table and a picture. All types are
// values.

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
  // The state of a point in one version.
  struct Value {
    bool there = false;                   // this version has the point
    bool fits = true;                     // the point fits in its M
    std::optional<Index> number = {};     // empty also if the phase does not exist
    std::vector<Accepted> accepted = {};  // changes accepted since the version before
  };
  struct Line {
    Point point;
    std::vector<Value> values;  // one value for each commit

    [[nodiscard]] bool changes() const;
  };
  std::string file;
  std::string metric;                // such as "words" or "phase1/S:reads"
  std::vector<Commit> commits = {};  // oldest first
  std::vector<Line> lines = {};      // in the order in which points first appear
  bool shallow = false;              // the repository lacks older commits
};

// The phase and metric of "[PHASE:]METRIC". A metric is any metric of a budget except over_bound.
struct MetricAsked {
  std::string phase = {}, metric = "words";
};
// Throws: std::invalid_argument.
MetricAsked parse_metric(const std::string& text);

// Builds the history. An acceptance in the first version counts as new unless `before` has it.
// Requires: at least one version, oldest first.
History history_of(const std::string& file, const MetricAsked& asked,
                   const std::vector<Version>& versions,
                   const std::vector<RecordedPoint>& before = {});

// Describes the commits at which a point appears, disappears, changes or is accepted.
Description describe(const History& history);
// Draws the words of one point, or the changes of several points in percent since each first
// appeared. The points that change most have names. Requires: some point has a number.
Picture history_picture(const History& history);

}  // namespace redblue
