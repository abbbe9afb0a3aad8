#pragma once
// Problems in buffers of the caller, and runs of any registered kernel on them.

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

// Draws the kernel's operands from a seed.
TestProblem make_problem(const TestedKernel& kernel, const Shape& shape, std::uint64_t seed,
                         double scale = 1);
// Adds O and L, evaluated in double precision and rounded.
void add_forward(TestProblem& problem);

// Returns result buffers filled with NaN.
Buffers fresh_results(const TestedKernel& kernel, const Shape& shape);
bool same_bits(const Buffers& a, const Buffers& b);

struct Result {
  Buffers returned;
  std::vector<PhaseCounts> phases;
  PhaseCounts all;
  ByKind<KindCounts> kinds;
  Index span = 0;
  std::vector<RunCounts::Level> inner = {};
  std::string far = {};  // the first arithmetic on words that are not in the innermost level
  Index live = 0;        // after the run, in all levels
  Index workspace_live = 0;
  Index workspace_peak = 0;
};

// Runs on a machine of plan.M words with the inner levels of the plan. Every matrix is borrowed
// from a buffer, or lies in the store that `store` makes around that buffer. Intermediates are in
// main memory, or in the caller's workspace.
using InStore = std::function<std::unique_ptr<Backing>(std::string_view operand,
                                                       std::unique_ptr<Backing> borrowed)>;
Result run_kernel(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                  const InStore& store = {}, Workspace* workspace = nullptr);

// Returns the formulas in the form in which a run of the plan counts. `without_elementwise` sets
// operations without a formula to zero.
std::vector<PhaseCounts> as_counted(const std::vector<PhaseCost>& costs);
std::vector<PhaseCounts> without_elementwise(std::vector<PhaseCounts> phases);

// Returns the kernel's results, evaluated in double precision.
ExpectedResults expected_results(const TestedKernel& kernel, const Plan& plan,
                                 const TestProblem& problem);

// `ok`: every returned word is within its tolerance of the expected result. `part`: the largest
// error as a part of its tolerance.
struct Verified {
  bool ok = true;
  double part = 0;
  std::string text;
};
Verified verify(const TestedKernel& kernel, const Plan& plan, const TestProblem& problem,
                const Buffers& returned);

// Returns the same blocks with the default prefetch.
Blocks without_prefetch(const Blocks& blocks);

// Returns the kernel's name without characters that GoogleTest refuses: backward_rows_onepass.
std::string test_name(std::string kernel);

}  // namespace redblue
