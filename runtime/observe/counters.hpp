#pragma once
// The event counters of processor and system that PAPI offers, read phase by phase.
//
//   Counters counters(topology);         // empty, with its reason, where there are none
//   PhaseCounters phases(machine, counters);
//   ...                                  // phases.of("phase1/S")[0]: of counters.events()[0]
//
// A counter of cache lines is believed only after it has counted a loop of known traffic. These
// objects count the thread that made them, and belong to it. A thread has one Counters at a time.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "memsim/machine.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

struct CounterEvent {
  std::string name;  // as PAPI knows it
  // The cache whose incoming lines the event counts, if it was seen to do so.
  std::optional<CacheLevel> lines_into;
};

class Counters {
 public:
  // Counts the lines that L1 and L2 take in, or the events of the caller's choice, all of them or
  // none. The topology gives the sizes of the loops of known traffic.
  explicit Counters(const Topology& topology, const std::vector<std::string>& names = {});
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters();

  // The reason why there are no events; else empty.
  [[nodiscard]] const std::string& unavailable() const { return unavailable_; }
  // The reason why one of the caches has no event while another has; else empty.
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

// The counts of a machine's phases: each phase counts while it is the innermost, over all its
// entries.
class PhaseCounters final : public Follower {
 public:
  // Listens while it lives. Requires: available counters; both outlive it.
  PhaseCounters(Machine& machine, const Counters& counters);

  // By path; zeros for a phase that was not entered. Throws: std::runtime_error when a counter
  // could not be read; std::bad_alloc.
  [[nodiscard]] std::vector<std::int64_t> of(const std::string& path) const;
  // Since construction, in phases or not. Throws: the same.
  [[nodiscard]] std::vector<std::int64_t> total() const;

 private:
  void follow(const Event& event) override;

  const Counters& counters_;
  PhasePath phase_;
  std::vector<std::int64_t> start_, last_;
  std::map<std::string, std::vector<std::int64_t>> counts_;
};

// The counts of an event in the two loops that decide whether it is believed.
struct SelfTest {
  Index lines = 0;     // of a buffer larger than the cache, read in order, again and again
  Index streamed = 0;  // the count for them
  Index touches = 0;   // of lines of a buffer that stays in the cache
  Index resident = 0;  // the count for them
};
// Empty if the event is believed: it counts 0.75 to 1.5 times the lines streamed, and at most 1 for
// 50 touches of resident lines. Else the figures.
std::string disbelief(const SelfTest& test);

// PAPI's version, or nothing if this was built without PAPI.
std::optional<std::string> papi_version();

}  // namespace redblue
