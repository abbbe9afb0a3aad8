#include "runtime/report/measurement.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include "runtime/report/context.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Callgrind's events at the outer cache: misses, and misses that evict a written line.
constexpr std::array kOuterEvents = {"DLmr", "DLmw", "ILdmr", "DLdmr", "DLdmw"};
constexpr const char* kOutside = "(outside)";

void add(MeasuredPhase& to, const MeasuredPhase& more) {
  to.events.resize(more.events.size());
  for (std::size_t i = 0; i < more.events.size(); ++i) {
    to.events[i] += more.events[i];
  }
  LineTraffic sum = to.traffic.value_or(LineTraffic());
  sum.in += more.traffic->in;
  sum.out += more.traffic->out;
  to.traffic = sum;
  if (more.inner_traffic) {
    to.inner_traffic = to.inner_traffic.value_or(0) + *more.inner_traffic;
  }
}

using Dumps = CallgrindProfile::mapped_type;  // the dumps of one kernel

// Reads a phase or the total in the document of a run.
PhaseCounts counts_of(const Json& json, const std::string& path) {
  const auto count = [&](const char* key) { return json.at(key).get<Index>(); };
  return {.path = path,
          .io = {.reads = count("reads"), .writes = count("writes")},
          .operations = {.flops = count("flops"), .elementwise = count("elementwise")},
          .peak = count("peak")};
}

// Reads the inner levels of a part of the document. The machine's own level is last there and is
// dropped.
std::vector<MeasuredLevel> inner_levels_of(const Json& part) {
  std::vector<MeasuredLevel> inner;
  if (!part.contains("levels")) {
    return inner;
  }
  const auto counts = [](const Json& json, std::string path) {
    const auto count = [&](const char* key) { return json.at(key).get<Index>(); };
    return PhaseCounts{.path = std::move(path),
                       .io = {.reads = count("reads"), .writes = count("writes")},
                       .operations = {},
                       .peak = count("peak")};
  };
  for (const Json& level : part.at("levels")) {
    inner.push_back({level.at("M").get<Index>(), {}, counts(level.at("total"), "")});
    for (const Json& phase : level.at("phases")) {
      inner.back().phases.push_back(counts(phase, phase.at("path").get<std::string>()));
    }
  }
  inner.pop_back();
  return inner;
}

MeasuredPhase simulated_phase(const Dumps& dumps, const std::string& path,
                              const Simulation& caches) {
  const auto found = dumps.find(path);
  if (found == dumps.end()) {
    throw std::runtime_error("callgrind dumped nothing of phase " + path);
  }
  MeasuredPhase phase;
  phase.counted.path = path;
  phase.traffic = traffic(found->second, caches.outer.line);
  if (caches.inner_level) {
    phase.inner_traffic = inner_traffic(found->second, caches.inner.line);
  }
  for (const char* name : kOuterEvents) {
    phase.events.push_back(found->second.find(name)->second);
  }
  return phase;
}

MeasuredPart simulated_part(const Json& document, const Json& part, const std::string& kernel,
                            const CallgrindProfile& profile, const Simulation& caches) {
  MeasuredPart measured;
  measured.kernel = kernel;
  const auto count = [](const Json& from, const char* key) { return from.at(key).get<Index>(); };
  measured.shape = {count(document, "n"), count(document, "m"), count(document, "d")};
  measured.M = count(document, "M");
  if (document.contains("mask") && document.at("mask").at("spec") != "full") {
    measured.mask = document.at("mask").at("spec").get<std::string>();
  }
  measured.activation = parse_activation(document.value("activation", "").get<std::string>())
                            .value_or(Activation::softmax);
  for (const auto& [name, size] : part.at("blocks").items()) {
    measured.blocks.add(name, size.get<Index>());
  }
  const auto of = profile.find(kernel);
  if (of == profile.end()) {
    throw std::runtime_error("callgrind dumped nothing of " + kernel);
  }
  const Dumps& dumps = of->second;
  measured.inner = inner_levels_of(part);
  measured.total.counted = counts_of(part.at("total"), "");
  const auto put = [&](MeasuredPhase phase) {
    add(measured.total, phase);
    measured.phases.push_back(std::move(phase));
  };
  for (const Json& counted : part.at("phases")) {
    const auto path = counted.at("path").get<std::string>();
    MeasuredPhase phase = simulated_phase(dumps, path, caches);
    phase.counted = counts_of(counted, path);
    put(std::move(phase));
  }
  // Phases that only enclose other phases move no words, but their code occupies the cache.
  MeasuredPhase outside;
  for (const auto& [path, counts] : dumps) {
    const bool listed = std::ranges::any_of(
        part.at("phases"), [&at = path](const Json& phase) { return phase.at("path") == at; });
    if (!listed && path != kLeft) {
      add(outside, simulated_phase(dumps, path, caches));
    }
  }
  if (outside.traffic && outside.traffic->io() + outside.inner_traffic.value_or(0) > 0) {
    outside.counted.path = kOutside;
    put(std::move(outside));
  }
  // The lines that came in here only emptied the cache, so they are not counted.
  MeasuredPhase left = simulated_phase(dumps, std::string(kLeft), caches);
  left.traffic->in = 0;
  if (left.inner_traffic) {
    left.inner_traffic = 0;
  }
  left.events[0] = left.events[1] = 0;
  put(std::move(left));
  return measured;
}

// Words that came into a cache and words that went out, as far as they are known.
struct KnownTraffic {
  std::optional<Index> in = {}, out = {};

  [[nodiscard]] std::optional<double> over(const IoCount& counted) const {
    return in && counted.io() > 0 ? quotient(*in + out.value_or(0), counted.io()) : std::nullopt;
  }
};

KnownTraffic known_traffic(const MeasuredPhase& phase) {
  return phase.traffic ? KnownTraffic{phase.traffic->in, phase.traffic->out} : KnownTraffic();
}

KnownTraffic known_traffic(const Measurement& measurement, const MeasuredPhase& phase,
                           CacheLevel cache) {
  if (const auto& caches = measurement.simulation) {
    if (caches->level == cache) {
      return known_traffic(phase);
    }
    return caches->inner_level == cache ? KnownTraffic{phase.inner_traffic} : KnownTraffic();
  }
  for (std::size_t i = 0; i < measurement.events.size(); ++i) {
    const MeasuredEvent& event = measurement.events[i];
    if (event.lines_into == cache) {
      return {phase.events[i] * event.line / Index{sizeof(float)}};
    }
  }
  return {};
}

Json cache_json(const SimulatedCache& cache) {
  return {{"bytes", cache.bytes}, {"ways", cache.ways}, {"line", cache.line}};
}

// Returns the row of a phase, or of the whole part if `whole` is true. The table has the traffic of
// a simulation, or else the events, with lines converted to words. JSON and CSV have both. A row of
// one of several levels (`of_levels`) has no events. It has the lines into that level's cache.
Cells measured_cells(const Measurement& measurement, const MeasuredPhase& phase, const IoCount& io,
                     const KnownTraffic& traffic, bool whole, bool of_levels) {
  const bool simulated = measurement.simulation.has_value();
  const auto title = [&](const char* of_traffic) { return simulated ? of_traffic : ""; };
  const auto own = [&](const char* of_machine) { return of_levels ? "" : title(of_machine); };
  const auto if_known = [](const auto& words) { return words ? CellValue(*words) : absent(); };
  const Json over = traffic.over(io);
  const CellValue ratio = decimals(traffic.over(io), 3);
  Cells cells = {{{"phase", whole ? "" : "path", "phase"}, whole ? "total" : phase.counted.path},
                 {"reads", io.reads},
                 {"writes", io.writes},
                 {{of_levels ? "lines in" : title("lines in"), "traffic.in", "traffic_in"},
                  if_known(traffic.in)},
                 {{own("lines out"), "traffic.out", "traffic_out"}, if_known(traffic.out)},
                 {in_table(own("traffic")), traffic.in.value_or(0) + traffic.out.value_or(0)},
                 {{of_levels && !traffic.out ? "lines in / counted"
                   : of_levels               ? "traffic / counted"
                                             : title("traffic / counted"),
                   "ratio", ""},
                  of_levels || traffic.in ? ratio : absent()},
                 {in_csv("ratio"), over.is_null() ? over : Json(over.dump())}};
  Json events;
  for (std::size_t i = 0; i < measurement.events.size(); ++i) {
    const auto& [name, lines_into, line] = measurement.events[i];
    const CellValue event = of_levels ? absent() : CellValue(phase.events[i]);
    cells.push_back({in_csv(name), event});
    if (!of_levels) {
      events[name] = event.json;
      const Index words = lines_into ? line / Index{sizeof(float)} : 1;
      cells.push_back({in_table(simulated    ? ""
                                : lines_into ? fmt::format("into {}", to_string(*lines_into))
                                             : name),
                       phase.events[i] * words});
    }
  }
  cells.push_back({in_json(events.is_null() ? "" : "events"), events});
  return cells;
}

// Returns a row for each phase and a last row for the whole part.
std::vector<Cells> part_rows(const Measurement& measurement, const MeasuredPart& part) {
  const auto row = [&](const MeasuredPhase& phase, bool whole) {
    return measured_cells(measurement, phase, phase.counted.io, known_traffic(phase), whole, false);
  };
  std::vector<Cells> rows =
      rows_of(part.phases, [&](const MeasuredPhase& phase) { return row(phase, false); });
  rows.push_back(row(part.total, true));
  return rows;
}

// Returns the rows of a level. Level 0 is the innermost; the last level is the machine's.
std::vector<Cells> level_rows(const Measurement& measurement, const MeasuredPart& part,
                              std::size_t level) {
  const bool inner = level < part.inner.size();
  std::vector<Cells> rows;
  const auto add = [&](const MeasuredPhase& phase, const IoCount& io, bool whole) {
    rows.push_back(measured_cells(measurement, phase, io,
                                  known_traffic(measurement, phase, measurement.caches[level]),
                                  whole, true));
  };
  for (const MeasuredPhase& phase : part.phases) {
    IoCount io = phase.counted.io;
    if (inner) {
      const std::vector<PhaseCounts>& counted = part.inner[level].phases;
      const auto found = std::ranges::find(counted, phase.counted.path, &PhaseCounts::path);
      io = found == counted.end() ? IoCount() : found->io;
    }
    if (!inner || phase.counted.path != kLeft) {
      add(phase, io, false);
    }
  }
  const PhaseCounts& total = inner ? part.inner[level].total : part.total.counted;
  add(part.total, total.io, true);
  return rows;
}

Index M_of(const MeasuredPart& part, std::size_t level) {
  return level < part.inner.size() ? part.inner[level].M : part.M;
}

// The CSV cells after the cells of a phase.
Cells last_cells(const Measurement& measurement, const MeasuredPart& part, std::size_t level) {
  Cells cells = {{in_csv("operands"), to_cell(measurement.operands)}};
  if (!part.inner.empty()) {
    std::string all;
    for (std::size_t k = 0; k <= part.inner.size(); ++k) {
      all += (k == 0 ? "" : "/") + std::to_string(M_of(part, k));
    }
    cells.push_back({in_csv("M_levels"), all});
    cells.push_back({in_csv("level"), static_cast<Index>(level + 1)});
  }
  return cells;
}

// Adds the levels, from the innermost out. With a simulation, the text leaves out the machine's own
// level, because the main table shows it. Without a simulation, the main table has no lines of its
// cache.
void add_levels(Description& of, const Measurement& measurement, const MeasuredPart& part) {
  for (std::size_t level = 0; level <= part.inner.size(); ++level) {
    const bool inner = level < part.inner.size();
    const std::string_view cache = to_string(measurement.caches[level]);
    Description its;
    its.facts({{in_json("M"), M_of(part, level)}, {in_json("cache"), cache}});
    std::vector<Cells> rows = rows_of(level_rows(measurement, part, level), [&](const Cells& row) {
      return joined(inner ? row : not_in_csv(row),
                    inner ? last_cells(measurement, part, level) : Cells());
    });
    if (inner || !measurement.simulation) {
      its.say("\nlevel {}, M = {} words, compared with {}\n", level + 1, grouped(M_of(part, level)),
              cache);
    } else {
      rows = rows_of(rows, only_in_json);
    }
    its.table("phases", "total", std::move(rows));
    of.element("levels", its);
  }
}

// Describes a kernel: its main table and its levels.
Description describe(const Measurement& measurement, const MeasuredPart& part) {
  Description of;
  of.facts(only_in_csv(kernel_cells(part.kernel, part.shape, part.M)));
  of.fact("blocks", blocks_json(part.blocks));
  of.table("phases", "total", rows_of(part_rows(measurement, part), [&](const Cells& row) {
             return joined(row, last_cells(measurement, part, part.inner.size()));
           }));
  if (!part.inner.empty()) {
    add_levels(of, measurement, part);
  }
  return of;
}

std::string words(const SimulatedCache& cache) {
  return fmt::format("{} bytes, {} ways, lines of {} bytes", grouped(cache.bytes), cache.ways,
                     cache.line);
}

// Explains the columns.
std::string legend(const Measurement& measurement) {
  if (const auto& caches = measurement.simulation) {
    const bool first = caches->level == CacheLevel::L1;
    const CacheLevel inner = caches->inner_level.value_or(CacheLevel::L1);
    return fmt::format(
        "{}: {}, simulated by {}\n({}), behind {} of {}.{}\n"
        "Empty at the start of a kernel. A line that is written comes in first; it goes out when "
        "another\ntakes its place. (outside): between phases, where the workspace fills new "
        "matrices, too;\n(left): lines still to be written back at the end.\n",
        to_string(caches->level), words(caches->outer), measurement.version, measurement.source,
        first ? "a buffer" : "an " + std::string(to_string(inner)), words(caches->inner),
        caches->inner_level
            ? fmt::format("\nFor {}, only incoming lines are known.", to_string(inner))
            : "");
  }
  std::string text = "Counted by " + measurement.version;
  for (const MeasuredEvent& event : measurement.events) {
    text += event.lines_into ? fmt::format("; {}: lines of {} bytes into {}, here in words",
                                           event.name, event.line, to_string(*event.lines_into))
                             : "; " + event.name;
  }
  return text + "\n";
}

std::string title(const MeasuredPart& part) {
  Problem problem(part.shape);
  problem.mask = Mask().called(part.mask);
  problem.activation = part.activation;
  Plan plan{
      .kernel = part.kernel, .problem = problem, .M = part.M, .blocks = part.blocks, .phases = {}};
  for (const MeasuredLevel& level : part.inner) {
    plan.inner.push_back({level.M, {}});
  }
  return to_string(plan);
}

}  // namespace

Measurement simulated_measurement(const std::string& report, const CallgrindProfile& profile,
                                  const Simulation& simulation) {
  const Json document = parse_json(report, "what the simulated run said");
  Measurement measurement;
  measurement.via = "callgrind";
  measurement.simd = document.at("context").at("simd").get<std::string>();
  measurement.simulation = simulation;
  if (simulation.inner_level) {
    measurement.caches = {*simulation.inner_level, simulation.level};
  }
  for (const char* name : kOuterEvents) {
    measurement.events.push_back({name});
  }
  // The name by which the run labels its events.
  const auto asked = parse_kernel_name(document.at("kernel").get<std::string>());
  const bool shared = document.contains("sharing");
  measurement.kernel = simulated_part(
      document, document, spelled(asked.value().kernel->name, shared ? Sharing::kv : Sharing::none),
      profile, simulation);
  for (const auto& [name, origin] : document.at("operands").items()) {
    measurement.operands[name] = parse_origin(origin.get<std::string>());
  }
  if (const Json& seed = document.at("seed"); !seed.is_null()) {
    measurement.seed = seed.get<std::uint64_t>();
  }
  if (document.contains("forward")) {
    const Json& forward = document.at("forward");
    measurement.forward = simulated_part(document, forward, forward.at("kernel").get<std::string>(),
                                         profile, simulation);
  }
  return measurement;
}

std::optional<double> traffic_ratio(const Measurement& measurement, CacheLevel level) {
  const MeasuredPhase& total = measurement.kernel.total;
  return known_traffic(measurement, total, level).over(total.counted.io);
}

namespace {

Json used_json(const Measurement& measurement) {
  Json used = {{"version", measurement.version}};
  if (const auto& caches = measurement.simulation) {
    used.update({{"level", to_string(caches->level)},
                 {"cache", cache_json(caches->outer)},
                 {"behind", cache_json(caches->inner)},
                 {"start", "empty"},
                 {"source", measurement.source}});
    return used;
  }
  for (const MeasuredEvent& event : measurement.events) {
    Json entry = {{"name", event.name}};
    if (event.lines_into) {
      entry.update({{"lines_into", to_string(*event.lines_into)}, {"line", event.line}});
    }
    used["events"].push_back(std::move(entry));
  }
  return used;
}

}  // namespace

Description describe(const Measurement& measurement) {
  const MeasuredPart& kernel = measurement.kernel;
  Description of =
      begin_report(title(kernel) + "   (all in words)", measurement.M_from, measurement.inner_from);
  of.facts(only_in_json(kernel_cells(kernel.kernel, kernel.shape, kernel.M)));
  of.facts({{in_json("context.simd"), measurement.simd},
            {in_json("mask"), kernel.mask.empty() ? absent() : CellValue(kernel.mask)},
            {in_json("activation"), kernel.activation == Activation::softmax
                                        ? absent()
                                        : CellValue(to_string(kernel.activation))},
            {in_json("via"), measurement.via},
            {in_json("used"), used_json(measurement)},
            {in_json("seed"), measurement.seed},
            {in_json("operands"), origins_json(measurement.operands)}});
  of.say("operands: {}\n{}", to_words(measurement.operands, measurement.seed), legend(measurement));
  of.add(describe(measurement, kernel));
  if (measurement.forward) {
    Description forward = describe(measurement, *measurement.forward);
    forward.fact("kernel", measurement.forward->kernel);
    of.say("\nO and L by {}\n", title(*measurement.forward));
    of.member("forward", forward);
  }
  return of;
}

}  // namespace redblue
