#pragma once
// The options of plans on ranks.

#include <optional>
#include <string>

#include "runtime/run/run.hpp"
#include "runtime/theory/rates.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// Throws: UsageError with the kernels that run on ranks, where this one does not.
void check_runs_on_ranks(const KernelName& kernel, const std::string& said);

// --ranks, of what asks about grids of so many.
class RanksOption {
 public:
  RanksOption(CLI::App& app, const std::string& help);
  // Throws: UsageError.
  [[nodiscard]] std::optional<Index> get() const;
  [[nodiscard]] const TextOption& option() const { return ranks_; }

 private:
  TextOption ranks_;
};

// Of a plan: --ranks, --ring, --home and --link-costs.
class RanksToPlanOptions {
 public:
  explicit RanksToPlanOptions(CLI::App& app);
  // Throw (all): UsageError.
  [[nodiscard]] std::optional<Index> ranks() const { return ranks_.get(); }
  [[nodiscard]] bool ring() const { return ring_.get(); }
  [[nodiscard]] std::optional<Index> home() const;
  // Also thrown for costs where the objective is not time.
  [[nodiscard]] std::optional<LinkCosts> link_costs(bool by_time) const;
  [[nodiscard]] std::string said_home() const { return home_.flag(); }
  // The first of them that is given, for messages.
  [[nodiscard]] std::optional<Given> given() const;

 private:
  RanksOption ranks_;
  Switch ring_;
  TextOption home_, link_costs_;
};

}  // namespace redblue
