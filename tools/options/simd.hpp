#pragma once
// The option --simd: the instruction set of the arithmetic.

#include <optional>
#include <string>

#include "tools/cli/command.hpp"

namespace redblue {

class SimdOption {
 public:
  explicit SimdOption(CLI::App& app);
  // Selects the instruction set, if one is given, and returns its name. Throws: UsageError, with
  // the names of the available sets.
  std::optional<std::string> apply() const;

 private:
  TextOption simd_;
};

}  // namespace redblue
