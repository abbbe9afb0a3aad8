#pragma once
// A recording: the counts of some points, each a subject with its arguments. It holds nothing of
// the machine that made it, so that a gate can hold another machine to it. All types are values.

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

// How the counts were made: by runs, or by formulas.
enum class How { run, count };
std::string_view to_string(How how);

struct Point {
  std::string subject;
  Arguments arguments;

  friend bool operator==(const Point&, const Point&) = default;
};
// Equal for points whose arguments differ in order alone.
using PointKey = std::pair<std::string, std::map<std::string, Value>>;
PointKey key_of(const Point& point);
// "backward/small n=64 m=64 d=16 M=1024"
std::string to_string(const Point& point);

// A change that somebody took into a baseline.
struct Accepted {
  std::string date, who, reason;
  Index before = 0, after = 0;  // words

  friend bool operator==(const Accepted&, const Accepted&) = default;
};

// The counts of one point.
struct RecordedPoint {
  Point point;
  std::optional<Index> least_M = {};  // of the point's problem, where it is known: of one level
  std::map<std::string, std::string> fingerprints = {};  // as Subject::fingerprints has them
  bool fits = true;       // in the point's M; without counts where not
  std::string why = {};   // the reason why it does not fit; no part of a recording's text
  RunCounts counts = {};  // without operations, which no recording holds
  std::vector<Budget> at_most = {};
  std::optional<Index> bound = {};  // where a budget is over it
  std::vector<Accepted> accepted = {};

  friend bool operator==(const RecordedPoint&, const RecordedPoint&) = default;
};

// What the points of a recording are a part of.
struct RecordedPart {
  SuitePart part;
  SuiteOrigin origin;

  friend bool operator==(const RecordedPart&, const RecordedPart&) = default;
};

struct Recording {
  How how = How::run;
  std::vector<RecordedPoint> points = {};
  std::optional<RecordedPart> part = std::nullopt;  // of one that is to be merged with others
};

// Has one line for each phase, so that a reviewer of a changed baseline sees which phase changed.
std::string to_json(const Recording& recording);
// Throws: InputError with `from` and the reason; also for a recording without points that is no
// part, or with a point or a phase of a point twice.
Recording parse_recording(std::string_view text, const std::string& from);

// The name in tables and recordings of the moves outside all phases.
inline const std::string kOutside = "(outside)";

RecordedPoint recorded(const Point& point, const RunCounts& counts);

// The reason why the counts of a formula do not fit in M; empty where they do. A formula that a
// user wrote need not know M.
std::string why_not_in(Index M, const RunCounts& formula);

// A number of the point, or of a phase of it: of Metric, kWords or kLeastM; the sum of words at
// most 2^63 - 1. Nothing where there is none: no such phase, no counts, an unknown least M.
std::optional<Index> number_of(const RecordedPoint& recorded, std::string_view phase,
                               std::string_view metric);

// Counts one point now. A fast memory that is too small is no error: the point does not fit.
// Throws: what else the subject throws; std::logic_error for How::count where it has no formula,
// and for a budget over a bound where none is known.
RecordedPoint record(const Subject& subject, const Arguments& arguments, How how,
                     const std::vector<Budget>& at_most = {});
// Calls work(k) for each k below `count`, on several threads, and progress(done) after each, on one
// thread at a time, with the number of calls that are done. After a failure no more calls begin.
// Throws what the first call to fail threw, when all calls that had begun have ended.
void in_any_order(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t done)>& progress);

}  // namespace redblue
