#include "kernels/matmul/stationary.hpp"

#include "kernels/parts/stationary.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

template <Stays what>
void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const Phase phase(machine, "C");
  stationary_product(machine, StationaryBlocks::get("", plan.blocks), what, io.in("A"), io.in("B"),
                     io.out("C"));
}

Extents extents(const Shape& shape) {
  return {.rows = shape.n, .cols = shape.m, .depth = shape.d};
}

template <Stays what>
std::vector<PhaseCost> cost(const Shape& shape, const Blocks& blocks) {
  return {stationary_cost("C", extents(shape), StationaryBlocks::get("", blocks), what)};
}

template <Stays what, Objective objective>
Blocks fit(const Shape& shape, Index M) {
  const Extents of = extents(shape);
  Blocks blocks;
  fit_stationary(of, M, objective, [&](const StationaryBlocks& by) {
    return stationary_cost("", of, by, what);
  }).put("", blocks);
  return blocks;
}

template <Stays what>
Kernel kernel(std::string_view name, std::string_view summary) {
  return {
      .name = name,
      .summary = summary,
      .given = {{"A", &Shape::n, &Shape::d}, {"B", &Shape::d, &Shape::m}},
      .returns = {{"C", &Shape::n, &Shape::m}},
      .fit = fit<what, Objective::words>,
      .cost = cost<what>,
      .intermediates = [](const Shape&, const Blocks&) { return Words(0); },
      .code = code<what>,
      .fit_time = fit<what, Objective::time>,
  };
}

}  // namespace

Kernel matmul_stationary_a() {
  return kernel<Stays::A>("matmul/stationary-a",
                          "a block of A stays, slices of B and pieces of C pass, or the other way");
}

Kernel matmul_stationary_b() {
  return kernel<Stays::B>("matmul/stationary-b",
                          "a block of B stays, slices of A and pieces of C pass, or the other way");
}

Kernel matmul_stationary_c() {
  return kernel<Stays::C>("matmul/stationary-c",
                          "a block of C stays, slices of A and pieces of B pass, or the other way");
}

}  // namespace redblue
