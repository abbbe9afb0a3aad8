#include "runtime/report/followed_plan.hpp"

#include "runtime/report/context.hpp"

namespace redblue {

FollowedRun followed_of(const Plan& plan) {
  const auto [n, m, d] = plan.problem.shape;
  const std::string& mask = plan.problem.mask.spec();
  return {.kernel = spelled(plan),
          .sizes = {{"n", n}, {"m", m}, {"d", d}},
          .M = plan.M,
          .text = to_string(plan),
          .more = {{"mask", mask.empty() ? "full" : mask}, {"blocks", blocks_json(plan.blocks)}}};
}

}  // namespace redblue
