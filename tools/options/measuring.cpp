#include "tools/options/measuring.hpp"

#include <csignal>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include "kernels/arithmetic/simd.hpp"
#include "runtime/observe/counters.hpp"
#include "runtime/system/environment.hpp"
#include "tools/cli/print.hpp"
#include "tools/options/machine.hpp"

namespace redblue {
namespace {

// Returns the program to simulate: this one. A calling program instead uses the redblue command on
// the PATH.
std::string this_command() {
  if (caller() == nullptr) {
    return std::filesystem::read_symlink("/proc/self/exe").string();
  }
  const char* search = variable("PATH");
  const auto found = find_program("redblue", search == nullptr ? "/usr/bin:/bin" : search);
  if (!found) {
    throw std::runtime_error(
        "callgrind is unavailable: it simulates the command redblue, and there is none along PATH");
  }
  return found->string();
}

MeasuredPart measured_part(const Part& part, std::size_t events) {
  MeasuredPart measured{spelled(part.plan),
                        part.plan.problem.shape,
                        part.plan.M,
                        part.plan.blocks,
                        part.plan.problem.mask.spec(),
                        part.plan.problem.activation,
                        {},
                        {}};
  for (std::size_t level = 0; level < part.levels.size(); ++level) {
    const RunCounts::Level& counted = part.counted->inner[level];
    measured.inner.push_back({part.levels[level].M, counted.phases, counted.total});
  }
  for (const PhaseCounts& phase : part.counted->phases) {
    measured.phases.push_back({phase, std::vector<std::int64_t>(events)});
  }
  measured.total = {part.counted->total, {}};
  return measured;
}

}  // namespace

Measurement measure_by_papi(const Request& request, const Topology& topology,
                            const std::vector<std::string>& names,
                            const std::vector<CacheLevel>& caches) {
  const Counters counters = machine_counters(topology, names);
  if (!counters.unavailable().empty()) {
    throw std::runtime_error(
        fmt::format("event counters are unavailable: {}{}", counters.unavailable(),
                    callgrind_unavailable().empty() ? " (try --via callgrind)" : ""));
  }
  using Counts = std::vector<std::int64_t>;
  struct Read {
    std::map<std::string, Counts> phases;
    Counts total;
  };
  std::map<std::string, Read> read;  // by kernel
  const RunHook within_counters = [&](Machine& machine, const Plan& plan, const auto& work) {
    const PhaseCounters phases(machine, counters);
    work();
    Read& of = read[spelled(plan)];
    of.total = phases.total();
    for (const PhaseCost& phase : plan.phases) {
      of.phases[phase.path] = phases.of(phase.path);
    }
  };
  const Report report =
      run(request, Topology(),
          {.kernel = within_counters, .forward = within_counters, .peak_gflops = false});
  Measurement measurement;
  measurement.via = "papi";
  measurement.version = "PAPI " + papi_version().value_or("");
  measurement.source = topology.source;
  measurement.simd = simd_target();
  measurement.caches = caches;
  measurement.inner_from = request.inner_from;
  measurement.M_from = request.M_from;
  measurement.operands = report.operands;
  measurement.seed = report.seed;
  for (const CounterEvent& event : counters.events()) {
    const Cache* cache = event.lines_into ? topology.cache(*event.lines_into) : nullptr;
    const Index line = cache == nullptr ? 64 : cache->line.value_or(64);
    measurement.events.push_back({event.name, event.lines_into, event.lines_into ? line : 0});
  }
  const auto part = [&](const Part& counted) {
    MeasuredPart measured = measured_part(counted, measurement.events.size());
    const Read& of = read.at(measured.kernel);
    for (MeasuredPhase& phase : measured.phases) {
      phase.events = of.phases.at(phase.counted.path);
    }
    measured.total.events = of.total;
    return measured;
  };
  measurement.kernel = part(report.kernel);
  if (report.forward) {
    measurement.forward = part(*report.forward);
  }
  return measurement;
}

std::optional<std::filesystem::path> find_valgrind() {
  const char* search = variable("PATH");
  return find_program("valgrind", search == nullptr ? "/usr/bin:/bin" : search);
}

Measurement measure_by_callgrind(const std::vector<std::string>& command, const Simulation& caches,
                                 const std::string& source) {
  const auto valgrind = find_valgrind();
  if (!valgrind) {
    throw std::runtime_error(std::string("callgrind is unavailable: ") + kNoValgrind);
  }
  const char* named = variable("TMPDIR");
  const std::filesystem::path temporary = named == nullptr || *named == '\0' ? "/tmp" : named;
  std::vector<std::string> words = {this_command()};
  words.insert(words.end(), command.begin(), command.end());
  const std::vector<std::string> variables = {
      fmt::format("{}={}", kInsideCallgrind, caches.outer.bytes)};
  const Simulated simulated = simulate(*valgrind, caches, words, variables, temporary);
  const Ended& program = simulated.program;
  if (program.interrupted != 0) {
    std::raise(program.interrupted);
  }
  // The message that the process printed, if any.
  constexpr std::string_view kSays = "redblue: ";
  const bool speaks = std::string_view(program.err).starts_with(kSays);
  const std::string message =
      speaks ? program.err.substr(kSays.size(), program.err.find('\n') - kSays.size()) : "";
  if (program.code != 0 || program.signal != 0) {
    if (speaks && program.code != 0) {
      throw EndedInside(message, program.code);
    }
    throw std::runtime_error(
        fmt::format("{} failed ({}): {}", valgrind->string(),
                    program.signal != 0 ? fmt::format("signal {}", program.signal)
                                        : fmt::format("exit code {}", program.code),
                    simulated.complaint.empty() ? "without a word" : simulated.complaint));
  }
  if (speaks) {
    say(message);
  }
  Measurement measurement = simulated_measurement(program.out, simulated.profile, caches);
  measurement.version = simulated.version;
  measurement.source = source;
  return measurement;
}

}  // namespace redblue
