#pragma once
// The event counters of processor and system, as PAPI offers them, read phase by phase.
//
//   Counters counters(topology);         // empty, with its reason, where there are none
//   PhaseCounters phases(machine, counters);
//   ...                                  // phases.of("phase1/S")[0]: of counters.events()[0]
//
// A counter of cache lines is believed only after it has counted a loop of known traffic. All of
// this counts, and belongs to, the thread that made it, and a thread has one of it at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memsim/machine.hpp"
#include "runtime/observe/phase_path.hpp"
#include "runtime/observe/topology.hpp"

namespace redblue {

struct CounterEvent {
  std::string name;  // as PAPI knows it
  // Set where it counts the lines that this cache takes in, and was seen to do so.
  std::optional<CacheLevel> lines_into;
};

class Counters {
 public:
  // The lines that L1 and L2 take in; or the events of the caller's choice, all of them or none.
  // The topology says how large the loops of known traffic must be.
  explicit Counters(const Topology& topology, const std::vector<std::string>& names = {});
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters();

  // Why there are no events; empty where there are.
  [[nodiscard]] const std::string& unavailable() const { return unavailable_; }
  // Why one of the caches has no event while another has; else empty.
  [[nodiscard]] const std::string& incomplete() const { return incomplete_; }
  [[nodiscard]] const std::vector<CounterEvent>& events() const { return events_; }
  // Counts since construction, in the order of the events. Throws: std::runtime_error.
  [[nodiscard]] std::vector<std::int64_t> read() const;

 private:
  std::vector<CounterEvent> events_;
  std::string unavailable_;
  std::string incomplete_;
  int set_ = -1;  // PAPI's
};

// Counts of the phases of a machine: each while it is the innermost, over all its entries.
class PhaseCounters final : public Listener {
 public:
  // Listens while it lives. Requires: available counters; both outlive it.
  PhaseCounters(Machine& machine, const Counters& counters);
  ~PhaseCounters() override;

  // By path; zeros for a phase that was not entered. Throws: std::runtime_error when a counter
  // could not be read.
  [[nodiscard]] std::vector<std::int64_t> of(const std::string& path) const;
  // Since construction, phases or not. Throws: the same.
  [[nodiscard]] std::vector<std::int64_t> total() const;

  void on(const Event& event) noexcept override;

 private:
  Machine& machine_;
  const Counters& counters_;
  PhasePath phase_;
  std::vector<std::int64_t> start_, last_;
  std::map<std::string, std::vector<std::int64_t>> counts_;
  std::string failure_;
};

// What an event counted in the two loops that decide whether it is believed.
struct SelfTest {
  Index lines = 0;     // of a buffer larger than the cache, read in order, again and again
  Index streamed = 0;  // what was counted then
  Index touches = 0;   // of lines of a buffer that stays in the cache
  Index resident = 0;  // what was counted then
};
// Empty where it is believed: 0.75 to 1.5 times the lines streamed, and at most a count for 50
// touches of what is resident. Else the figures.
std::string disbelief(const SelfTest& test);

// PAPI's version, or nothing where this was built without.
std::optional<std::string> papi_version();

}  // namespace redblue
