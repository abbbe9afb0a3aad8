#pragma once
// Patterns in text: Matrix Market and the format of the DLMC collection
// (runtime/patterns/pattern_files.hpp).

#include <filesystem>
#include <string_view>

#include "kernels/mask.hpp"

namespace redblue {

// Throw: InputError with the file and the fault.
BlockPattern parse_mtx(std::string_view text, const std::filesystem::path& file, Index queries,
                       Index keys);
BlockPattern parse_smtx(std::string_view text, const std::filesystem::path& file, Index queries,
                        Index keys);

}  // namespace redblue
