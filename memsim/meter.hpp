#pragma once
// The counts of one level of fast memory: the words that live in it and those that moved, by phase.

#include <algorithm>
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
    phase_->io.reads += words;
    phase_->kinds[holds].io.reads += words;
  }
  void write(Index words, Holds holds) {
    phase_->io.writes += words;
    phase_->kinds[holds].io.writes += words;
  }
  void charge(Index words, Holds holds) {
    live_ += words;
    live_of_[holds] += words;
    phase_->peak = std::max(phase_->peak, live_);
    phase_->kinds[holds].peak = std::max(phase_->kinds[holds].peak, live_of_[holds]);
  }
  void discharge(Index words, Holds holds) noexcept {
    live_ -= words;
    live_of_[holds] -= words;
  }
  void computed(Operations operations) { phase_->operations += operations; }

  [[nodiscard]] Index live() const { return live_; }
  [[nodiscard]] const PhaseNode& phase() const { return *phase_; }
  [[nodiscard]] const PhaseNode& root() const { return root_; }
  // What is said where `words` of a name do not fit in what is left of M; `contents` are there.
  [[nodiscard]] std::string refusal(std::string_view name, Index words, Index M,
                                    const std::string& contents) const;

 private:
  void raise_peaks() noexcept;

  Index live_ = 0;
  ByKind<Index> live_of_;
  PhaseNode root_;
  PhaseNode* phase_ = &root_;
};

}  // namespace redblue
