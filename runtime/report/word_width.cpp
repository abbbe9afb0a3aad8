#include "runtime/report/word_width.hpp"

#include <fmt/format.h>

namespace redblue {
namespace {

CellNames names_of(const std::optional<Index>& width, const CellNames& names) {
  return width ? names : CellNames("");
}

}  // namespace

std::string in_words(const std::optional<Index>& width) {
  return width ? fmt::format("in words of {} bytes", *width) : std::string("in words");
}

Cell bytes_cell(const std::optional<Index>& width, Index words, const CellNames& names) {
  return {names_of(width, names), (Words(words) * width.value_or(1)).value()};
}

Cell no_bytes_cell(const std::optional<Index>& width, const CellNames& names) {
  return {names_of(width, names), nullptr};
}

Cell width_cell(const std::optional<Index>& width) {
  return {in_json_and_csv(width ? "word_bytes" : ""), width.value_or(kFloatBytes)};
}

}  // namespace redblue
