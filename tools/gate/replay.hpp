#pragma once
// replay: what a run touches, in caches of every size.

#include <optional>

#include "runtime/replay/replay_report.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// The sizes of caches, and what is written: a table, and the accesses for another program.
class ReplayOutputs {
 public:
  explicit ReplayOutputs(CLI::App& app);

  [[nodiscard]] std::optional<Given> cachesim() const { return cachesim_.get(); }
  // Throws: UsageError for what cannot be taken, before the work.
  void check() const;
  // Throws: UsageError for a cache that no unit fits in; std::system_error.
  void take(ReplayReport report) const;

 private:
  TextOption at_, cachesim_;
  Switch per_phase_;
  TextOption format_;
};

}  // namespace redblue
