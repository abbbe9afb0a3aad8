// Graphs of computations. The input is ".hdag", ".dot", ".mtx" or ".txt" on a line, and then such a
// file. A graph that can be read is written in all formats. It is read again as the same graph,
// with the same names or with numbers.

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/pebble/dag_formats.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {
namespace {

// A line may request this many vertices, and the reader then takes memory for them.
constexpr std::size_t kMostDigits = 5;

bool says_too_many(std::string_view text) {
  std::size_t digits = 0, most = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    most = std::max(most, digits);
  }
  return most > kMostDigits;
}

// Returns the edges, with the vertices called by `names`.
template <class Names>
std::vector<std::pair<std::string, std::string>> edges_of(const Dag& dag, const Names& names) {
  std::vector<std::pair<std::string, std::string>> edges;
  for (Index v = 0; v < dag.size(); ++v) {
    for (const Index operand : dag[v].operands) {
      edges.emplace_back(names(operand), names(v));
    }
  }
  std::ranges::sort(edges);
  return edges;
}

}  // namespace

void graph(std::string_view input) {
  const std::size_t end = std::min(input.find('\n'), input.size());
  const std::string kind(input.substr(0, end));
  const std::string_view text = input.substr(std::min(end + 1, input.size()));
  if ((kind != ".hdag" && kind != ".dot" && kind != ".mtx" && kind != ".txt") ||
      says_too_many(text)) {
    return;
  }
  const std::string file = "a" + kind;
  const auto read =
      read_or_refused<InputError>(file, [&] { return parse_dag(text, file, format_of(file)); });
  if (!read) {
    return;
  }
  for (const DagFormat format :
       {DagFormat::text, DagFormat::hdag, DagFormat::dot, DagFormat::mtx}) {
    const NamesInFile names(*read, format);
    const Dag again = parse_dag(to_text(*read, format), "b", format);
    const bool same = edges_of(again, [&](Index v) { return again[v].name; }) ==
                      edges_of(*read, [&](Index v) { return names[v]; });
    demand(same && again.size() == read->size(), "what is written is read as another graph");
  }
}

}  // namespace redblue::fuzz
