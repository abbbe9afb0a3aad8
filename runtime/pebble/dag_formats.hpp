#pragma once
// The formats of runtime/pebble/dag_files.hpp, each in its own source, and the names of vertices in
// them.

#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/pebble/dag_files.hpp"

namespace redblue {

// Returns whether a file of that format can hold the name without a change.
bool writable(std::string_view name, DagFormat format);

// The names of vertices in a file. If one name is not writable, all vertices have numbers for
// names, which begin with 0, and in Matrix Market with 1. The graph must outlive this.
class NamesInFile {
 public:
  NamesInFile(const Dag& dag, DagFormat format);
  [[nodiscard]] std::string operator[](Index v) const {
    return numbers_ ? std::to_string(v + first_) : dag_[v].name;
  }

 private:
  const Dag& dag_;
  bool numbers_;
  Index first_;
};

// Throw: InputError.
Dag parse_text_dag(std::string_view text, const std::filesystem::path& file);
Dag parse_hdag(std::string_view text, const std::filesystem::path& file);
Dag parse_dot(std::string_view text, const std::filesystem::path& file);
Dag parse_mtx_dag(std::string_view text, const std::filesystem::path& file);

std::string to_text_dag(const Dag& dag);
std::string to_hdag(const Dag& dag);
std::string to_dot(const Dag& dag);
std::string to_mtx(const Dag& dag);

}  // namespace redblue
