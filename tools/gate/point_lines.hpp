#pragma once
// Where a person finds the points of a comparison: a file, and the line of each point in it. All
// types are values.

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

// The lines of a recording's points; none of standard input, which nobody can open.
PointLines lines_of_recording(const NamedText& from, const Recording& recording);

// The lines of a baseline; and after them those of the entries of the suite, where one is named.
// Throws: what read_suite() throws.
std::vector<PointLines> lines_of_check(const NamedText& from, const Recording& baseline,
                                       const TextOption& suite,
                                       const std::vector<Subject>& subjects);

// Gives each point its place in the last of the files that has it.
void add_lines(const std::vector<PointLines>& all, Comparison& comparison);

}  // namespace redblue
