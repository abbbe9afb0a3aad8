#pragma once
// Options of commands that plan for several ranks.

#include <optional>
#include <string>

#include "runtime/run/run.hpp"
#include "runtime/theory/rates.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Throws: UsageError if `kernel` does not run on ranks. The message lists the kernels that do.
// `said` is the option that named the kernel.
void check_runs_on_ranks(const KernelName& kernel, const std::string& said);

// The option --ranks, for commands that compare the grids of this many ranks.
class RanksOption {
 public:
  RanksOption(CLI::App& app, const std::string& help);
  // Throws: UsageError.
  [[nodiscard]] std::optional<Index> get() const;
  [[nodiscard]] const TextOption& option() const { return ranks_; }

 private:
  TextOption ranks_;
};

// The options --ranks, --ring, --home and --link-costs of `redblue plan`.
class RanksToPlanOptions {
 public:
  explicit RanksToPlanOptions(CLI::App& app);
  // Throw (all): UsageError.
  [[nodiscard]] std::optional<Index> ranks() const { return ranks_.get(); }
  [[nodiscard]] bool ring() const { return ring_.get(); }
  [[nodiscard]] std::optional<Index> home() const;
  // Also throws if costs are given and the objective is not time.
  [[nodiscard]] std::optional<LinkCosts> link_costs(bool by_time) const;
  [[nodiscard]] std::string said_home() const { return home_.flag(); }
  // Returns the first given option, for messages.
  [[nodiscard]] std::optional<Given> given() const;

 private:
  RanksOption ranks_;
  Switch ring_;
  TextOption home_, link_costs_;
};

}  // namespace redblue
