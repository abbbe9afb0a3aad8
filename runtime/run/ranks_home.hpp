#pragma once
// Runs on ranks, each with a home for some rows: ranks that are threads of this process, or one
// that this process is (Request::OnRanks).

#include <memory>

#include "runtime/run/operand_home.hpp"

namespace redblue {

// The request must outlive the home. Requires: a request on ranks.
std::unique_ptr<OperandHome> ranks_home(const Request& request);

}  // namespace redblue
