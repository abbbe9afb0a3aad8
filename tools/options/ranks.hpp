#pragma once
// The options of runs on ranks.

#include "runtime/run/run.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

// --grid and --ranks.
class RanksOptions {
 public:
  explicit RanksOptions(CLI::App& app);
  // Throws: UsageError. `transport` is of the job that this process is a rank of; null: of none.
  void fill(Request& request, Transport* transport = nullptr) const;

 private:
  TextOption grid_, ranks_;
};

// --patience.
class PatienceOption {
 public:
  explicit PatienceOption(CLI::App& app);
  // Throws: UsageError, also without ranks.
  void fill(Request& request) const;

 private:
  TextOption patience_;
};

}  // namespace redblue
