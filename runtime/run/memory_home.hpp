#pragma once
// A home in main memory: a buffer for each operand and result, the heads one after the other.
// Several workers may share it.

#include <memory>

#include "runtime/observe/topology.hpp"
#include "runtime/run/operand_home.hpp"

namespace redblue {

// The request and the topology must outlive the home.
std::unique_ptr<OperandHome> memory_home(const Request& request, const Topology& topology);

}  // namespace redblue
