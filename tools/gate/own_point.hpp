#pragma once
// The kernels that a user's program registered, and one of them with its arguments, as the command
// line has them.

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
};
// Registrations precede main().
std::vector<OwnKernel>& registered_kernels();
// Their subjects, isolated: a crash of an unknown kernel ends only its point.
const std::vector<Subject>& own_kernels();
// The reason why suites and options could not have the subject's names; else empty.
std::string wrong_with(const Subject& subject);

// A kernel and its arguments: an option for each size that any kernel has.
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

// Names the point in what `work` throws. Throws: UsageError where M is too small, or a count too
// large; std::runtime_error for what is the kernel's fault.
void naming(const Point& point, const std::function<void()>& work);

// Runs a registered kernel in a child, for what `follow` makes of its machine: it calls work(), and
// prints and writes files for itself. Throws: as naming().
void follow(const PointOptions::Asked& asked,
            const std::function<void(Machine& machine, const FollowedRun& run,
                                     const std::function<RunCounts()>& work)>& follow);

// Runs it likewise, by a clock. Throws: as the subject's run.
RunCounts timed(const Point& point);

}  // namespace redblue
