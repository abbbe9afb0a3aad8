// Reads and writes moves in files.

#include <unordered_map>

#include <fmt/format.h>

#include "runtime/pebble/dag_formats.hpp"
#include "runtime/text/lines.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {

std::vector<Move> parse_moves(std::string_view text, const std::filesystem::path& file,
                              const Dag& dag, std::vector<Index>* its_lines) {
  const NamesInFile names(dag, DagFormat::text);
  std::unordered_map<std::string, Index> number;
  for (Index v = 0; v < dag.size(); ++v) {
    number.emplace(names[v], v);
  }
  Lines lines(text, file);
  const auto vertex = [&](std::string_view name) {
    const auto found = number.find(std::string(name));
    if (found == number.end()) {
      lines.refuse(name.empty()
                       ? "the vertex is missing"
                       : fmt::format("no vertex is called '{}'", shortened(std::string(name))));
    }
    return found->second;
  };
  std::vector<Move> moves;
  while (lines.next('#')) {
    lines.drop_comment('#');
    const std::string_view act = lines.word();
    Move move{Act::read, 0};
    if (act == "write") {
      move.act = Act::write;
    } else if (act == "compute") {
      move.act = Act::compute;
    } else if (act == "delete") {
      move.act = Act::remove;
    } else if (act != "read") {
      lines.refuse(fmt::format("'{}': expected read, write, compute or delete",
                               shortened(std::string(act))));
    }
    move.vertex = vertex(lines.word());
    if (move.act == Act::compute && !lines.at_end()) {
      const std::string_view how = lines.word();
      if (how != "slides" && how != "adds") {
        lines.refuse(fmt::format("'{}': expected slides or adds", shortened(std::string(how))));
      }
      (how == "adds" ? move.adds : move.slides) = vertex(lines.word());
    }
    lines.end();
    moves.push_back(move);
    if (its_lines != nullptr) {
      its_lines->push_back(lines.at());
    }
  }
  return moves;
}

std::string to_text(const Dag& dag, const std::vector<Move>& moves) {
  static constexpr std::string_view kActs[] = {"read", "write", "compute", "delete"};
  const NamesInFile names(dag, DagFormat::text);
  std::string text;
  for (const Move& move : moves) {
    text += fmt::format("{} {}", kActs[static_cast<std::size_t>(move.act)], names[move.vertex]);
    text += move.slides ? fmt::format(" slides {}\n", names[*move.slides])
            : move.adds ? fmt::format(" adds {}\n", names[*move.adds])
                        : "\n";
  }
  return text;
}

}  // namespace redblue
