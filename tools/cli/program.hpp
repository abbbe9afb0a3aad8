#pragma once
// The identity of this program: another build may measure or count other numbers.

#include <string>

namespace redblue {

// A hash of the bytes of the program and of redblue's shared libraries that it uses, its Python
// module, too. Throws: std::system_error.
std::string program_fingerprint();

}  // namespace redblue
