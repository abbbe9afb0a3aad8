#pragma once
// Turns a user's kernels into a command with these subcommands: list, run, count, record, check,
// diff, sweep, merge, report, plot, trace and replay. Link redblue::gate_main, which has main(),
// and register functions that run on a machine of M words:
//
//   void transpose(redblue::Machine& machine, const redblue::Arguments& given) {
//     const redblue::Index n = given["n"];
//     ...
//   }
//   REDBLUE_KERNEL("transpose/tiles", transpose, "n", "m").formula(words);
//
// Sizes become options (--n and --m here; every kernel has --M) and keys of a suite. If a kernel
// has a formula, `run` and `record` fail unless the formula gives the exact counts of the run. Each
// point runs in a child process, so a crash fails only that point. To debug it, run gdb
// with `set follow-fork-mode child`.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/subject.hpp"

namespace redblue {

class Registration {
 public:
  using Work = std::function<void(Machine& machine, const Arguments& given)>;
  using Formula = std::function<std::vector<PhaseCost>(const Arguments& given)>;

  // Registers a kernel until the process ends. The command refuses two kernels with one name.
  Registration(const std::string& name, const Work& work, const std::vector<std::string>& sizes);
  // Sets the description in `list`: resident and streaming operands.
  Registration& summary(const std::string& text);
  Registration& formula(const Formula& formula);
  // Sets the file of a loop nest (docs/nests.md) with the names of the kernel's sizes. A run fails
  // unless it has the words and the peak of the nest in each phase. The nest is the formula of a
  // kernel that has none. A relative path begins at the directory in which the command runs.
  Registration& nest(const std::string& file);

 private:
  std::size_t place_;
};

// Runs the command. Returns the exit code.
int own_kernels_command(int argc, char** argv);

}  // namespace redblue

#define REDBLUE_CONCATENATED(a, b) a##b
#define REDBLUE_NAME(a, b) REDBLUE_CONCATENATED(a, b)
// Registers a kernel: REDBLUE_KERNEL(name, work, size...). Use it at namespace scope.
#define REDBLUE_KERNEL(name, work, ...)                               \
  [[maybe_unused]] static const ::redblue::Registration REDBLUE_NAME( \
      redblue_kernel_at_line_, __LINE__) = ::redblue::Registration(name, work, {__VA_ARGS__})
