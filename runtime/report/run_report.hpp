#pragma once
// The report of `redblue run` and `redblue count`: a table for people, a JSON document or CSV for
// programs.

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/run/outcome.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

// Returns the verdict on one line.
std::string to_words(const Verdict& verdict);
// Returns the sources of operands: "A1, A2 from files; X made".
std::string to_words(const Origins& operands, const std::optional<std::uint64_t>& seed);
// Returns {A1: file, A2: file, X: made, Y: seed}.
Json origins_json(const Origins& operands);
// Returns "A1=file A2=file X=made Y=seed", a cell of CSV.
std::string to_cell(const Origins& operands);
Description describe(const Report& report);

}  // namespace redblue
