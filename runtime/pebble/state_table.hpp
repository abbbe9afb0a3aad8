#pragma once
// The states that a search has met, each once, in memory of a limited size.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/pebble/steps.hpp"

namespace redblue {

class StateTable {
 public:
  using Place = std::uint32_t;
  static constexpr Place kNone = std::numeric_limits<Place>::max();

  struct Entry {
    State state;
    Place from = kNone;           // the state before it
    std::uint16_t words = 0;      // words moved so far
    std::uint16_t left : 14 = 0;  // a lower bound on the words left
    bool closed : 1 = false;
    bool fresh : 1 = true;  // just added
  };

  explicit StateTable(std::size_t bytes) : bytes_(bytes), places_(1024, kNone) {}

  [[nodiscard]] std::size_t size() const { return size_; }
  Entry& operator[](Place at) { return blocks_[at / kBlock][at % kBlock]; }
  const Entry& operator[](Place at) const { return blocks_[at / kBlock][at % kBlock]; }

  // Returns the place of a state, and adds the state if it is new. Returns nullopt if the table and
  // `others` would exceed the bytes.
  std::optional<Place> find_or_add(const State& state, std::size_t others) {
    std::size_t slot = hash(state) & (places_.size() - 1);
    for (; places_[slot] != kNone; slot = (slot + 1) & (places_.size() - 1)) {
      if ((*this)[places_[slot]].state == state) {
        return places_[slot];
      }
    }
    if (!has_room(others)) {
      return std::nullopt;
    }
    if (size_ % kBlock == 0) {
      blocks_.emplace_back(kBlock);
    }
    const auto at = static_cast<Place>(size_++);
    (*this)[at].state = state;
    places_[slot] = at;
    if (size_ * 2 > places_.size()) {
      grow();
    }
    return at;
  }

 private:
  static constexpr std::size_t kBlock = 1024;

  static std::size_t hash(const State& state) {
    constexpr std::uint64_t kMix = 0x9e3779b97f4a7c15U;
    std::uint64_t h = 0;
    for (const Set set : {state.red, state.blue, state.done}) {
      h = (h ^ set) * kMix;
      h ^= h >> 32U;
    }
    return h * kMix >> 16U;
  }
  // Returns whether one more state fits. A table that grows exists twice for a while.
  [[nodiscard]] bool has_room(std::size_t others) const {
    const std::size_t blocks = (size_ / kBlock + 1) * kBlock * sizeof(Entry);
    const std::size_t places =
        places_.size() * sizeof(Place) * (size_ * 2 + 2 > places_.size() ? 3 : 1);
    return size_ + 1 < kNone && blocks + places + others <= bytes_;
  }
  void grow() {
    std::vector<Place> larger(places_.size() * 2, kNone);
    for (Place at = 0; at < size_; ++at) {
      std::size_t slot = hash((*this)[at].state) & (larger.size() - 1);
      while (larger[slot] != kNone) {
        slot = (slot + 1) & (larger.size() - 1);
      }
      larger[slot] = at;
    }
    places_ = std::move(larger);
  }

  std::size_t bytes_;
  std::vector<std::vector<Entry>> blocks_;
  std::vector<Place> places_;  // by hash; kNone: free
  std::size_t size_ = 0;
};

}  // namespace redblue
