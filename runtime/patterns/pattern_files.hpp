#pragma once
// Files that say which pairs of queries and keys there are. What is stored is there, a 0 too.
//
//   .npz    of scipy.sparse.save_npz: csr or bsr; csc and coo are sorted by rows
//   .mtx    Matrix Market: coordinate, of real, integer or pattern, general or symmetric
//   .smtx   of the DLMC collection: "rows, cols, entries", a line of offsets, a line of columns
//
// Throw (all): std::system_error, and InputError with the file and the fault.

#include <filesystem>
#include <vector>

#include "kernels/mask.hpp"
#include "runtime/patterns/entries.hpp"

namespace redblue {

// Whether a name ends as one of these, and is no tensor_path().
bool is_sparse_file(const std::filesystem::path& file);
BlockPattern read_pattern(const std::filesystem::path& file, Index queries, Index keys);

// The same with values, of whatever shape: of .npz float32 or float64, finite as float32; those of
// a pattern are 1.
SparseMatrix read_entries(const std::filesystem::path& file);

// A matrix of bool or uint8, .npy: which blocks are there, of queries and keys that it cuts evenly.
BlockPattern read_layout(const std::filesystem::path& file, Index queries, Index keys);

// Numbers from 0 to `last`, none less than the one before: whole numbers, .npy.
std::vector<Index> read_offsets(const std::filesystem::path& file, Index last);

}  // namespace redblue
