#include "runtime/report/word_width.hpp"

#include <fmt/format.h>

namespace redblue {
std::string in_words(const std::optional<Index>& width) {
  return width ? fmt::format("in words of {} bytes", *width) : std::string("in words");
}

Cell bytes_cell(const std::optional<Index>& width, const std::optional<Index>& words,
                const CellNames& names) {
  if (!width) {
    return {"", nullptr};
  }
  return {names, words ? CellValue((Words(*words) * *width).value()) : CellValue(nullptr)};
}

Cell width_cell(const std::optional<Index>& width) {
  return {in_json_and_csv(width ? "word_bytes" : ""), width.value_or(kFloatBytes)};
}

}  // namespace redblue
