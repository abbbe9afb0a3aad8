#include "runtime/run/progress.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/observe/fma_peak.hpp"
#include "runtime/observe/phase_path.hpp"

namespace redblue {
namespace {

constexpr std::chrono::milliseconds kInterval{200};

// What the workers tell, and the line is made of.
struct Told {
  std::atomic<Index> words = 0;
  std::atomic<std::size_t> phase = 0;  // of the plan: the one that was entered last
};

class Teller final : public Listener {
 public:
  Teller(Machine& machine, const std::vector<PhaseCost>& phases, Told& told)
      : machine_(machine), phases_(phases), told_(told) {
    machine_.listen(*this);
  }
  ~Teller() override { machine_.silence(*this); }

  void on(const Event& event) noexcept override {
    if (event.kind == Event::Kind::read || event.kind == Event::Kind::write) {
      told_.words.fetch_add(event.rows * event.cols, std::memory_order_relaxed);
    } else if (PhasePath::changes(event)) {
      path_.follow(event);
      const auto found = std::ranges::find(phases_, path_.path(), &PhaseCost::path);
      if (found != phases_.end()) {
        told_.phase.store(static_cast<std::size_t>(found - phases_.begin()),
                          std::memory_order_relaxed);
      }
    }
  }

 private:
  Machine& machine_;
  const std::vector<PhaseCost>& phases_;
  Told& told_;
  PhasePath path_;
};

}  // namespace

Progress::Progress(Sink sink, std::chrono::milliseconds delay)
    : sink_(std::move(sink)), delay_(delay) {}

void Progress::during(const Part& part,
                      const std::function<void(const Around& around)>& work) const {
  const Plan& plan = part.plan;
  const auto all = static_cast<double>(part.io());  // before the work: what the formula says
  Told told;
  const auto line = [&] {
    const auto words = static_cast<double>(told.words.load(std::memory_order_relaxed));
    return fmt::format("{}: {}% of words, {}, {} s", spelled(plan),
                       static_cast<int>(100 * words / all),
                       part.formula[told.phase.load(std::memory_order_relaxed)].path,
                       std::chrono::floor<std::chrono::seconds>(Clock::now() - start_).count());
  };
  const std::jthread printer([&](const std::stop_token& stop) {
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
  });
  work([&](Machine& machine, const Plan&, const std::function<void()>& go) {
    const Teller teller(machine, part.formula, told);
    go();
  });
}

void count_part(Part& part, const Topology& topology, const Around& around,
                const Progress* progress,
                const std::function<RunCounts(const Around& around)>& run) {
  const auto work = [&](const Around& on_each) { part.counted = run(on_each); };
  if (progress != nullptr) {
    progress->during(part, work);
  } else {
    work(around);
  }
  if (!around) {
    part.peak_gflops = fma_peak(part.team.workers, topology);
  }
}

}  // namespace redblue
