#pragma once
// Identifies this build of the program, because another build may give other numbers.

#include <string>

namespace redblue {

// Returns a hash of the bytes of the program and of redblue's shared libraries in use, including
// the Python module. Throws: std::system_error.
std::string program_fingerprint();

}  // namespace redblue
