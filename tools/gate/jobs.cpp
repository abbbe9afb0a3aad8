#include "tools/gate/jobs.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "memsim/sanitized.hpp"
#include "runtime/gate/baseline.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/interruption.hpp"
#include "tools/cli/print.hpp"

namespace redblue {
namespace {

constexpr Index kMostJobs = 256;

}  // namespace

JobsOption::JobsOption(CLI::App& app)
    : jobs_(app, "--jobs",
            "number of points to work on at the same time (default: number of processors)",
            "NUMBER") {}

unsigned JobsOption::get() const {
  const auto given = jobs_.get();
  if (!given) {
    // A user's kernel runs in a forked child (runtime/gate/isolated.hpp). glibc's malloc survives a
    // fork while other threads allocate; a sanitizer's malloc may keep its locks.
    return kSanitized ? 1 : std::max(1U, std::thread::hardware_concurrency());
  }
  const Index jobs = parse_size(given->text, given->from);
  if (jobs > kMostJobs) {
    throw UsageError(
        fmt::format("{} {} is too many; expected at most {}", given->from, jobs, kMostJobs));
  }
  return static_cast<unsigned>(jobs);
}

void each_point(std::size_t count, unsigned jobs, std::string_view done,
                const std::function<void(std::size_t k)>& work) {
  StatusLine status;
  const std::function<void()> stop = stop_if_caller_asks();
  const Environment& callers = environment();
  const auto unless_asked = [&](std::size_t k) {
    const WithEnvironment with(callers);
    if (stop) {
      stop();
    }
    work(k);
  };
  in_any_order(count, jobs, unless_asked, [&](std::size_t so_far) {
    status.show(fmt::format("{} of {} points {}", so_far, count, done));
  });
}

}  // namespace redblue
