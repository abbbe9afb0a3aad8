#pragma once
// Reads suites. A suite is a small JSON file of kernels and grids of their arguments; // comments
// are allowed.
//
//   {"how": "run",
//    "points": [{"kernel": ["backward/small", "backward/rows*"],
//                "n": [64, 129], "d": 16, "M": {"from": "1K", "to": "16K", "times": 2}}]}
//
// An entry stands for all combinations of its values. A `*` pattern leaves out kernels that do not
// take the entry's arguments, with a note. "at_most" sets budgets for the entry's points. A
// recording can serve as a suite: it stands for its points. File names in arguments are relative to
// the suite or recording.

#include <filesystem>
#include <functional>
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
  std::vector<Accepted> accepted = {};  // changes accepted in a recording
  std::size_t entry = 0;                // index of the first entry that asks for the point
};

struct Suite {
  std::string how;                      // "run", "count" or another mode
  std::vector<SuitePoint> points = {};  // without repetitions
  std::string text = {};                // text of the file
  std::vector<std::string> notes = {};  // messages about kernels that were left out
};

// Reads a file, or standard input for "-". `hows` are the allowed modes, the default first. Throws:
// InputError with the file, the entry and the culprit; std::system_error for the file.
Suite read_suite(const std::string& file, const std::vector<Subject>& subjects,
                 const std::vector<std::string>& hows);

// Returns whether `pattern` matches `name`. A `*` stands for any characters.
bool matches(std::string_view pattern, std::string_view name);

// Returns the base directory of relative file names in `file`: its own directory, or the working
// directory for standard input.
std::filesystem::path directory_of(const std::string& file);

// Returns the subject with this name. Throws: std::invalid_argument with the nearest names.
// `directory`: where relative paths of a suite or recording start.
const Subject& find_subject(const std::vector<Subject>& subjects, const std::string& name,
                            const std::filesystem::path& directory);
// From now on, find_subject() asks `find` for names that no subject has. `find` returns null for
// names that it does not know, too. To be called before other threads begin.
using FindSubject =
    std::function<const Subject*(const std::string& name, const std::filesystem::path& directory)>;
void find_more_subjects(FindSubject find);

}  // namespace redblue
