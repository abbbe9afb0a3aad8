#pragma once
// Shows the progress of a run as one line: "backward/rows: 43% of words, core, 12 s". The share is
// the words counted so far by all workers, divided by the words of the formula. A check of results
// has its own line: "checking results: 43%, 14 s".
//
// The thread that shows the line polls the machines. The machines have no listener, so a run with
// progress does the same work and takes the same time as a run without.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/run/outcome.hpp"

namespace redblue {

class Progress {
 public:
  // Called repeatedly with the current line, and at the end with "", on a thread that Progress
  // starts.
  using Sink = std::function<void(std::string_view line)>;
  static constexpr std::chrono::milliseconds kDelay{2000};

  // Starts the clock. A run that ends within the delay shows no line.
  explicit Progress(Sink sink, std::chrono::milliseconds delay = kDelay);

  using Step = std::function<void(double done)>;
  // Shows the progress of a check. `work` reports its progress through the step that it receives.
  void during_check(const std::function<void(const Step& step)>& work) const;

  // Shows this kernel's progress while `work` runs. The line disappears when `work` returns or
  // throws. `work` must run the kernel within the hook.
  void during(const Part& part, const std::function<void(const RunHook& hook)>& work) const;

 private:
  using Clock = std::chrono::steady_clock;
  void show_during(const std::function<std::string()>& line,
                   const std::function<void()>& work) const;

  Sink sink_;
  std::chrono::milliseconds delay_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace redblue
