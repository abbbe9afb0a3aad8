#pragma once
// The counts of one level of fast memory, by phase: its live words and the words moved. It belongs
// to one thread. Other threads may ask which phase is open and how many words have moved.

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

#include "memsim/holds.hpp"
#include "memsim/io_count.hpp"
#include "memsim/phase.hpp"
#include "memsim/words.hpp"

namespace redblue {

class Meter {
 public:
  Meter() = default;
  Meter(const Meter&) = delete;  // phases point to each other
  Meter& operator=(const Meter&) = delete;

  // enter() opens a phase inside the present one, or reopens it. leave() returns to the phase
  // around it.
  void enter(std::string_view name);
  void leave() noexcept;

  void read(Index words, Holds holds) {
    now().io.reads += words;
    now().kinds[holds].io.reads += words;
    add_moved(words);
  }
  void write(Index words, Holds holds) {
    now().io.writes += words;
    now().kinds[holds].io.writes += words;
    add_moved(words);
  }
  void charge(Index words, Holds holds) {
    live_ += words;
    live_of_[holds] += words;
    raise(now().peak, live_);
    raise(now().kinds[holds].peak, live_of_[holds]);
  }
  void discharge(Index words, Holds holds) noexcept {
    live_ -= words;
    live_of_[holds] -= words;
  }
  void computed(Operations operations) { now().operations += operations; }

  [[nodiscard]] Index live() const { return live_; }
  // Any thread may call both. A phase's name and the phases around it never change.
  [[nodiscard]] const PhaseNode& phase() const { return *phase_.load(std::memory_order_acquire); }
  [[nodiscard]] Index moved() const { return moved_.load(std::memory_order_relaxed); }
  [[nodiscard]] const PhaseNode& root() const { return root_; }
  // Returns the message for a tile `name` of `words` words that exceeds the free part of M.
  // `contents` lists the living tiles.
  [[nodiscard]] std::string refusal(std::string_view name, Index words, Index M,
                                    const std::string& contents) const;

 private:
  // For the thread of this meter only.
  [[nodiscard]] PhaseNode& now() const { return *phase_.load(std::memory_order_relaxed); }
  void set_phase(PhaseNode* phase) { phase_.store(phase, std::memory_order_release); }
  // Only the thread of this meter adds words.
  void add_moved(Index words) { moved_.store(moved() + words, std::memory_order_relaxed); }
  static void raise(Index& peak, Index words) { peak = std::max(peak, words); }
  void raise_peaks() noexcept;

  Index live_ = 0;
  ByKind<Index> live_of_;
  PhaseNode root_;
  std::atomic<PhaseNode*> phase_ = &root_;
  std::atomic<Index> moved_ = 0;
};

}  // namespace redblue
