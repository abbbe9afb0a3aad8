#pragma once
// Memory from the system for arenas and large matrices. To map pages and to touch them for the
// first time takes longer than a small problem. So the process keeps up to 64 MiB of ended mappings
// for later ones, and drops the oldest first.

#include <cstddef>

#include "memsim/cxx20.hpp"

namespace redblue {

// May be made and ended by any thread.
class Mapping {
 public:
  // Whether the system refuses a size that it has no room for, or gives room only when pages are
  // touched, so that a generous size costs address space only.
  enum class Room : bool { is_sure, when_touched };

  // `huge`: asks for huge pages, and starts at the beginning of one. The words of a huge page do
  // not compete for the same lines of a cache. Small pages may, because they are scattered over
  // physical memory. The words are not initialized. Throws: std::bad_alloc.
  Mapping(std::size_t bytes, bool huge, Room room);
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
