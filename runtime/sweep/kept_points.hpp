#pragma once
// The journal of a sweep, points.jsonl: what its points come from, in its first line, and the
// points that are done, a line each. A killed sweep continues by it, and parts are merged by it.
// All types are values.

#include <string>
#include <vector>

#include "runtime/gate/suite_part.hpp"
#include "runtime/sweep/sweep.hpp"

namespace redblue {

inline constexpr const char* kTimed = "time";  // `how` of suites whose points are timed

struct KeptHead {
  SuiteOrigin origin;
  SuitePart part = {};
  std::string context;  // as sweep_context() has it
};
std::string to_line(const KeptHead& head);
// What of `found` keeps a sweep with the other head from taking its points, such as "suite"; empty:
// it can take them. Counts are those of any machine, times are not.
std::string differing(const KeptHead& found, const KeptHead& head);

struct KeptPoints {
  KeptHead head;
  std::vector<Swept> points = {};
};
// Throws: InputError with `path` and the line; for a first line that is no head, too.
KeptPoints parse_kept(const std::vector<std::string>& lines, const std::string& path);

// The journal of one part, with the name of its directory.
struct SweptPart {
  std::string name;
  KeptPoints kept;
};

// What one sweep of all parts would have left.
struct MergedSweep {
  Sweep sweep;
  KeptHead head;
  std::string missing;  // what is said of points that no part has; empty if none is missing
};
// A point that several parts have must be the same in all but its times, of which the fastest
// count. Throws: InputError with the names of two parts that are not of one sweep, or differ in a
// point.
MergedSweep merge(std::vector<SweptPart> parts);

}  // namespace redblue
