#pragma once
// The option --part: the part of a suite that this machine does.

#include <optional>

#include "runtime/gate/suite_part.hpp"
#include "tools/cli/command.hpp"

namespace redblue {

class PartOption {
 public:
  explicit PartOption(CLI::App& app);
  // Throws: UsageError.
  [[nodiscard]] std::optional<SuitePart> get() const;

 private:
  TextOption part_;
};

}  // namespace redblue
