#pragma once
// A home in a store on disk, for one worker and one head. Operands are matrices of the store, or
// come into it by rows from files or from a seed; intermediates live there; results stay there
// under their names, and go to files where asked. Main memory holds M words, a few buffers, and no
// matrix.

#include <memory>

#include "runtime/run/operand_home.hpp"

namespace redblue {

// The request must outlive the home. The home and its steps also throw StoreError for what the
// store's files hold. Throws: RequestError for several threads; as Store().
std::unique_ptr<OperandHome> store_home(const Request& request, const KernelName& asked);

}  // namespace redblue
