#pragma once
// Memory from the system for arenas and large matrices. The process keeps up to 64 MiB of ended
// mappings for later ones of the same size: to map pages and to touch them for the first time takes
// longer than a small problem.

#include <cstddef>

namespace redblue {

class Mapping {
 public:
  // `huge`: asks for huge pages, and starts at the beginning of one. The words of one huge page do
  // not compete for the same lines of a cache, as small pages may, which are scattered over
  // physical memory. The words have any values. Throws: std::system_error.
  Mapping(std::size_t bytes, bool huge);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] float* words() const { return words_; }

 private:
  std::size_t bytes_;
  bool huge_;
  void* memory_;
  float* words_;
};

}  // namespace redblue
