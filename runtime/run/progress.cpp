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

#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {
namespace {

constexpr std::chrono::milliseconds kInterval{200};

// What the line says of the run. All workers write it.
struct Shown {
  std::atomic<Index> words = 0;        // so far
  std::atomic<std::size_t> phase = 0;  // of the plan: the one that was entered last
};

class ProgressListener final : public Follower {
 public:
  ProgressListener(Machine& machine, const std::vector<PhaseCost>& phases, Shown& shown)
      : Follower(machine), phases_(phases), shown_(shown) {}

 private:
  void follow(const Event& event) override {
    if (event.kind == Event::Kind::read || event.kind == Event::Kind::write) {
      shown_.words.fetch_add(event.block->words(), std::memory_order_relaxed);
    } else if (PhasePath::changes(event)) {
      path_.follow(event);
      const auto found = std::ranges::find(phases_, path_.path(), &PhaseCost::path);
      if (found != phases_.end()) {
        shown_.phase.store(static_cast<std::size_t>(found - phases_.begin()),
                           std::memory_order_relaxed);
      }
    }
  }

  const std::vector<PhaseCost>& phases_;
  Shown& shown_;
  PhasePath path_;
};

}  // namespace

Progress::Progress(Sink sink, std::chrono::milliseconds delay)
    : sink_(std::move(sink)), delay_(delay) {}

void Progress::during(const Part& part,
                      const std::function<void(const RunHook& hook)>& work) const {
  const Plan& plan = part.plan;
  const auto all = static_cast<double>(part.io());  // by the formula: nothing is counted yet
  Shown shown;
  const auto line = [&] {
    const auto words = static_cast<double>(shown.words.load(std::memory_order_relaxed));
    return fmt::format("{}: {}% of words, {}, {} s", spelled(plan),
                       static_cast<int>(100 * words / all),
                       part.formula[shown.phase.load(std::memory_order_relaxed)].path,
                       std::chrono::floor<std::chrono::seconds>(Clock::now() - start_).count());
  };
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
      sink_(line());
    } while (!stopped_before(Clock::now() + kInterval));
    sink_("");
  };
  std::jthread printer;
  try {
    printer = std::jthread(print);
  } catch (const std::system_error&) {  // the system has no more threads: the run is not shown
  }
  work([&](Machine& machine, const Plan&, const std::function<void()>& kernel) {
    const ProgressListener listener(machine, part.formula, shown);
    kernel();
  });
}

}  // namespace redblue
