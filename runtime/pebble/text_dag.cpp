#include <vector>

#include <fmt/format.h>

#include "runtime/pebble/dag_builder.hpp"
#include "runtime/pebble/dag_formats.hpp"
#include "runtime/text/lines.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {

Dag parse_text_dag(std::string_view text, const std::filesystem::path& file) {
  Lines lines(text, file);
  DagBuilder edges(file);
  std::vector<bool> said;  // by vertex: it has its line
  while (lines.next('#')) {
    lines.drop_comment('#');
    std::string_view name = lines.word();
    const bool has_colon = name.back() == ':';
    if (has_colon) {
      name.remove_suffix(1);
    }
    if (name.empty()) {
      lines.refuse("the vertex before ':' is missing");
    }
    const Index v = edges.vertex(name);
    said.resize(static_cast<std::size_t>(edges.dag().size()));
    if (said[static_cast<std::size_t>(v)]) {
      lines.refuse(fmt::format("{} has a line before", shortened(std::string(name))));
    }
    said[static_cast<std::size_t>(v)] = true;
    if (has_colon && lines.at_end()) {
      const std::string input = shortened(std::string(name));
      lines.refuse(fmt::format(
          "the operands of {0} are missing; an input is a line of its name alone, {0}", input));
    }
    if (!has_colon && !lines.at_end()) {
      lines.refuse(fmt::format("expected '{}:' before its operands", shortened(std::string(name))));
    }
    while (!lines.at_end()) {
      edges.edge(edges.vertex(lines.word()), v);
    }
  }
  said.resize(static_cast<std::size_t>(edges.dag().size()));
  for (Index v = 0; v < edges.dag().size(); ++v) {
    if (!said[static_cast<std::size_t>(v)]) {
      lines.refuse(
          fmt::format("the end: {} is an operand and has no line", shortened(edges.dag()[v].name)));
    }
  }
  return edges.take();
}

std::string to_text_dag(const Dag& dag) {
  const NamesInFile names(dag, DagFormat::text);
  std::string text;
  for (Index v = 0; v < dag.size(); ++v) {
    text += names[v];
    if (!dag.input(v)) {
      text += ':';
      for (const Index operand : dag[v].operands) {
        text += ' ' + names[operand];
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace redblue
