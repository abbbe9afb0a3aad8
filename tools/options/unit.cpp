#include "tools/options/unit.hpp"

#include "runtime/text/sizes.hpp"

namespace redblue {

ReplayUnit UnitOption::get() const {
  const auto given = unit_.get();
  if (!given || given->text == "word") {
    return ReplayUnit::word;
  }
  if (given->text == "row") {
    return ReplayUnit::row;
  }
  throw UsageError(given->from + " '" + given->text + "': expected word or row");
}

}  // namespace redblue
