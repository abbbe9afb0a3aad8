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
#include "runtime/theory/linear_reference.hpp"
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
  const char* const keys = plain ? "K" : "A2";
  const char* const own_values = plain ? "V" : "A3";
  Problem asked(problem.shape);
  asked.inputs = plain ? Inputs::plain : Inputs::weighted;
  return {.shape = problem.shape,
          .A1 = find(given, plain ? "Q" : "A1"),
          .A2 = find(given, keys),
          .A3 = find(given, given.contains(own_values) ? own_values : keys),  // else they are one
          .X = find(given, "X"),
          .Y = find(given, "Y"),
          .dO = find(given, "dO"),
          .O = find(given, "O"),
          .L = find(given, "L"),
          .scale = asked.scale(),
          .mask = problem.mask,
          .activation = problem.activation};
}

Bounded exact(std::string_view name, const Reference& reference, const LayerReference& layer) {
  const std::pair<std::string_view, const Bounded&> known[] = {
      {"O", reference.O},   {"L", reference.L},   {"g", reference.g},  {"dQ", reference.dQ},
      {"dK", reference.dK}, {"dV", reference.dV}, {"dX", reference.g}, {"dA2", reference.dK},
      {"dA1", layer.dA1},   {"dA3", layer.dA3},   {"dY", layer.dY}};
  if (name == "dA2" && !layer.dA2.value.empty()) {  // dA2 + dA3
    return layer.dA2;
  }
  for (const auto& [operand, value] : known) {
    if (operand == name) {
      return value;
    }
  }
  throw std::logic_error("tests/support/run_kernel.cpp knows no exact " + std::string(name));
}

}  // namespace

bool takes(const TestedKernel& kernel, std::string_view operand) {
  return std::ranges::any_of(kernel.given,
                             [&](const Signature& given) { return given.name == operand; });
}

TestProblem make_problem(const TestedKernel& kernel, const Shape& shape, std::uint64_t seed,
                         double scale) {
  TestProblem problem{shape, {}, kernel.mask, kernel.activation};
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
  const Reference forward = evaluate(input, {});
  const auto rounded = [](const Bounded& exact) {
    Buffer words;
    for (const double value : exact.value) {
      words.push_back(static_cast<float>(value));
    }
    return words;
  };
  problem.given["O"] = rounded(forward.O);
  problem.given["L"] = rounded(forward.L);
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
    std::deque<SlowMatrix> matrices;  // a deque, whose elements stay in place
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

Verified verify(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                const Buffers& returned) {
  const auto& [n, m, d] = plan.problem.shape;
  Verified verdict;
  const auto hold = [&](const std::string& name, const Bounded& exact_value) {
    const Deviation worst = compare(returned.at(name), exact_value);
    if (!worst.ok) {
      verdict.ok = false;
      verdict.text += name + "[" + std::to_string(worst.index) + "] is off by " +
                      std::to_string(worst.error) + ", bound " + std::to_string(worst.bound) + "; ";
    }
  };
  if (takes(kernel, "A")) {
    hold("C", evaluate_product(n, m, d, problem.given.at("A"), problem.given.at("B")));
    return verdict;
  }
  const auto number = [&](auto function) {
    return function == nullptr ? 0.0
                               : static_cast<double>(function(plan.problem, plan.blocks).value());
  };
  const AttentionInput input = attention(problem);
  if (is_linear(kernel.kernel->pass)) {
    hold(std::string(kernel.returns.front().name),
         evaluate_linear(input, number(kernel.kernel->numerics.chain)));
    return verdict;
  }
  const Reference reference =
      evaluate(input, {.g = number(kernel.kernel->numerics.chain),
                       .rescales = number(kernel.kernel->numerics.rescales),
                       .key_groups = number(kernel.kernel->numerics.key_groups),
                       .X_meets_keys = kernel.kernel->numerics.X_meets_keys,
                       .Y_meets_rows = kernel.kernel->Y_meets_rows(plan.problem),
                       .recentred_blocks = number(kernel.kernel->numerics.recentred_blocks),
                       .joins_dK_and_dV = kernel.kernel->pass == Pass::gradients &&
                                          kernel.sharing != Sharing::none});
  const LayerReference layer = kernel.kernel->pass == Pass::layer
                                   ? evaluate_layer(input, reference, kernel.sharing)
                                   : LayerReference();
  for (const Signature& operand : kernel.returns) {
    hold(std::string(operand.name), exact(operand.name, reference, layer));
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
