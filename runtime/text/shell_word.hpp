#pragma once
// Words of a command line, as a person pastes them into a shell.

#include <string>

namespace redblue {

// The word itself, or in single quotes where a shell would change it.
std::string shell_word(const std::string& word);

}  // namespace redblue
