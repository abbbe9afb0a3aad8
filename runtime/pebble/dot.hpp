#pragma once
// Digraphs of Graphviz, as far as they say which vertices and edges there are. Attributes are read
// over; subgraphs and undirected edges are refused.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

struct DotGraph {
  std::vector<std::string> vertices;           // in the order in which they come
  std::vector<std::pair<Index, Index>> edges;  // of these
};

// Throws: InputError with the file, the line and the fault.
DotGraph parse_dot(std::string_view text, const std::filesystem::path& file);

}  // namespace redblue
