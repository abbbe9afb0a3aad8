#include "runtime/pebble/dag_files.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/patterns/text_patterns.hpp"
#include "runtime/pebble/dot.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/lines.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// "s" of "s*12", where the sign is a star; empty where it is not so.
std::string_view before_number(std::string_view name, char sign) {
  const std::size_t at = name.rfind(sign);
  const bool numbered = at != name.npos && at + 1 < name.size() &&
                        name.find_first_not_of("0123456789", at + 1) == name.npos;
  return numbered ? name.substr(0, at) : std::string_view();
}

// s(0,1)*2 is a term of s(0,1), and of its partial sum s(0,1)+1.
bool is_term_of(std::string_view name, std::string_view sum) {
  const std::string_view of = before_number(name, '*');
  return !of.empty() && (of == sum || of == before_number(sum, '+'));
}

// A graph that is being read: edges in any order.
class Edges {
 public:
  explicit Edges(const std::filesystem::path& file) : file_(file) {}

  Index vertex(std::string_view name) {
    const auto [found, added] = number_.try_emplace(std::string(name), dag_.size());
    if (added) {
      dag_.add(std::string(name));
    }
    return found->second;
  }
  // Vertices named from `first` on.
  void vertices(Index count, Index first) {
    for (Index v = 0; v < count; ++v) {
      dag_.add(std::to_string(first + v));
    }
  }
  void name(Index v, std::string name) {
    dag_.vertices[static_cast<std::size_t>(v)].name = std::move(name);
  }
  void edge(Index from, Index to) {
    dag_.vertices[static_cast<std::size_t>(to)].operands.push_back(from);
  }
  [[nodiscard]] const Dag& dag() const { return dag_; }

  Dag take() {
    if (dag_.size() == 0) {
      refuse("no vertices");
    }
    const std::vector<Index> uses = dag_.uses();
    for (Index v = 0; v < dag_.size(); ++v) {
      const Vertex& vertex = dag_[v];
      std::vector<Index> sorted = vertex.operands;
      std::ranges::sort(sorted);
      if (std::ranges::binary_search(sorted, v)) {
        refuse(fmt::format("{} is an operand of itself", shortened(vertex.name)));
      }
      if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
        refuse(fmt::format("{} is an operand of {} twice", shortened(dag_[*twice].name),
                           shortened(vertex.name)));
      }
      if (vertex.operands.empty() && uses[static_cast<std::size_t>(v)] == 0) {
        refuse(fmt::format("{} is neither computed nor an operand", shortened(vertex.name)));
      }
    }
    if (std::vector<Index> cycle = dag_.cycle(); !cycle.empty()) {
      constexpr std::size_t kShown = 6;
      std::vector<std::string> names;
      for (const Index v : cycle) {
        names.push_back(shortened(dag_[v].name));
      }
      if (names.size() > kShown) {
        names.resize(kShown);
        names.emplace_back("...");
      }
      names.push_back(names.front());
      refuse(fmt::format("a cycle: {}", fmt::join(names, " -> ")));
    }
    mark_terms();
    return std::move(dag_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("{}: {}", file_.string(), why));
  }
  void mark_terms() {
    const std::vector<std::vector<Index>> users = dag_.users();
    for (Index v = 0; v < dag_.size(); ++v) {
      const auto& its = users[static_cast<std::size_t>(v)];
      dag_.vertices[static_cast<std::size_t>(v)].term =
          !dag_.input(v) && its.size() == 1 && is_term_of(dag_[v].name, dag_[its.front()].name);
    }
  }

  const std::filesystem::path& file_;
  Dag dag_;
  std::unordered_map<std::string, Index> number_;
};

Dag parse_text(std::string_view text, const std::filesystem::path& file) {
  Lines lines(text, file);
  Edges edges(file);
  std::vector<bool> said;  // has its line
  while (lines.next('#')) {
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
      lines.refuse(fmt::format("the operands of {} are missing", shortened(std::string(name))));
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

// A graph in hyperedges, as it is read.
class HyperDag {
 public:
  HyperDag(std::string_view text, const std::filesystem::path& file)
      : file_(file), lines_(text, file), edges_(file), with_hyperedges_(has_hyperedges(text)) {}

  Dag read() {
    counts(lines_);
    sources_.assign(static_cast<std::size_t>(hyperedges_), -1);
    edges_.vertices(vertices_, 0);
    if (with_hyperedges_) {
      each(hyperedges_, "hyperedge", [](Index) {});
      each_vertex();
    }
    for (Index pin = 0; pin < pins_; ++pin) {
      lines_.next('%');
      this->pin();
    }
    if (!with_hyperedges_) {
      each_vertex();
    }
    take_names();
    return edges_.take();
  }

 private:
  // A file of the first version has as many lines as there are hyperedges, vertices and pins; one
  // without the first is shorter. Memory is asked for when the lines are there.
  bool has_hyperedges(std::string_view text) {
    Lines all(text, file_);
    counts(all);
    const Lines at_counts = all;
    Index count = 0;
    while (all.next('%')) {
      ++count;
    }
    const Index without = vertices_ + pins_;
    if (count != without && count != without + hyperedges_) {
      at_counts.refuse(fmt::format(
          "{} hyperedges, {} vertices and {} pins: expected {} lines, or {} without hyperedges, "
          "not {}",
          hyperedges_, vertices_, pins_, without + hyperedges_, without, count));
    }
    return count != without;
  }
  void counts(Lines& lines) {
    if (!lines.next('%')) {
      lines.refuse("the counts of hyperedges, vertices and pins are missing");
    }
    hyperedges_ = lines.whole_number("the number of hyperedges");
    vertices_ = lines.whole_number("the number of vertices");
    pins_ = lines.whole_number("the number of pins");
    constexpr Index kMost = Index{1} << 31;
    if (hyperedges_ < 1 || vertices_ < 1 || pins_ < hyperedges_ || vertices_ > kMost ||
        pins_ > kMost) {
      lines.refuse(
          fmt::format("{} hyperedges, {} vertices, {} pins: expected at least one of "
                      "each, a pin or more in each hyperedge, and no more than 2^31",
                      hyperedges_, vertices_, pins_));
    }
  }
  Index index(const char* what, Index count) {
    const Index found = lines_.whole_number(what);
    if (found < 0 || found >= count) {
      lines_.refuse(fmt::format("{} is {}: expected 0 to {}", what, found, count - 1));
    }
    return found;
  }
  // Lines that begin with each of these numbers, in any order. Their weights say nothing here.
  template <class Visit>
  void each(Index count, const char* what, const Visit& visit) {
    std::vector<bool> seen(static_cast<std::size_t>(count));
    for (Index line = 0; line < count; ++line) {
      lines_.next('%');
      const Index found = index(what, count);
      if (seen[static_cast<std::size_t>(found)]) {
        lines_.refuse(fmt::format("{} {} has a line before", what, found));
      }
      seen[static_cast<std::size_t>(found)] = true;
      visit(found);
    }
  }
  void each_vertex() {
    names_.resize(static_cast<std::size_t>(vertices_));
    each(vertices_, "vertex", [&](Index v) {
      const std::size_t comment = lines_.rest().find('%');
      if (comment != std::string_view::npos) {
        Lines words(lines_.rest().substr(comment + 1), file_);
        words.next();
        if (const std::string_view name = words.word(); words.at_end()) {
          names_[static_cast<std::size_t>(v)] = name;
        }
      }
    });
  }
  void pin() {
    const Index hyperedge = index("hyperedge", hyperedges_);
    const Index v = index("vertex", vertices_);
    Index& source = sources_[static_cast<std::size_t>(hyperedge)];
    if (source < 0) {
      source = v;
    } else {
      edges_.edge(source, v);
    }
  }
  // Names, where all vertices have one, and no two the same.
  void take_names() {
    std::vector<std::string> sorted = names_;
    std::ranges::sort(sorted);
    if (sorted.front().empty() || std::ranges::adjacent_find(sorted) != sorted.end()) {
      return;
    }
    for (Index v = 0; v < vertices_; ++v) {
      edges_.name(v, names_[static_cast<std::size_t>(v)]);
    }
  }

  const std::filesystem::path& file_;
  Lines lines_;
  Edges edges_;
  Index hyperedges_ = 0, vertices_ = 0, pins_ = 0;
  bool with_hyperedges_;
  std::vector<Index> sources_;
  std::vector<std::string> names_;
};

Dag parse_mtx_dag(std::string_view text, const std::filesystem::path& file) {
  bool symmetric = false;
  const BlockPattern found = parse_mtx_entries(text, file, &symmetric).pattern;
  if (found.rows != found.cols) {
    throw InputError(fmt::format("{}: {} rows and {} columns: expected as many of both",
                                 file.string(), found.rows, found.cols));
  }
  Edges edges(file);
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

Dag parse_dot_dag(std::string_view text, const std::filesystem::path& file) {
  const DotGraph graph = parse_dot(text, file);
  Edges edges(file);
  for (const std::string& vertex : graph.vertices) {
    edges.vertex(vertex);
  }
  for (const auto& [from, to] : graph.edges) {
    edges.edge(from, to);
  }
  return edges.take();
}

std::string to_hdag(const Dag& dag) {
  const std::vector<std::vector<Index>> users = dag.users();
  const auto sources =
      std::ranges::count_if(users, [](const std::vector<Index>& its) { return !its.empty(); });
  std::string text = fmt::format("% HyperDAG file format v1\n{} {} {}\n", sources, dag.size(),
                                 sources + dag.edges());
  for (Index hyperedge = 0; hyperedge < sources; ++hyperedge) {
    text += fmt::format("{}\n", hyperedge);
  }
  for (Index v = 0; v < dag.size(); ++v) {
    text += fmt::format("{} % {}\n", v, dag[v].name);
  }
  Index hyperedge = 0;
  for (Index v = 0; v < dag.size(); ++v) {
    if (const auto& its = users[static_cast<std::size_t>(v)]; !its.empty()) {
      text += fmt::format("{} {}\n", hyperedge, v);
      for (const Index user : its) {
        text += fmt::format("{} {}\n", hyperedge, user);
      }
      ++hyperedge;
    }
  }
  return text;
}

std::string to_dot(const Dag& dag) {
  std::string text = "digraph {\n";
  for (Index v = 0; v < dag.size(); ++v) {
    text += fmt::format("  \"{}\";\n", dag[v].name);
    for (const Index operand : dag[v].operands) {
      text += fmt::format("  \"{}\" -> \"{}\";\n", dag[operand].name, dag[v].name);
    }
  }
  return text + "}\n";
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

std::string to_lines(const Dag& dag) {
  std::string text;
  for (const Vertex& vertex : dag.vertices) {
    text += vertex.name;
    if (!vertex.operands.empty()) {
      text += ':';
      for (const Index operand : vertex.operands) {
        text += ' ' + dag[operand].name;
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace

DagFormat format_of(const std::filesystem::path& file) {
  const std::string kind = file.extension().string();
  return kind == ".hdag"                   ? DagFormat::hdag
         : kind == ".dot" || kind == ".gv" ? DagFormat::dot
         : kind == ".mtx"                  ? DagFormat::mtx
                                           : DagFormat::text;
}

Dag parse_dag(std::string_view text, const std::filesystem::path& file, DagFormat format) {
  switch (format) {
    case DagFormat::hdag:
      return HyperDag(text, file).read();
    case DagFormat::dot:
      return parse_dot_dag(text, file);
    case DagFormat::mtx:
      return parse_mtx_dag(text, file);
    default:
      return parse_text(text, file);
  }
}

std::string to_text(const Dag& dag, DagFormat format) {
  switch (format) {
    case DagFormat::hdag:
      return to_hdag(dag);
    case DagFormat::dot:
      return to_dot(dag);
    case DagFormat::mtx:
      return to_mtx(dag);
    default:
      return to_lines(dag);
  }
}

std::vector<Move> parse_moves(std::string_view text, const std::filesystem::path& file,
                              const Dag& dag, std::vector<Index>* its_lines) {
  std::unordered_map<std::string_view, Index> number;
  for (Index v = 0; v < dag.size(); ++v) {
    number.emplace(dag[v].name, v);
  }
  Lines lines(text, file);
  const auto vertex = [&](std::string_view name) {
    const auto found = number.find(name);
    if (found == number.end()) {
      lines.refuse(name.empty()
                       ? "the vertex is missing"
                       : fmt::format("no vertex is called '{}'", shortened(std::string(name))));
    }
    return found->second;
  };
  std::vector<Move> moves;
  while (lines.next('#')) {
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
      if (const std::string_view slides = lines.word(); slides != "slides") {
        lines.refuse(fmt::format("'{}': expected slides", shortened(std::string(slides))));
      }
      move.slides = vertex(lines.word());
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
  std::string text;
  for (const Move& move : moves) {
    text += fmt::format("{} {}", kActs[static_cast<std::size_t>(move.act)], dag[move.vertex].name);
    text += move.slides ? fmt::format(" slides {}\n", dag[*move.slides].name) : "\n";
  }
  return text;
}

}  // namespace redblue
