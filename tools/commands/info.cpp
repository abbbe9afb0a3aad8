// redblue info: the properties of this binary, and what the machine offers it.

#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/kernel.hpp"
#include "runtime/observe/callgrind.hpp"
#include "runtime/observe/counters.hpp"
#include "runtime/report/context.hpp"
#include "runtime/system/build_info.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/text/table.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/machine.hpp"
#include "tools/options/simd.hpp"

namespace redblue {
namespace {

// A part of the build that may be switched off.
struct BuildPart {
  const char* name;
  const char* option;
  std::optional<std::string> version;
};
// The version of the standard that redblue-mpi is built for.
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

Json topology_json(const Topology& topology) {
  if (!topology.unavailable.empty()) {
    return {{"unavailable", topology.unavailable}};
  }
  const bool cores = !topology.cores.empty();
  return {{"source", topology.source},
          {"this_system", topology.this_system},
          {"model", topology.model},
          {"cores", cores ? Json(topology.cores.size()) : Json()},
          {"units", cores ? Json(topology.units()) : Json()},
          {"pinning", topology.unpinnable.empty() ? "available" : topology.unpinnable},
          {"caches", caches_json(topology)}};
}

Json counters_json(const Counters& counters) {
  if (!counters.unavailable().empty()) {
    return {{"unavailable", counters.unavailable()}};
  }
  Json events = Json::array();
  for (const CounterEvent& event : counters.events()) {
    events.push_back(event.name);
  }
  Json json = {{"events", std::move(events)}};
  if (!counters.incomplete().empty()) {
    json["incomplete"] = counters.incomplete();
  }
  return json;
}

std::string info_json(const Topology& topology, const Counters& counters) {
  Json json = {{"schema", 1},
               {"redblue", build_info::kVersion},
               {"compiler", build_info::kCompiler},
               {"build_type", build_info::kBuildType},
               {"system", build_info::kSystem},
               {"word", "float32"},
               {"kernels", all_kernel_names().size()},
               {"simd", {{"in_use", simd_target()}, {"available", simd_targets()}}},
               {"memory_available_bytes", memory_available()},
               {"topology", topology_json(topology)},
               {"counters", counters_json(counters)}};
  for (const BuildPart& part : parts()) {
    json["parts"][part.name] =
        part.version ? Json{{"version", *part.version}}
                     : Json{{"unavailable", fmt::format("built with {}=OFF", part.option)}};
  }
  return json.document();
}

// "512.0 KiB, lines of 64 bytes, 8 ways, 2 of them, each for 1 core". Of unlike caches the first.
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

std::string info_text(const Topology& topology, const Counters& counters) {
  std::string text = fmt::format(
      "redblue           {}\ncompiler          {}, {}\nsystem            {}\n"
      "word              float32, 4 bytes\nkernels           {}\nmemory available  {}\n",
      build_info::kVersion, build_info::kCompiler, build_info::kBuildType, build_info::kSystem,
      all_kernel_names().size(), format_bytes(memory_available()));
  const auto line = [&](std::string_view name, std::string_view what) {
    text += fmt::format("{:<16}  {}\n", name, what);
  };
  line("simd", fmt::format("{}, of {}", simd_target(), fmt::join(simd_targets(), ", ")));
  if (!topology.unavailable.empty()) {
    line("topology", "unavailable: " + topology.unavailable);
  } else {
    line("topology", topology.source);
    line("processor", topology.model.value_or("unknown"));
    line("cores", topology.cores.empty() ? "unknown"
                                         : fmt::format("{}, with {} processing units",
                                                       topology.cores.size(), topology.units()));
    line("pinning", topology.unpinnable.empty() ? "available" : "no: " + topology.unpinnable);
    for (const CacheLevel level : kCacheLevels) {
      line(to_string(level), words(topology.caches[static_cast<std::size_t>(level)]));
    }
  }
  std::string events;
  for (const CounterEvent& event : counters.events()) {
    events += (events.empty() ? "" : ", ") + event.name;
  }
  line("counters", !counters.unavailable().empty() ? "unavailable: " + counters.unavailable()
                   : counters.incomplete().empty() ? events
                                                   : events + "; without " + counters.incomplete());
  for (const BuildPart& part : parts()) {
    line(part.name, part.version.value_or(fmt::format("no: built with {}=OFF", part.option)));
  }
  return text;
}

}  // namespace

Action add_info(CLI::App& app) {
  const auto format =
      std::make_shared<TextOption>(app, "--format", "table, json or csv", "table|json|csv");
  const auto simd = std::make_shared<SimdOption>(app);
  return [format, simd] {
    const Format chosen = parse_format(*format);
    simd->apply();
    const Topology topology = machine_topology();
    const Counters counters = machine_counters(topology, counter_names());
    const auto text = [&] { return info_text(topology, counters); };
    print(chosen, text, text, [&] { return info_json(topology, counters); });
    return 0;
  };
}

}  // namespace redblue
