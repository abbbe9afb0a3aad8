#pragma once
// Finds the file and line of each point in a comparison, for messages and annotations.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/gate/comparison.hpp"
#include "runtime/gate/subject.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

struct NamedText {
  std::string file, text;
};

struct PointLines {
  std::string file;
  std::map<PointKey, std::size_t> lines = {};
};

// Returns the lines of a recording's points. Standard input has no lines.
PointLines lines_of_recording(const NamedText& from, const Recording& recording);

// Returns the lines of a baseline, followed by the lines of the suite's entries if a suite is
// named. Throws: as read_suite().
std::vector<PointLines> lines_of_check(const NamedText& from, const Recording& baseline,
                                       const TextOption& suite,
                                       const std::vector<Subject>& subjects);

// Sets the file and line of each point. The last file that has the point wins.
void add_lines(const std::vector<PointLines>& all, GateComparison& comparison);

}  // namespace redblue
