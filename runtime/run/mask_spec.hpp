#pragma once
// Reads masks as users write them:
//
//   full   causal   window:L,R   prefix:P   global:A-B
//   documents:FILE   documents:QFILE:KFILE   blocks:FILE   pattern:FILE
//
// Terms are joined by & and |, and & binds closer. Brackets group terms. L and R may be inf or -1,
// which means no limit. Numbers may end in K, M or G, as sizes do. A file name ends before the next
// & | ) or :, or is in quotes: "a&b.npz". For the contents of files see
// runtime/patterns/pattern_files.hpp.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kernels/mask.hpp"
#include "kernels/problem.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

inline constexpr const char* kMaskSyntax =
    "full, causal, window:L,R, prefix:P, global:A-B, documents:FILE, blocks:FILE or pattern:FILE, "
    "joined by & and |, with brackets";

// Returns true if the request has a mask other than "full". Reads no file.
inline bool has_mask(const Request& request) {
  return request.mask_of_caller || (!request.mask.empty() && request.mask != "full");
}

// Checks rows of L. Throws: InputError for -inf where a query meets a key.
void check_live_sums(const Problem& problem, Index first_row, std::span<const float> L,
                     const std::string& who);

// Returns the files that a mask text names. If the text is not a valid mask, the list may be
// incomplete.
std::vector<std::string> files_of_mask(const std::string& spec);

// Parses a mask text. Returns full() if all pairs live. `said` begins messages: "--mask 'causal'".
// File names are relative to `directory`, or to the working directory if it is empty. Throws:
// UsageError; InputError and std::system_error for a file.
Mask parse_mask(const std::string& spec, const Shape& shape, const std::string& said,
                const std::filesystem::path& directory = {});

// Checks a mask text for problems of any shape. Reads no file. Throws: UsageError.
void check_mask(const std::string& spec, const std::string& said);

// Returns 16 digits. Masks with the same live pairs, and with as many queries and keys, have the
// same fingerprint.
std::string fingerprint_of(const Mask& mask, const Shape& shape);

}  // namespace redblue
