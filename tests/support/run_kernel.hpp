#pragma once
// Problems in a caller's buffers, and runs of any kernel of the registry on them.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel.hpp"
#include "memsim/machine.hpp"
#include "memsim/phase.hpp"
#include "memsim/workspace.hpp"
#include "runtime/theory/reference.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {

using Buffer = std::vector<float>;
using Buffers = std::map<std::string, Buffer, std::less<>>;  // by operand

struct TestProblem {
  Shape shape;
  Buffers given;
  Mask mask = {};
  Activation activation = Activation::softmax;
};

bool takes(const TestedKernel& kernel, std::string_view operand);

// The operands of the kernel, from a seed.
TestProblem make_problem(const TestedKernel& kernel, const Shape& shape, std::uint64_t seed,
                         double scale = 1);
// Adds O and L, rounded from their double-precision evaluation.
void add_forward(TestProblem& problem);

// NaN for every word that the kernel returns.
Buffers fresh_results(const TestedKernel& kernel, const Shape& shape);
bool same_bits(const Buffers& a, const Buffers& b);

struct Result {
  Buffers returned;
  std::vector<PhaseCounts> phases;
  PhaseCounts all;
  ByKind<KindCounts> kinds;
  Index span = 0;
  std::vector<RunCounts::Level> inner = {};  // levels
  std::string far = {};  // the first arithmetic on words that are not in the innermost level
  Index live = 0;        // after the run, in all levels
  Index workspace_live = 0;
  Index workspace_peak = 0;
};

// Runs on a machine of plan.M words with the inner levels of the plan. Every matrix is borrowed
// from a buffer, or is in a store around it; intermediates are in main memory, or in the caller's
// workspace.
using InStore = std::function<std::unique_ptr<Backing>(std::string_view operand,
                                                       std::unique_ptr<Backing> borrowed)>;
Result run_kernel(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                  const InStore& store = {}, Workspace* workspace = nullptr);

// The formulas as a run of the plan counts them; and counts without the operations that have no
// formula.
std::vector<PhaseCounts> as_counted(const std::vector<PhaseCost>& costs);
std::vector<PhaseCounts> without_elementwise(std::vector<PhaseCounts> phases);

// The double-precision evaluation of what the kernel returns.
ExpectedResults expected_results(const TestedKernel& kernel, const Plan& plan,
                                 const TestProblem& problem);

// Whether no word that is returned is further from that than is allowed; and the largest part of
// what is allowed.
struct Verified {
  bool ok = true;
  double part = 0;
  std::string text;
};
Verified verify(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                const Buffers& returned);

// The same blocks with the default prefetch.
Blocks without_prefetch(const Blocks& blocks);

// A kernel's name without the characters that GoogleTest refuses: backward_rows_onepass.
std::string test_name(std::string kernel);

}  // namespace redblue
