#pragma once
// The option that says in which instruction set the arithmetic runs: --simd NAME.

#include <CLI/CLI.hpp>

#include "tools/command.hpp"

namespace redblue {

class SimdOption {
 public:
  explicit SimdOption(CLI::App& app);
  // Uses it, where it is given. Throws: UsageError, with the names that there are.
  void apply() const;

 private:
  TextOption simd_;
};

}  // namespace redblue
