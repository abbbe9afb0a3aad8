#pragma once
// Nests in files, as names of kernels: file:flash2.nest, or flash2.nest.

#include <string>
#include <string_view>

namespace redblue {

// Returns whether a name of a kernel names a file.
bool names_nest_file(std::string_view name);
// Reads the file and loads its nest. Returns the name of the kernel: file:flash2.nest. Throws:
// InputError for its content; std::system_error.
std::string load_nest_file(const std::string& name);

}  // namespace redblue
