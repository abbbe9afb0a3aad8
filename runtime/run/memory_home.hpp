#pragma once
// Runs in main memory, where several workers may share each operand and result. A home has a buffer
// for each of these, the heads one after the other.

#include <memory>

#include "runtime/observe/topology.hpp"
#include "runtime/run/buffers.hpp"
#include "runtime/run/operand_home.hpp"

namespace redblue {

// The request and the topology must outlive the home.
std::unique_ptr<OperandHome> memory_home(const Request& request, const Topology& topology);

// Runs the part on operands and results that are in memory, and sets `counted` and `unpinned`.
// Requires: as KernelMatrices. Throws: what the kernel throws.
void run_in_memory(Part& part, const Views& given, const ViewedResults& returned,
                   const Topology& topology, const RunHook& hook = nullptr);
// What a run takes beside operands and results: intermediates, and the arena of each worker.
Words working_bytes(const Report& report);

}  // namespace redblue
