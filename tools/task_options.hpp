#pragma once
// The options that say what is to be computed, by whatever kernel: shared by the subcommands that
// bound and plan.

#include <CLI/CLI.hpp>

#include "runtime/bounds.hpp"
#include "tools/command.hpp"
#include "tools/problem_options.hpp"

namespace redblue {

class TaskOptions {
 public:
  explicit TaskOptions(CLI::App& app);
  // The request gets where M came from. Throws: UsageError.
  [[nodiscard]] Task task(Request& request) const;

 private:
  ShapeOptions shape_;
  FastMemoryOption M_;
  TextOption problem_, sharing_, given_;
};

}  // namespace redblue
