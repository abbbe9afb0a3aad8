#include "runtime/run/progress.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "memsim/machine.hpp"

namespace redblue {
namespace {

constexpr std::chrono::milliseconds kInterval{200};

// Adds up the words of all machines. The workers and the thread that shows the line share it.
class WordCounter {
 public:
  explicit WordCounter(const std::vector<PhaseCost>& phases) : phases_(phases) {}

  void begin(const Machine& machine) {
    const std::lock_guard lock(mutex_);
    active_.push_back({&machine, machine.moved()});
  }
  void end(const Machine& machine) {
    const std::lock_guard lock(mutex_);
    const auto its = std::ranges::find(active_, &machine, &ActiveMachine::machine);
    ended_ += words_of(*its);
    active_.erase(its);
  }

  struct Seen {
    Index words;  // so far
    // A phase of the plan that a machine is in, or the last phase seen.
    std::string_view phase;
  };
  Seen look() {
    const std::lock_guard lock(mutex_);
    Index words = ended_;
    for (const ActiveMachine& its : active_) {
      words += words_of(its);
      const auto known = std::ranges::find(phases_, its.machine->open_phase(), &PhaseCost::path);
      phase_ = known == phases_.end() ? phase_ : static_cast<std::size_t>(known - phases_.begin());
    }
    return {words, phases_[phase_].path};
  }

 private:
  struct ActiveMachine {
    const Machine* machine;
    Index before;  // words moved before this work began
  };
  static Index words_of(const ActiveMachine& its) { return its.machine->moved() - its.before; }

  const std::vector<PhaseCost>& phases_;
  std::mutex mutex_;
  std::vector<ActiveMachine> active_;
  Index ended_ = 0;
  std::size_t phase_ = 0;
};

// Registers a machine as working for its lifetime.
class CountedMachine {
 public:
  CountedMachine(WordCounter& watch, const Machine& machine) : watch_(watch), machine_(machine) {
    watch_.begin(machine_);
  }
  CountedMachine(const CountedMachine&) = delete;
  CountedMachine& operator=(const CountedMachine&) = delete;
  ~CountedMachine() { watch_.end(machine_); }

 private:
  WordCounter& watch_;
  const Machine& machine_;
};

}  // namespace

Progress::Progress(Sink sink, std::chrono::milliseconds delay)
    : sink_(std::move(sink)), delay_(delay) {}

void Progress::during(const Part& part,
                      const std::function<void(const RunHook& hook)>& work) const {
  const Plan& plan = part.plan;
  // By the formula, because counts do not exist yet.
  const auto all = static_cast<double>(part.io());
  WordCounter watch(part.formula);
  const auto line = [&] {
    const auto [words, phase] = watch.look();
    return fmt::format("{}: {}% of words, {}", spelled(plan),
                       static_cast<int>(100 * static_cast<double>(words) / all), phase);
  };
  show_during(line, [&] {
    work([&](Machine& machine, const Plan&, const std::function<void()>& kernel) {
      const CountedMachine watched(watch, machine);
      kernel();
    });
  });
}

void Progress::during_check(const std::function<void(const Step& step)>& work) const {
  std::atomic<double> done = 0;
  show_during([&] { return fmt::format("checking results: {}%", static_cast<int>(100 * done)); },
              [&] { work([&](double part) { done = part; }); });
}

void Progress::show_during(const std::function<std::string()>& line,
                           const std::function<void()>& work) const {
  const auto print = [&](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    const auto stopped_before = [&](Clock::time_point time) {
      never.wait_until(lock, stop, time, [] { return false; });
      return stop.stop_requested();
    };
    if (stopped_before(start_ + delay_)) {
      return;
    }
    do {
      sink_(fmt::format("{}, {} s", line(),
                        std::chrono::floor<std::chrono::seconds>(Clock::now() - start_).count()));
    } while (!stopped_before(Clock::now() + kInterval));
    sink_("");
  };
  std::jthread printer;
  try {
    printer = std::jthread(print);
  } catch (const std::system_error&) {  // no more threads: the run has no progress line
  }
  work();
}

}  // namespace redblue
