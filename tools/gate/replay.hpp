#pragma once
// The replay command: replays the accesses of a run in caches of every size.

#include <optional>

#include "runtime/replay/replay_report.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Options for the cache sizes and the outputs: a report, and a file of accesses for libCacheSim.
class ReplayOutputs {
 public:
  explicit ReplayOutputs(CLI::App& app);

  [[nodiscard]] std::optional<Given> cachesim() const { return cachesim_.get(); }
  // Checks the options before the work. Throws: UsageError.
  void check() const;
  // Prints the report and writes the files. Throws: UsageError if a cache is smaller than the
  // widest unit; std::system_error.
  void take(ReplayReport report) const;

 private:
  TextOption at_, cachesim_;
  Switch per_phase_;
  TextOption format_;
};

}  // namespace redblue
