#include <fmt/format.h>

#include "runtime/patterns/text_patterns.hpp"
#include "runtime/pebble/dag_builder.hpp"
#include "runtime/pebble/dag_formats.hpp"
#include "runtime/system/input_error.hpp"

namespace redblue {

Dag parse_mtx_dag(std::string_view text, const std::filesystem::path& file) {
  bool symmetric = false;
  const BlockPattern found = parse_mtx_entries(text, file, &symmetric).pattern;
  if (found.rows != found.cols) {
    throw InputError(fmt::format("{}: {} rows and {} columns: expected as many of both",
                                 file.string(), found.rows, found.cols));
  }
  DagBuilder edges(file);
  edges.vertices(found.rows, 1);
  for (Index i = 0; i < found.rows; ++i) {
    for (const Index k : found.row(i)) {
      if (k != i && !(symmetric && k > i)) {
        edges.edge(k, i);
      }
    }
  }
  return edges.take();
}

std::string to_mtx(const Dag& dag) {
  std::string text = fmt::format("%%MatrixMarket matrix coordinate real general\n{0} {0} {1}\n",
                                 dag.size(), dag.edges());
  for (Index v = 0; v < dag.size(); ++v) {
    for (const Index operand : dag[v].operands) {
      text += fmt::format("{} {} 1\n", v + 1, operand + 1);
    }
  }
  return text;
}

}  // namespace redblue
