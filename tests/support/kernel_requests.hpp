#pragma once
// Runs of every kernel, for tests of what follows them.

#include <string>
#include <tuple>
#include <vector>

#include "runtime/run/run.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {

// Of a kernel of dense operands: from its least M on; under masks and with the other activations,
// where it takes these.
inline std::vector<Request> requests_of(const TestedKernel& kernel, const Shape& shape) {
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

// Of kernels of sparse operands, with entries by the same rule in all of these.
inline std::vector<Request> sparse_requests() {
  std::vector<Request> all;
  for (const Kernel& kernel : sparse_kernels()) {
    for (const char* const rule : {"random:3", "banded:4", "density:1/5"}) {
      Request asked = request(std::string(kernel.name), {31, 23, 13}, 3000);
      for (const char* const operand : {"A", "B", "A1", "A2", "X"}) {
        if (find_operand(kernel.operands, operand) != nullptr) {
          asked.make[operand] = parse_rule(rule);
        }
      }
      all.push_back(asked);
    }
  }
  return all;
}

}  // namespace redblue
