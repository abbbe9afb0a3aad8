// redblue info: the features of this build and of the machine.

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/counters.hpp"
#include "runtime/observe/machine_file.hpp"
#include "runtime/report/context.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/system/memory.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/simd.hpp"

namespace redblue {
namespace {

// An optional part of the build.
struct BuildPart {
  const char* name;
  const char* option;
  std::optional<std::string> version;
};
// Returns the version of the MPI standard that redblue-mpi was built with.
std::optional<std::string> mpi_version() {
  const std::string version(build_info::kMpi);
  return version.empty() ? std::nullopt : std::optional(version);
}
std::vector<BuildPart> parts() {
  return {{"hwloc", "REDBLUE_WITH_HWLOC", hwloc_version()},
          {"papi", "REDBLUE_WITH_PAPI", papi_version()},
          {"valgrind", "REDBLUE_WITH_VALGRIND", valgrind_version()},
          {"mpi", "REDBLUE_WITH_MPI", mpi_version()}};
}

// Returns "512.0 KiB, lines of 64 bytes, 8 ways, 2 of them, each for 1 core". If caches differ,
// describes the first.
std::string words(const std::vector<Cache>& caches) {
  if (caches.empty()) {
    return "unknown";
  }
  const Cache& first = caches.front();
  std::string text = format_bytes(first.bytes);
  text += first.line ? fmt::format(", lines of {} bytes", *first.line) : "";
  text += first.ways ? fmt::format(", {} ways", *first.ways) : "";
  std::size_t alike = 0;
  for (const Cache& cache : caches) {
    alike += cache.bytes == first.bytes && cache.cores.size() == first.cores.size() ? 1U : 0U;
  }
  if (!first.cores.empty()) {
    text += fmt::format(", {} of them, each for {} core{}", alike, first.cores.size(),
                        first.cores.size() == 1 ? "" : "s");
  }
  return text + (alike < caches.size() ? "; others differ (--format json)" : "");
}

// Facts as members of JSON and as lines of text. Either form may be left out.
class Facts {
 public:
  void add(std::string_view key, const CellValue& value, std::string_view title,
           std::string_view text) {
    of.fact(key, value);
    if (!title.empty()) {
      of.say("{:<16}  {}", title, text);
    }
  }
  Description of;
};

void add_topology(Facts& facts, const Topology& topology) {
  if (!topology.unavailable.empty()) {
    facts.add("topology.unavailable", topology.unavailable, "topology",
              "unavailable: " + topology.unavailable);
    return;
  }
  const bool cores = !topology.cores.empty(), pins = topology.unpinnable.empty();
  facts.of.fact("topology.this_system", topology.this_system);
  facts.of.fact("topology.units", cores ? Json(topology.units()) : Json());
  facts.of.fact("topology.caches", caches_json(topology));
  facts.add("topology.source", topology.source, "topology", topology.source);
  facts.add("topology.model", topology.model, "processor", topology.model.value_or("unknown"));
  facts.add(
      "topology.cores", cores ? Json(topology.cores.size()) : Json(), "cores",
      cores ? fmt::format("{}, with {} processing units", topology.cores.size(), topology.units())
            : "unknown");
  facts.add("topology.pinning", pins ? "available" : topology.unpinnable, "pinning",
            pins ? "available" : "no: " + topology.unpinnable);
  for (const CacheLevel level : kCacheLevels) {
    facts.of.say("{:<16}  {}", to_string(level),
                 words(topology.caches[static_cast<std::size_t>(level)]));
  }
}

void add_counters(Facts& facts, const Counters& counters) {
  if (!counters.unavailable().empty()) {
    facts.add("counters.unavailable", counters.unavailable(), "counters",
              "unavailable: " + counters.unavailable());
    return;
  }
  std::vector<std::string> events;
  std::ranges::transform(counters.events(), std::back_inserter(events), &CounterEvent::name);
  const std::string text = fmt::format("{}", fmt::join(events, ", "));
  const std::string& incomplete = counters.incomplete();
  facts.of.fact(incomplete.empty() ? "" : "counters.incomplete", incomplete);
  facts.add("counters.events", events, "counters",
            incomplete.empty() ? text : text + "; without " + incomplete);
}

Description info(const Topology& topology, const Counters& counters) {
  Facts facts;
  facts.of.fact("schema", 1);
  facts.add("redblue", build_info::kVersion, "redblue", build_info::kVersion);
  facts.of.fact("build_type", build_info::kBuildType);
  facts.add("compiler", build_info::kCompiler, "compiler",
            fmt::format("{}, {}", build_info::kCompiler, build_info::kBuildType));
  facts.add("system", build_info::kSystem, "system", build_info::kSystem);
  facts.add("word", "float32", "word", "float32, 4 bytes");
  facts.add("kernels", all_kernel_names().size(), "kernels",
            std::to_string(all_kernel_names().size()));
  facts.add("memory_available_bytes", memory_available(), "memory available",
            format_bytes(memory_available()));
  facts.add("simd", Json{{"in_use", simd_target()}, {"available", simd_targets()}}, "simd",
            fmt::format("{}, of {}", simd_target(), fmt::join(simd_targets(), ", ")));
  add_topology(facts, topology);
  add_counters(facts, counters);
  for (const BuildPart& part : parts()) {
    const std::string without = fmt::format("built with {}=OFF", part.option);
    facts.add(fmt::format("parts.{}", part.name),
              part.version ? Json{{"version", *part.version}} : Json{{"unavailable", without}},
              part.name, part.version.value_or("no: " + without));
  }
  return facts.of;
}

}  // namespace

Action add_info(CLI::App& app) {
  const auto format = std::make_shared<TextOption>(
      app, "--format", "output format (default: table)", "table|json|csv");
  const auto simd = std::make_shared<SimdOption>(app);
  return [format, simd] {
    const Format chosen = parse_format(*format);
    simd->apply();
    const Topology topology = machine_topology();
    const Counters counters = machine_counters(topology, counter_names());
    const Description of = info(topology, counters);
    const auto text = [&] { return to_table(of); };
    print(chosen, text, text, [&] { return json_of(of).document(); });
    return 0;
  };
}

}  // namespace redblue
