#pragma once
// The option for the instruction set of the arithmetic: --simd NAME.

#include <optional>
#include <string>

#include "tools/cli/command.hpp"

namespace redblue {

class SimdOption {
 public:
  explicit SimdOption(CLI::App& app);
  // Uses the instruction set, if one is given, and returns its name. Throws: UsageError, with the
  // names of those available.
  std::optional<std::string> apply() const;

 private:
  TextOption simd_;
};

}  // namespace redblue
