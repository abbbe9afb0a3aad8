#pragma once
// Reads the processor's and system's event counters by phase, through PAPI.
//
//   Counters counters(topology);         // has a reason and no events if PAPI cannot count here
//   PhaseCounters phases(machine, counters);
//   ...                                  // phases.of("phase1/S")[0] counts counters.events()[0]
//
// A counter of cache lines is used only after it has counted a loop of known traffic correctly.
// These objects count events of the thread that made them, and only that thread may use them. A
// thread may have only one Counters object.

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
  std::string name;  // PAPI's name
  // The cache for which this event counts incoming lines, if the self-test has confirmed it.
  std::optional<CacheLevel> lines_into;
};

class Counters {
 public:
  // Counts the lines that come into L1 and L2. With `names`, counts those events instead, all or
  // none. The topology gives the sizes of the loops of known traffic.
  explicit Counters(const Topology& topology, const std::vector<std::string>& names = {});
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters();

  // Says why events() is empty; else "".
  [[nodiscard]] const std::string& unavailable() const { return unavailable_; }
  // Says why one of the caches has no event although the other has one; else "".
  [[nodiscard]] const std::string& incomplete() const { return incomplete_; }
  [[nodiscard]] const std::vector<CounterEvent>& events() const { return events_; }
  // Returns the counts since construction, in the order of events(). Throws: std::runtime_error.
  [[nodiscard]] std::vector<std::int64_t> read() const;

 private:
  std::vector<CounterEvent> events_;
  std::string unavailable_;
  std::string incomplete_;
  int set_ = -1;  // PAPI's event set
};

// Counts events for each phase of a machine. A phase counts while it is the innermost one, over all
// its entries.
class PhaseCounters final : public Follower {
 public:
  // Follows the machine while it lives. Requires: the counters are available; machine and counters
  // outlive it.
  PhaseCounters(Machine& machine, const Counters& counters);

  // Returns the counts of the phase with this path; zeros if it was not entered. Throws:
  // std::runtime_error if a counter could not be read; std::bad_alloc.
  [[nodiscard]] std::vector<std::int64_t> of(const std::string& path) const;
  // Returns the counts since construction, in phases or not. Throws: as of().
  [[nodiscard]] std::vector<std::int64_t> total() const;

 private:
  void follow(const Event& event) override;

  const Counters& counters_;
  PhasePath phase_;
  std::vector<std::int64_t> start_, last_;
  std::map<std::string, std::vector<std::int64_t>> counts_;
};

// The counts of an event in the two loops of the self-test.
struct SelfTest {
  Index lines = 0;     // read repeatedly in order from a buffer larger than the cache
  Index streamed = 0;  // the event's count for `lines`
  Index touches = 0;   // reads of lines from a buffer that stays in the cache
  Index resident = 0;  // the event's count for `touches`
};
// Returns "" if the event passes the self-test: it counts 0.75 to 1.5 times the streamed lines, and
// at most 1 for 50 touches of resident lines. Else returns the figures.
std::string disbelief(const SelfTest& test);

// Returns PAPI's version, or nullopt in a build without PAPI.
std::optional<std::string> papi_version();

}  // namespace redblue
