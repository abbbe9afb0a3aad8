#pragma once
// The counts of one level of fast memory: the words that live in it and those that moved, by phase.
// It belongs to one thread. Others may ask which phase is open and how many words have moved.

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
  Meter(const Meter&) = delete;  // phases refer to each other
  Meter& operator=(const Meter&) = delete;

  // An inner phase of the present one, perhaps entered before; and back.
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
  // Both from any thread. A phase's name and the phases around it never change.
  [[nodiscard]] const PhaseNode& phase() const { return *phase_.load(std::memory_order_acquire); }
  [[nodiscard]] Index moved() const { return moved_.load(std::memory_order_relaxed); }
  [[nodiscard]] const PhaseNode& root() const { return root_; }
  // What is said where `words` of a name do not fit in what is left of M; `contents` are there.
  [[nodiscard]] std::string refusal(std::string_view name, Index words, Index M,
                                    const std::string& contents) const;

 private:
  // For the thread of this meter.
  [[nodiscard]] PhaseNode& now() const { return *phase_.load(std::memory_order_relaxed); }
  void set_phase(PhaseNode* phase) { phase_.store(phase, std::memory_order_release); }
  // No other thread adds to it.
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
