#pragma once
// A recording: what some points moved, each a subject with its arguments. It holds nothing of the
// machine that made it, so that a gate can hold another one to it. Values.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/gate/subject.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {

// Whether points ran, or their formulas were asked.
enum class How { run, count };
std::string_view to_string(How how);

struct Point {
  std::string subject;
  Arguments arguments;

  friend bool operator==(const Point&, const Point&) = default;
};
// Whatever the order of their arguments.
using PointKey = std::pair<std::string, std::map<std::string, Value>>;
PointKey key_of(const Point& point);
// "backward/small n=64 m=64 d=16 M=1024"
std::string to_string(const Point& point);

// What one point moved.
struct RecordedPoint {
  Point point;
  std::optional<Index> least_M;  // where it is known
  bool fits = true;              // in the point's M; else nothing moved
  std::string why = {};          // it does not fit; no part of a recording's text
  RunCounts counts;              // words and peaks alone

  friend bool operator==(const RecordedPoint&, const RecordedPoint&) = default;
};

struct Recording {
  How how = How::run;
  std::vector<RecordedPoint> points;
};

// A line a phase, so that a change of a baseline is read where it is reviewed.
std::string to_json(const Recording& recording);
// Throws: InputError, naming `from` and what is wrong; also where there is nothing to watch, or a
// point or a phase of one is there twice.
Recording parse_recording(std::string_view text, const std::string& from);

// What tables and recordings call the moves that are in no phase.
inline const std::string kOutside = "(outside)";

RecordedPoint recorded(const Point& point, const RunCounts& counts);

// What one point moves now. Throws: what the subject does, but for a fast memory that is too small;
// std::logic_error where it has no formula, and one is asked for.
RecordedPoint record(const Subject& subject, const Arguments& arguments, How how);
// Calls work(k) for k below `count`, on so many threads, and told(how many are done) after each, on
// one thread at a time. Throws what the first of them to fail threw, when all that had begun ended.
void in_any_order(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t done)>& told);

}  // namespace redblue
