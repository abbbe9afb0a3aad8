#pragma once
// The journal of a sweep, points.jsonl. The first line describes the source of the points. Each
// other line is one finished point. A killed sweep resumes from its journal, and parts of a sweep
// are merged by their journals. All types are values.

#include <string>
#include <vector>

#include "runtime/gate/suite_part.hpp"
#include "runtime/sweep/sweep.hpp"

namespace redblue {

inline constexpr const char* kTimed = "time";  // value of `how` for timed suites

struct KeptHead {
  SuiteOrigin origin;
  SuitePart part = {};
  std::string context;  // text from sweep_context()
};
std::string to_line(const KeptHead& head);
// Returns the member of `found`, such as "suite", that prevents a sweep with head `head` from using
// its points. Empty if it can use them. Counts from another machine can be used, times cannot.
std::string differing(const KeptHead& found, const KeptHead& head);

struct KeptPoints {
  KeptHead head;
  std::vector<Swept> points = {};
};
// Throws: InputError with `path` and the line, also if the first line is not a head.
KeptPoints parse_kept(const std::vector<std::string>& lines, const std::string& path);

// The journal of one part, with the name of its directory.
struct SweptPart {
  std::string name;
  KeptPoints kept;
};

// The result that one sweep of all parts would have.
struct MergedSweep {
  Sweep sweep;
  KeptHead head;
  // Message about points that no part has. Empty if all points are there.
  std::string missing;
};
// Merges parts. If several parts have a point, it must be the same in all except its times, and the
// fastest time is kept. Throws: InputError with the names of two parts that come from different
// sweeps or disagree about a point.
MergedSweep merge(std::vector<SweptPart> parts);

}  // namespace redblue
