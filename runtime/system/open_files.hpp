#pragma once
// Raises the number of files that this process may have open.

#include <string_view>

#include "memsim/words.hpp"

namespace redblue {

// Ensures that `more` files can be open in addition to the present ones. Raises the process's limit
// up to the hard limit if necessary. Throws: std::runtime_error if the hard limit is too low. The
// message begins with `what` and gives the remedy.
void allow_open_files(const Words& more, std::string_view what, std::string_view remedy);

}  // namespace redblue
