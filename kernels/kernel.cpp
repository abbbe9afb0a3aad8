#include "kernels/kernel.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "kernels/attention.hpp"
#include "kernels/balanced.hpp"
#include "kernels/masked.hpp"
#include "kernels/registry.hpp"
#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

template <class Matrix>
Matrix& by_name(const std::vector<std::pair<std::string_view, Matrix*>>& matrices,
                std::string_view name) {
  const auto found =
      std::ranges::find(matrices, name, &std::pair<std::string_view, Matrix*>::first);
  if (found == matrices.end()) {
    throw ShapeMismatch("the operand " + std::string(name) + " is missing");
  }
  return *found->second;
}

std::string extents(Index rows, Index cols) {
  return std::to_string(rows) + " x " + std::to_string(cols);
}

void check_extents(const SlowMatrix& matrix, const Signature& signature, const Shape& shape) {
  const Index rows = signature.rows_of(shape);
  const Index cols = signature.cols_of(shape);
  if (matrix.rows() != rows || matrix.cols() != cols) {
    throw ShapeMismatch("the operand " + matrix.name() + " is " +
                        extents(matrix.rows(), matrix.cols()) + "; this plan asks for " +
                        extents(rows, cols));
  }
}

void check_sparsity(const Kernel& kernel, const Problem& problem) {
  const auto [n, m, d] = problem.shape;
  const bool product = kernel.pass == Pass::product;
  const auto is = [](const BlockPattern& pattern, Index rows, Index cols) {
    return pattern.rows == rows && pattern.cols == cols && pattern.block_rows == 1 &&
           pattern.block_cols == 1;
  };
  const Sparsity& of = problem.sparsity;
  require(is(of.A1(), n, d) && is(of.X(), d, product ? m : d) && (product || is(of.A2(), m, d)),
          "sparse operands have the extents of the problem");
  if (problem.stacked > 1) {
    throw ShapeMismatch(std::string(kernel.name) + " takes no heads that share keys");
  }
}

void check_problem(const Kernel& kernel, const Problem& problem, Index M) {
  const auto [n, m, d] = problem.shape;
  const Index dv = problem.shape.dv;
  require(n > 0 && m > 0 && d > 0 && dv > 0, "n, m, d and dv are at least 1");
  const bool prefix = kernel.pass == Pass::attention && problem.sharing == Sharing::kv && dv < d;
  require(dv == d || prefix ||
              (inputs_of(kernel.pass) == Inputs::plain && problem.sharing == Sharing::none),
          "dv is d where there are weights or values are keys");
  require(M > 0, "M is at least 1");
  if (kernel.of_one_source || problem.sharing == Sharing::self) {
    if (!kernel.of_one_source || problem.sharing != Sharing::self) {
      throw ShapeMismatch(std::string(kernel.name) + (kernel.of_one_source
                                                          ? " is of one source for all"
                                                          : " reads queries and keys apart"));
    }
    require(n == m && problem.stacked == 1, "n == m and one head, if queries are keys");
  } else if (problem.sharing != Sharing::none && !kernel.shares_keys) {
    throw ShapeMismatch(std::string(kernel.name) + " does not share keys");
  }
  const Mask& mask = problem.mask;
  if (!kernel.takes(mask)) {
    throw ShapeMismatch(std::string(kernel.name) +
                        (kernel.takes_causal ? " takes no mask but causal" : " takes no mask"));
  }
  if (!kernel.takes(problem.activation)) {
    throw ShapeMismatch(std::string(kernel.name) + " knows softmax alone");
  }
  require(mask.full() || (mask.queries() == n && mask.keys() == m),
          "the mask is of n queries and m keys");
  if (problem.sparsity.dense() == kernel.takes_sparse) {
    throw ShapeMismatch(std::string(kernel.name) +
                        (kernel.takes_sparse ? " is of sparse operands" : " is of dense operands"));
  }
  if (kernel.takes_sparse) {
    check_sparsity(kernel, problem);
  }
  require(problem.sum_words >= 1, "a sum is at least a word");
  if (problem.sum_words > 1 && kernel.takes_sparse) {
    throw ShapeMismatch(std::string(kernel.name) + " has sums of one word");
  }
  if (!kernel.can_return(problem)) {
    throw ShapeMismatch(std::string(kernel.name) + " does not return " + problem.wanted.text() +
                        " alone");
  }
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void check_prefetch(const Kernel& kernel, const Problem& problem, Index prefetch) {
  if (prefetch > 1 && !kernel.streams_keys()) {
    throw ShapeMismatch(spelled(kernel.name, problem.sharing) +
                        " streams no keys: its prefetch is 1, not " + std::to_string(prefetch));
  }
}

// Throws unless the kernel takes these inner levels, and each has fewer words than the next.
void check_levels(const Kernel& kernel, const Problem& problem, const Memory& memory) {
  if (memory.inner.empty()) {
    return;
  }
  if (problem.sum_words > 1) {
    throw ShapeMismatch("with inner levels a sum is one word");
  }
  if (!kernel.has_levels()) {
    throw ShapeMismatch(spelled(kernel.name, problem.sharing) + " has no inner levels");
  }
  if (memory.prefetch > 1) {
    throw ShapeMismatch("with inner levels the prefetch is 1, not " +
                        std::to_string(memory.prefetch));
  }
  require(memory.multiple == 1, "with inner levels blocks are in multiples of 1");
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    const Index next = level + 1 < memory.inner.size() ? memory.inner[level + 1] : memory.M;
    require(memory.inner[level] > 0 && memory.inner[level] < next,
            "each level has fewer words than the next");
  }
}

void check_level_blocks(const Kernel& kernel, const Blocks& blocks, const Memory& memory) {
  const auto has = [&](std::size_t level) {
    return std::ranges::any_of(
        blocks, [&](const auto& block) { return block.first.starts_with(level_block(level, "")); });
  };
  std::size_t levels = 0;
  while (has(levels)) {
    ++levels;
  }
  if (levels != memory.inner.size()) {
    throw ShapeMismatch("the blocks are of " + std::to_string(levels) +
                        " inner levels, and there are " + std::to_string(memory.inner.size()));
  }
  if (levels == 0) {
    return;
  }
  const auto text = [&](std::string_view name) {
    return std::string(name) + "=" + std::to_string(blocks[name]);
  };
  constexpr std::pair<std::string_view, Index> kMost[] = {
      {kKeyGroups, 1}, {kQueryGroups, 1}, {kPrefetch, 1}, {kKept, 0}};
  for (const auto& [name, most] : kMost) {
    if (blocks.contains(name) && blocks[name] > most) {
      throw ShapeMismatch(text(name) + ": with several levels it is " + std::to_string(most));
    }
  }
  for (const InnerBlock& block : kernel.fitting.inner_blocks) {
    for (std::size_t level = 0; blocks.contains(block.name) && level < levels; ++level) {
      const std::string name = level_block(level, block.name);
      require(blocks.contains(name), "each inner level has its blocks");
    }
  }
  for (const InnerBlock& block : kernel.fitting.inner_blocks) {
    for (std::size_t level = 0; block.cuts && level + 1 < levels; ++level) {
      const std::string inside = level_block(level, block.name);
      const std::string next = level_block(level + 1, block.name);
      if (blocks.contains(next) && blocks[next] % blocks[inside] != 0) {
        throw ShapeMismatch(text(next) + ": a multiple of " + text(inside));
      }
    }
  }
}

}  // namespace

std::string_view to_string(Activation activation) {
  const std::string_view name = name_of(activation);
  if (name.empty()) {
    throw ShapeMismatch("there is no activation number " +
                        std::to_string(static_cast<int>(activation)));
  }
  return name;
}

std::optional<Activation> parse_activation(std::string_view name) {
  const auto* const found = std::ranges::find(kActivations, name, name_of);
  return found == kActivations.end() ? std::nullopt : std::optional(*found);
}

void refuse_activation(Activation activation) {
  throw ShapeMismatch(std::string(to_string(activation)) + " is no function of a score alone");
}

std::string_view to_string(Objective objective) {
  constexpr std::string_view kNames[] = {"words", "balanced", "time"};
  return kNames[static_cast<std::size_t>(objective)];
}

std::string_view to_string(Pass pass) {
  switch (pass) {
    case Pass::product:
      return "product";
    case Pass::logsumexp:
      return "logsumexp";
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::attention:
      return "attention";
    case Pass::gradients:
      return "gradients";
    case Pass::layer:
      return "layer";
    case Pass::linear:
      return "linear";
    case Pass::linear_gradient:
      return "linear-gradient";
    case Pass::own:
      return "none";
  }
  throw ShapeMismatch("there is no pass number " + std::to_string(static_cast<int>(pass)));
}

const SlowMatrix& Operands::in(std::string_view name) const {
  return by_name(given_, name);
}

SlowMatrix& Operands::out(std::string_view name) const {
  return by_name(returned_, name);
}

Wanted Kernel::own_results() const {
  Wanted own;
  if (is_nest && pass != Pass::own && returns.size() < results_of(pass).size()) {
    for (const Signature& result : returns) {
      own.add(result.name);
    }
  }
  return own;
}

Blocks Kernel::blocks(const Problem& problem, const Memory& memory, Objective objective,
                      double share) const {
  check_problem(*this, problem, memory.M);
  check_levels(*this, problem, memory);
  require(memory.prefetch > 0, "a prefetch is at least 1");
  check_prefetch(*this, problem, memory.prefetch);
  const Blocks blocks = objective == Objective::balanced
                            ? fastest_within(*this, problem, memory, share)
                            : fitting.fit(with_inputs(problem), memory, objective);
  if (memory.multiple == 1) {
    return blocks;
  }
  const Blocks rounded = in_multiples(*this, problem, memory, blocks);
  if (objective != Objective::balanced) {
    return rounded;
  }
  // After rounding, the blocks may move too many words.
  const Blocks fewest = this->blocks(problem, memory, Objective::words);
  const auto words = [&](const Blocks& of) {
    const PhaseCost all = total(formula.cost(with_inputs(problem), of));
    return static_cast<double>((all.reads + all.writes).value());
  };
  return words(rounded) <= share * words(fewest) ? rounded : fewest;
}

std::vector<Signature> Kernel::given(Sharing sharing, Activation activation) const {
  std::vector<Signature> given = operands;
  if (activation != Activation::softmax) {
    given = of_activation(given, activation);
    std::erase_if(given,
                  [](const Signature& operand) { return operand.name == kO.name; });  // only for v
  }
  return shares_keys ? of_sharing(std::move(given), sharing) : given;
}

std::vector<Signature> Kernel::results(Sharing sharing, Activation activation) const {
  return of_sharing(of_activation(returns, activation), sharing);
}

std::vector<Signature> Kernel::returned(const Problem& problem) const {
  std::vector<Signature> returned = results(problem);
  std::erase_if(returned, [&](const Signature& result) { return !problem.wants(result.name); });
  return returned;
}

bool Kernel::can_return(const Problem& problem) const {
  const std::vector<Signature> all = results(problem);
  const bool left_out_are_optional = std::ranges::all_of(all, [&](const Signature& result) {
    return problem.wants(result.name) ||
           std::ranges::find(optional_results, result.name) != optional_results.end();
  });
  return left_out_are_optional && (!of_one_source || problem.wanted.all()) &&
         (all.empty() || !returned(problem).empty());
}

bool Kernel::needs_forward(Activation activation) const {
  return find_operand(given(Sharing::none, activation), kO.name) != nullptr;
}

bool Split::begins_anew(std::string_view matrix, const Plan& plan, Index units) const {
  Index before = 0;
  bool begun = !contains(by_units, matrix);
  for (const SplitStage& stage : stages) {
    const Index its = stage.units(plan.problem, plan.blocks);
    if (contains(stage.at_once, matrix) && units < before + its) {
      return true;
    }
    if (!begun && stage.at_once.empty() && its > 0) {
      if (units <= before) {
        return true;
      }
      begun = true;
    }
    before += its;
  }
  return false;
}

bool Split::in_one_step(std::string_view matrix, const Plan& plan) const {
  Index all = 0, apart = 0;  // all units; units of stages without at_once
  for (const SplitStage& stage : stages) {
    const Index its = stage.units(plan.problem, plan.blocks);
    if (contains(stage.at_once, matrix)) {
      return true;
    }
    all += its;
    apart += stage.at_once.empty() ? its : 0;
  }
  return all <= 1 || (contains(by_units, matrix) && apart <= 1);
}

std::vector<Split::Copies> Split::left_of(const Problem& problem, const Blocks& blocks,
                                          Index units) const {
  std::vector<Copies> all;
  for (const Left& of : left) {
    const bool there =
        !of_sharing(of_activation({of.matrix}, problem.activation), problem.sharing).empty();
    const Index copies = !there ? 0 : of.copies ? of.copies(problem, blocks) : 1;
    if (copies > 0) {
      all.push_back({of.matrix, copies, of.rows(problem, blocks, units)});
    }
  }
  return all;
}

std::vector<SlowMatrix> left_matrices(const Split& split, const Plan& plan, Workspace& workspace,
                                      Workspace& as_results) {
  const Shape live = plan.problem.live_part().shape;
  std::vector<SlowMatrix> left;
  const auto add = [&](const Signature& matrix, Index copies, Workspace& from) {
    const Index rows = std::max<Index>(copies * matrix.rows_of(live), 1);
    left.push_back(
        from.matrix(std::string(matrix.name), rows, matrix.cols_of(live)).holding(matrix.holds));
  };
  for (const auto& [matrix, copies, rows] : split.left_of(plan.problem, plan.blocks)) {
    add(matrix, copies, workspace);
  }
  for (const Signature& matrix : split.left_as_results) {
    add(matrix, 1, as_results);
  }
  return left;
}

Operands with(Operands io, std::vector<SlowMatrix>& left) {
  for (SlowMatrix& matrix : left) {
    io.take(matrix);
  }
  return io;
}

KernelSchedule in_stages(Split split) {
  const auto code = [split](Machine& machine, const Plan& plan, const Operands& io,
                            Workspace& workspace) {
    std::vector<SlowMatrix> left = left_matrices(split, plan, workspace, workspace);
    const Operands all = with(io, left);
    for (const SplitStage& stage : split.stages) {
      if (const Index units = stage.units(plan.problem, plan.blocks); units > 0) {
        stage.part(machine, plan, all, {0, units}, nullptr);
      }
    }
  };
  return {.code = code, .split = std::move(split)};
}

Index Kernel::units(const Plan& plan) const {
  Index sum = 0;
  for (const SplitStage& stage : schedule.split->stages) {
    sum += stage.units(plan.problem, plan.blocks);
  }
  return sum;
}

Words Kernel::intermediates(const Plan& plan) const {
  return formula.intermediates ? formula.intermediates(plan.problem, plan.blocks) : Words(0);
}

Plan Kernel::plan(const Problem& problem, const Memory& memory, Objective objective) const {
  Plan fitted = plan(problem, memory, blocks(problem, memory, objective));
  const auto refuse = [&](Index M, const std::string& where, Index least) {
    throw FastMemoryTooSmall(
        spelled(name, problem.sharing) + " does not fit in M = " + std::to_string(M) + " words" +
            where + ": for n = " + std::to_string(problem.shape.n) + ", m = " +
            std::to_string(problem.shape.m) + ", d = " + std::to_string(problem.shape.d) +
            (problem.shape.dv == problem.shape.d ? ""
                                                 : ", dv = " + std::to_string(problem.shape.dv)) +
            " it needs M of at least " + std::to_string(least),
        least);
  };
  for (std::size_t level = 0; level < fitted.inner.size(); ++level) {
    if (const LevelPlan& in = fitted.inner[level]; total(in.phases).peak > Words(in.M)) {
      refuse(in.M, " of level " + std::to_string(level + 1),
             total(fitted.inner[level].phases).peak.value());
    }
  }
  if (total(fitted.phases).peak > Words(memory.M)) {
    refuse(memory.M, "",
           memory.inner.empty() ? least_M(problem, memory.prefetch, memory.multiple)
                                : total(fitted.phases).peak.value());
  }
  return fitted;
}

Plan Kernel::plan(const Problem& problem, const Memory& memory, const Blocks& blocks) const {
  check_problem(*this, problem, memory.M);
  check_levels(*this, problem, memory);
  for (const auto& [block, size] : blocks) {
    require(size > 0 || is_nest, "a block is at least 1");
    require(block != kStaying || fitting.rows_stay, "a kernel in which rows stay");
  }
  check_prefetch(*this, problem, prefetch_of(blocks));
  check_level_blocks(*this, blocks, memory);
  const Problem asked = with_inputs(problem);
  Plan plan{std::string(name), pass, asked, memory.M, blocks, formula.cost(asked, blocks)};
  for (std::size_t level = 0; level < memory.inner.size(); ++level) {
    plan.inner.push_back({memory.inner[level], formula.level_cost(asked, blocks, level)});
  }
  return plan;
}

Index Kernel::least_M(const Problem& problem, Index prefetch, Index multiple) const {
  check_problem(*this, problem, 1);
  Memory least{1, prefetch};
  least.multiple = multiple;
  return total(formula.cost(with_inputs(problem), blocks(problem, least, Objective::words)))
      .peak.value();
}

void Kernel::check(const Plan& plan, const Operands& io) const {
  require(plan.kernel == name, "the plan is this kernel's own");
  require(plan.problem.sharing == Sharing::none || plan.problem.shape.dv == plan.problem.shape.d,
          "values are whole keys in a run");
  check_prefetch(*this, plan.problem, prefetch_of(plan.blocks));
  for (const Signature& operand : given(plan.problem)) {
    check_extents(io.in(operand.name), operand, plan.problem.shape);
  }
  for (const Signature& operand : returned(plan.problem)) {
    check_extents(io.out(operand.name), operand, plan.problem.shape);
  }
}

void Kernel::run(Machine& machine, const Plan& plan, const Operands& io,
                 Workspace& workspace) const {
  check(plan, io);
  require(machine.inner().size() == plan.inner.size(), "the machine has the levels of the plan");
  require(machine.weight(Holds::sums) == plan.problem.sum_words,
          "sums weigh on the machine what they do in the plan");
  schedule.code(machine, plan, io, workspace);
}

const std::vector<Signature>& results_of(Pass pass) {
  const auto found = std::ranges::find(kernels(), pass, &Kernel::pass);
  return found == kernels().end()
             ? std::ranges::find(sparse_kernels(), pass, &Kernel::pass)->returns
             : found->returns;
}

std::vector<Signature> of_activation(std::vector<Signature> matrices, Activation activation) {
  if (activation != Activation::softmax) {
    std::erase_if(matrices, [](const Signature& matrix) { return matrix.of_softmax; });
  }
  return matrices;
}

std::vector<Signature> of_sharing(std::vector<Signature> matrices, Sharing sharing) {
  if (sharing == Sharing::kv) {
    std::erase_if(matrices, [](const Signature& matrix) {
      return matrix.name == kA3.name || matrix.name == kV.name || matrix.name == kdA3.name ||
             matrix.name.starts_with(kdV.name);  // and parts
    });
  }
  return matrices;
}

const Signature* find_operand(const std::vector<Signature>& operands, std::string_view name) {
  const auto found = std::ranges::find(operands, name, &Signature::name);
  return found == operands.end() ? nullptr : &*found;
}

std::vector<Signature> given_of(const Plan& plan) {
  return find_kernel(plan.kernel).given(plan.problem);
}

namespace {

// Returns the sharing of the problems that a kernel is named for.
Sharing own_sharing(const Kernel& kernel) {
  return kernel.of_one_source ? Sharing::self : Sharing::none;
}

// Returns all kernels of a list, and then the kernels that share keys once more.
std::vector<KernelName> names_in(const KernelList& list, std::string_view prefix) {
  std::vector<KernelName> names;
  for (std::size_t k = 0; k < list.size(); ++k) {
    if (list.name(k).starts_with(prefix)) {
      names.push_back({&list[k], own_sharing(list[k])});
    }
  }
  for (std::size_t k = 0, once = names.size(); k < once; ++k) {
    if (names[k].kernel->shares_keys) {
      names.push_back({names[k].kernel, Sharing::kv});
    }
  }
  return names;
}

std::vector<KernelName> all_names(std::string_view prefix) {
  std::vector<KernelName> names = names_in(kernels(), prefix);
  std::ranges::move(names_in(sparse_kernels(), prefix), std::back_inserter(names));
  return names;
}

}  // namespace

const std::vector<KernelName>& kernel_names() {
  static const std::vector<KernelName> all = names_in(kernels(), "");
  return all;
}

const std::vector<KernelName>& all_kernel_names() {
  static const std::vector<KernelName> all = all_names("");
  return all;
}

std::vector<KernelName> all_kernel_names_of(Pass pass) {
  return all_names(pass == Pass::product ? "matmul/" : std::string(to_string(pass)) + "/");
}

std::optional<KernelName> parse_kernel_name(std::string_view text) {
  for (const KernelList* of : {&kernels(), &sparse_kernels()}) {
    if (const Kernel* kernel = of->find(text)) {
      return KernelName{kernel, own_sharing(*kernel)};
    }
  }
  if (const Kernel* loaded = find_loaded(text)) {
    return KernelName{loaded, Sharing::none};
  }
  const std::string ending = spelled("", Sharing::kv);
  const Kernel* of = text.ends_with(ending)
                         ? kernels().find(text.substr(0, text.size() - ending.size()))
                         : nullptr;
  return of != nullptr && of->shares_keys ? std::optional(KernelName{of, Sharing::kv})
                                          : std::nullopt;
}

}  // namespace redblue
