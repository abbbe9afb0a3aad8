#pragma once
// What `redblue plan --loops` has to say: the loops of one kernel's plan, line by line.

#include <optional>
#include <string>

#include "kernels/kernel.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

struct NestReport {
  Plan plan;
  std::optional<FastMemoryOrigin> M_from;  // where M is a part of a cache
  Nest lines;
};

// Requires: the kernel of the plan has a loop nest.
NestReport report_nest(const Plan& plan);

std::string to_table(const NestReport& report);
std::string to_json(const NestReport& report);
std::string to_csv(const NestReport& report);

}  // namespace redblue
