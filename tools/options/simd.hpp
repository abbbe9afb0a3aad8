#pragma once
// The option that says in which instruction set the arithmetic runs: --simd NAME.

#include <optional>
#include <string>

#include "tools/cli/command.hpp"

namespace redblue {

class SimdOption {
 public:
  explicit SimdOption(CLI::App& app);
  // Uses it, where it is given, and returns it. Throws: UsageError, with the names that there are.
  std::optional<std::string> apply() const;

 private:
  TextOption simd_;
};

}  // namespace redblue
