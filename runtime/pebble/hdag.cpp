// Reads and writes the HyperDAG format, v1.

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "runtime/pebble/dag_builder.hpp"
#include "runtime/pebble/dag_formats.hpp"
#include "runtime/text/lines.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// Reads a graph given by hyperedges.
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
  // Returns whether the file has lines for hyperedges. If so, it has as many lines as there are
  // hyperedges, vertices and pins together. Memory is requested only after the lines are counted.
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
  // Reads `count` lines that begin with the numbers below `count`, in any order. Weights are
  // ignored.
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
  // Takes the names if all vertices have names and no two names are the same.
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
  DagBuilder edges_;
  Index hyperedges_ = 0, vertices_ = 0, pins_ = 0;
  bool with_hyperedges_;
  std::vector<Index> sources_;
  std::vector<std::string> names_;
};

}  // namespace

Dag parse_hdag(std::string_view text, const std::filesystem::path& file) {
  return HyperDag(text, file).read();
}

std::string to_hdag(const Dag& dag) {
  const NamesInFile names(dag, DagFormat::hdag);
  const std::vector<std::vector<Index>> users = dag.users();
  const auto sources =
      std::ranges::count_if(users, [](const std::vector<Index>& its) { return !its.empty(); });
  std::string text = fmt::format("% HyperDAG file format v1\n{} {} {}\n", sources, dag.size(),
                                 sources + dag.edges());
  for (Index hyperedge = 0; hyperedge < sources; ++hyperedge) {
    text += fmt::format("{}\n", hyperedge);
  }
  for (Index v = 0; v < dag.size(); ++v) {
    text += fmt::format("{} % {}\n", v, names[v]);
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

}  // namespace redblue
