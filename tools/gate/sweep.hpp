#pragma once
// sweep: the points of a suite, each counted or timed, in a directory from which figures and
// reports are made.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/subject.hpp"
#include "runtime/sweep/sweep.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// What is swept.
struct SweptKernels {
  std::function<std::vector<Subject>()> subjects;
  std::vector<std::string> hows;         // of suites, the usual one first
  std::function<std::string()> context;  // the document's, as one line of JSON
  // `stop` is called now and then by what may take long on a disk, and ends it by throwing. Throws:
  // what keeps a point from having counts; what does not fit is no failure.
  std::function<Swept(const Subject& subject, const Arguments& arguments, const std::string& how,
                      const std::function<void()>& stop)>
      sweep_point;
  std::function<bool(const Arguments& arguments)> on_disk;
};

Action add_sweep_of(CLI::App& app, SweptKernels kernels);

}  // namespace redblue
