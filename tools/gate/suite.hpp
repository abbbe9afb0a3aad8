#pragma once
// A suite: a small file of kernels and grids of what they are given; JSON, // comments allowed.
//
//   {"how": "run",
//    "points": [{"kernel": ["backward/small", "backward/rows*"],
//                "n": [64, 129], "d": 16, "M": {"from": "1K", "to": "16K", "times": 2}}]}
//
// An entry is all combinations of its values. Of the kernels that a `*` matches those are left out,
// with a note, that do not take what the entry gives. A recording may stand in its place: then its
// points are meant.

#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"
#include "runtime/gate/subject.hpp"

namespace redblue {

struct SuitePoint {
  const Subject* subject;
  Arguments arguments;  // complete
};

struct Suite {
  std::string how;                      // "run" where it says nothing
  std::vector<SuitePoint> points;       // each once
  std::string text = {};                // of the file
  std::vector<std::string> notes = {};  // what a person should know of it
};

// Of a file, or of standard input: "-". Throws: InputError naming it, the entry and the culprit;
// std::system_error for the file.
Suite read_suite(const std::string& file, const std::vector<Subject>& subjects,
                 const std::vector<std::string>& hows);

// The subject of this name. Throws: std::invalid_argument with the names nearest to it.
const Subject& find_subject(const std::vector<Subject>& subjects, const std::string& name);

}  // namespace redblue
