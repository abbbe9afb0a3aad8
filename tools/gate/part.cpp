#include "tools/gate/part.hpp"

#include <fmt/format.h>

#include "runtime/text/sizes.hpp"

namespace redblue {

PartOption::PartOption(CLI::App& app)
    : part_(app, "--part",
            "take only the points i, i + N, i + 2 N, ...: the part of machine i of N", "i/N") {}

std::optional<SuitePart> PartOption::get() const {
  const auto given = part_.get();
  if (!given) {
    return std::nullopt;
  }
  const auto part = parse_part(given->text);
  if (!part) {
    throw UsageError(
        fmt::format("{} '{}': expected i/N, as 2/5, with i from 1 to N", given->from, given->text));
  }
  return part;
}

}  // namespace redblue
