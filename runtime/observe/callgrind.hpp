#pragma once
// Simulates a real cache under a kernel, with Valgrind's callgrind. The same binary runs again
// under valgrind, with the caches of a topology. Only code between two machine events inside a
// kernel is counted, by phase.
//
// The simulated cache is empty when a kernel starts. It is set-associative with least-recently-used
// replacement. It allocates on writes (a write miss reads the line first) and writes back.

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

// valgrind_version() returns the version of the valgrind header in this build, or nullopt.
// callgrind_unavailable() returns the reason why this binary cannot be simulated here, or "".
std::optional<std::string> valgrind_version();
std::string callgrind_unavailable();

// Runs inside the simulation and follows one machine while it lives. It dumps the counts of each
// phase of one kernel. At the end it empties the cache, so that every modified line is written
// back. Has no effect without valgrind.
class CallgrindPhases final : public Follower {
 public:
  // `kernel` labels the dumps. `cache_bytes` is the size of the simulated cache.
  CallgrindPhases(Machine& machine, std::string kernel, std::uint64_t cache_bytes);
  ~CallgrindPhases() override;

 private:
  void follow(const Event& event) override;
  void dump(const std::string& phase) const;
  std::string kernel_;
  std::vector<char> other_bytes_;  // enough to empty the cache
  PhasePath phase_;
};

// A cache in the form that valgrind accepts: the number of sets is a power of two.
struct SimulatedCache {
  Index bytes = 0;
  Index ways = 0;
  Index line = 0;

  [[nodiscard]] std::string text() const;  // "32768,8,64"
  friend bool operator==(const SimulatedCache&, const SimulatedCache&) = default;
};
// Returns a simulated cache of the same size. If the machine's number of sets is not a power of
// two, the number of ways is changed. Unknown ways become 8, and unknown lines 64 bytes. Requires:
// bytes of at least two lines.
SimulatedCache simulated(const Cache& cache);

// The two caches of a simulation. Callgrind writes back only from the outer cache, and traffic()
// measures that one. For the inner cache only incoming lines are known.
struct Simulation {
  CacheLevel level = CacheLevel::L1;
  SimulatedCache inner, outer;
  std::optional<CacheLevel> inner_level = {};  // set if the inner cache is reported, too
};
// Returns the cache of that level behind the machine's L1. If the level is L1, the inner cache is
// the smallest that valgrind allows, with two lines. Returns nullopt if the size is unknown.
std::optional<Simulation> simulation(const Topology& topology, CacheLevel level);
// Returns two caches of the machine, or nullopt if a size is unknown.
std::optional<Simulation> simulation(const Topology& topology, CacheLevel inner, CacheLevel outer);

// Callgrind's counts by kernel and phase. Phase "" is outside all phases. Phase kLeft has the lines
// that were written back when the cache was emptied.
inline constexpr std::string_view kLeft = "(left)";
using CallgrindEvents = std::map<std::string, std::int64_t, std::less<>>;  // DLmr, DLdmw, ...
using CallgrindProfile =
    std::map<std::string, std::map<std::string, CallgrindEvents, std::less<>>, std::less<>>;
// Parses the text of a file with several dumps. Counts of equal labels are added. Throws:
// std::runtime_error.
CallgrindProfile parse_callgrind(std::string_view text);

// The words of all lines that came into the outer cache by a read or a write (`in`), and that were
// written back (`out`).
struct LineTraffic {
  Index in = 0;
  Index out = 0;
  [[nodiscard]] Index io() const { return in + out; }
};
LineTraffic traffic(const CallgrindEvents& events, Index line);
// Returns the words of all lines that came into the inner cache. `line` is the bytes of one line.
Index inner_traffic(const CallgrindEvents& events, Index line);

struct Simulated {
  Ended program;
  std::string complaint;  // valgrind's last line, if it failed
  std::string version;    // "callgrind-3.19.0"
  CallgrindProfile profile;
};
// Runs a command that uses CallgrindPhases under valgrind. Throws: std::system_error,
// std::runtime_error.
Simulated simulate(const std::filesystem::path& valgrind, const Simulation& caches,
                   const std::vector<std::string>& command,
                   const std::vector<std::string>& variables,
                   const std::filesystem::path& temporary);

}  // namespace redblue
