#pragma once
// The simulation of a real cache under a kernel, by Valgrind's callgrind. The same binary runs
// again under valgrind, with the caches of a topology. Only the code between two machine events
// inside a kernel is collected, phase by phase.
//
// The simulated cache is empty when a kernel starts. It is set-associative with least recently
// used replacement, allocates on writes (a line that is written comes in first) and writes back.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/machine.hpp"
#include "runtime/observe/topology.hpp"
#include "runtime/system/subprocess.hpp"
#include "runtime/trace/follower.hpp"
#include "runtime/trace/phase_path.hpp"

namespace redblue {

// The version of the header that this was built with, or nothing. The reason why this binary cannot
// be simulated here, or an empty string.
std::optional<std::string> valgrind_version();
std::string callgrind_unavailable();

// Runs inside the simulation. Dumps the counts of each phase of one kernel and then empties the
// cache, so that every written line is written back. Listens while it lives; does nothing without
// valgrind.
class CallgrindPhases final : public Follower {
 public:
  // `kernel` labels the dumps; `cache_bytes` is the size of the simulated cache.
  CallgrindPhases(Machine& machine, std::string kernel, std::uint64_t cache_bytes);
  ~CallgrindPhases() override;

 private:
  void follow(const Event& event) override;
  void dump(const std::string& phase) const;
  std::string kernel_;
  std::vector<char> other_bytes_;  // enough to empty the cache
  PhasePath phase_;
};

// A cache as valgrind takes it: the number of sets is a power of two.
struct SimulatedCache {
  Index bytes = 0;
  Index ways = 0;
  Index line = 0;

  [[nodiscard]] std::string text() const;  // "32768,8,64"
  friend bool operator==(const SimulatedCache&, const SimulatedCache&) = default;
};
// A cache of the same size. The number of ways differs where the machine's gives no power of two of
// sets; unknown ways are 8, and unknown lines have 64 bytes. Requires: bytes of at least two lines.
SimulatedCache simulated(const Cache& cache);

// The two caches of a simulation. Traffic is that of the outer one, the only one from which
// callgrind writes back. Of the inner one the lines are known that come in.
struct Simulation {
  CacheLevel level = CacheLevel::L1;
  SimulatedCache inner, outer;
  std::optional<CacheLevel> inner_level = {};  // set where the inner one is looked at, too
};
// The cache of that level behind the machine's L1. Where the level is L1, the inner cache is the
// smallest that valgrind allows: two lines. Nothing if the size is unknown.
std::optional<Simulation> simulation(const Topology& topology, CacheLevel level);
// Two caches of the machine. Nothing if a size is unknown.
std::optional<Simulation> simulation(const Topology& topology, CacheLevel inner, CacheLevel outer);

// Callgrind's counts, by kernel and phase. "" is outside of all phases; kLeft has the lines written
// back when the cache was emptied.
inline constexpr std::string_view kLeft = "(left)";
using CallgrindEvents = std::map<std::string, std::int64_t, std::less<>>;  // DLmr, DLdmw, ...
using CallgrindProfile =
    std::map<std::string, std::map<std::string, CallgrindEvents, std::less<>>, std::less<>>;
// Parses the text of a file of several dumps; equal labels are added. Throws: std::runtime_error.
CallgrindProfile parse_callgrind(std::string_view text);

// The words of whole lines that came in, for a read or a write, and that were written back.
struct LineTraffic {
  Index in = 0;
  Index out = 0;
  [[nodiscard]] Index io() const { return in + out; }
};
LineTraffic traffic(const CallgrindEvents& events, Index line);
// The words of whole lines that came into the inner cache, of which a line has so many bytes.
Index inner_traffic(const CallgrindEvents& events, Index line);

struct Simulated {
  Ended program;
  std::string complaint;  // valgrind's last line, if it failed
  std::string version;    // "callgrind-3.19.0"
  CallgrindProfile profile;
};
// Runs a command that uses CallgrindPhases. Throws: std::system_error, std::runtime_error.
Simulated simulate(const std::filesystem::path& valgrind, const Simulation& caches,
                   const std::vector<std::string>& command,
                   const std::vector<std::string>& variables,
                   const std::filesystem::path& temporary);

}  // namespace redblue
