#pragma once
// A command for a user's kernels: list, run and count; record, check and diff; sweep, merge, report
// and plot; trace and replay. Link redblue::gate_main, which has main(), and register functions of
// a machine of M words:
//
//   void transpose(redblue::Machine& machine, const redblue::Arguments& given) {
//     const redblue::Index n = given["n"];
//     ...
//   }
//   REDBLUE_KERNEL("transpose/tiles", transpose, "n", "m").formula(words);
//
// Sizes become options (--n, --m, and --M for all) and keys of a suite. With a formula `run` and
// `record` fail unless it gives exactly the counts of the run. Each point runs in a child of the
// command, so that a crash is a failure of its point alone; gdb follows it after `set
// follow-fork-mode child`.

#include <functional>
#include <string>
#include <vector>

#include "runtime/gate/subject.hpp"

namespace redblue {

class Registration {
 public:
  using Work = std::function<void(Machine& machine, const Arguments& given)>;
  using Formula = std::function<std::vector<PhaseCost>(const Arguments& given)>;

  // Lasts until the process ends. The command refuses two of one name.
  Registration(const std::string& name, const Work& work, const std::vector<std::string>& sizes);
  // A line of `list`: the operands that stay in fast memory, and those that pass.
  Registration& summary(const std::string& text);
  Registration& formula(const Formula& formula);

 private:
  std::size_t place_;
};

// The command. Returns the exit code.
int own_kernels_command(int argc, char** argv);

}  // namespace redblue

#define REDBLUE_CONCATENATED(a, b) a##b
#define REDBLUE_NAME(a, b) REDBLUE_CONCATENATED(a, b)
// REDBLUE_KERNEL(name, work, size...): at namespace scope.
#define REDBLUE_KERNEL(name, work, ...)                               \
  [[maybe_unused]] static const ::redblue::Registration REDBLUE_NAME( \
      redblue_kernel_at_line_, __LINE__) = ::redblue::Registration(name, work, {__VA_ARGS__})
