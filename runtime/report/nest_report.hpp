#pragma once
// The report of `redblue plan --loops`: the loop nest of one kernel's plan, line by line.

#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/text/description.hpp"
#include "runtime/text/known_file.hpp"

namespace redblue {

struct NestReport {
  Plan plan;
  std::optional<FastMemoryOrigin> M_from = {};  // set if M is a share of a cache
  Nest lines;
  Objective objective = Objective::words;  // goal by which the blocks were chosen
};

NestReport report_nest(const Plan& plan, Objective objective = Objective::words);

Description describe(const NestReport& report);

// Returns the nest of the plan as text (docs/nests.md), with its block sizes. Throws: UsageError if
// the kernel has no such text, or the plan has a block that it does not know.
std::string nest_text(const Plan& plan);

// Returns the nests of kernels as text, as compiled into this program: attention/rows.nest.
const std::vector<KnownFile>& kernel_nests();

}  // namespace redblue
