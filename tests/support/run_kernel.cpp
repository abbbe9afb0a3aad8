#include "tests/support/run_kernel.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

#include "runtime/run/buffers.hpp"
#include "runtime/run/inputs.hpp"
#include "tests/support/near_arithmetic.hpp"

namespace redblue {
namespace {

std::span<const float> find(const Buffers& buffers, std::string_view name) {
  const auto found = buffers.find(name);
  return found == buffers.end() ? std::span<const float>() : found->second;
}

AttentionInput attention(const TestProblem& problem) {
  const Buffers& given = problem.given;
  const bool plain = given.contains("Q");
  const char* const keys = !plain ? "A2" : given.contains("K") ? "K" : "Q";  // else one source
  const char* const own_values = plain ? "V" : "A3";
  Problem asked(problem.shape);
  asked.inputs = plain ? Inputs::plain : Inputs::weighted;
  return {.shape = problem.shape,
          .A1 = find(given, plain ? "Q" : "A1"),
          .A2 = find(given, keys),
          .A3 = find(given, given.contains(own_values) ? own_values : keys),  // else one operand
          .X = find(given, "X"),
          .Y = find(given, "Y"),
          .dO = find(given, "dO"),
          .O = find(given, "O"),
          .L = find(given, "L"),
          .scale = asked.scale(),
          .mask = problem.mask,
          .activation = problem.activation};
}

}  // namespace

bool takes(const TestedKernel& kernel, std::string_view operand) {
  return std::ranges::any_of(kernel.given,
                             [&](const Signature& given) { return given.name == operand; });
}

TestProblem make_problem(const TestedKernel& kernel, const Shape& shape, std::uint64_t seed,
                         double scale) {
  TestProblem problem{kernel.shape(shape), {}, kernel.mask, kernel.activation};
  for (const Signature& operand : kernel.given) {
    if (operand.name == "O" || operand.name == "L") {
      continue;
    }
    Buffer words(words_of(operand, shape));
    fill_input(operand.name, kernel.problem(shape), seed, scale, 0, operand.rows_of(shape), words);
    problem.given.emplace(operand.name, std::move(words));
  }
  if (takes(kernel, "O")) {
    add_forward(problem);
  }
  return problem;
}

void add_forward(TestProblem& problem) {
  problem.given.erase("O");
  problem.given.erase("L");
  AttentionInput input = attention(problem);
  input.dO = {};
  input.results = {"O", "L"};
  for (const auto& [name, exact] : evaluate(input)) {
    Buffer& words = problem.given[name];
    for (const double value : exact.value) {
      words.push_back(static_cast<float>(value));
    }
  }
}

Buffers fresh_results(const TestedKernel& kernel, const Shape& shape) {
  Buffers results;
  for (const Signature& operand : kernel.returns) {
    results.emplace(operand.name,
                    Buffer(words_of(operand, shape), std::numeric_limits<float>::quiet_NaN()));
  }
  return results;
}

bool same_bits(const Buffers& a, const Buffers& b) {
  return std::ranges::equal(a, b, [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.size() == right.second.size() &&
           std::memcmp(left.second.data(), right.second.data(),
                       left.second.size() * sizeof(float)) == 0;
  });
}

Result run_kernel(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                  const InStore& store, Workspace* workspace) {
  Result result;
  result.returned = fresh_results(kernel, plan.problem.shape);
  Machine machine(plan.M, inner_levels(plan));
  machine.weigh(Holds::sums, plan.problem.sum_words);
  const NearArithmetic near(machine);
  RamWorkspace in_ram;
  {
    std::deque<SlowMatrix> matrices;  // a deque keeps its elements in place
    Operands io;
    const auto stored = [&](const Signature& operand, auto* words) -> SlowMatrix& {
      const Index cols = operand.cols_of(plan.problem.shape);
      std::unique_ptr<Backing> backing = std::make_unique<BorrowedBacking>(words, cols);
      if (store) {
        backing = store(operand.name, std::move(backing));
      }
      return matrices.emplace_back(SlowMatrix(std::string(operand.name),
                                              operand.rows_of(plan.problem.shape), cols,
                                              std::move(backing))
                                       .holding(operand.holds));
    };
    for (const Signature& operand : kernel.given) {
      io.give(stored(operand, problem.given.at(std::string(operand.name)).data()));
    }
    for (const Signature& operand : kernel.returns) {
      io.take(stored(operand, result.returned.at(std::string(operand.name)).data()));
    }
    kernel.kernel->run(machine, plan, io, workspace == nullptr ? in_ram : *workspace);
  }
  result.phases = leaves(machine.phases());
  result.all = total(machine.phases());
  result.kinds = total_by_kind(machine.phases());
  for (const Level& level : machine.inner()) {
    result.inner.push_back({leaves(level.phases()), total(level.phases())});
    result.live += level.live();
  }
  result.far = near.far();
  result.span = machine.span();
  result.live += machine.live();
  result.workspace_live = in_ram.live();
  result.workspace_peak = in_ram.peak();
  return result;
}

std::vector<PhaseCounts> as_counted(const std::vector<PhaseCost>& costs) {
  std::vector<PhaseCounts> all;
  for (const PhaseCost& cost : costs) {
    all.push_back({cost.path,
                   {cost.reads.value(), cost.writes.value()},
                   {cost.flops.value(), 0},
                   cost.peak.value()});
  }
  return all;
}

std::vector<PhaseCounts> without_elementwise(std::vector<PhaseCounts> phases) {
  for (PhaseCounts& phase : phases) {
    phase.operations.elementwise = 0;
  }
  return phases;
}

ExpectedResults expected_results(const TestedKernel& kernel, const Plan& plan,
                                 const TestProblem& problem) {
  const auto& [n, m, d] = problem.shape;
  if (takes(kernel, "A")) {
    return {{"C", evaluate_product(n, m, d, problem.given.at("A"), problem.given.at("B"))}};
  }
  AttentionInput input = attention(problem);
  input.sharing = kernel.sharing;
  if (const auto sums = kernel.kernel->numerics.chain) {
    input.g_terms = static_cast<double>(sums(plan.problem, plan.blocks).value());
  }
  for (const Signature& operand : kernel.returns) {
    input.results.push_back(operand.name);
  }
  if (is_linear(kernel.kernel->pass)) {
    return {{std::string(kernel.returns.front().name), evaluate_linear(input)}};
  }
  return evaluate(input);
}

Verified verify(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                const Buffers& returned) {
  Verified verdict;
  for (const auto& [name, exact] : expected_results(kernel, plan, problem)) {
    const Deviation worst = compare(returned.at(name), exact);
    verdict.part = std::max(verdict.part, worst.part());
    if (!worst.ok) {
      verdict.ok = false;
      verdict.text += name + "[" + std::to_string(worst.index) + "] is off by " +
                      std::to_string(worst.error) + ", " + std::to_string(worst.part()) +
                      " of what is allowed; ";
    }
  }
  return verdict;
}

Blocks without_prefetch(const Blocks& blocks) {
  Blocks others;
  for (const auto& [name, size] : blocks) {
    if (name != kPrefetch) {
      others.add(name, size);
    }
  }
  return others;
}

std::string test_name(std::string kernel) {
  std::ranges::replace_if(
      kernel, [](char c) { return c == '/' || c == '-'; }, '_');
  return kernel;
}

}  // namespace redblue
