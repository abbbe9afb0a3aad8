// Computes C = A B with three B x B blocks in fast memory: B = floor(sqrt(M / 3)), or sqrt(M / 4)
// if a sum takes two words.
//
// Each inner level of fast memory (kernels/parts/product_levels.hpp) holds three square blocks,
// too. The block of C is resident while the others stream. In a level, a multiply-add costs 2 / B
// words, and 2 / B' for the sums, where B' is the block of the next level.

#include <algorithm>
#include <cstddef>

#include "kernels/fit.hpp"
#include "kernels/parts/levels.hpp"
#include "kernels/parts/product_levels.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_matmul_blocked {
namespace {

// Returns the blocks of the inner levels, innermost first, then the machine's.
ProductLevels squares(const Blocks& blocks) {
  ProductLevels all;
  for (std::size_t level = 0; blocks.contains(level_block(level, "B")); ++level) {
    all.push_back(square(blocks[level_block(level, "B")]));
  }
  all.push_back(square(blocks["B"]));
  return all;
}

void code(Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
  const Phase phase(machine, "C");
  ProductLevels inner = squares(plan.blocks);
  inner.pop_back();
  product(machine, square(plan.blocks["B"]), io.in("A"), io.in("B"), io.out("C"), inner);
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks) {
  const ProductShape of{problem.shape.n, problem.shape.m, problem.shape.d};
  return {product_cost("C", of.weighing(problem.sum_words), square(blocks["B"]))};
}

std::vector<PhaseCost> level_cost(const Problem& problem, const Blocks& blocks, std::size_t level) {
  ProductLevels of_level = squares(blocks);
  of_level.erase(of_level.begin(), of_level.begin() + static_cast<std::ptrdiff_t>(level));
  const Shape& shape = problem.shape;
  return {product_level_cost("C", {shape.n, shape.m, shape.d}, of_level, Stays::C)};
}

Blocks fit(const Problem& problem, const Memory& memory) {
  Blocks blocks{{"B", square_side(memory.M, 2 + problem.sum_words)}};
  Index inside = 1;
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    const Index most = square_side(memory.inner[level], 3);
    inside = std::max(most / inside, Index{1}) * inside;
    blocks.add(level_block(level, "B"), inside);
  }
  return blocks;
}

}  // namespace
}  // namespace in_matmul_blocked

Kernel matmul_blocked() {
  using namespace in_matmul_blocked;
  return {.name = "matmul/blocked",
          .summary = "C = A B, three square blocks",
          .operands = {{"A", &Shape::n, &Shape::d}, {"B", &Shape::d, &Shape::m}},
          .returns = {{"C", &Shape::n, &Shape::m}},
          .schedule = {.code = code},
          .formula = {.cost = cost, .level_cost = level_cost},
          .fitting = {.fit = [](const Problem& problem, const Memory& memory,
                                Objective) { return fit(problem, memory); },
                      .window = square_window,
                      .inner_blocks = {{.name = "B", .cuts = true}}}};
}

}  // namespace redblue
