#include "kernels/masked.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/units.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

bool none_live(const Problem& problem) {
  return problem.live_queries().empty();
}

// Returns the number of live queries that stay resident, which is never all of them.
Index staying(const Problem& live, const Blocks& blocks) {
  return blocks.contains(kStaying) && !live.mask.full()
             ? std::min(blocks[kStaying], live.shape.n - 1)
             : 0;
}

// Returns the live queries in the order that the blocks request; null if they keep their own order.
std::shared_ptr<const Mask::Clustered> clustered(const Problem& live, const Blocks& blocks) {
  return is_in_order(blocks) || live.mask.full()
             ? nullptr
             : live.mask.clustered(is_clustered(blocks) ? blocks[kClustered] : 0,
                                   staying(live, blocks));
}

// Returns the problem that the kernel of live queries and keys works on.
Problem kernel_problem(const Problem& problem, const Blocks& blocks) {
  require(!(blocks.contains(kClustered) && problem.mask.full()),
          "rows are clustered under a mask alone");
  require(!(blocks.contains(kStaying) && problem.mask.full()), "rows stay under a mask alone");
  require(problem.sharing != Sharing::self || is_in_order(blocks), "a source keeps its place");
  Problem live = problem.live_part();
  if (const auto order = clustered(live, blocks)) {
    live.mask = order->mask.called(live.mask.spec());
  }
  live.staying = staying(live, blocks);
  return live;
}

// The rows of the operands that the kernel works on.
class LiveOperands {
 public:
  LiveOperands(const Kernel& kernel, const Plan& plan, const Operands& io)
      : problem_(plan.problem), order_(clustered(problem_.live_part(), plan.blocks)) {
    for (const Signature& operand : kernel.given(problem_)) {
      const SlowMatrix& all = io.in(operand.name);
      io_.give(selects(operand) ? given_.emplace_back(selected_rows(all, rows(operand))) : all);
    }
    for (const Signature& operand : kernel.returned(problem_)) {
      SlowMatrix& all = io.out(operand.name);
      io_.take(selects(operand) ? returned_.emplace_back(selected_rows(all, rows(operand))) : all);
    }
  }
  [[nodiscard]] const Operands& io() const { return io_; }

 private:
  [[nodiscard]] bool selects(const Signature& operand) const {
    return !dead_rows(operand, problem_).empty() || (order_ && operand.rows == &Shape::n);
  }
  [[nodiscard]] std::vector<Range> rows(const Signature& operand) const {
    return operand.rows == &Shape::m ? problem_.live_keys()
           : order_                  ? picked(problem_.live_queries(), order_->order)
                                     : problem_.live_queries();
  }

  const Problem& problem_;
  std::shared_ptr<const Mask::Clustered> order_;
  std::deque<SlowMatrix> given_, returned_;
  Operands io_;
};

// `with_sums`: also writes g, if no pair is live.
void write_all_dead(Machine& machine, const Kernel& kernel, const Problem& problem,
                    const Operands& io, bool with_sums = true) {
  std::optional<Phase> phase;
  for (const Signature& operand : kernel.returned(problem)) {
    if (!with_sums && operand.name == kg.name) {
      continue;
    }
    for (const Range rows : dead_rows(operand, problem)) {
      if (!phase) {
        phase.emplace(machine, "dead");
      }
      write_dead(machine, operand, io.out(operand.name), rows);
    }
  }
}

void add_all_dead_costs(std::vector<PhaseCost>& phases, const Kernel& kernel,
                        const Problem& problem, bool with_sums = true) {
  for (const Signature& operand : kernel.returned(problem)) {
    if (with_sums || operand.name != kg.name) {
      add_dead_cost(phases, operand, problem, size_of(dead_rows(operand, problem)));
    }
  }
}

// Same, for an inner level. It never holds dead rows.
void add_dead_phase(std::vector<PhaseCost>& phases, const Kernel& kernel, const Problem& problem,
                    bool with_sums = true) {
  std::vector<PhaseCost> dead;
  add_all_dead_costs(dead, kernel, problem, with_sums);
  for (const PhaseCost& phase : dead) {
    phases.push_back({.path = phase.path, .reads = 0, .writes = 0, .peak = 0, .flops = 0});
  }
}

Nest dead_nest(const Kernel& kernel, const Problem& problem) {
  NestWriter nest;
  nest.phase("dead", [&] {
    for (const Signature& operand : kernel.returned(problem)) {
      if (const Index rows = size_of(dead_rows(operand, problem)); rows > 0) {
        const std::string name(operand.name);
        nest.step(name + (operand.name == kL.name ? " = -inf" : " = 0") + " of what meets nothing",
                  {}, {{name, rows, operand.cols_of(problem.shape)}});
      }
    }
  });
  return nest.lines();
}

// Returns the operands of a machine: live rows, and the matrices that stages write for each other.
Operands with_left(const LiveOperands& live, const Split& split, const Plan& plan,
                   const Operands& io) {
  Operands all = live.io();
  for (const Split::Copies& left : split.left_of(plan.problem, plan.blocks)) {
    all.take(io.out(left.matrix.name));
  }
  for (const Signature& matrix : split.left_as_results) {
    all.take(io.out(matrix.name));
  }
  return all;
}

// Returns the stage with the first unit that writes dead rows: the first stage that has units. If a
// stage has `at_once`, it is the last stage with units. A resumed run begins the matrices of an
// at_once stage anew, so dead rows from earlier stages would be lost.
std::size_t stage_of_dead(const Split& split, const Problem& problem, const Blocks& blocks) {
  if (none_live(problem)) {
    return 0;
  }
  const Problem live = kernel_problem(problem, blocks);
  const auto has_units = [&](const SplitStage& stage) { return stage.units(live, blocks) > 0; };
  const auto& stages = split.stages;
  if (std::ranges::all_of(stages, [](const SplitStage& stage) { return stage.at_once.empty(); })) {
    return static_cast<std::size_t>(std::ranges::find_if(stages, has_units) - stages.begin());
  }
  const auto last = std::find_if(stages.rbegin(), stages.rend(), has_units);
  return static_cast<std::size_t>(stages.rend() - last) - 1;
}

SplitStage with_masks(const std::shared_ptr<const Kernel>& kernel, std::size_t which) {
  const std::shared_ptr<const Split> split(kernel, &*kernel->schedule.split);
  const std::shared_ptr<const SplitStage> of(kernel, &split->stages[which]);
  const auto writes_dead = [split, which](const Problem& problem, const Blocks& blocks,
                                          Range units) {
    return units.begin == 0 && which == stage_of_dead(*split, problem, blocks);
  };
  SplitStage stage;
  stage.at_once = of->at_once;
  stage.units = [of, which](const Problem& problem, const Blocks& blocks) -> Index {
    return none_live(problem) ? (which == 0 ? 1 : 0)
                              : of->units(kernel_problem(problem, blocks), blocks);
  };
  stage.part = [of, writes_dead, split, kernel](Machine& machine, const Plan& plan,
                                                const Operands& io, Range units,
                                                SlowMatrix* partials) {
    if (!none_live(plan.problem)) {
      const LiveOperands live(*kernel, plan, io);
      const Plan of_live = live_plan(plan);
      of->part(machine, of_live, with_left(live, *split, of_live, io), units, partials);
    }
    if (writes_dead(plan.problem, plan.blocks, units)) {
      write_all_dead(machine, *kernel, plan.problem, io, partials == nullptr);
    }
  };
  stage.part_cost = [of, writes_dead, kernel](const Problem& problem, const Blocks& blocks,
                                              Range units, bool partials) {
    std::vector<PhaseCost> phases;
    if (!none_live(problem)) {
      phases = of->part_cost(kernel_problem(problem, blocks), blocks, units, partials);
    }
    if (writes_dead(problem, blocks, units)) {
      add_all_dead_costs(phases, *kernel, problem, !partials);
    }
    return phases;
  };
  if (of->level_cost) {
    stage.level_cost = [of, writes_dead, kernel](const Problem& problem, const Blocks& blocks,
                                                 Range units, bool partials, std::size_t level) {
      std::vector<PhaseCost> phases;
      if (!none_live(problem)) {
        phases = of->level_cost(kernel_problem(problem, blocks), blocks, units, partials, level);
      }
      if (writes_dead(problem, blocks, units)) {
        add_dead_phase(phases, *kernel, problem, !partials);
      }
      return phases;
    };
  }
  return stage;
}

Split with_masks(const std::shared_ptr<const Kernel>& kernel) {
  const std::shared_ptr<const Split> of(kernel, &*kernel->schedule.split);
  Split split = *of;
  split.stages.clear();
  for (std::size_t which = 0; which < of->stages.size(); ++which) {
    split.stages.push_back(with_masks(kernel, which));
  }
  for (std::size_t k = 0; k < of->left.size(); ++k) {
    const std::shared_ptr<const Left> left(kernel, &of->left[k]);
    split.left[k].rows = [left](const Problem& problem, const Blocks& blocks, Index units) {
      return left->rows(kernel_problem(problem, blocks), blocks, units);
    };
    split.left[k].copies = [left](const Problem& problem, const Blocks& blocks) -> Index {
      return none_live(problem) ? 0
             : left->copies     ? left->copies(kernel_problem(problem, blocks), blocks)
                                : 1;
    };
  }
  if (of->reduce == nullptr) {
    return split;
  }
  split.reduce = [of](Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                      SlowMatrix& g) {
    if (!none_live(plan.problem)) {
      return of->reduce(machine, live_plan(plan), rows, partials, g);
    }
    const Phase phase(machine, "dead");
    write_dead(machine, kg, g, rows);
  };
  split.reduce_cost = [of](const Problem& problem, const Blocks& blocks,
                           Range rows) -> std::vector<PhaseCost> {
    if (!none_live(problem)) {
      return of->reduce_cost(kernel_problem(problem, blocks), blocks, rows);
    }
    std::vector<PhaseCost> phases;
    add_dead_cost(phases, kg, problem, rows.size());
    return phases;
  };
  if (of->reduce_level_cost) {
    split.reduce_level_cost = [of](const Problem& problem, const Blocks& blocks, Range rows,
                                   std::size_t level) -> std::vector<PhaseCost> {
      if (!none_live(problem)) {
        return of->reduce_level_cost(kernel_problem(problem, blocks), blocks, rows, level);
      }
      return {{.path = "dead", .reads = 0, .writes = 0, .peak = 0, .flops = 0}};
    };
  }
  return split;
}

// Returns the blocks that the kernel fits. The kernel assumes that smaller blocks fit if larger
// ones do. Under a mask, smaller blocks meet other keys and may take a little more. This function
// then tries blocks for less memory.
Blocks fitted(const Kernel& of, const Problem& live, const Memory& memory, Objective objective) {
  const auto fit = [&](Index M) {
    Memory less{M, memory.prefetch};
    less.multiple = memory.multiple;
    less.given = memory.given;
    less.all_blocks = memory.all_blocks;
    return of.fitting.fit(live, less, objective);
  };
  const auto fits = [&](const Blocks& blocks) {
    return total(of.formula.cost(live, blocks)).peak <= Words(memory.M);
  };
  Blocks blocks = fit(memory.M);
  if (live.mask.full() || fits(blocks)) {
    return blocks;
  }
  const Blocks smallest = fit(1);
  if (fits(smallest)) {
    for (Index M = memory.M - 1; M > 1 && !fits(blocks); M -= std::max<Index>(M / 16, 1)) {
      blocks = fit(M);
    }
  }
  return fits(blocks) ? blocks : smallest;
}

// Returns the largest group size, up to `most` queries, that cuts no run of the mask, or cuts each
// run evenly.
Index aligned(const Mask& mask, Index most) {
  Index side = 0;
  for (const MaskRun& run : mask.runs()) {
    side = std::gcd(side, run.queries.end);
  }
  if (most >= side) {
    return most / side * side;
  }
  while (side % most != 0) {
    --most;
  }
  return most;
}

// Returns the blocks with the fewest words. It tries blocks fitted to queries in their own order.
// It also tries blocks fitted to queries clustered for the size of such blocks. Each candidate is
// also tried with whole runs of the mask, and with some resident queries.
Blocks fewest_ordered(const Kernel& of, const Problem& live, const Memory& memory,
                      const Blocks& in_order) {
  const std::string_view rows = row_block_of(in_order);
  if (live.mask.full() || rows.empty() || of.is_nest || of.of_one_source) {
    return in_order;
  }
  const bool clusters = live.mask.irregular() || live.stacked > 1;
  const Index staying = of.fitting.rows_stay ? live.mask.staying_queries() : 0;
  if ((!clusters && staying == 0) ||
      total(of.formula.cost(live, in_order)).peak > Words(memory.M)) {
    return in_order;
  }
  Blocks best;
  Words fewest;
  // Tries blocks, and returns the aligned row block.
  const auto consider = [&](const Blocks& blocks) {
    const Problem problem = kernel_problem(live, blocks);
    Blocks whole = blocks;
    whole.set(rows, aligned(problem.mask, blocks[rows]));
    for (const Blocks* tried : {&blocks, &std::as_const(whole)}) {
      const PhaseCost all = total(of.formula.cost(problem, *tried));
      const Words words = all.reads + all.writes;
      if (all.peak <= Words(memory.M) && (best == Blocks() || words < fewest)) {
        best = *tried;
        fewest = words;
      }
    }
    return whole[rows];
  };
  const auto fitted_to = [&](const Blocks& order) {
    Blocks blocks = fitted(of, kernel_problem(live, order), memory, Objective::words);
    for (const auto& [name, size] : order) {
      blocks.add(name, size);
    }
    return blocks;
  };
  const auto consider_clustered = [&](const Blocks& blocks, const Blocks& order) {
    static_cast<void>(consider(blocks));
    Index size = blocks[rows];
    for (int k = 0;
         k < 2 && clusters && 1 < size && size < live.shape.n && live.mask.clusters_soon(); ++k) {
      Blocks of_order = order;
      of_order.add(std::string(kClustered), size);
      if (const Index next = consider(fitted_to(of_order)); next != size) {
        size = next;
      } else {
        break;
      }
    }
  };
  consider_clustered(in_order, {});
  if (staying > 0) {
    const Blocks stay{{std::string(kStaying), staying}};
    consider_clustered(fitted_to(stay), stay);
  }
  return best;
}

}  // namespace

Plan live_plan(const Plan& plan) {
  Plan live = plan;
  live.problem = kernel_problem(plan.problem, plan.blocks);
  return live;
}

std::string_view row_block_of(const Blocks& blocks) {
  for (const std::string_view name : {"Br", "dQ.Br", "W.Br"}) {
    if (blocks.contains(name)) {
      return name;
    }
  }
  return {};
}

// g is dead only if no pair is live.
Ranges dead_rows(const Signature& operand, const Problem& problem) {
  const Range rows{0, operand.rows_of(problem.shape)};
  if (problem.mask.full()) {
    return {};
  }
  return operand.rows == &Shape::n   ? without({rows}, problem.live_queries())
         : operand.rows == &Shape::m ? without({rows}, problem.live_keys())
         : none_live(problem)        ? Ranges{rows}
                                     : Ranges{};
}

void write_dead(Machine& machine, const Signature& result, SlowMatrix& matrix, Range rows) {
  const float value = result.name == kL.name ? -std::numeric_limits<float>::infinity() : 0.0F;
  for (Index row = rows.begin; row < rows.end; ++row) {
    machine.write(machine.initialize(matrix.name(), 1, matrix.cols(), value, matrix.holds()),
                  matrix.row_block({row, row + 1}));
  }
}

void add_dead_cost(std::vector<PhaseCost>& phases, const Signature& result, const Problem& problem,
                   Index rows) {
  if (rows == 0) {
    return;
  }
  if (phases.empty() || phases.back().path != "dead") {
    phases.push_back({.path = "dead", .reads = 0, .writes = 0, .peak = 0, .flops = 0});
  }
  const Words row = Words(result.cols_of(problem.shape)) * problem.weight(result.holds);
  phases.back().writes += row * rows;
  phases.back().peak = std::max(phases.back().peak, row);
}

std::vector<Range> picked(const Ranges& rows, const std::vector<Range>& numbers) {
  std::vector<Index> ends;  // positions after each range
  for (const Range range : rows) {
    ends.push_back(range.size() + (ends.empty() ? 0 : ends.back()));
  }
  std::vector<Range> picked;
  for (Range left : numbers) {
    for (auto k = std::ranges::upper_bound(ends, left.begin) - ends.begin(); left.size() > 0; ++k) {
      const auto which = static_cast<std::size_t>(k);
      const Index shift = rows[which].end - ends[which];
      const Index end = std::min(left.end, ends[which]);
      picked.push_back({left.begin + shift, end + shift});
      left.begin = end;
    }
  }
  return picked;
}

// Without a mask, this changes no result: the problem is its own live part.
Kernel with_masks(Kernel kernel) {
  kernel.takes_masks = true;
  // All functions below share this kernel. A copy in each of them, and in each of their copies,
  // would take megabytes.
  const auto of = std::make_shared<const Kernel>(kernel);
  kernel.of_live = of;
  kernel.schedule.code = [of](Machine& machine, const Plan& plan, const Operands& io,
                              Workspace& workspace) {
    if (!none_live(plan.problem)) {
      const LiveOperands live(*of, plan, io);
      of->schedule.code(machine, live_plan(plan), live.io(), workspace);
    }
    write_all_dead(machine, *of, plan.problem, io);
  };
  if (of->schedule.split) {
    kernel.schedule.split = with_masks(of);
  }
  kernel.formula.cost = [of](const Problem& problem, const Blocks& blocks) {
    std::vector<PhaseCost> phases;
    if (!none_live(problem)) {
      phases = of->formula.cost(kernel_problem(problem, blocks), blocks);
    }
    add_all_dead_costs(phases, *of, problem);
    return phases;
  };
  if (of->formula.level_cost) {
    kernel.formula.level_cost = [of](const Problem& problem, const Blocks& blocks,
                                     std::size_t level) {
      std::vector<PhaseCost> phases;
      if (!none_live(problem)) {
        phases = of->formula.level_cost(kernel_problem(problem, blocks), blocks, level);
      }
      add_dead_phase(phases, *of, problem);
      return phases;
    };
  }
  if (of->formula.intermediates) {
    kernel.formula.intermediates = [of](const Problem& problem, const Blocks& blocks) {
      return none_live(problem)
                 ? Words(0)
                 : of->formula.intermediates(kernel_problem(problem, blocks), blocks);
    };
  }
  if (of->formula.nest) {
    kernel.formula.nest = [of](const Problem& problem, const Blocks& blocks) {
      Nest lines;
      if (!none_live(problem)) {
        lines = of->formula.nest(kernel_problem(problem, blocks), blocks);
      }
      const Nest dead = dead_nest(*of, problem);
      lines.insert(lines.end(), dead.begin(), dead.end());
      return lines;
    };
  }
  kernel.fitting.fit = [of](const Problem& problem, const Memory& memory, Objective objective) {
    Problem live = problem.live_part();
    if (none_live(problem)) {  // any blocks are valid
      live.shape.n = live.shape.m = 1;
      live.mask = {};
    }
    if (!memory.inner.empty()) {
      return of->fitting.fit(live, memory, objective);
    }
    const Blocks blocks = fitted(*of, live, memory, objective);
    return objective == Objective::words ? fewest_ordered(*of, live, memory, blocks) : blocks;
  };
  for (auto Numerics::*words :
       {&Numerics::rescales, &Numerics::chain, &Numerics::recentred_blocks}) {
    if (of->numerics.*words) {
      kernel.numerics.*words = [of, words](const Problem& problem, const Blocks& blocks) {
        const bool in_order = is_in_order(blocks) || none_live(problem);
        return (of->numerics.*words)(in_order ? problem : kernel_problem(problem, blocks), blocks);
      };
    }
  }
  return kernel;
}

Kernel with_causal_mask(Kernel kernel) {
  kernel = with_masks(std::move(kernel));
  kernel.takes_masks = false;
  kernel.takes_causal = true;
  return kernel;
}

std::optional<Regrouping> regrouping(const Plan& plan) {
  if (!plan.problem.mask.index().is_pattern()) {
    return std::nullopt;
  }
  std::vector<Grouping> all;
  Regrouping sum;
  for (const PhaseCost& phase : plan.phases) {
    for (const Grouping& grouping : phase.groupings) {
      const auto same = [&](const Grouping& known) { return known.same_groups(grouping); };
      if (std::ranges::none_of(all, same)) {
        all.push_back(grouping);
        sum.reads += (plan.problem.one_head().pairs() + plan.problem.queries() + 1) *
                     plan.problem.mask.index().index_words();
        sum.writes += grouping.words;
      }
    }
  }
  return sum;
}

}  // namespace redblue
