#pragma once
// The fast memory itself: one contiguous, aligned piece of address space, in which tiles are
// placed. It holds any set of tiles of at most `capacity` words in sum, whatever was placed
// and released before: where no hole is large enough, the living tiles slide together. So an
// address is good until the next placement only.
//
// It trusts its caller (Machine) to keep the sum within the capacity.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

class Tile;

class Arena {
 public:
  struct Slot {
    std::string name;
    std::uint64_t id = 0;  // never used twice by one arena
    Index words = 0;
    Index offset = 0;
    Tile* tile = nullptr;  // the owner, which keeps this up to date
  };

  // Throws: std::system_error when the address space cannot be had.
  explicit Arena(Index capacity);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] Slot* place(std::string_view name, Index words);
  // Whether to place so many words would slide the living tiles together now.
  [[nodiscard]] bool slides_for(Index words) const { return !hole_for(words).fits; }
  void release(Slot* slot) noexcept;

  [[nodiscard]] float* address(const Slot& slot) const { return base_ + slot.offset; }
  // The living slots in the order of their addresses.
  [[nodiscard]] const std::vector<Slot*>& living() const { return living_; }
  // The farthest word ever in use: at most capacity + capacity / 8 + 16384.
  [[nodiscard]] Index span() const { return span_; }

 private:
  // Where a tile would begin, and which of living_ comes after it.
  struct Hole {
    Index offset;
    std::size_t position;
    bool fits;
  };
  [[nodiscard]] Hole hole_for(Index words) const;
  void slide_together();

  Index limit_ = 0;
  float* base_ = nullptr;
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::deque<Slot> slots_;  // stable addresses; dead ones wait in spare_
  std::vector<Slot*> spare_;
  std::vector<Slot*> living_;
  std::uint64_t next_id_ = 0;
  Index span_ = 0;
};

}  // namespace redblue
