#pragma once
// Reads files that list pairs of queries and keys. Every stored entry is a live pair, even if its
// value is 0.
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

// Returns whether the name ends in .npz, .mtx or .smtx and is no tensor_path().
bool is_sparse_file(const std::filesystem::path& file);
BlockPattern read_pattern(const std::filesystem::path& file, Index queries, Index keys);

// Reads a matrix of any shape with its values. Values in an .npz are float32 or float64, and finite
// as float32. Entries of a file without values get 1.
SparseMatrix read_entries(const std::filesystem::path& file);

// Returns the pattern with the extents of `of`, and with the blocks that are marked, row by row.
BlockPattern marked(BlockPattern of, const std::vector<bool>& marks);

// Reads a matrix of bool or uint8 (.npy) that marks live blocks. Its extents divide the numbers of
// queries and keys.
BlockPattern read_layout(const std::filesystem::path& file, Index queries, Index keys);

// Reads integers (.npy) that start with 0, end with `last` and never decrease.
std::vector<Index> read_offsets(const std::filesystem::path& file, Index last);

}  // namespace redblue
