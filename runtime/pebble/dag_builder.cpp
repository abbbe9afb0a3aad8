#include "runtime/pebble/dag_builder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/system/input_error.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

// Returns "s" for "s*12", if the sign is a star. Empty for names of another form.
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

}  // namespace

Index DagBuilder::vertex(std::string_view name) {
  const auto [found, added] = number_.try_emplace(std::string(name), dag_.size());
  if (added) {
    dag_.add(std::string(name));
  }
  return found->second;
}

void DagBuilder::vertices(Index count, Index first) {
  for (Index v = 0; v < count; ++v) {
    dag_.add(std::to_string(first + v));
  }
}

Dag DagBuilder::take() {
  if (dag_.size() == 0) {
    refuse("no vertices");
  }
  check_vertices();
  check_cycles();
  mark_terms();
  return std::move(dag_);
}

void DagBuilder::refuse(const std::string& why) const {
  throw InputError(fmt::format("{}: {}", file_.string(), why));
}

void DagBuilder::check_vertices() const {
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
}

void DagBuilder::check_cycles() const {
  if (const std::vector<Index> cycle = dag_.cycle(); !cycle.empty()) {
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
}

void DagBuilder::mark_terms() {
  const std::vector<std::vector<Index>> users = dag_.users();
  for (Index v = 0; v < dag_.size(); ++v) {
    const auto& its = users[static_cast<std::size_t>(v)];
    dag_.vertices[static_cast<std::size_t>(v)].term =
        !dag_.input(v) && its.size() == 1 && is_term_of(dag_[v].name, dag_[its.front()].name);
  }
}

}  // namespace redblue
