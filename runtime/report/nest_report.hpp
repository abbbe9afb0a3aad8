#pragma once
// The report of `redblue plan --loops`: the loop nest of one kernel's plan, line by line.

#include <optional>
#include <string>

#include "kernels/kernel.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

struct NestReport {
  Plan plan;
  std::optional<FastMemoryOrigin> M_from;  // set if M is a share of a cache
  Nest lines;
};

NestReport report_nest(const Plan& plan);

std::string to_table(const NestReport& report);
std::string to_json(const NestReport& report);
std::string to_csv(const NestReport& report);

}  // namespace redblue
