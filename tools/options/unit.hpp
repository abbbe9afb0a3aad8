#pragma once
// The option --unit of commands that replay a kernel's run.

#include <string>

#include "runtime/replay/replay_report.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

class UnitOption {
 public:
  explicit UnitOption(CLI::App& app)
      : unit_(app, "--unit",
              "unit of caching: word, or row (up to d words), for large runs (default: word)",
              "word|row") {}

  [[nodiscard]] std::string flag() const { return unit_.flag(); }
  // Throws: UsageError.
  [[nodiscard]] ReplayUnit get() const;

 private:
  TextOption unit_;
};

}  // namespace redblue
