#pragma once
// The fast memory: one contiguous, aligned range of addresses that holds the tiles. Tiles of at
// most `capacity` words together always fit: if no hole is large enough, the living tiles slide
// together. An address is therefore valid only until the next placement. An arena whose tiles stay
// takes more addresses instead, and memory up to its span.
//
// Requires: the caller (Machine) keeps the total within the capacity.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/holds.hpp"
#include "memsim/mapping.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Tile;

class Arena {
 public:
  struct Slot {
    std::string name;
    std::uint64_t id = 0;  // never used twice by one arena
    Index words = 0;
    Holds holds = Holds::sums;
    Index offset = 0;
    Tile* tile = nullptr;  // the owner; Tile updates this pointer when the tile is moved
  };

  // Whether tiles may slide. They must stay if others keep their addresses, as NumPy's arrays do.
  enum class Tiles : bool { slide, stay };

  // Throws: std::system_error if the address space cannot be reserved.
  explicit Arena(Index capacity, Tiles tiles = Tiles::slide);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] Slot* place(std::string_view name, Index words);
  // True if placing this number of words would slide the living tiles together.
  [[nodiscard]] bool slides_for(Index words) const { return !hole_for(words).fits; }
  void release(Slot* slot) noexcept;

  [[nodiscard]] float* address(const Slot& slot) const { return mapping_->words() + slot.offset; }
  // The living slots in ascending order of addresses.
  [[nodiscard]] const std::vector<Slot*>& living() const { return living_; }
  // The number of tiles placed so far. An address is valid only while this number stays the same.
  [[nodiscard]] std::uint64_t placed() const { return next_id_; }
  // The number of words from the start to the farthest address ever used. If tiles slide, it is at
  // most capacity + capacity / 8 + 16384.
  [[nodiscard]] Index span() const { return span_; }

 private:
  // A place for a tile. `position` is the index in living_ of the slot that follows it.
  struct Hole {
    Index offset;
    std::size_t position;
    bool fits;
  };
  [[nodiscard]] Hole hole_for(Index words) const;
  void slide_together();

  Index limit_ = 0;
  std::optional<Mapping> mapping_;
  Tiles tiles_;
  std::deque<Slot> slots_;  // stable addresses; spare_ points to the released slots
  std::vector<Slot*> spare_;
  std::vector<Slot*> living_;
  std::uint64_t next_id_ = 0;
  Index span_ = 0;
};

}  // namespace redblue
