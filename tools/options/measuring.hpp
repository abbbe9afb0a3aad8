#pragma once
// A run that is measured: by the processor's event counters, or again, under callgrind.

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

// That process failed, and said why; with its exit code.
struct EndedInside : std::runtime_error {
  EndedInside(const std::string& message, int its_code)
      : std::runtime_error(message), code(its_code) {}
  int code;
};

// The events of these names, or lines into caches where there are none. Throws: what run() throws,
// std::runtime_error without counters.
Measurement measure_by_papi(const Request& request, const Topology& topology,
                            const std::vector<std::string>& names);

// Along PATH.
std::optional<std::filesystem::path> find_valgrind();
inline constexpr const char* kNoValgrind = "valgrind is not installed (apt-get install valgrind)";

// `command` has the words of `redblue measure ... --via callgrind` from "measure" on: that is what
// runs under callgrind, with none of this process's twins in its environment. `source` says where
// the sizes of the caches come from. What the process says although it succeeds is said here.
// Throws: EndedInside; std::runtime_error without valgrind, or where it fails.
Measurement measure_by_callgrind(const std::vector<std::string>& command, const Simulation& caches,
                                 const std::string& source);

}  // namespace redblue
