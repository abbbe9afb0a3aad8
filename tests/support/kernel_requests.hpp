#pragma once
// Run requests for every kernel, for tests that follow the runs.

#include <functional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/sparse/rows.hpp"
#include "runtime/run/resolve.hpp"
#include "runtime/run/run.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {

// Returns requests for a kernel of dense operands: with its least M and more. Masks and other
// activations are included if the kernel takes them.
inline std::vector<Request> requests_of(const TestedKernel& kernel, const Shape& of) {
  const Shape shape = kernel.shape(of);
  const Index least = kernel.least_M(shape);
  std::vector<Request> all;
  const auto ask = [&](Index M) -> Request& {
    all.push_back(request(kernel.name, shape, M));
    all.back().forward_in_more_M = true;
    return all.back();
  };
  ask(least);
  ask(least + 37);
  ask(4 * least);
  if (kernel.kernel->takes(Mask::causal(shape.n, shape.m))) {
    ask(least + 200).mask = "causal";
  }
  if (kernel.kernel->takes_masks) {
    ask(least + 100).mask = "window:3,2";
    ask(2 * least + 100).mask = "prefix:4|window:2,0";
  }
  for (const Activation phi : {Activation::relu, Activation::sigmoid, Activation::silu}) {
    if (kernel.kernel->takes(phi)) {
      ask(least + 40).activation = phi;
    }
  }
  return all;
}

inline std::string said(const Request& request) {
  return request.kernel + " M=" + std::to_string(request.M) + " mask=" + request.mask +
         " activation=" + std::string(to_string(request.activation));
}

// Returns requests for a kernel of sparse operands. All operands of a request have entries by the
// same rule. The requests use the least M and more, keys that pass together, and other activations.
inline std::vector<Request> sparse_requests(const Kernel& kernel, const Shape& shape) {
  std::vector<Request> all;
  for (const char* const rule : {"random:2", "banded:3", "density:1/4"}) {
    Request asked = request(std::string(kernel.name), shape, 1 << 20);
    for (const char* const operand : {"A", "B", "A1", "A2", "X"}) {
      if (find_operand(kernel.operands, operand) != nullptr) {
        asked.make[operand] = parse_rule(rule);
      }
    }
    asked.forward_in_more_M = true;
    const Problem problem = requested_problem(asked, requested_kernel(asked), {}).problem;
    const Index least = kernel.least_M(problem);
    const auto ask = [&](Index M) -> Request& {
      all.push_back(asked);
      all.back().M = M;
      return all.back();
    };
    ask(least);
    ask(least + 37);
    ask(4 * least);
    if (std::ranges::find(kernel.fitting.optional_blocks, SparseRows::kKeys,
                          &OptionalBlock::name) != kernel.fitting.optional_blocks.end()) {
      ask(4 * least + 200).blocks[SparseRows::kKeys] = 3;
    }
    for (const Activation phi : {Activation::relu, Activation::sigmoid, Activation::silu}) {
      if (kernel.takes(phi)) {
        ask(least + 40).activation = phi;
      }
    }
  }
  return all;
}

// A kernel, and the function that returns its requests for a shape.
struct FollowedKernel {
  std::string name;
  const Kernel* kernel;
  std::function<std::vector<Request>(const Shape&)> requests;

  friend void PrintTo(const FollowedKernel& followed, std::ostream* out) { *out << followed.name; }
};

inline std::vector<FollowedKernel> followed_kernels() {
  std::vector<FollowedKernel> all;
  for (const TestedKernel& kernel : tested_kernels()) {
    all.push_back({std::string(kernel.name), kernel.kernel,
                   [=](const Shape& shape) { return requests_of(kernel, shape); }});
  }
  for (const Kernel& kernel : sparse_kernels()) {
    all.push_back({std::string(kernel.name), &kernel,
                   [at = &kernel](const Shape& shape) { return sparse_requests(*at, shape); }});
  }
  return all;
}

}  // namespace redblue
