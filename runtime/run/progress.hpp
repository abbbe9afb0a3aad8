#pragma once
// The progress of a run, as one line for a person: "backward/rows: 43% of words, core, 12 s". The
// share is the words counted so far, by all workers, over the words of the formula.
//
// A check of results follows: "checking results: 43%, 14 s".
//
// The thread that shows the line asks the machines. They have no listener for it, so that a run
// that is watched does the same work, and takes the same time, as one that is not.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "runtime/run/outcome.hpp"

namespace redblue {

class Progress {
 public:
  // Takes the line again and again, and "" after the last, on a thread that Progress starts.
  using Sink = std::function<void(std::string_view line)>;
  static constexpr std::chrono::milliseconds kDelay{2000};

  // The run begins now. Nothing is shown of a run that ends within the delay.
  explicit Progress(Sink sink, std::chrono::milliseconds delay = kDelay);

  using Step = std::function<void(double done)>;
  // Shows how much of a check is done, which `work` says with the step that it is given.
  void during_check(const std::function<void(const Step& step)>& work) const;

  // Shows this kernel's progress while `work` lasts; the line is gone when it ends or throws.
  // `work` must run the kernel within the hook.
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
