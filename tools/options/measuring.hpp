#pragma once
// Measures a run: with the processor's event counters, or by a second run under callgrind.

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/observe/callgrind.hpp"
#include "runtime/report/measurement.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

// Environment variable of the process under callgrind: the size of the simulated cache in bytes.
inline constexpr const char* kInsideCallgrind = "REDBLUE_CALLGRIND_CACHE";

// The process under callgrind failed. Holds its message and its exit code.
struct EndedInside : std::runtime_error {
  EndedInside(const std::string& message, int its_code)
      : std::runtime_error(message), code(its_code) {}
  int code;
};

// Runs the request and reads the events `names`; without names, the lines loaded into caches.
// `caches` are the caches that correspond to several levels of fast memory. Throws: as run();
// std::runtime_error if there are no counters.
Measurement measure_by_papi(const Request& request, const Topology& topology,
                            const std::vector<std::string>& names,
                            const std::vector<CacheLevel>& caches = {});

// Returns the path of valgrind, searched on the PATH.
std::optional<std::filesystem::path> find_valgrind();
inline constexpr const char* kNoValgrind = "valgrind is not installed (apt-get install valgrind)";

// Runs the command under callgrind and returns the measurement. `command` holds the words of
// `redblue measure ... --via callgrind`, starting with "measure". `source` says where the cache
// sizes come from. If the process succeeds with a message, the message is printed again here.
// Throws: EndedInside; std::runtime_error if valgrind is missing or fails.
Measurement measure_by_callgrind(const std::vector<std::string>& command, const Simulation& caches,
                                 const std::string& source);

}  // namespace redblue
