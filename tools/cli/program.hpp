#pragma once
// Which program this is: what another build measured or counted may be another number.

#include <string>

namespace redblue {

// Of the bytes of the command and of what it has from shared libraries of redblue.
// Throws: std::system_error.
std::string program_fingerprint();

}  // namespace redblue
