#include "runtime/observe/counters.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "runtime/system/loaded_library.hpp"

#ifdef REDBLUE_WITH_PAPI
#include <papi.h>
#include <pthread.h>
#endif

namespace redblue {

#ifdef REDBLUE_WITH_PAPI
namespace {

// The functions of PAPI that this file uses.
struct Papi {
  LoadedLibrary library{REDBLUE_PAPI_FILE};
  decltype(PAPI_library_init)* library_init = library["PAPI_library_init"];
  decltype(PAPI_thread_init)* thread_init = library["PAPI_thread_init"];
  decltype(PAPI_strerror)* strerror = library["PAPI_strerror"];
  decltype(PAPI_create_eventset)* create_eventset = library["PAPI_create_eventset"];
  decltype(PAPI_add_named_event)* add_named_event = library["PAPI_add_named_event"];
  decltype(PAPI_num_events)* num_events = library["PAPI_num_events"];
  decltype(PAPI_state)* state = library["PAPI_state"];
  decltype(PAPI_start)* start = library["PAPI_start"];
  decltype(PAPI_read)* read = library["PAPI_read"];
  decltype(PAPI_stop)* stop = library["PAPI_stop"];
  decltype(PAPI_cleanup_eventset)* cleanup_eventset = library["PAPI_cleanup_eventset"];
  decltype(PAPI_destroy_eventset)* destroy_eventset = library["PAPI_destroy_eventset"];
  decltype(PAPI_get_component_info)* component_info = library["PAPI_get_component_info"];
  decltype(PAPI_get_component_index)* component_index = library["PAPI_get_component_index"];
  decltype(PAPI_get_hardware_info)* hardware_info = library["PAPI_get_hardware_info"];
};
const Papi& papi() {
  static const Papi functions;
  return functions;
}

// Events that count the lines that come into a cache. The first one that exists and passes the
// self-test is used.
struct Candidates {
  CacheLevel level;
  std::vector<std::string> names;
  std::uint64_t usual_bytes;  // of the cache, if the topology has no size
};
const std::vector<Candidates>& candidates() {
  static const std::vector<Candidates> all = {
      {CacheLevel::L1, {"PAPI_L1_DCM", "perf::L1-DCACHE-LOAD-MISSES"}, 64 << 10},
      {CacheLevel::L2, {"PAPI_L2_DCM", "PAPI_L2_TCM"}, 2 << 20},
  };
  return all;
}

// Returns the text of a PAPI error, or "" for success.
std::string complaint(int error) {
  return error == PAPI_OK ? "" : papi().strerror(error);
}
class EventSet {
 public:
  EventSet() { papi().create_eventset(&set_); }
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;
  ~EventSet() { destroy(set_); }

  [[nodiscard]] std::string add(const std::string& name) const {
    return complaint(papi().add_named_event(set_, name.c_str()));
  }
  [[nodiscard]] std::string start() const { return complaint(papi().start(set_)); }
  [[nodiscard]] int get() const { return set_; }
  int release() { return std::exchange(set_, PAPI_NULL); }

  static void destroy(int set) {
    if (set == PAPI_NULL) {
      return;
    }
    std::vector<long long> counts(static_cast<std::size_t>(std::max(papi().num_events(set), 0)));
    int state = 0;
    if (papi().state(set, &state) == PAPI_OK && (state & PAPI_RUNNING) != 0) {
      papi().stop(set, counts.data());
    }
    papi().cleanup_eventset(set);
    papi().destroy_eventset(&set);
  }

 private:
  int set_ = PAPI_NULL;
};

std::string start_library() {
  if (!papi().library.problem().empty()) {
    return "PAPI cannot be loaded: " + papi().library.problem();
  }
  const int version = papi().library_init(PAPI_VER_CURRENT);
  if (version != PAPI_VER_CURRENT) {
    return fmt::format("PAPI does not start: {}",
                       version < 0 ? papi().strerror(version) : "it is of another version");
  }
  papi().thread_init(::pthread_self);
  return "";
}

// Returns the reason why the processor's cycles cannot be counted; else "".
std::string why_no_hardware_counters() {
  if (EventSet().add("perf::CYCLES").empty()) {
    return "";
  }
  const PAPI_component_info_t* perf = papi().component_info(papi().component_index("perf_event"));
  int paranoid = 0;
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid;
  const PAPI_hw_info_t* hardware = papi().hardware_info();
  if (perf == nullptr) {
    return "PAPI was built without perf_event";
  }
  if (perf->disabled != PAPI_OK) {
    return fmt::format("PAPI's perf_event is off: {} (perf_event_paranoid is {})",
                       perf->disabled_reason, paranoid);
  }
  if (paranoid > 2) {
    return fmt::format("perf_event_paranoid is {}: that allows no counters", paranoid);
  }
  if (hardware != nullptr && hardware->virtualized != 0) {
    return fmt::format("this virtual machine ({}) offers no hardware counters",
                       hardware->virtual_vendor_string);
  }
  return "PAPI finds no hardware counters in this processor";
}

// Reads one byte of each line of a buffer with this size. A first pass is not counted. Returns the
// number of lines touched and the count of the running event.
std::pair<Index, Index> count_reads(int set, std::uint64_t bytes, Index line, int passes) {
  const std::vector<char> buffer(bytes, 1);
  const volatile char* const at = buffer.data();
  const auto lines = static_cast<Index>(bytes) / line;
  const auto pass = [&] {
    for (Index i = 0; i < lines; ++i) {
      static_cast<void>(at[i * line]);
    }
  };
  pass();
  long long before = 0;
  long long after = 0;
  papi().read(set, &before);
  for (int i = 0; i < passes; ++i) {
    pass();
  }
  papi().read(set, &after);
  return {passes * lines, after - before};
}

// Returns "" if the event exists and counts the lines into that cache; else the problem.
std::string try_event(const std::string& name, const Candidates& cache, const Topology& topology) {
  const EventSet alone;
  std::string problem = alone.add(name);
  if (problem.empty()) {
    problem = alone.start();
  }
  if (!problem.empty()) {
    return problem;
  }
  const Cache* known = topology.cache(cache.level);
  const std::uint64_t bytes = known != nullptr ? known->bytes : cache.usual_bytes;
  const Index line = known != nullptr ? known->line.value_or(64) : 64;
  SelfTest test;
  std::tie(test.lines, test.streamed) = count_reads(alone.get(), 8 * bytes, line, 4);
  std::tie(test.touches, test.resident) = count_reads(alone.get(), bytes / 4, line, 16);
  return disbelief(test);
}

}  // namespace

Counters::Counters(const Topology& topology, const std::vector<std::string>& names) {
  unavailable_ = start_library();
  if (!unavailable_.empty()) {
    return;
  }
  EventSet set;
  const auto keep = [&](const std::string& name, std::optional<CacheLevel> level) {
    std::string problem = set.add(name);
    if (problem.empty()) {
      events_.push_back({name, level});
    }
    return problem;
  };
  for (const std::string& name : names) {
    std::string problem;
    std::optional<CacheLevel> level;
    for (const Candidates& cache : candidates()) {
      if (std::ranges::find(cache.names, name) != cache.names.end()) {
        level = cache.level;
        problem = try_event(name, cache, topology);
      }
    }
    problem = problem.empty() ? keep(name, level) : problem;
    if (!problem.empty()) {
      const std::string why = why_no_hardware_counters();
      unavailable_ =
          fmt::format("{}: {}{}", name, problem, why.empty() ? "" : fmt::format(" ({})", why));
      break;
    }
  }
  std::string problems;
  for (const Candidates& cache : names.empty() ? candidates() : std::vector<Candidates>()) {
    bool found = false;
    for (const std::string& name : cache.names) {
      std::string problem = try_event(name, cache, topology);
      problem = problem.empty() ? keep(name, cache.level) : problem;
      if (problem.empty()) {
        found = true;
        break;
      }
      problems += fmt::format("{}{}: {}", problems.empty() ? "" : "; ", name, problem);
    }
    if (!found) {
      incomplete_ = problems;
    }
  }
  if (unavailable_.empty() && events_.empty()) {
    const std::string why = why_no_hardware_counters();
    unavailable_ = why.empty() ? problems : why;
  }
  if (unavailable_.empty()) {
    unavailable_ = set.start();
  }
  if (unavailable_.empty()) {
    set_ = set.release();
  } else {
    events_.clear();
    incomplete_.clear();
  }
}

Counters::~Counters() {
  EventSet::destroy(set_);
}

std::vector<std::int64_t> Counters::read() const {
  if (!unavailable_.empty()) {
    throw std::runtime_error(unavailable_);
  }
  std::vector<long long> counts(events_.size());
  if (const std::string problem = complaint(papi().read(set_, counts.data())); !problem.empty()) {
    throw std::runtime_error("PAPI cannot read its counters: " + problem);
  }
  return {counts.begin(), counts.end()};
}

std::optional<std::string> papi_version() {
  return fmt::format("{}.{}.{}", PAPI_VERSION_MAJOR(PAPI_VERSION), PAPI_VERSION_MINOR(PAPI_VERSION),
                     PAPI_VERSION_REVISION(PAPI_VERSION));
}

#else

Counters::Counters(const Topology&, const std::vector<std::string>&)
    : unavailable_("built without PAPI") {}

Counters::~Counters() = default;

std::vector<std::int64_t> Counters::read() const {
  throw std::runtime_error(unavailable_);
}

std::optional<std::string> papi_version() {
  return std::nullopt;
}

#endif

namespace {

void add_difference(std::vector<std::int64_t>& to, const std::vector<std::int64_t>& a,
                    const std::vector<std::int64_t>& b) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] += a[i] - b[i];
  }
}

}  // namespace

std::string disbelief(const SelfTest& test) {
  if (4 * test.streamed < 3 * test.lines || 2 * test.streamed > 3 * test.lines) {
    return fmt::format(
        "not believed: for {} lines read in order from a buffer larger than the cache it "
        "counted {}, expected {} to {}",
        test.lines, test.streamed, 3 * test.lines / 4, 3 * test.lines / 2);
  }
  if (50 * test.resident > test.touches) {
    return fmt::format(
        "not believed: for {} touches of lines that stay in the cache it counted {}, expected "
        "at most {}",
        test.touches, test.resident, test.touches / 50);
  }
  return "";
}

PhaseCounters::PhaseCounters(Machine& machine, const Counters& counters)
    : Follower(machine), counters_(counters), start_(counters.read()), last_(start_) {}

std::vector<std::int64_t> PhaseCounters::of(const std::string& path) const {
  check();
  const auto found = counts_.find(path);
  return found == counts_.end() ? std::vector<std::int64_t>(start_.size()) : found->second;
}

std::vector<std::int64_t> PhaseCounters::total() const {
  std::vector<std::int64_t> sum(start_.size());
  add_difference(sum, counters_.read(), start_);
  return sum;
}

void PhaseCounters::follow(const Event& event) {
  if (!PhasePath::changes(event)) {
    return;
  }
  const std::vector<std::int64_t> now = counters_.read();
  std::vector<std::int64_t>& counts = counts_[phase_.path()];
  counts.resize(now.size());
  add_difference(counts, now, last_);
  phase_.follow(event);
  last_ = counters_.read();  // do not count the listener's own work
}

}  // namespace redblue
