#pragma once
// A suite: a small file of kernels and grids of their arguments; JSON, // comments allowed.
//
//   {"how": "run",
//    "points": [{"kernel": ["backward/small", "backward/rows*"],
//                "n": [64, 129], "d": 16, "M": {"from": "1K", "to": "16K", "times": 2}}]}
//
// An entry is all combinations of its values. Kernels that match a `*` but do not take what the
// entry gives are left out, with a note. "at_most" of an entry has budgets of its points. A
// recording in place of a suite stands for its points. Names of files in arguments are relative to
// the suite, or the recording.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/gate/baseline.hpp"
#include "runtime/gate/subject.hpp"

namespace redblue {

struct SuitePoint {
  const Subject* subject;
  Arguments arguments;  // complete
  std::vector<Budget> at_most = {};
  std::vector<Accepted> accepted = {};  // of a recording
  std::size_t entry = 0;                // the first of the file that asks for the point
};

struct Suite {
  std::string how;                      // by default "run", or the first that is allowed
  std::vector<SuitePoint> points = {};  // each once
  std::string text = {};                // of the file
  std::vector<std::string> notes = {};  // for a person: kernels that were left out
};

// Reads a file, or standard input: "-". Throws: InputError with the file, the entry and the
// culprit; std::system_error for the file.
Suite read_suite(const std::string& file, const std::vector<Subject>& subjects,
                 const std::vector<std::string>& hows);

// Whether `*` in a pattern for any letters makes it the name.
bool matches(std::string_view pattern, std::string_view name);

// What names of files in such a file are relative to: its directory; of standard input, the working
// directory.
std::filesystem::path directory_of(const std::string& file);

// The subject of this name. Throws: std::invalid_argument with the nearest names.
const Subject& find_subject(const std::vector<Subject>& subjects, const std::string& name);

}  // namespace redblue
