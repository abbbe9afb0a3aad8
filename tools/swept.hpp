#pragma once
// The directory of a sweep.

#include <filesystem>

#include "runtime/sweep.hpp"

namespace redblue {

// What `redblue sweep` left there. Throws: InputError; std::runtime_error where it is not done.
Sweep read_sweep(const std::filesystem::path& directory);

}  // namespace redblue
