#pragma once
// Texts and cells for the bytes of words, if a request sets the width of a word
// (Problem::word_bytes).

#include <optional>
#include <string>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"
#include "runtime/text/cells.hpp"

namespace redblue {

// Returns "in words" or "in words of 2 bytes", and the weight of a word of sums if it is more than
// one word.
std::string in_words(const Problem& problem);
// Returns a cell with the bytes of `words`, or with null if `words` is unknown. Without a width the
// cell appears in no form. Throws: CountOverflow.
Cell bytes_cell(const std::optional<Index>& width, const std::optional<Index>& words,
                const CellNames& names = "bytes");
// Returns the width of words and of sums, for JSON and CSV.
Cells width_cells(const Problem& problem);

}  // namespace redblue
