#include "runtime/pebble/dag_files.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/pebble/dag_formats.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {

bool writable(std::string_view name, DagFormat format) {
  const auto is_word = [&] { return !name.empty() && name.find_first_of(" \t\r\n") == name.npos; };
  switch (format) {
    case DagFormat::text:
      return is_word() && name.front() != '#' && name.back() != ':';
    case DagFormat::hdag:
      return is_word();
    case DagFormat::dot:
      return name.find_first_of("\r\n") == name.npos;
    case DagFormat::mtx:
      break;
  }
  return false;
}

NamesInFile::NamesInFile(const Dag& dag, DagFormat format)
    : dag_(dag),
      numbers_(!std::ranges::all_of(
          dag.vertices, [&](const Vertex& vertex) { return writable(vertex.name, format); })),
      first_(format == DagFormat::mtx ? 1 : 0) {}

DagFormat format_of(const std::filesystem::path& file) {
  const std::string kind = file.extension().string();
  if (kind.empty() || kind == ".txt") {
    return DagFormat::text;
  }
  if (kind == ".hdag") {
    return DagFormat::hdag;
  }
  if (kind == ".dot" || kind == ".gv") {
    return DagFormat::dot;
  }
  if (kind == ".mtx") {
    return DagFormat::mtx;
  }
  throw std::invalid_argument(fmt::format(
      "{}: unknown graph format: the name must end in .hdag, .dot, .gv, .mtx or .txt, or have "
      "no ending",
      printable(file.string())));
}

Dag parse_dag(std::string_view text, const std::filesystem::path& file, DagFormat format) {
  if (text.find('\0') != std::string_view::npos) {
    throw InputError(fmt::format("{}: not a text file, as a graph is: it has a byte 0",
                                 printable(file.string())));
  }
  switch (format) {
    case DagFormat::hdag:
      return parse_hdag(text, file);
    case DagFormat::dot:
      return parse_dot(text, file);
    case DagFormat::mtx:
      return parse_mtx_dag(text, file);
    case DagFormat::text:
      break;
  }
  return parse_text_dag(text, file);
}

std::string to_text(const Dag& dag, DagFormat format) {
  switch (format) {
    case DagFormat::hdag:
      return to_hdag(dag);
    case DagFormat::dot:
      return to_dot(dag);
    case DagFormat::mtx:
      return to_mtx(dag);
    case DagFormat::text:
      break;
  }
  return to_text_dag(dag);
}

}  // namespace redblue
