#include "runtime/report/measurement.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "runtime/report/context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Callgrind's events at the outer cache: misses, and misses that put a written line out.
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
}

using Dumps = CallgrindProfile::mapped_type;  // of one kernel

// The keys of a phase and of the total in the document of a run.
PhaseCounts counts_of(const Json& json, const std::string& path) {
  const auto count = [&](const char* key) { return json.at(key).get<Index>(); };
  return {.path = path,
          .io = {.reads = count("reads"), .writes = count("writes")},
          .operations = {.flops = count("flops"), .elementwise = count("elementwise")},
          .peak = count("peak")};
}

MeasuredPhase simulated_phase(const Dumps& dumps, const std::string& path, Index line) {
  const auto found = dumps.find(path);
  if (found == dumps.end()) {
    throw std::runtime_error("callgrind dumped nothing of phase " + path);
  }
  MeasuredPhase phase;
  phase.counted.path = path;
  phase.traffic = traffic(found->second, line);
  for (const char* name : kOuterEvents) {
    phase.events.push_back(found->second.find(name)->second);
  }
  return phase;
}

MeasuredPart simulated_part(const Json& document, const Json& part, const std::string& kernel,
                            const CallgrindProfile& profile, Index line) {
  MeasuredPart measured;
  measured.kernel = kernel;
  const auto count = [](const Json& from, const char* key) { return from.at(key).get<Index>(); };
  measured.shape = {count(document, "n"), count(document, "m"), count(document, "d")};
  measured.M = count(document, "M");
  if (document.contains("mask") && document.at("mask").at("spec") != "full") {
    measured.mask = document.at("mask").at("spec").get<std::string>();
  }
  for (const Activation other : {Activation::relu, Activation::sigmoid, Activation::silu}) {
    if (document.value("activation", "") == to_string(other)) {
      measured.activation = other;
    }
  }
  for (const auto& [name, size] : part.at("blocks").items()) {
    measured.blocks.add(name, size.get<Index>());
  }
  const auto of = profile.find(kernel);
  if (of == profile.end()) {
    throw std::runtime_error("callgrind dumped nothing of " + kernel);
  }
  const Dumps& dumps = of->second;
  measured.total.counted = counts_of(part.at("total"), "");
  const auto put = [&](MeasuredPhase phase) {
    add(measured.total, phase);
    measured.phases.push_back(std::move(phase));
  };
  for (const Json& counted : part.at("phases")) {
    const auto path = counted.at("path").get<std::string>();
    MeasuredPhase phase = simulated_phase(dumps, path, line);
    phase.counted = counts_of(counted, path);
    put(std::move(phase));
  }
  // Phases that only enclose others move no words, but their code occupies the cache.
  MeasuredPhase outside;
  for (const auto& [path, counts] : dumps) {
    const bool listed = std::ranges::any_of(
        part.at("phases"), [&at = path](const Json& phase) { return phase.at("path") == at; });
    if (!listed && path != kLeft) {
      add(outside, simulated_phase(dumps, path, line));
    }
  }
  if (outside.traffic && outside.traffic->io() > 0) {
    outside.counted.path = kOutside;
    put(std::move(outside));
  }
  // The lines that came in then only emptied the cache.
  MeasuredPhase left = simulated_phase(dumps, std::string(kLeft), line);
  left.traffic->in = 0;
  left.events[0] = left.events[1] = 0;
  put(std::move(left));
  return measured;
}

std::optional<double> ratio(const MeasuredPhase& phase) {
  const Index counted = phase.counted.io.io();
  return phase.traffic && counted > 0 ? std::optional(static_cast<double>(phase.traffic->io()) /
                                                      static_cast<double>(counted))
                                      : std::nullopt;
}

Json cache_json(const SimulatedCache& cache) {
  return {{"bytes", cache.bytes}, {"ways", cache.ways}, {"line", cache.line}};
}

// The row of a phase, or of the `whole` part. The table has a simulation's traffic, or else the
// events, with lines in words. JSON and CSV have both.
Cells measured_cells(const Measurement& measurement, const MeasuredPhase& phase, bool whole) {
  const std::string& path = phase.counted.path;
  const IoCount& io = phase.counted.io;
  const bool simulated = measurement.simulation.has_value();
  const auto title = [&](const char* of_traffic) { return simulated ? of_traffic : ""; };
  const LineTraffic traffic = phase.traffic.value_or(LineTraffic());
  const auto known = [&](const CellValue& value) { return phase.traffic ? value : absent(); };
  const Json over = ratio(phase);
  Cells cells = {{{"phase", whole ? "" : "path", "phase"}, whole ? "total" : path},
                 {"reads", io.reads},
                 {"writes", io.writes},
                 {{title("lines in"), "traffic.in", "traffic_in"}, known(traffic.in)},
                 {{title("lines out"), "traffic.out", "traffic_out"}, known(traffic.out)},
                 {in_table(title("traffic")), known(traffic.io())},
                 {{title("traffic / counted"), "ratio", ""}, known(decimals(ratio(phase), 3))},
                 {in_csv("ratio"), over.is_null() ? over : Json(over.dump())}};
  Json events;
  for (std::size_t i = 0; i < phase.events.size(); ++i) {
    const auto& [name, lines_into, line] = measurement.events[i];
    events[name] = phase.events[i];
    cells.push_back({in_csv(name), phase.events[i]});
    if (!simulated) {
      const Index words = lines_into ? line / Index{sizeof(float)} : 1;
      cells.push_back({in_table(lines_into ? fmt::format("into {}", to_string(*lines_into)) : name),
                       phase.events[i] * words});
    }
  }
  cells.push_back({in_json("events"), events.is_null() ? absent() : CellValue(events)});
  return cells;
}

// A row for each phase, and the last one for the whole part.
std::vector<Cells> part_rows(const Measurement& measurement, const MeasuredPart& part) {
  std::vector<Cells> rows = rows_of(part.phases, [&](const MeasuredPhase& phase) {
    return measured_cells(measurement, phase, false);
  });
  rows.push_back(measured_cells(measurement, part.total, true));
  return rows;
}

Json part_json(const Measurement& measurement, const MeasuredPart& part) {
  std::vector<Cells> rows = part_rows(measurement, part);
  Json total = json_of(rows.back());
  rows.pop_back();
  return {
      {"blocks", blocks_json(part.blocks)}, {"phases", json_of(rows)}, {"total", std::move(total)}};
}

std::string words(const SimulatedCache& cache) {
  return fmt::format("{} bytes, {} ways, lines of {} bytes", grouped(cache.bytes), cache.ways,
                     cache.line);
}

// The meaning of the columns.
std::string legend(const Measurement& measurement) {
  if (const auto& caches = measurement.simulation) {
    const bool first = caches->level == CacheLevel::L1;
    return fmt::format(
        "{}: {}, simulated by {}\n({}), behind {} of {}.\n"
        "Empty at the start of a kernel. A line that is written comes in first; it goes out when "
        "another\ntakes its place. (outside): between phases, where the workspace fills new "
        "matrices, too;\n(left): what the kernel left to be written back.\n",
        to_string(caches->level), words(caches->outer), measurement.version, measurement.source,
        first ? "a buffer" : "an L1", words(caches->inner));
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
  return to_string(Plan{
      .kernel = part.kernel, .problem = problem, .M = part.M, .blocks = part.blocks, .phases = {}});
}

}  // namespace

Measurement simulated_measurement(const std::string& report, const CallgrindProfile& profile,
                                  const Simulation& simulation) {
  const Json document = parse_json(report, "what the simulated run said");
  Measurement measurement;
  measurement.via = "callgrind";
  measurement.simd = document.at("context").at("simd").get<std::string>();
  measurement.simulation = simulation;
  for (const char* name : kOuterEvents) {
    measurement.events.push_back({name});
  }
  const Index line = simulation.outer.line;
  // The spelling by which the run labels its events.
  const auto asked = parse_kernel_name(document.at("kernel").get<std::string>());
  const bool shared = document.contains("sharing");
  measurement.kernel = simulated_part(
      document, document, spelled(asked.value().kernel->name, shared ? Sharing::kv : Sharing::none),
      profile, line);
  for (const auto& [name, origin] : document.at("operands").items()) {
    measurement.operands[name] = parse_origin(origin.get<std::string>());
  }
  if (const Json& seed = document.at("seed"); !seed.is_null()) {
    measurement.seed = seed.get<std::uint64_t>();
  }
  if (document.contains("forward")) {
    const Json& forward = document.at("forward");
    measurement.forward =
        simulated_part(document, forward, forward.at("kernel").get<std::string>(), profile, line);
  }
  return measurement;
}

std::optional<double> traffic_ratio(const Measurement& measurement, CacheLevel level) {
  const MeasuredPhase& total = measurement.kernel.total;
  std::optional<Index> moved;
  if (measurement.simulation) {
    if (measurement.simulation->level == level && total.traffic) {
      moved = total.traffic->io();
    }
  } else {
    for (std::size_t i = 0; i < measurement.events.size(); ++i) {
      const MeasuredEvent& event = measurement.events[i];
      if (event.lines_into == level) {
        moved = total.events[i] * event.line / Index{sizeof(float)};
      }
    }
  }
  const Index counted = total.counted.io.io();
  return moved && counted > 0
             ? std::optional(static_cast<double>(*moved) / static_cast<double>(counted))
             : std::nullopt;
}

std::string to_table(const Measurement& measurement) {
  std::string text = title(measurement.kernel) + "   (all in words)\n";
  if (measurement.M_from) {
    text += to_words(*measurement.M_from) + "\n";
  }
  text += "operands: " + to_words(measurement.operands, measurement.seed) + "\n";
  text += legend(measurement) + "\n" + table_of(part_rows(measurement, measurement.kernel));
  if (measurement.forward) {
    text += fmt::format("\nO and L by {}\n\n{}", title(*measurement.forward),
                        table_of(part_rows(measurement, *measurement.forward)));
  }
  return text;
}

std::string to_json(const Measurement& measurement) {
  const MeasuredPart& kernel = measurement.kernel;
  Json used = {{"version", measurement.version}};
  if (const auto& caches = measurement.simulation) {
    used["level"] = to_string(caches->level);
    used["cache"] = cache_json(caches->outer);
    used["behind"] = cache_json(caches->inner);
    used["start"] = "empty";
    used["source"] = measurement.source;
  } else {
    for (const MeasuredEvent& event : measurement.events) {
      Json entry = {{"name", event.name}};
      if (event.lines_into) {
        entry["lines_into"] = to_string(*event.lines_into);
        entry["line"] = event.line;
      }
      used["events"].push_back(std::move(entry));
    }
  }
  Json json = {{"schema", kSchema}, {"context", context_json(measurement.M_from)}};
  json.update(json_of(kernel_cells(kernel.kernel, kernel.shape, kernel.M)));
  if (!kernel.mask.empty()) {
    json["mask"] = kernel.mask;
  }
  if (kernel.activation != Activation::softmax) {
    json["activation"] = to_string(kernel.activation);
  }
  json["via"] = measurement.via;
  json["used"] = std::move(used);
  json["context"]["simd"] = measurement.simd;
  json["seed"] = measurement.seed;
  json["operands"] = Json::object();
  for (const auto& [name, origin] : measurement.operands) {
    json["operands"][name] = to_string(origin);
  }
  json.update(part_json(measurement, kernel));
  if (measurement.forward) {
    json["forward"] = {{"kernel", measurement.forward->kernel}};
    json["forward"].update(part_json(measurement, *measurement.forward));
  }
  return json.document();
}

std::string to_csv(const Measurement& measurement) {
  std::vector<Cells> rows;
  const auto add = [&](const MeasuredPart& part) {
    const Cells head = kernel_cells(part.kernel, part.shape, part.M);
    for (const Cells& row : part_rows(measurement, part)) {
      rows.push_back(
          joined(joined(head, row), {{in_csv("operands"), to_cell(measurement.operands)}}));
    }
  };
  add(measurement.kernel);
  if (measurement.forward) {
    add(*measurement.forward);
  }
  return csv_of(rows);
}

}  // namespace redblue
