// redblue tune: times the kernels of a problem in shares of this machine's caches, and saves the
// fastest ones for --M auto.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "memsim/sanitized.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/report/tune_report.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/system/whole_file.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/problem.hpp"

namespace redblue {
namespace {

// Nine rounds of n = 4096 and d = 64 take less on one thread.
constexpr double kTuningSeconds = kSanitized ? 1 : 45;

// Returns the problem as the name of the kernel that the planner chooses. Throws: UsageError.
std::string auto_kernel(const std::string& problem) {
  std::string names;
  for (const AutoName& name : kAuto) {
    if (name.pass == Pass::logsumexp) {  // its operands are sparse
      continue;
    }
    if (to_string(name.pass) == problem) {
      return std::string(name.name);
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", to_string(name.pass));
  }
  throw UsageError(fmt::format("PROBLEM '{}': expected one of {}", problem, names));
}

Task tuned_task(const Request& request) {
  const KernelName kernel = requested_kernel(request);
  const RequestedProblem asked = requested_problem(request, kernel, {});
  Task task = task_of(*kernel.kernel, asked.problem, 1);
  task.heads = asked.kv_heads();
  return task;
}

// Returns the answers so far. A file of another machine, or one that is damaged, is replaced.
std::vector<TunedProblem> tuned_before(const std::filesystem::path& file,
                                       const Topology& topology) {
  if (!std::filesystem::exists(file)) {
    return {};
  }
  try {
    return read_tuned(read_machine_file(file, kTune), file.string(), topology);
  } catch (const InputError& error) {
    say(fmt::format("{}; it is replaced", error.what()));
    return {};
  }
}

struct TuneOptions {
  explicit TuneOptions(CLI::App& command)
      : problem(command, "PROBLEM",
                "what to compute: attention, gradients, forward, backward, layer, linear or "
                "linear-gradient"),
        table(command, {"n", "m", "d", "heads", "kv_heads", "mask", "threads"}),
        format(command, "--format", "output format (default: table)", "table|json|csv") {}
  Argument problem;
  TableOptions table;
  TextOption format;
};

}  // namespace

Action add_tune(CLI::App& app) {
  const auto options = std::make_shared<TuneOptions>(app);
  return [options] {
    const Format format = parse_format(options->format);
    Request request;
    request.kernel = auto_kernel(options->problem.get());
    options->table.fill(request);
    const Task task = tuned_task(request);
    const std::function<void()> stop = stop_if_asked();
    const Topology topology = measured_topology();
    const std::filesystem::path path = tuned_file();
    std::filesystem::create_directories(path.parent_path());
    static_cast<void>(tuned_before(path, topology));  // an unreadable file fails early
    const Rates rates = calibration_if_any().value_or(default_rates());
    Tuning tuning(task, request.threads, topology, rates);
    const MemoryClaim memory(nullptr, tuning.bytes(), kTune, "take smaller n, m or d");
    WholeFile file(path);  // opened before the work, so that an unwritable file fails early
    {
      StatusLine status;
      if (!status.visible()) {
        say(fmt::format("timing {} of {}", counted(std::ssize(tuning.trials()), "trial"),
                        options->problem.get()));
      }
      tuning.run(kTuningSeconds, [&](std::string_view line) {
        stop();
        status.show(line);
      });
      stop();
    }
    const std::string date = machine_file_date();
    // Another call may have added its answer during the work.
    std::vector<TunedProblem> tuned = tuned_before(path, topology);
    add_tuned(tuned, tuned_problem(tuning, date));
    file.append(tuned_text(tuned, topology));
    file.finish();
    file.commit();
    print(TuneReport{tuning, topology, date, path.string()}, format);
    return 0;
  };
}

}  // namespace redblue
