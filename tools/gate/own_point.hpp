#pragma once
// The kernels that a user's program registered, and the options that choose one kernel and its
// arguments.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/baseline.hpp"
#include "runtime/trace/followed_run.hpp"
#include "tools/cli/command.hpp"
#include "tools/gate/own_kernel.hpp"

namespace redblue {

struct OwnKernel {
  Subject subject;
  Registration::Work work;
  std::string nest = {};  // the file of its nest; empty: none
};
// Returns all registered kernels. Registration happens before main().
std::vector<OwnKernel>& registered_kernels();
// Returns their subjects. Each point runs in a child process, so a crash ends only that point.
const std::vector<Subject>& own_kernels();
// Returns why the subject's names cannot be used in suites and options; else empty.
std::string wrong_with(const Subject& subject);

// Options for a kernel and its arguments, with an option for each size of any kernel.
class PointOptions {
 public:
  explicit PointOptions(CLI::App& app);

  struct Asked {
    const Subject* subject;
    Arguments arguments;
  };
  // Throws: UsageError.
  [[nodiscard]] Asked get() const;

 private:
  Argument kernel_;
  std::vector<std::string> names_;
  std::vector<TextOption> sizes_;
};

// Calls work() and adds the name of the point to the message of any exception. Throws: UsageError
// if M is too small or a count too large; std::runtime_error for any other failure, which is the
// kernel's fault.
void naming(const Point& point, const std::function<void()>& work);

// Runs a registered kernel in a child process. There it calls `follow`, which calls work() to run
// the kernel, and which prints and writes its own files. Throws: as naming().
void follow(const PointOptions::Asked& asked,
            const std::function<void(Machine& machine, const FollowedRun& run,
                                     const std::function<RunCounts()>& work)>& follow);

// Runs the kernel in a child process and times it. Throws: as the subject's run.
RunCounts timed(const Point& point);

}  // namespace redblue
