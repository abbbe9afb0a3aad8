#pragma once
// Quotes words of a command line, so that a user can paste them into a shell.

#include <string>

namespace redblue {

// Returns the word, in single quotes if a shell would change it.
std::string shell_word(const std::string& word);

}  // namespace redblue
