#include "runtime/observe/callgrind.hpp"

#include <bit>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "memsim/sanitized.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/printable.hpp"

#ifdef REDBLUE_WITH_VALGRIND
#include <valgrind/callgrind.h>
#endif
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace redblue {
namespace {

// Returns whether the processor hides the instruction RDTSCP. Highway's library executes it when it
// is loaded, without asking the processor. Valgrind refuses instructions that the processor does
// not report.
bool hides_rdtscp() {
#ifdef __x86_64__
  constexpr unsigned kExtended = 0x80000001, kRdtscp = 1U << 27U;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(kExtended, &eax, &ebx, &ecx, &edx) == 0 || (edx & kRdtscp) == 0;
#else
  return false;
#endif
}

}  // namespace

#ifdef REDBLUE_WITH_VALGRIND
namespace {

// The simulated cache is empty when instrumentation starts.
void start() {
  CALLGRIND_START_INSTRUMENTATION;
}
void stop() {
  CALLGRIND_STOP_INSTRUMENTATION;
}
void toggle() {
  CALLGRIND_TOGGLE_COLLECT;
}
void dump_as(const char* label) {
  CALLGRIND_DUMP_STATS_AT(label);
}

}  // namespace

std::optional<std::string> valgrind_version() {
  return fmt::format("{}.{}", __VALGRIND_MAJOR__, __VALGRIND_MINOR__);
}
#else
namespace {

void start() {}
void stop() {}
void toggle() {}
void dump_as(const char*) {}

}  // namespace

std::optional<std::string> valgrind_version() {
  return std::nullopt;
}
#endif

std::string callgrind_unavailable() {
  if (kSanitized) {
    return "valgrind cannot run a binary with a sanitizer";
  }
  if (!valgrind_version()) {
    return "built without valgrind";
  }
  return hides_rdtscp()
             ? "valgrind cannot load Highway's library on a processor that hides RDTSCP, "
               "as that of this virtual machine does"
             : "";
}

CallgrindPhases::CallgrindPhases(Machine& machine, std::string kernel, std::uint64_t cache_bytes)
    : Follower(machine), kernel_(std::move(kernel)), other_bytes_(2 * cache_bytes, 1) {
  start();
}

CallgrindPhases::~CallgrindPhases() {
  toggle();
  attempt([&] { dump(phase_.path()); });
  toggle();
  // With least-recently-used replacement these lines replace all others.
  constexpr std::size_t kShortestLine = 16;
  const volatile char* const at = other_bytes_.data();
  for (std::size_t i = 0; i < other_bytes_.size(); i += kShortestLine) {
    static_cast<void>(at[i]);
  }
  attempt([&] { dump(std::string(kLeft)); });
  stop();
}

void CallgrindPhases::follow(const Event& event) {
  if (PhasePath::changes(event)) {
    toggle();  // do not count the listener's own work
    dump(phase_.path());
    phase_.follow(event);
    toggle();
  }
}

void CallgrindPhases::dump(const std::string& phase) const {
  dump_as((kernel_ + '\t' + phase).c_str());
}

std::string SimulatedCache::text() const {
  return fmt::format("{},{},{}", bytes, ways, line);
}

SimulatedCache simulated(const Cache& cache) {
  const Index line = cache.line.value_or(64);
  const auto bytes = static_cast<Index>(cache.bytes);
  const Index lines = bytes / line;
  const Index ways = std::clamp(cache.ways.value_or(8), Index{1}, lines);
  // The largest power of two that divides the lines and is not more than the machine's number of
  // sets.
  auto sets = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(lines / ways)));
  while (lines % sets != 0) {
    sets /= 2;
  }
  return {lines * line, lines / sets, line};
}

std::optional<Simulation> simulation(const Topology& topology, CacheLevel level) {
  const Cache* outer = topology.cache(level);
  if (outer == nullptr) {
    return std::nullopt;
  }
  Simulation caches{.level = level, .inner = {}, .outer = simulated(*outer)};
  const Cache* inner = level == CacheLevel::L1 ? nullptr : topology.cache(CacheLevel::L1);
  caches.inner = inner != nullptr ? simulated(*inner)
                                  : SimulatedCache{2 * caches.outer.line, 2, caches.outer.line};
  return caches;
}

std::optional<Simulation> simulation(const Topology& topology, CacheLevel inner, CacheLevel outer) {
  std::optional<Simulation> caches = simulation(topology, outer);
  const Cache* cache = topology.cache(inner);
  if (!caches || cache == nullptr) {
    return std::nullopt;
  }
  caches->inner = simulated(*cache);
  caches->inner_level = inner;
  return caches;
}

CallgrindProfile parse_callgrind(std::string_view text) {
  CallgrindProfile profile;
  std::vector<std::string> names;
  std::string kernel;
  std::string phase;
  constexpr std::string_view kTrigger = "desc: Trigger: Client Request: ";
  constexpr std::string_view kEvents = "events: ";
  constexpr std::string_view kTotals = "totals: ";
  constexpr std::int64_t kMost = std::int64_t{1} << 50;  // times a line's bytes it still fits
  std::istringstream lines{std::string(text)};
  bool labelled = false;
  bool any = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("part: ")) {
      labelled = false;
    } else if (line.starts_with(kTrigger)) {
      const std::string label = line.substr(kTrigger.size());
      const std::size_t tab = std::min(label.find('\t'), label.size());
      kernel = label.substr(0, tab);
      phase = tab < label.size() ? label.substr(tab + 1) : "";
      labelled = true;
    } else if (line.starts_with(kEvents)) {
      std::istringstream words(line.substr(kEvents.size()));
      names.assign(std::istream_iterator<std::string>(words), {});
    } else if (line.starts_with(kTotals) && labelled) {
      // Callgrind omits trailing zeros.
      CallgrindEvents& events = profile[kernel][phase];
      std::istringstream words(line.substr(kTotals.size()));
      for (const std::string& name : names) {
        std::int64_t& sum = events[name];
        std::int64_t count = 0;
        if (!(words >> std::ws).eof() && (!(words >> count) || count < 0 || count > kMost - sum)) {
          throw std::runtime_error("callgrind has no count where one is expected: " +
                                   shortened(line));
        }
        sum += count;
      }
      if (std::string more; words >> more) {
        throw std::runtime_error("callgrind has more counts than events: " + shortened(line));
      }
      any = true;
    }
  }
  if (!any) {
    throw std::runtime_error("callgrind dumped nothing");
  }
  return profile;
}

namespace {

Index words_of(const CallgrindEvents& events, Index line,
               std::initializer_list<std::string_view> names) {
  Index sum = 0;
  for (const std::string_view name : names) {
    const auto found = events.find(name);
    if (found == events.end()) {
      throw std::runtime_error(fmt::format("callgrind has no event {}", name));
    }
    sum += found->second * line / Index{sizeof(float)};
  }
  return sum;
}

}  // namespace

LineTraffic traffic(const CallgrindEvents& events, Index line) {
  // m: misses. dm: misses that evict a modified line. For instructions only dm counts, because the
  // evicted line is data.
  return {words_of(events, line, {"DLmr", "DLmw"}),
          words_of(events, line, {"ILdmr", "DLdmr", "DLdmw"})};
}

Index inner_traffic(const CallgrindEvents& events, Index line) {
  return words_of(events, line, {"D1mr", "D1mw"});
}

Simulated simulate(const std::filesystem::path& valgrind, const Simulation& caches,
                   const std::vector<std::string>& command,
                   const std::vector<std::string>& variables,
                   const std::filesystem::path& temporary) {
  const ScratchDirectory scratch(temporary);
  const std::filesystem::path profile = scratch.path() / "profile";
  const std::filesystem::path log = scratch.path() / "log";
  std::vector<std::string> words = {
      valgrind.string(),
      "--command-line-only=yes",  // ignores every .valgrindrc
      "--vgdb=no",                // leaves no pipes
      "--quiet",
      "--log-file=" + log.string(),
      "--tool=callgrind",
      "--callgrind-out-file=" + profile.string(),
      "--combine-dumps=yes",
      "--dump-line=no",
      "--instr-atstart=no",
      "--cache-sim=yes",
      "--simulate-wb=yes",
      "--D1=" + caches.inner.text(),
      "--LL=" + caches.outer.text(),
  };
  words.insert(words.end(), command.begin(), command.end());
  Simulated result;
  result.program = run_program(words, variables, scratch.path());
  if (result.program.code == 0 && result.program.signal == 0) {
    const std::string text = content_if_any(profile);
    result.profile = parse_callgrind(text);
    constexpr std::string_view kCreator = "creator: ";
    if (const std::size_t at = text.find(kCreator); at != std::string::npos) {
      const std::size_t from = at + kCreator.size();
      result.version = text.substr(from, text.find('\n', from) - from);
    }
  } else {
    std::istringstream lines(content_if_any(log) + result.program.err);
    for (std::string line; std::getline(lines, line);) {
      result.complaint = line.empty() ? result.complaint : line;
    }
  }
  return result;
}

}  // namespace redblue
