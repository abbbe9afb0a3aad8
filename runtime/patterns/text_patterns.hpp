#pragma once
// Parses patterns in text: Matrix Market and the format of the DLMC collection
// (runtime/patterns/pattern_files.hpp).

#include <filesystem>
#include <string_view>

#include "kernels/mask.hpp"
#include "runtime/patterns/entries.hpp"

namespace redblue {

// Throw: InputError with the file and the fault.
BlockPattern parse_mtx(std::string_view text, const std::filesystem::path& file, Index queries,
                       Index keys);
BlockPattern parse_smtx(std::string_view text, const std::filesystem::path& file, Index queries,
                        Index keys);

// The same for any shape, with values. Entries of a file without values get 1. Sets `symmetric` (if
// not null) to whether the file stores only the lower half.
SparseMatrix parse_mtx_entries(std::string_view text, const std::filesystem::path& file,
                               bool* symmetric = nullptr);
SparseMatrix parse_smtx_entries(std::string_view text, const std::filesystem::path& file);

}  // namespace redblue
