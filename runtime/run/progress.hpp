#pragma once
// How far a run is, for who waits for it: "backward/rows: 43% of words, core, 12 s". The share is
// the words counted so far, by all workers, over what the formula says they will be.

#include <chrono>
#include <functional>
#include <string_view>

#include "runtime/run/outcome.hpp"

namespace redblue {

class Progress {
 public:
  // Takes the line, again and again, and in the end "" for none; from a thread of its own.
  using Sink = std::function<void(std::string_view line)>;
  static constexpr std::chrono::milliseconds kDelay{2000};

  // The run begins now; nobody hears of one that ends within the delay.
  explicit Progress(Sink sink, std::chrono::milliseconds delay = kDelay);

  // The line is about this kernel while `work` lasts, and is gone when it ends or throws. What
  // `work` is given has to stand around the code on each machine.
  void during(const Part& part, const std::function<void(const Around& around)>& work) const;

 private:
  using Clock = std::chrono::steady_clock;
  Sink sink_;
  std::chrono::milliseconds delay_;
  Clock::time_point start_ = Clock::now();
};

// Fills in what a part counted: as `run` does, shown or with somebody around its code on each
// machine (not both). And how fast multiply-adds are beside it, but where it is measured: a
// measured run has no speed of its own.
void count_part(Part& part, const Topology& topology, const Around& around,
                const Progress* progress,
                const std::function<RunCounts(const Around& around)>& run);

}  // namespace redblue
