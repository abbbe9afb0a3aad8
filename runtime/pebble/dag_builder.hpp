#pragma once
// Builds a graph from edges in any order, and checks it at the end.

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/pebble/dag.hpp"

namespace redblue {

class DagBuilder {
 public:
  // The name of the file must outlive the builder.
  explicit DagBuilder(const std::filesystem::path& file) : file_(file) {}

  // Returns the vertex of that name, and adds it if it is new.
  Index vertex(std::string_view name);
  // Adds vertices with consecutive numbers as names, from `first` on.
  void vertices(Index count, Index first);
  void name(Index v, std::string name) {
    dag_.vertices[static_cast<std::size_t>(v)].name = std::move(name);
  }
  void edge(Index from, Index to) {
    dag_.vertices[static_cast<std::size_t>(to)].operands.push_back(from);
  }
  [[nodiscard]] const Dag& dag() const { return dag_; }

  // Returns the graph. Throws: InputError if it is not a valid graph (dag_files.hpp).
  Dag take();

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void check_vertices() const;
  void check_cycles() const;
  void mark_terms();

  const std::filesystem::path& file_;
  Dag dag_;
  std::unordered_map<std::string, Index> number_;
};

}  // namespace redblue
