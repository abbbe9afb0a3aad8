#pragma once
// Words beside bytes, where a request says how wide a word is (Problem::word_bytes).

#include <optional>
#include <string>

#include "kernels/problem.hpp"
#include "memsim/words.hpp"
#include "runtime/text/cells.hpp"

namespace redblue {

// "in words", or "in words of 2 bytes"; and what a sum weighs, where that is more than a word.
std::string in_words(const Problem& problem);
// The bytes of so many words, or of none that are known, as a cell of this name; of no form without
// a width. Throws: CountOverflow.
Cell bytes_cell(const std::optional<Index>& width, const std::optional<Index>& words,
                const CellNames& names = "bytes");
// The width itself and that of sums, in JSON and CSV.
Cells width_cells(const Problem& problem);

}  // namespace redblue
