#pragma once
// A recording holds the counts of points. A point is a subject with its arguments. A recording has
// no facts about the machine that made it, so a gate can check another machine against it. All
// types are values.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/gate/budget.hpp"
#include "runtime/gate/subject.hpp"
#include "runtime/gate/suite_part.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {

// How counts are made: by running, or by formulas.
enum class How { run, count };
std::string_view to_string(How how);

struct Point {
  std::string subject;
  Arguments arguments;

  friend bool operator==(const Point&, const Point&) = default;
};
// Two points have equal keys if their arguments differ only in order.
using PointKey = std::pair<std::string, std::map<std::string, Value>>;
PointKey key_of(const Point& point);
// "backward/small n=64 m=64 d=16 M=1024"
std::string to_string(const Point& point);

// A change that a person accepted into a baseline.
struct Accepted {
  std::string date, who, reason;
  Index before = 0, after = 0;  // words moved

  friend bool operator==(const Accepted&, const Accepted&) = default;
};

// The counts of one point.
struct RecordedPoint {
  Point point;
  std::optional<Index> least_M = {};  // for the point's problem on one level; empty: unknown
  std::map<std::string, std::string> fingerprints = {};  // from Subject::fingerprints
  bool fits = true;       // the point fits in its M; if not, it has no counts
  std::string why = {};   // why it does not fit; not written to recordings
  RunCounts counts = {};  // without operations, which recordings omit
  std::vector<Budget> at_most = {};
  std::optional<Index> bound = {};  // the lower bound, if a budget refers to it
  std::vector<Accepted> accepted = {};

  friend bool operator==(const RecordedPoint&, const RecordedPoint&) = default;
};

// The part of a suite that a recording holds.
struct RecordedPart {
  SuitePart part;
  SuiteOrigin origin;

  friend bool operator==(const RecordedPart&, const RecordedPart&) = default;
};

struct Recording {
  How how = How::run;
  std::vector<RecordedPoint> points = {};
  // Set if the recording must be merged with others.
  std::optional<RecordedPart> part = std::nullopt;
};

// Writes one line for each phase, so that a diff of a baseline shows which phase changed.
std::string to_json(const Recording& recording);
// Throws: InputError with `from` and the reason. That includes a repeated point, a repeated phase
// of a point, and a whole recording without points.
Recording parse_recording(std::string_view text, const std::string& from);

// Name of the moves outside all phases, in tables and recordings.
inline const std::string kOutside = "(outside)";

RecordedPoint recorded(const Point& point, const RunCounts& counts);

// Returns why the counts of a formula do not fit in M, or an empty text if they do. Needed because
// a user's formula may ignore M.
std::string why_not_in(Index M, const RunCounts& formula);

// Returns a number of the point (`phase` empty) or of one phase. `metric` names a Metric, kWords or
// kLeastM. Sums of words are capped at 2^63 - 1. Empty if the phase or the counts do not exist, or
// the least M is unknown.
std::optional<Index> number_of(const RecordedPoint& recorded, std::string_view phase,
                               std::string_view metric);

// Counts one point now. If M is too small, the point is marked as not fitting; that is not an
// error. Throws: other exceptions of the subject; std::logic_error for How::count if the subject
// has no formula, and for a budget over an unknown bound.
RecordedPoint record(const Subject& subject, const Arguments& arguments, How how,
                     const std::vector<Budget>& at_most = {});
// Calls work(k) for each k below `count`, on several threads. Calls progress(done) after each, one
// thread after the other, with the number of finished calls. After a failure no new calls start.
// When all started calls have ended, rethrows the first failure.
void in_any_order(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t done)>& progress);

}  // namespace redblue
