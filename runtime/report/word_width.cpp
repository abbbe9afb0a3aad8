#include "runtime/report/word_width.hpp"

#include <fmt/format.h>

namespace redblue {

std::string in_words(const Problem& problem) {
  const auto width = problem.word_bytes;
  return (width ? fmt::format("in words of {} bytes", *width) : std::string("in words")) +
         (problem.sum_words > 1 ? fmt::format("; a sum counts as {} words, and as 1 in most bounds",
                                              problem.sum_words)
                                : std::string());
}

Cell bytes_cell(const std::optional<Index>& width, const std::optional<Index>& words,
                const CellNames& names) {
  if (!width) {
    return {"", nullptr};
  }
  return {names, words ? CellValue((Words(*words) * *width).value()) : CellValue(nullptr)};
}

Cells width_cells(const Problem& problem) {
  const auto width = problem.word_bytes;
  const Index bytes = width.value_or(kFloatBytes);
  return {{in_json_and_csv(width ? "word_bytes" : ""), bytes},
          {in_json_and_csv(problem.sum_words > 1 ? "sum_bytes" : ""), bytes * problem.sum_words}};
}

}  // namespace redblue
