#pragma once
// What every report says of its circumstances.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/observe/topology.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {

// A change of any key's meaning changes this.
inline constexpr int kSchema = 1;

// The document's "context": the build, and where M came from.
nlohmann::ordered_json context_json(const std::optional<FastMemoryOrigin>& M_from);

// A value, or null where nobody knows it.
nlohmann::ordered_json known(const auto& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// The document of a report on a task, so far: schema, context, the problem.
nlohmann::ordered_json task_json(const Task& task, const std::optional<FastMemoryOrigin>& M_from);

// {words, term, status}
nlohmann::ordered_json bound_json(const Bound& bound);

// All caches of a topology, L1 first.
nlohmann::ordered_json caches_json(const Topology& topology);

// A context for people, by name; what is not known is not there.
std::vector<std::pair<std::string, std::string>> facts_of(const nlohmann::ordered_json& context);

// "M is L2*0.5: L2 has 524,288 bytes (hwloc 2.9.0, this system)", on one line.
std::string to_words(const FastMemoryOrigin& M_from);

}  // namespace redblue
