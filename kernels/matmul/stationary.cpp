// Computes C = A B with a block of one matrix resident while the other two matrices stream.
// kernels/parts/stationary.hpp lists the words moved.

#include "kernels/parts/stationary.hpp"

#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_matmul_stationary {
namespace {

ProductShape extents(const Problem& problem) {
  const Shape& shape = problem.shape;
  return ProductShape{.rows = shape.n, .cols = shape.m, .depth = shape.d}.weighing(
      problem.sum_words);
}

Kernel kernel(std::string_view name, std::string_view summary, Stays what) {
  return {
      .name = name,
      .summary = summary,
      .operands = {{"A", &Shape::n, &Shape::d}, {"B", &Shape::d, &Shape::m}},
      .returns = {{"C", &Shape::n, &Shape::m}},
      .schedule = {.code =
                       [what](Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
                         const Phase phase(machine, "C");
                         stationary_product(machine, StationaryBlocks::get("", plan.blocks), what,
                                            io.in("A"), io.in("B"), io.out("C"));
                       }},
      .formula = {
          .cost = [what](const Problem& problem, const Blocks& blocks) -> std::vector<PhaseCost> {
            return {
                stationary_cost("C", extents(problem), StationaryBlocks::get("", blocks), what)};
          },
          .level_cost = [what](const Problem& problem, const Blocks& blocks,
                               std::size_t level) -> std::vector<PhaseCost> {
            return {stationary_level_cost("C", extents(problem), StationaryBlocks::get("", blocks),
                                          what, level)};
          }},
      .fitting = {
          .fit =
              [what](const Problem& problem, const Memory& memory, Objective objective) {
                const ProductShape of = extents(problem);
                Blocks blocks;
                if (!memory.inner.empty()) {
                  const auto cost = [&](const StationaryBlocks& by, std::size_t level) {
                    return level < by.inner.size() ? stationary_level_cost("", of, by, what, level)
                                                   : stationary_cost("", of, by, what);
                  };
                  fit_stationary_levels(of, memory, objective, {what}, cost).put("", blocks);
                  return blocks;
                }
                fit_stationary(of, memory.M, objective, [&](const StationaryBlocks& by) {
                  return stationary_cost("", of, by, what);
                }).put("", blocks);
                return blocks;
              },
          .inner_blocks = {{.name = "rows", .cuts = true},
                           {.name = "cols", .cuts = true},
                           {.name = "depth", .cuts = true}}}};
}

}  // namespace
}  // namespace in_matmul_stationary

Kernel matmul_stationary_a() {
  using namespace in_matmul_stationary;
  return kernel("matmul/stationary-a",
                "a block of A stays, slices of B and pieces of C pass, or the other way", Stays::A);
}

Kernel matmul_stationary_b() {
  using namespace in_matmul_stationary;
  return kernel("matmul/stationary-b",
                "a block of B stays, slices of A and pieces of C pass, or the other way", Stays::B);
}

Kernel matmul_stationary_c() {
  using namespace in_matmul_stationary;
  return kernel("matmul/stationary-c",
                "a block of C stays, slices of A and pieces of B pass, or the other way", Stays::C);
}

}  // namespace redblue
