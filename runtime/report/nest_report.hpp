#pragma once
// The report of `redblue plan --loops`: the loop nest of one kernel's plan, line by line.

#include <optional>

#include "kernels/kernel.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/text/description.hpp"

namespace redblue {

struct NestReport {
  Plan plan;
  std::optional<FastMemoryOrigin> M_from = {};  // set if M is a share of a cache
  Nest lines;
};

NestReport report_nest(const Plan& plan);

Description describe(const NestReport& report);

}  // namespace redblue
