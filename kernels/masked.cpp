#include "kernels/masked.hpp"

#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/attention.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

bool none_live(const Problem& problem) {
  return problem.live_queries().empty();
}

// The rows of a matrix that no pair needs. g needs some pair.
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

// The operands' live rows.
class LiveOperands {
 public:
  LiveOperands(const Kernel& kernel, const Problem& problem, const Operands& io) {
    for (const Signature& operand : kernel.given(problem.sharing)) {
      const SlowMatrix& all = io.in(operand.name);
      io_.give(has_dead(operand, problem)
                   ? given_.emplace_back(selected_rows(all, live_rows(operand, problem)))
                   : all);
    }
    for (const Signature& operand : kernel.returned(problem.wanted)) {
      SlowMatrix& all = io.out(operand.name);
      io_.take(has_dead(operand, problem)
                   ? returned_.emplace_back(selected_rows(all, live_rows(operand, problem)))
                   : all);
    }
  }
  [[nodiscard]] const Operands& io() const { return io_; }

 private:
  static bool has_dead(const Signature& operand, const Problem& problem) {
    return !dead_rows(operand, problem).empty();
  }
  static Ranges live_rows(const Signature& operand, const Problem& problem) {
    return operand.rows == &Shape::n ? problem.live_queries() : problem.live_keys();
  }

  std::deque<SlowMatrix> given_, returned_;
  Operands io_;
};

// A row at a time: there is room for one in every M.
void write_rows(Machine& machine, SlowMatrix& matrix, Range rows, float value) {
  for (Index row = rows.begin; row < rows.end; ++row) {
    machine.write(machine.initialize(matrix.name(), 1, matrix.cols(), value),
                  matrix.row_block({row, row + 1}));
  }
}

// `with_sums`: and g, where no pair is live.
void write_dead(Machine& machine, const Kernel& kernel, const Problem& problem, const Operands& io,
                bool with_sums = true) {
  std::optional<Phase> phase;
  for (const Signature& operand : kernel.returned(problem.wanted)) {
    if (!with_sums && operand.name == kg.name) {
      continue;
    }
    const float value = operand.name == kL.name ? -std::numeric_limits<float>::infinity() : 0.0F;
    for (const Range rows : dead_rows(operand, problem)) {
      if (!phase) {
        phase.emplace(machine, "dead");
      }
      write_rows(machine, io.out(operand.name), rows, value);
    }
  }
}

void add_dead_cost(std::vector<PhaseCost>& phases, const Kernel& kernel, const Problem& problem,
                   bool with_sums = true) {
  PhaseCost dead{.path = "dead", .reads = 0, .writes = 0, .peak = 0, .flops = 0};
  for (const Signature& operand : kernel.returned(problem.wanted)) {
    const Words rows = size_of(dead_rows(operand, problem));
    if (rows == Words(0) || (!with_sums && operand.name == kg.name)) {
      continue;
    }
    const Words cols = operand.cols_of(problem.shape);
    dead.writes += rows * cols;
    dead.peak = std::max(dead.peak, cols);
  }
  if (dead.writes > Words(0)) {
    phases.push_back(dead);
  }
}

Nest dead_nest(const Kernel& kernel, const Problem& problem) {
  NestWriter nest;
  nest.phase("dead", [&] {
    for (const Signature& operand : kernel.returned(problem.wanted)) {
      if (const Index rows = size_of(dead_rows(operand, problem)); rows > 0) {
        const std::string name(operand.name);
        nest.step(name + (operand.name == kL.name ? " = -inf" : " = 0") + " of what meets nothing",
                  {}, {{name, rows, operand.cols_of(problem.shape)}});
      }
    }
  });
  return nest.lines();
}

Plan live_part(const Plan& plan) {
  Plan live = plan;
  live.problem = plan.problem.live_part();
  return live;
}

// What a machine finds: live rows, and what stages leave for each other.
Operands with_left(const LiveOperands& live, const Split& split, const Plan& plan,
                   const Operands& io) {
  Operands all = live.io();
  if (split.copies(plan.problem, plan.blocks) > 0) {
    for (const Signature& matrix : split.left) {
      all.take(io.out(matrix.name));
    }
  }
  return all;
}

// The first unit of all writes what is dead.
SplitStage with_masks(const SplitStage& of, bool first, const Split& split, const Kernel& kernel) {
  SplitStage stage;
  stage.units = [of, first](const Problem& problem, const Blocks& blocks) -> Index {
    return none_live(problem) ? (first ? 1 : 0) : of.units(problem.live_part(), blocks);
  };
  stage.part = [of, first, split, kernel](Machine& machine, const Plan& plan, const Operands& io,
                                          Range units, SlowMatrix* partials) {
    if (!none_live(plan.problem)) {
      const LiveOperands live(kernel, plan.problem, io);
      const Plan of_live = live_part(plan);
      of.part(machine, of_live, with_left(live, split, of_live, io), units, partials);
    }
    if (first && units.begin == 0) {
      write_dead(machine, kernel, plan.problem, io, partials == nullptr);
    }
  };
  stage.part_cost = [of, first, kernel](const Problem& problem, const Blocks& blocks, Range units,
                                        bool partials) {
    std::vector<PhaseCost> phases;
    if (!none_live(problem)) {
      phases = of.part_cost(problem.live_part(), blocks, units, partials);
    }
    if (first && units.begin == 0) {
      add_dead_cost(phases, kernel, problem, !partials);
    }
    return phases;
  };
  return stage;
}

Split with_masks(const Split& of, const Kernel& kernel) {
  Split split = of;
  split.stages.clear();
  for (const SplitStage& stage : of.stages) {
    split.stages.push_back(with_masks(stage, split.stages.empty(), of, kernel));
  }
  if (of.left_rows) {
    split.left_rows = [of](const Problem& problem, const Blocks& blocks, Index units) {
      return none_live(problem) ? 0 : of.left_rows(problem.live_part(), blocks, units);
    };
  }
  if (of.left_copies) {
    split.left_copies = [of](const Problem& problem, const Blocks& blocks) {
      return none_live(problem) ? 0 : of.left_copies(problem.live_part(), blocks);
    };
  }
  if (of.reduce == nullptr) {
    return split;
  }
  split.reduce = [of](Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                      SlowMatrix& g) {
    if (!none_live(plan.problem)) {
      return of.reduce(machine, live_part(plan), rows, partials, g);
    }
    const Phase phase(machine, "dead");
    write_rows(machine, g, rows, 0);
  };
  split.reduce_cost = [of](const Problem& problem, const Blocks& blocks,
                           Range rows) -> std::vector<PhaseCost> {
    if (!none_live(problem)) {
      return of.reduce_cost(problem.live_part(), blocks, rows);
    }
    const Words d = problem.shape.d;
    return {{.path = "dead", .reads = 0, .writes = d * rows.size(), .peak = d, .flops = 0}};
  };
  return split;
}

}  // namespace

// Without a mask everything is as it was: a problem is its own live part.
Kernel with_masks(Kernel kernel) {
  kernel.takes_masks = true;
  const Kernel of = kernel;  // what all of these are made of
  kernel.schedule.code = [of](Machine& machine, const Plan& plan, const Operands& io,
                              Workspace& workspace) {
    if (!none_live(plan.problem)) {
      const LiveOperands live(of, plan.problem, io);
      of.schedule.code(machine, live_part(plan), live.io(), workspace);
    }
    write_dead(machine, of, plan.problem, io);
  };
  if (of.schedule.split) {
    kernel.schedule.split = with_masks(*of.schedule.split, of);
  }
  kernel.formula.cost = [of](const Problem& problem, const Blocks& blocks) {
    std::vector<PhaseCost> phases;
    if (!none_live(problem)) {
      phases = of.formula.cost(problem.live_part(), blocks);
    }
    add_dead_cost(phases, of, problem);
    return phases;
  };
  if (of.formula.intermediates) {
    kernel.formula.intermediates = [of](const Problem& problem, const Blocks& blocks) {
      return none_live(problem) ? Words(0) : of.formula.intermediates(problem.live_part(), blocks);
    };
  }
  kernel.formula.nest = [of](const Problem& problem, const Blocks& blocks) {
    Nest lines;
    if (!none_live(problem)) {
      lines = of.formula.nest(problem.live_part(), blocks);
    }
    const Nest dead = dead_nest(of, problem);
    lines.insert(lines.end(), dead.begin(), dead.end());
    return lines;
  };
  kernel.fitting.fit = [of](const Problem& problem, const Memory& memory, Objective objective) {
    Problem live = problem.live_part();
    if (none_live(problem)) {  // any blocks do
      live.shape.n = live.shape.m = 1;
      live.mask = {};
    }
    return of.fitting.fit(live, memory, objective);
  };
  return kernel;
}

}  // namespace redblue
