// redblue measure: compares the counted words of a run with the traffic of a cache. The traffic
// comes from event counters, or from a cache simulated by callgrind. With several levels of fast
// memory, each level corresponds to one cache.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/observe/callgrind.hpp"
#include "runtime/report/measurement.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/environment.hpp"
#include "runtime/text/sizes.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/measuring.hpp"
#include "tools/options/problem.hpp"
#include "tools/options/simd.hpp"

namespace redblue {
namespace {

// Returns the cache that corresponds to M: the cache that M is given as a share of, or the smallest
// cache that holds M.
CacheLevel level_of(const Request& request, const Topology& topology,
                    const std::optional<Given>& given) {
  if (given) {
    for (const CacheLevel level : kCacheLevels) {
      if (given->text == to_string(level)) {
        return level;
      }
    }
    throw UsageError(fmt::format("{} '{}': expected L1, L2 or L3", given->from, given->text));
  }
  if (request.M_from) {
    return request.M_from->part.level;
  }
  for (const CacheLevel level : kCacheLevels) {
    const Cache* cache = topology.cache(level);
    if (cache != nullptr && static_cast<std::uint64_t>(request.M) <= cache->bytes / sizeof(float)) {
      return level;
    }
  }
  throw UsageError(
      fmt::format("--level is missing: no cache that is known here holds M = {} words", request.M));
}

// Returns the caches that correspond to several levels, from the innermost out. Each is the cache
// that the level is given as a share of, or the smallest cache that holds it. Each cache lies
// outside the previous one.
std::vector<CacheLevel> caches_of(const Request& request, const Topology& topology) {
  std::vector<CacheLevel> caches;
  const auto put = [&](Index M, const FastMemoryOrigin* from) {
    for (const CacheLevel level : kCacheLevels) {
      const Cache* cache = topology.cache(level);
      const bool meant = from != nullptr ? from->part.level == level
                                         : cache != nullptr && static_cast<std::uint64_t>(M) <=
                                                                   cache->bytes / sizeof(float);
      if (meant && (caches.empty() || caches.back() < level)) {
        caches.push_back(level);
        return;
      }
    }
    throw UsageError(fmt::format(
        "{}: level {} of M = {} words has no cache, outside those of the levels before, that is "
        "known here and holds it: give a size for each cache, such as L1*0.5,L2*0.5",
        request.said("M"), caches.size() + 1, M));
  };
  const bool all_from = request.inner_from.size() == request.inner.size();
  for (std::size_t level = 0; level < request.inner.size(); ++level) {
    put(request.inner[level], all_from ? &request.inner_from[level] : nullptr);
  }
  put(request.M, request.M_from ? &*request.M_from : nullptr);
  return caches;
}

// Returns the caches to simulate for the levels of the request.
Simulation simulation_for(const Request& request, const Topology& topology,
                          const std::optional<Given>& given_level) {
  if (request.inner.empty()) {
    const CacheLevel level = level_of(request, topology, given_level);
    if (const auto caches = simulation(topology, level)) {
      return *caches;
    }
    throw UsageError(fmt::format("{} {}: its size is not known here ({})",
                                 given_level ? given_level->from : "--level", to_string(level),
                                 topology.source));
  }
  if (request.inner.size() > 1) {
    throw UsageError(fmt::format("{}: callgrind simulates two caches: give it two levels at most",
                                 request.said("M")));
  }
  const std::vector<CacheLevel> levels = caches_of(request, topology);
  if (const auto caches = simulation(topology, levels.front(), levels.back())) {
    return *caches;
  }
  throw UsageError(fmt::format("{}: the sizes of {} and {} are not known here ({})",
                               request.said("M"), to_string(levels.front()),
                               to_string(levels.back()), topology.source));
}

// Returns the sizes of all levels, in the form of --M.
std::string sizes_of(const Request& request) {
  std::string sizes;
  for (const Index M : request.inner) {
    sizes += std::to_string(M) + ",";
  }
  return sizes + std::to_string(request.M);
}

// Measures by callgrind. `app` holds the words that were typed. The child receives the M found
// here, because only this process can look up a cache or a calibration.
int by_callgrind(const CLI::App& app, const Request& request,
                 const std::optional<Given>& given_level, Format format) {
  if (const std::string why = callgrind_unavailable(); !why.empty()) {
    throw std::runtime_error("callgrind is unavailable: " + why);
  }
  const Topology topology = machine_topology();
  if (!topology.unavailable.empty()) {
    throw std::runtime_error("callgrind is unavailable: which cache to simulate is not known: " +
                             topology.unavailable);
  }
  const Simulation caches = simulation_for(request, topology, given_level);
  try {
    Measurement measurement = measure_by_callgrind(command_words(app, {{"--M", sizes_of(request)}}),
                                                   caches, topology.source);
    measurement.inner_from = request.inner_from;
    measurement.M_from = request.M_from;
    print(measurement, format);
    return 0;
  } catch (const EndedInside& ended) {
    say(ended.what());
    return ended.code;
  }
}

// Runs the kernel in the child, under callgrind: dumps each phase and prints the document.
int inside_callgrind(const Request& request, const char* cache_bytes) {
  const auto bytes = static_cast<std::uint64_t>(parse_size(cache_bytes, kInsideCallgrind));
  const RunHook dumped = [bytes](Machine& machine, const Plan& plan, const auto& work) {
    const CallgrindPhases phases(machine, spelled(plan), bytes);
    work();
    phases.check();
  };
  const Report report =
      run(request, Topology(), {.kernel = dumped, .forward = dumped, .peak_gflops = false});
  print(report, Format::json);
  return 0;
}

}  // namespace

Action add_measure(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command, kOperandKeys),
          via(command, "--via", "hardware counters or a simulated cache (default: papi)",
              "papi|callgrind"),
          level(command, "--level", "cache that callgrind simulates (default: the cache of --M)",
                "L1|L2|L3"),
          simd(command),
          format(command, "--format", "output format (default: table)", "table|json|csv") {}
    ProblemOptions problem;
    TextOption via, level;
    SimdOption simd;
    TextOption format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options, &app] {
    Request request;
    options->problem.fill(request);
    const Format format = parse_format(options->format);
    const auto via = options->via.get();
    const auto level = options->level.get();
    options->simd.apply();
    if (via && via->text != "papi" && via->text != "callgrind") {
      throw UsageError(fmt::format("{} '{}': expected papi or callgrind", via->from, via->text));
    }
    // Counters and simulation see one thread on a machine without other threads.
    if (request.threads > 1) {
      throw UsageError(request.said("threads") + ": a measurement has one");
    }
    if (level && !request.inner.empty()) {
      throw UsageError(fmt::format("{} beside several levels of {}: these say which caches",
                                   level->from, request.said("M")));
    }
    if (!via || via->text == "papi") {
      if (level) {
        throw UsageError(level->from + " is for --via callgrind");
      }
      const Topology topology = machine_topology();
      print(measure_by_papi(
                request, topology, counter_names(),
                request.inner.empty() ? std::vector<CacheLevel>() : caches_of(request, topology)),
            format);
      return 0;
    }
    const char* inside = variable(kInsideCallgrind);
    return inside == nullptr ? by_callgrind(app, request, level, format)
                             : inside_callgrind(request, inside);
  };
}

}  // namespace redblue
