#pragma once
// Runs a nest on a machine, pass by pass. It moves all words and computes no values. The counts of
// the machine do not depend on the closed forms in kernels/nests/count.hpp.

#include <functional>
#include <string>

#include "kernels/nests/count.hpp"

namespace redblue {

class Machine;
class SlowMatrix;

// The matrices of a caller, by name. A matrix of three dimensions has the product of the first two
// as its number of rows.
struct NestOperands {
  std::function<const SlowMatrix*(const std::string& name)> in = nullptr;
  std::function<SlowMatrix*(const std::string& name)> out = nullptr;
};

// Moves the matrices of `io`. For matrices that `io` does not have, it moves zeros. Throws: the
// errors of the machine.
void walk(Machine& machine, const TextNest& nest, const NestSizes& sizes, const NestOperands& io);

}  // namespace redblue
