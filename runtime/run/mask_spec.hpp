#pragma once
// Masks as users write them:
//
//   full   causal   window:L,R   prefix:P   global:A-B
//   documents:FILE   documents:QFILE:KFILE   blocks:FILE   pattern:FILE
//
// joined by & and |, of which & binds closer, with brackets. L and R may be inf, or -1: no limit.
// Numbers may end in K, M or G, as sizes do. The name of a file ends before the next & | ) or :, or
// is in quotes: "a&b.npz" (runtime/patterns/pattern_files.hpp says what files have).

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

// Whether the request asks for other pairs than all, as far as its text says.
inline bool has_mask(const Request& request) {
  return !request.mask.empty() && request.mask != "full";
}

// Throws: InputError for -inf in these rows of L, where a query meets a key.
void check_live_sums(const Problem& problem, Index first_row, std::span<const float> L,
                     const std::string& who);

// The files that such a text names. Of a text that is no mask, some.
std::vector<std::string> files_of_mask(const std::string& spec);

// The mask of that name; full() where all pairs live. `said` begins messages: "--mask 'causal'".
// Names of files are relative to `directory`, or to the working directory. Throws: UsageError;
// InputError and std::system_error for a file.
Mask parse_mask(const std::string& spec, const Shape& shape, const std::string& said,
                const std::filesystem::path& directory = {});

// Equal for equal sets of pairs of as many queries and keys: 16 digits.
std::string fingerprint_of(const Mask& mask, const Shape& shape);

}  // namespace redblue
