#pragma once
// The files that this process may have open at the same time.

#include <string_view>

#include "memsim/words.hpp"

namespace redblue {

// Makes sure that so many more files can be open, and raises the process's limit as far as the
// system lets it. Throws: std::runtime_error that says of `what`, and the remedy.
void allow_open_files(const Words& more, std::string_view what, std::string_view remedy);

}  // namespace redblue
