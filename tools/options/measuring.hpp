#pragma once
// A run that is measured: by the processor's event counters, or in a second run under callgrind.

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/observe/callgrind.hpp"
#include "runtime/report/measurement.hpp"
#include "runtime/run/run.hpp"

namespace redblue {

// Set for the process that runs under callgrind: the bytes of the simulated cache.
inline constexpr const char* kInsideCallgrind = "REDBLUE_CALLGRIND_CACHE";

// That process failed, with a message and an exit code.
struct EndedInside : std::runtime_error {
  EndedInside(const std::string& message, int its_code)
      : std::runtime_error(message), code(its_code) {}
  int code;
};

// Measures the events of these names; without names, lines into caches. `caches` are those that
// several levels of fast memory stand for. Throws: what run() throws; std::runtime_error without
// counters.
Measurement measure_by_papi(const Request& request, const Topology& topology,
                            const std::vector<std::string>& names,
                            const std::vector<CacheLevel>& caches = {});

// valgrind on the PATH.
std::optional<std::filesystem::path> find_valgrind();
inline constexpr const char* kNoValgrind = "valgrind is not installed (apt-get install valgrind)";

// `command` has the words of `redblue measure ... --via callgrind` from "measure" on. These run
// under callgrind. `source` is the origin of the sizes of the caches. A message of a process that
// succeeds is repeated here. Throws: EndedInside; std::runtime_error without valgrind, or if it
// fails.
Measurement measure_by_callgrind(const std::vector<std::string>& command, const Simulation& caches,
                                 const std::string& source);

}  // namespace redblue
