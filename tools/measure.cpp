// redblue measure: runs a kernel, counted, and puts beside the words what a cache did: the
// processor's own, by its event counters, or a simulated one, by callgrind.

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "runtime/callgrind.hpp"
#include "runtime/counters.hpp"
#include "runtime/experiment.hpp"
#include "runtime/measurement.hpp"
#include "tools/command.hpp"
#include "tools/machine.hpp"
#include "tools/print.hpp"
#include "tools/problem_options.hpp"
#include "tools/sizes.hpp"

namespace redblue {
namespace {

// Set for the process that runs under callgrind: the bytes of the simulated cache.
constexpr const char* kInside = "REDBLUE_CALLGRIND_CACHE";

void show(const Measurement& measurement, Format format) {
  print(format == Format::table  ? to_table(measurement)
        : format == Format::json ? to_json(measurement)
                                 : to_csv(measurement));
}

MeasuredPart measured_part(const Part& part, std::size_t events) {
  MeasuredPart measured{part.plan.kernel, part.plan.shape, part.plan.M, part.plan.blocks, {}, {}};
  for (const PhaseTotal& phase : part.counted->phases) {
    measured.phases.push_back({phase.path, phase.io, std::vector<std::int64_t>(events)});
  }
  measured.total = {"", part.counted->total.io, {}};
  return measured;
}

Measurement by_papi(const Request& request) {
  const Topology topology = machine_topology();
  const Counters counters(topology, counter_names());
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
  const Report report =
      run(request, Topology(), [&](Machine& machine, const Plan& plan, const auto& go) {
        const PhaseCounters phases(machine, counters);
        go();
        Read& of = read[plan.kernel];
        of.total = phases.total();
        for (const PhaseCost& phase : plan.phases) {
          of.phases[phase.path] = phases.of(phase.path);
        }
      });
  Measurement measurement;
  measurement.via = "papi";
  measurement.version = "PAPI " + papi_version().value_or("");
  measurement.source = topology.source;
  for (const CounterEvent& event : counters.events()) {
    const Cache* cache = event.lines_into ? topology.cache(*event.lines_into) : nullptr;
    const Index line = cache == nullptr ? 64 : cache->line.value_or(64);
    measurement.events.push_back({event.name, event.lines_into, event.lines_into ? line : 0});
  }
  const auto part = [&](const Part& counted) {
    MeasuredPart measured = measured_part(counted, measurement.events.size());
    const Read& of = read.at(measured.kernel);
    for (MeasuredPhase& phase : measured.phases) {
      phase.events = of.phases.at(phase.path);
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

// The command that asks for the same problem, with nothing left to the environment.
std::vector<std::string> command_of(const Request& request) {
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe").string(),
                                    "measure", request.kernel, "--via", "callgrind"};
  const auto option = [&](const std::string& flag, const std::string& text) {
    words.push_back(flag);
    words.push_back(text);
  };
  for (const auto& [flag, size] :
       {std::pair("--n", request.n), std::pair("--m", request.m), std::pair("--d", request.d)}) {
    if (size) {
      option(flag, std::to_string(*size));
    }
  }
  option("--M", std::to_string(request.M));
  option("--objective", request.objective == Objective::time ? "time" : "words");
  for (const auto& [name, size] : request.blocks) {
    option("--blocks", fmt::format("{}={}", name, size));
  }
  if (request.printed_blocks) {
    option("--blocks", "printed");
  }
  for (const auto& [name, path] : request.in) {
    option("--in", fmt::format("{}={}", name, path.string()));
  }
  option("--seed", std::to_string(request.seed));
  option("--scale", fmt::format("{}", request.scale));
  return words;
}

// The cache that M stands for: the one it was said to be a part of, or the smallest that holds it.
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

int by_callgrind(const Request& request, const std::optional<Given>& given_level, Format format) {
  if (const std::string why = callgrind_unavailable(); !why.empty()) {
    throw std::runtime_error("callgrind is unavailable: " + why);
  }
  const Topology topology = machine_topology();
  if (!topology.unavailable.empty()) {
    throw std::runtime_error("callgrind is unavailable: which cache to simulate is not known: " +
                             topology.unavailable);
  }
  const CacheLevel level = level_of(request, topology, given_level);
  const auto caches = simulation(topology, level);
  if (!caches) {
    throw UsageError(fmt::format("{} {}: its size is not known here ({})",
                                 given_level ? given_level->from : "--level", to_string(level),
                                 topology.source));
  }
  const char* search = std::getenv("PATH");
  const auto valgrind = find_program("valgrind", search == nullptr ? "/usr/bin:/bin" : search);
  if (!valgrind) {
    throw std::runtime_error(
        "callgrind is unavailable: valgrind is not installed (apt-get install valgrind)");
  }
  const char* named = std::getenv("TMPDIR");
  const std::filesystem::path temporary = named == nullptr || *named == '\0' ? "/tmp" : named;
  const Simulated simulated =
      simulate(*valgrind, *caches, command_of(request),
               {fmt::format("{}={}", kInside, caches->outer.bytes)}, temporary);
  const Ended& program = simulated.program;
  if (program.interrupted != 0) {
    std::raise(program.interrupted);
  }
  // Its own message, where it has one.
  constexpr std::string_view kSays = "redblue: ";
  const bool speaks = std::string_view(program.err).starts_with(kSays);
  if (speaks) {
    say(std::string_view(program.err).substr(kSays.size(), program.err.find('\n') - kSays.size()));
  }
  if (program.code != 0 || program.signal != 0) {
    if (speaks && program.code != 0) {
      return program.code;
    }
    throw std::runtime_error(
        fmt::format("{} failed ({}): {}", valgrind->string(),
                    program.signal != 0 ? fmt::format("signal {}", program.signal)
                                        : fmt::format("exit code {}", program.code),
                    simulated.complaint.empty() ? "without a word" : simulated.complaint));
  }
  Measurement measurement = simulated_measurement(program.out, simulated.profile, *caches);
  measurement.version = simulated.version;
  measurement.source = topology.source;
  measurement.M_from = request.M_from;
  show(measurement, format);
  return 0;
}

// What happens under callgrind: the run, its phases dumped, and its document.
int inside_callgrind(const Request& request, const char* cache_bytes) {
  const auto bytes = static_cast<std::uint64_t>(parse_size(cache_bytes, kInside));
  const Report report =
      run(request, Topology(), [bytes](Machine& machine, const Plan& plan, const auto& go) {
        const CallgrindPhases phases(machine, plan.kernel, bytes);
        go();
      });
  print(report, Format::json);
  return 0;
}

}  // namespace

Action add_measure(CLI::App& app) {
  struct Options {
    explicit Options(CLI::App& command)
        : problem(command),
          inputs(command),
          via(command, "--via",
              "papi: the processor's event counters, those of PAPI_EVENTS or lines into L1 and "
              "L2; callgrind: a simulated cache; papi",
              "HOW"),
          level(command, "--level",
                "which cache callgrind simulates: L1, L2 or L3; the one that M stands for",
                "CACHE"),
          format(command, "--format", "table, json or csv", "FORMAT") {}
    ProblemOptions problem;
    InputOptions inputs;
    TextOption via, level, format;
  };
  const auto options = std::make_shared<Options>(app);
  return [options] {
    Request request;
    options->problem.fill(request);
    options->inputs.fill(request);
    const Format format = parse_format(options->format);
    const auto via = options->via.get();
    const auto level = options->level.get();
    if (via && via->text != "papi" && via->text != "callgrind") {
      throw UsageError(fmt::format("{} '{}': expected papi or callgrind", via->from, via->text));
    }
    // Counters and simulation see one thread, and one machine that is its own.
    if (request.threads > 1) {
      throw UsageError(request.said("--threads") + ": a measurement has one");
    }
    if (!via || via->text == "papi") {
      if (level) {
        throw UsageError(level->from + " is for --via callgrind");
      }
      Measurement measurement = by_papi(request);
      measurement.M_from = request.M_from;
      show(measurement, format);
      return 0;
    }
    const char* inside = std::getenv(kInside);
    return inside == nullptr ? by_callgrind(request, level, format)
                             : inside_callgrind(request, inside);
  };
}

}  // namespace redblue
