#pragma once
// The sweep command: counts or times each point of a suite, and writes a directory for figures and
// reports.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/subject.hpp"
#include "runtime/sweep/sweep.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// The kernels of a sweep, and the functions that run them.
struct SweptKernels {
  std::function<std::vector<Subject>()> subjects;
  std::vector<std::string> hows;         // allowed modes of suites, the default first
  std::function<std::string()> context;  // context for the document, as one line of JSON
  // Counts or times one point. Long disk work calls `stop` regularly; `stop` throws to end it.
  // Throws: the reason why a point has no counts. A point that does not fit in M is a result, not a
  // failure.
  std::function<Swept(const Subject& subject, const Arguments& arguments, const std::string& how,
                      const std::function<void()>& stop)>
      sweep_point;
  std::function<bool(const Arguments& arguments)> on_disk;
};

Action add_sweep_of(CLI::App& app, SweptKernels kernels);

}  // namespace redblue
