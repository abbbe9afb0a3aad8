// Computes linear attention as a chain of products of two matrices, each with the whole fast
// memory. The names of the plan's blocks select the chain; a fitted plan has the chain with the
// fewest words.
//
//   linear            S = A2^T A3, T = S Y, P = X T, O = A1 P.
//                     Few keys: H = A3 Y, T = A2^T H. Few queries: Q = A1 X, O = Q T.
//                     Fewer queries still: Q = A1 X, R = Q S, O = R Y.
//   linear-gradient   S and T, or H and T, as above. U = A1^T dO, g = U T^T, or
//                     W = dO T^T, g = A1^T W, or G = dO Y^T, W = G S^T, g = A1^T W.
//
// Under the causal mask, S is a running sum with a different value for each query. A block of S is
// resident while queries and keys stream in blocks of `piece`:
//
//   linear            Q = A1 X, R_i = Q_i S_i, O = R Y
//   linear-gradient   G = dO Y^T, W_i = G_i S_i^T, g = A1^T W
//
//   R   reads    (n + m) d ceil(d / cols) + m d ceil(d / rows) + n d (ceil(d / rows) - 1)
//       writes   n d ceil(d / rows)
//
// Queries and keys may be split into groups, so that workers share them. If a product has a row for
// each query or key, each group computes its rows. If a product sums over rows, each group writes a
// partial sum, and the partial sums are added in the order of the groups. One matrix, `made`, holds
// all intermediate results, stacked one below the other.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/linear/chains.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/linear/running_sum.hpp"
#include "kernels/parts/stationary.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_linear_products {
namespace {

constexpr std::string_view kGroups = "groups";
constexpr Signature kMade{"made", &Shape::d, &Shape::d};

// ---- steps -----------------------------------------------------------------------------------

// A product, or the addition of the partial sums that its groups wrote. The result is a result of
// the kernel, or rows of `made` from a row on. Units are groups of rows of the product's left
// factor; for a running sum, they are blocks of its columns.
struct Step {
  Product product;
  Index rows = 0;    // rows of the left factor as stored: of A2 for A2^T
  Index extent = 0;  // rows or columns that units divide
  Index unit = 0;    // rows or columns of one unit
  std::optional<Index> from = std::nullopt;
  Index parts = 0;  // number of partial sums to add; otherwise 0

  [[nodiscard]] bool adds_up() const { return parts > 0; }
  [[nodiscard]] bool runs() const { return !product.values.empty(); }
  [[nodiscard]] bool sums_rows() const { return is_transposed(product.left); }
  [[nodiscard]] Index units() const { return ceil_div(extent, unit); }
  [[nodiscard]] bool in_parts() const { return sums_rows() && units() > 1; }
  // Returns what the step writes: partial sums, or a complete result.
  [[nodiscard]] Holds holds() const { return in_parts() ? Holds::sums : Holds::operands; }
  [[nodiscard]] ProductShape shape(Index of_rows, const Problem& problem) const {
    return extents(product, of_rows, problem.shape.d).weighing(problem.sum_words, holds());
  }
  // Returns the rows or columns of some consecutive units.
  [[nodiscard]] Range part(Range units) const {
    const Index begin = units.begin * unit;
    return {begin, units.end == this->units() ? extent : units.end * unit};
  }
  [[nodiscard]] Range part(Index which) const { return part({which, which + 1}); }
  // Returns the number of rows of `made` that the first `units` units write.
  [[nodiscard]] Index leaves(Index units, Index d) const {
    return !from ? 0 : sums_rows() ? units * d : runs() ? rows : part({0, units}).end;
  }
};

struct Steps {
  std::vector<Step> steps;
  Words made;  // rows
  Index d;

  Steps(const Problem& problem, const Blocks& blocks, LinearResult of) : d(problem.shape.d) {
    const Shape& shape = problem.shape;
    for (const Product& product : chain_of(problem, blocks, of)) {
      const Index rows = rows_of(product.left, shape);
      Step step{.product = product, .rows = rows, .extent = rows, .unit = rows};
      if (step.runs()) {
        step.extent = d;
        step.unit = std::min(d, RunningBlocks::get(product.result, blocks).cols);
      } else if (rows_of(product.left) != &Shape::d) {
        step.unit = ceil_div(rows, std::min(rows, blocks[kGroups]));
      }
      const bool returned = product.result == "O" || product.result == "g";
      if (!returned || step.in_parts()) {
        place(step, step.sums_rows() ? Words(step.units()) * d : rows);
      }
      steps.push_back(step);
      if (step.in_parts()) {
        Step sum{.product = product, .rows = d, .extent = d, .unit = d, .parts = step.units()};
        sum.product.left = kMade.name;
        if (!returned) {
          place(sum, d);
        }
        steps.push_back(sum);
      }
    }
  }

  // Returns the number of d x d matrices that hold all rows of `made`.
  [[nodiscard]] Index squares() const { return ceil_div(made.value(), d); }
  // Returns the rows of an intermediate result in `made`.
  [[nodiscard]] Range find(std::string_view name) const {
    for (const Step& step : steps) {
      if (step.product.result == name && step.from && !step.in_parts()) {
        const Index size = step.sums_rows() ? d : step.rows;
        return {*step.from, *step.from + size};
      }
    }
    throw ShapeMismatch("no product makes " + std::string(name));
  }

 private:
  void place(Step& step, Words rows) {
    step.from = made.overflowed() ? 0 : made.value();  // such a plan is not run
    made += rows;
  }
};

// The matrices of a product. Some of them are rows of `made`.
class Matrices {
 public:
  Matrices(const Steps& steps, const Operands& io) : steps_(steps), io_(io) {}

  // Returns some rows of a factor, or all of a square factor.
  [[nodiscard]] SlowMatrix factor(std::string_view name, Range some) const {
    const bool is_made = rows_in_made(name);
    const SlowMatrix& all = is_made ? std::as_const(io_.out(kMade.name)) : io_.in(name);
    const Range own = is_made ? steps_.find(name) : Range{0, all.rows()};
    return selected_rows(all, {part_of(own, some)});
  }
  [[nodiscard]] SlowMatrix result(const Step& step, Range some) const {
    SlowMatrix& all = io_.out(step.from ? kMade.name : step.product.result);
    return selected_rows(all, {part_of({step.from.value_or(0), 0}, some)}).holding(step.holds());
  }

 private:
  [[nodiscard]] bool rows_in_made(std::string_view name) const {
    return std::ranges::any_of(steps_.steps, [&](const Step& step) {
      return step.product.result == name && step.from.has_value();
    });
  }

  const Steps& steps_;
  const Operands& io_;
};

// ---- a step ----------------------------------------------------------------------------------

std::string path_of(const Step& step) {
  return (step.adds_up() ? "sum " : "") + std::string(step.product.result);
}

// Returns the number of words of a row that are added together. Two such pieces take no more words
// than the product did.
Index width_of_sums(const Step& step, const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const auto by = StationaryBlocks::get(step.product.result, blocks);
  const Index side = std::max({std::min(by.rows, d), std::min(by.cols, d)});
  return std::min(d, ceil_div(side, 2 * problem.sum_words));
}

void add_up(Machine& machine, const Step& step, const Plan& plan, const Matrices& matrices,
            const SlowMatrix& made, Index first) {
  const Index d = plan.problem.shape.d;
  const auto read = [&](Range rows, Range cols) {
    return machine.read(made.block(rows, cols).holding(Holds::sums));
  };
  SlowMatrix sums = matrices.result(step, {0, d});
  for (const Range K : blocks(d, 1)) {
    for (const Range J : blocks(d, width_of_sums(step, plan.problem, plan.blocks))) {
      Tile sum = read(part_of({first, 0}, K), J);
      for (Index part = 1; part < step.parts; ++part) {
        const Tile more = read(part_of({first + part * d, 0}, K), J);
        add(sum, more);
      }
      machine.write(sum, sums.block(K, J));
    }
  }
}

void run_step(Machine& machine, const Plan& plan, const Operands& io, LinearResult of,
              std::size_t which, Range units) {
  const Steps steps(plan.problem, plan.blocks, of);
  const Matrices matrices(steps, io);
  const Step& step = steps.steps[which];
  const Product& product = step.product;
  const Shape& shape = plan.problem.shape;
  const Index d = shape.d;
  const Phase phase(machine, path_of(step));
  if (step.adds_up()) {
    add_up(machine, step, plan, matrices, std::as_const(io.out(kMade.name)),
           *steps.steps[which - 1].from);
    return;
  }
  const auto all_of = [&](std::string_view name) {
    return matrices.factor(stored_name(name), {0, rows_of(name, shape)});
  };
  if (step.runs()) {
    SlowMatrix R = matrices.result(step, {0, shape.n});
    running_product(machine, RunningBlocks::get(product.result, plan.blocks), all_of(product.left),
                    all_of(product.right), all_of(product.values), R, step.part(units));
    return;
  }
  const auto by = StationaryBlocks::get(product.result, plan.blocks);
  for (Index unit = units.begin; unit < units.end; ++unit) {
    const Range rows = step.part(unit);
    const bool sums = step.sums_rows();
    const SlowMatrix left = matrices.factor(stored_name(product.left), rows);
    const SlowMatrix right = sums ? matrices.factor(product.right, rows) : all_of(product.right);
    SlowMatrix result = matrices.result(step, sums ? part_of({unit * d, 0}, {0, d}) : rows);
    const Factor A = sums ? Factor(transposed(left)) : Factor(left);
    const Factor B = is_transposed(product.right) ? Factor(transposed(right)) : Factor(right);
    stationary_product(machine, by, stays(extents(product, rows.size(), d), by), A, B, result);
  }
}

PhaseCost step_cost(const Step& step, const Problem& problem, const Blocks& blocks, Range units) {
  const Index d = problem.shape.d, of_sum = problem.sum_words;
  const Words dd = Words(d) * d;
  if (step.adds_up()) {
    return {.path = path_of(step),
            .reads = dd * step.parts * of_sum,
            .writes = dd * problem.weight(step.holds()),
            .peak = Words(2) * width_of_sums(step, problem, blocks) * of_sum,
            .flops = 0};
  }
  if (step.runs()) {
    return running_cost(step.product.result, problem,
                        RunningBlocks::get(step.product.result, blocks), step.part(units));
  }
  const auto by = StationaryBlocks::get(step.product.result, blocks);
  PhaseCost sum{.path = path_of(step), .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  const auto add = [&](Index times, Index rows) {
    const ProductShape shape_of = step.shape(rows, problem);
    const PhaseCost one = stationary_cost("", shape_of, by, stays(shape_of, by));
    sum.reads += one.reads * times;
    sum.writes += one.writes * times;
    sum.flops += one.flops * times;
    sum.peak = std::max(sum.peak, one.peak);
  };
  if (units.end == step.units()) {  // the last group may be smaller
    add(1, step.part(units.end - 1).size());
    --units.end;
  }
  if (units.size() > 0) {
    add(units.size(), step.unit);
  }
  return sum;
}

void step_nest(NestWriter& nest, const Step& step, const Problem& problem, const Blocks& blocks) {
  const Index d = problem.shape.d;
  const Product& product = step.product;
  if (step.adds_up()) {
    const NestLoop K("K", "rows", d, 1), J("J", "columns", d, width_of_sums(step, problem, blocks));
    const NestLoop part("part", "parts", step.parts, 1);
    const NestTile sum(product.result, K, J);
    nest.loop(K, [&] {
      nest.loop(J, [&] {
        nest.loop(part, {sum}, [&] { nest.step(sum.text() + " += a part", {sum}); });
        nest.write({sum});
      });
    });
    return;
  }
  if (step.runs()) {
    running_nest(nest, {product.result, product.left, product.right, product.values}, problem.shape,
                 RunningBlocks::get(product.result, blocks));
    return;
  }
  const auto by = StationaryBlocks::get(product.result, blocks);
  const auto groups = [&](Index count, Index rows) {
    const ProductShape of = extents(product, rows, d);
    nest.loop(NestLoop("group", "groups", count, 1), [&] {
      stationary_nest(nest, {product.result, product.left, product.right}, of, by, stays(of, by));
    });
  };
  const Index units = step.units();
  const Index last = step.part(units - 1).size();
  if (units == 1) {
    const ProductShape of = extents(product, last, d);
    stationary_nest(nest, {product.result, product.left, product.right}, of, by, stays(of, by));
  } else if (last == step.unit) {
    groups(units, last);
  } else {
    groups(units - 1, step.unit);
    groups(1, last);
  }
}

// ---- the kernel ------------------------------------------------------------------------------

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, LinearResult of) {
  std::vector<PhaseCost> phases;
  for (const Step& step : Steps(problem, blocks, of).steps) {
    phases.push_back(step_cost(step, problem, blocks, {0, step.units()}));
  }
  return phases;
}

Nest loop_nest(const Problem& problem, const Blocks& blocks, LinearResult of) {
  NestWriter nest;
  for (const Step& step : Steps(problem, blocks, of).steps) {
    nest.phase(path_of(step), [&] { step_nest(nest, step, problem, blocks); });
  }
  return nest.lines();
}

// Returns the blocks of products and remembers them, because many chains share products.
class ProductFits {
 public:
  ProductFits(Index M, Objective objective) : M_(M), objective_(objective) {}
  StationaryBlocks operator()(const ProductShape& of) {
    const std::array<Index, 3> extents{of.rows, of.cols, of.depth};
    if (const auto found = known_.find(extents); found != known_.end()) {
      return found->second;
    }
    Blocks blocks;
    plan_product("", of, M_, objective_, blocks);
    return known_.emplace(extents, StationaryBlocks::get("", blocks)).first->second;
  }

 private:
  Index M_;
  Objective objective_;
  std::map<std::array<Index, 3>, StationaryBlocks> known_;
};

Blocks fit_chain(const Chain& chain, const Problem& problem, Index M, Objective objective,
                 Index groups, ProductFits& fits) {
  const Shape& shape = problem.shape;
  Blocks blocks{{std::string(kGroups), groups}};
  for (const Product& product : chain) {
    if (!product.values.empty()) {
      fit_running(problem, M, objective).put(product.result, blocks);
      continue;
    }
    const bool square = rows_of(product.left) == &Shape::d;
    const Index rows = rows_of(product.left, shape);
    const Index group = square ? rows : ceil_div(rows, std::min(rows, groups));
    fits(extents(product, group, shape.d).weighing(problem.sum_words)).put(product.result, blocks);
  }
  return blocks;
}

// Returns the number of groups for least time. Workers can share the groups, and each has enough
// rows that partial sums cost little.
Index groups_of(const Shape& shape) {
  constexpr Index kMost = 24;
  constexpr Index kBusy = 96;
  const Index rows = std::max<Index>(kBusy, std::min<Index>(shape.d, Index{1} << 40) * 4);
  return std::clamp<Index>(std::max(shape.n, shape.m) / rows, 1, kMost);
}

Blocks fit(const Problem& problem, Index M, Objective objective, LinearResult of) {
  ProductFits fits(M, objective);
  std::optional<Blocks> best;
  std::pair<Words, Words> least;
  const auto consider = [&](Index groups) {
    for (const Chain& chain : chains(of, !problem.mask.full())) {
      Blocks blocks = fit_chain(chain, problem, M, objective, groups, fits);
      const PhaseCost all = total(cost(problem, blocks, of));
      std::pair<Words, Words> moved(all.reads + all.writes, all.flops);
      if (objective == Objective::time) {
        std::swap(moved.first, moved.second);
      }
      if ((!best || moved < least) && all.peak <= Words(M)) {
        best = std::move(blocks);
        least = moved;
      }
    }
  };
  if (objective == Objective::time) {
    consider(groups_of(problem.shape));
  }
  if (!best) {
    consider(1);
  }
  return best.value_or(
      fit_chain(chains(of, !problem.mask.full()).front(), problem, M, objective, 1, fits));
}

SplitStage stage(LinearResult of, std::size_t which) {
  return {.units = [of, which](const Problem& problem, const Blocks& blocks) -> Index {
            const Steps all(problem, blocks, of);
            return which < all.steps.size() ? all.steps[which].units() : 0;
          },
          .part = [of, which](Machine& machine, const Plan& plan, const Operands& io, Range units,
                              SlowMatrix*) { run_step(machine, plan, io, of, which, units); },
          .part_cost = [of, which](const Problem& problem, const Blocks& blocks, Range units,
                                   bool) -> std::vector<PhaseCost> {
            const Steps all(problem, blocks, of);
            return units.size() == 0 ? std::vector<PhaseCost>()
                                     : std::vector<PhaseCost>{
                                           step_cost(all.steps[which], problem, blocks, units)};
          }};
}

Split split(LinearResult of) {
  constexpr std::size_t kMostSteps = 7;
  Split split;
  for (std::size_t which = 0; which < kMostSteps; ++which) {
    split.stages.push_back(stage(of, which));
  }
  split.left.push_back(
      {.matrix = kMade,
       .rows =
           [of](const Problem& problem, const Blocks& blocks, Index units) {
             const Steps all(problem, blocks, of);
             Index rows = 0;
             for (const Step& step : all.steps) {
               const Index done = std::min(units, step.units());
               rows += done > 0 ? step.leaves(done, all.d) : 0;
               units -= done;
             }
             return rows;
           },
       .copies = [of](const Problem& problem,
                      const Blocks& blocks) { return Steps(problem, blocks, of).squares(); }});
  return split;
}

// Returns the additional roundings: one for each partial sum, and the ones in which blocks of a
// running sum add scores.
Words further_roundings(const Problem& problem, const Blocks& blocks, LinearResult of) {
  const std::string running = of == LinearResult::output ? "R" : "W";
  if (!blocks.contains(running + ".piece")) {
    return blocks[kGroups];
  }
  const auto by = RunningBlocks::get(running, blocks);
  return Words(ceil_div(problem.shape.d, by.rows)) * by.piece + blocks[kGroups];
}

}  // namespace
}  // namespace in_linear_products

Kernel linear_products(LinearResult of) {
  using namespace in_linear_products;
  const bool makes_O = of == LinearResult::output;
  Kernel kernel = linear_kernel(of);
  kernel.name = makes_O ? "linear/products" : "linear-gradient/products";
  kernel.summary = makes_O ? "products two by two, in the order of fewest words: O = A1 (X S Y)"
                           : "products two by two, in the order of fewest words: g = U (S Y)^T";
  kernel.kin = makes_O ? "" : "linear/products";
  kernel.schedule = in_stages(split(of));
  kernel.formula = {.cost = [of](const Problem& problem,
                                 const Blocks& blocks) { return cost(problem, blocks, of); },
                    .intermediates =
                        [of](const Problem& problem, const Blocks& blocks) {
                          const Steps all(problem, blocks, of);
                          return all.made.overflowed() ? all.made
                                                       : Words(all.squares()) * all.d * all.d;
                        },
                    .nest = [of](const Problem& problem,
                                 const Blocks& blocks) { return loop_nest(problem, blocks, of); }};
  kernel.fitting.fit = [of](const Problem& problem, const Memory& memory, Objective objective) {
    return fit(problem, memory.M, objective, of);
  };
  kernel.numerics.chain = [of](const Problem& problem, const Blocks& blocks) {
    return further_roundings(problem, blocks, of);
  };
  return kernel;
}

}  // namespace redblue
