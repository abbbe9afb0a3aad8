#include "runtime/sweep/sweep.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "runtime/gate/arguments_json.hpp"
#include "runtime/text/build_context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/json_field.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

constexpr std::string_view kKindOfSweep = "sweep";

Index words_or_none(const Words& words) {
  return words.overflowed() ? 0 : words.value();
}

// CSV omits 0 flops (beyond 63 bits) and 0 other operations (not counted). JSON omits operations of
// inner levels, because operations belong to the machine.
Cells phase_cells(const SweptPhase& phase, const std::optional<Index>& bound,
                  bool of_level = false) {
  const auto& [path, io, operations, peak, indices] = phase.counts;
  const auto& formula = phase.formula;
  const auto said = [&](const auto& of) { return formula ? Json(of(*formula)) : Json(); };
  const auto if_any = [](Index count) { return count == 0 ? Json() : Json(count); };
  return {{{"", path.empty() ? "" : "path", "phase"}, path.empty() ? "total" : path},
          {in_json_and_csv("reads"), io.reads},
          {in_json_and_csv("writes"), io.writes},
          {in_json_and_csv("index_reads"), indices.reads},
          {in_json_and_csv("index_writes"), indices.writes},
          {in_json_and_csv("peak"), peak},
          {in_json(of_level ? "" : "flops"), operations.flops},
          {in_csv("flops"), if_any(operations.flops)},
          {in_json(of_level ? "" : "elementwise"), operations.elementwise},
          {in_csv("elementwise"), if_any(operations.elementwise)},
          {in_json("formula"),
           formula ? Json::array({formula->io.reads, formula->io.writes, formula->peak}) : Json()},
          {in_csv("formula_reads"), said([](const Predicted& its) { return its.io.reads; })},
          {in_csv("formula_writes"), said([](const Predicted& its) { return its.io.writes; })},
          {in_csv("formula_peak"), said([](const Predicted& its) { return its.peak; })},
          {in_csv("bound"), path.empty() ? bound : std::nullopt},
          {{"", of_level || !phase.seconds ? "" : "seconds", "seconds"}, phase.seconds}};
}

// Returns the argument M and the levels below it.
std::string M_levels(const Arguments& arguments) {
  if (!arguments.contains(kInner)) {
    return "";
  }
  std::string levels = to_string(arguments.value(kInner));
  std::ranges::replace(levels, ',', '/');
  return levels + "/" + to_string(arguments.value("M"));
}

Json phases_json(const std::vector<SweptPhase>& phases, bool of_level) {
  return json_of(
      rows_of(phases, [&](const SweptPhase& phase) { return phase_cells(phase, {}, of_level); }));
}

// Returns the inner levels, then M itself.
Json levels_json(const Swept& swept) {
  return json_of(rows_of(swept.levels(), [](const SweptLevel& level) -> Cells {
    return {{"M", level.M},
            {"bound", level.bound},
            {"total", json_of(phase_cells(level.total, {}, true))},
            {"phases", phases_json(level.phases, true)}};
  }));
}

Cells speed_cells(const std::optional<Speed>& speed) {
  const auto of = [&](double Speed::*rate) { return speed ? Json((*speed).*rate) : Json(); };
  return {{in_json_and_csv("gflops"), of(&Speed::gflops)},
          {in_json_and_csv("peak_gflops"), of(&Speed::peak_gflops)},
          {in_json_and_csv("words_per_second"), of(&Speed::words_per_second)}};
}

// Half of the range, because reads and writes are added.
constexpr Index kMostCounted = INT64_MAX / 2;

SweptPhase phase_of(const JsonField& field) {
  const auto count = [&](const char* key) { return field[key].words(kMostCounted); };
  const auto if_any = [&](const char* key) { return field.has(key) ? count(key) : 0; };
  SweptPhase phase{
      .counts = {.path = field.has("path") ? field["path"].text() : "",
                 .io = {.reads = count("reads"), .writes = count("writes")},
                 .operations = {.flops = field.has("flops") ? field["flops"].words() : 0,
                                .elementwise = if_any("elementwise")},
                 .peak = count("peak"),
                 .indices = {.reads = if_any("index_reads"), .writes = if_any("index_writes")}}};
  if (const auto formula = field.unless_null("formula")) {
    constexpr std::size_t kNumbers = 3;
    const std::vector<JsonField> said = formula->items(kNumbers);
    phase.formula =
        Predicted{{.reads = said[0].words(kMostCounted), .writes = said[1].words(kMostCounted)},
                  said[2].words()};
  }
  if (field.has("seconds")) {
    phase.seconds = field["seconds"].measure();
  }
  return phase;
}

Json json_of(const Swept& swept) {
  Json json = {{"subject", swept.point.subject},
               {"arguments", arguments_json(swept.point.arguments)},
               {"fits", swept.fits}};
  if (!swept.fits) {
    if (swept.failed) {
      json["failed"] = true;
    }
    json["why"] = swept.why;
    return json;
  }
  json["kernel"] = swept.kernel;
  json["blocks"] = swept.blocks;
  json["bound"] = swept.bound;
  if (swept.speed) {
    json["speed"] = json_of(speed_cells(swept.speed));
  }
  if (swept.processor) {
    json["processor"] = *swept.processor;
  }
  json["total"] = json_of(phase_cells(swept.total, {}));
  json["phases"] = phases_json(swept.phases, false);
  if (!swept.inner.empty()) {
    json["M_levels"] = M_levels(swept.point.arguments);
    json["levels"] = levels_json(swept);
  }
  return json;
}

std::vector<SweptPhase> phases_of(const JsonField& field) {
  std::vector<SweptPhase> phases;
  for (const JsonField& phase : field.items()) {
    phases.push_back(phase_of(phase));
  }
  return phases;
}

std::optional<Index> bound_of(const JsonField& field) {
  const auto bound = field.unless_null("bound");
  return bound ? std::optional(bound->words()) : std::nullopt;
}

SweptLevel level_of(const JsonField& field) {
  return {.M = field["M"].size(),
          .total = phase_of(field["total"]),
          .phases = phases_of(field["phases"]),
          .bound = bound_of(field)};
}

// Reads arguments. Sizes must be at least 1, because pictures use logarithmic axes.
Arguments sizes_and_texts_of(const JsonField& field) {
  for (const auto& [name, value] : field.members()) {
    static_cast<void>(value.json().is_string() ? 1 : value.size());
  }
  static_cast<void>(field["M"].size());
  return arguments_of(field);
}

Swept swept_of(const JsonField& field) {
  Swept swept{.point = {field["subject"].text(), sizes_and_texts_of(field["arguments"])},
              .fits = field["fits"].yes()};
  if (!swept.fits) {
    swept.failed = field.has("failed") && field["failed"].yes();
    swept.why = field.has("why") ? field["why"].text() : "";
    return swept;
  }
  swept.kernel = field["kernel"].text();
  swept.blocks = field["blocks"].text();
  swept.bound = bound_of(field);
  if (field.has("speed")) {
    const JsonField speed = field["speed"];
    swept.speed = Speed{speed["gflops"].measure(), speed["peak_gflops"].measure(),
                        speed["words_per_second"].measure()};
  }
  if (field.has("processor")) {
    swept.processor = field["processor"].text();
  }
  swept.total = phase_of(field["total"]);
  swept.phases = phases_of(field["phases"]);
  if (field.has("levels")) {
    for (const JsonField& level : field["levels"].items()) {
      swept.inner.push_back(level_of(level));
    }
  }
  if (!swept.inner.empty()) {  // the last level is M itself
    swept.inner.pop_back();
  }
  return swept;
}

// Returns the column of an argument. A size of a user's own kernel may have the name of another
// column.
std::string column_of(const std::string& argument) {
  static const std::vector<std::string> others = [] {
    std::vector<std::string> names = {"subject", "fits",     "kernel", "blocks",
                                      "why",     "M_levels", "level",  "processor"};
    for (const Cell& cell : joined(phase_cells({.counts = {}}, {}), speed_cells({}))) {
      names.push_back(cell.names.column);
    }
    return names;
  }();
  return std::ranges::find(others, argument) == others.end() ? argument : "size_" + argument;
}

}  // namespace

std::vector<SweptLevel> Swept::levels() const {
  std::vector<SweptLevel> all = inner;
  all.push_back({.M = size("M"), .total = total, .phases = phases, .bound = bound});
  return all;
}

std::string to_line(const Swept& swept) {
  return json_of(swept).dump() + "\n";
}

Swept parse_line(std::string_view line, const std::string& place) {
  const Json json = parse_json(line, place);
  return swept_of({json, place});
}

Swept nothing_swept(const Point& point, bool failed, const std::string& why) {
  return {.point = point, .fits = false, .failed = failed, .why = printable(why)};
}

SweptPhase predicted_phase(const PhaseCost& cost) {
  const IoCount io{.reads = cost.reads.value(), .writes = cost.writes.value()};
  const Index peak = cost.peak.value();
  return {.counts = {.path = cost.path,
                     .io = io,
                     .operations = {.flops = words_or_none(cost.flops)},
                     .peak = peak,
                     .indices = {.reads = cost.index_reads.value(),
                                 .writes = cost.index_writes.value()}},
          .formula = Predicted{io, peak}};
}

Swept swept_of(const Point& point, const std::optional<RunCounts>& counted,
               const std::optional<std::vector<PhaseCost>>& formula) {
  Swept swept{.point = point, .kernel = point.subject};
  // A phase with an empty name would look like the total.
  const auto named = [](std::string path) { return path.empty() ? kOutside : std::move(path); };
  if (formula) {
    swept.total = predicted_phase(total(*formula));
    swept.total.counts.path.clear();
    for (const PhaseCost& cost : *formula) {
      swept.phases.push_back(predicted_phase(cost));
      swept.phases.back().counts.path = named(cost.path);
    }
  }
  if (!counted) {
    return swept;
  }
  for (SweptPhase& phase : swept.phases) {  // a phase that the run does not enter moves no words
    phase.counts = {.path = phase.counts.path, .io = {}, .operations = {}};
  }
  for (std::size_t k = 0; k < counted->phases.size(); ++k) {
    PhaseCounts phase = counted->phases[k];
    phase.path = named(phase.path);
    auto known = std::ranges::find_if(
        swept.phases, [&](const SweptPhase& each) { return each.counts.path == phase.path; });
    if (known == swept.phases.end()) {  // the formula does not have this phase
      known = swept.phases.insert(
          swept.phases.end(),
          {.counts = {}, .formula = formula ? std::optional(Predicted()) : std::nullopt});
    }
    known->counts = phase;
    if (counted->seconds) {
      known->seconds = counted->seconds->phases[k];
    }
  }
  if (counted->seconds) {
    swept.total.seconds = counted->seconds->total;
  }
  swept.total.counts = counted->total;
  return swept;
}

std::vector<std::string> argument_names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const Swept& swept : sweep.points) {
    for (const auto& [name, value] : swept.point.arguments) {
      if (std::ranges::find(names, name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  return names;
}

std::string to_csv(const Sweep& sweep) {
  const std::vector<std::string> names = argument_names(sweep);
  const bool several_machines =
      std::ranges::any_of(sweep.points, [](const Swept& swept) { return !!swept.processor; });
  const bool several_levels = std::ranges::any_of(
      sweep.points, [](const Swept& swept) { return swept.point.arguments.contains(kInner); });
  std::string text;
  for (const Swept& swept : sweep.points) {
    Cells head = {{in_csv("subject"), swept.point.subject}};
    for (const std::string& name : names) {
      if (name == kInner) {
        continue;  // part of M_levels
      }
      const Arguments& arguments = swept.point.arguments;
      head.push_back({in_csv(column_of(name)), arguments.contains(name)
                                                   ? CellValue(to_string(arguments.value(name)))
                                                   : absent()});
    }
    head.push_back({in_csv("fits"), swept.failed ? Json("failed") : Json(swept.fits)});
    head.push_back({in_csv("kernel"), swept.kernel});
    head.push_back({in_csv("blocks"), swept.blocks});
    const auto add_row = [&](const SweptPhase& phase, const std::optional<Index>& bound,
                             std::size_t level) {
      const bool whole = phase.counts.path.empty() && level > swept.inner.size();
      Cells cells = phase_cells(phase, bound);
      for (std::size_t k = 1; k < cells.size() && !swept.fits; ++k) {
        cells[k].value = absent();
      }
      cells = joined(joined(head, cells), speed_cells(whole ? swept.speed : std::nullopt));
      if (several_machines) {
        cells.push_back({in_csv("processor"), Json(swept.processor)});
      }
      cells.push_back({in_csv("why"), swept.why});
      if (several_levels) {
        cells.push_back({in_csv("M_levels"), M_levels(swept.point.arguments)});
        cells.push_back({in_csv("level"), static_cast<Index>(level)});
      }
      text += (text.empty() ? csv_head(cells) : "") + csv_line(cells);
    };
    const auto add = [&](const SweptLevel& of, std::size_t level) {
      for (const SweptPhase& phase : of.phases) {
        add_row(phase, of.bound, level);
      }
      add_row(of.total, of.bound, level);
    };
    add(swept.levels().back(), swept.inner.size() + 1);
    for (std::size_t level = 0; level < swept.inner.size(); ++level) {
      add(swept.inner[level], level + 1);
    }
  }
  return text;
}

std::string to_json(const Sweep& sweep, const std::string& context) {
  const Json parsed_context = parse_json(context, "context");
  const bool seeded = sweep.how != "count" && !parsed_context.contains(kProgram);
  Json head = {{"schema", kSchema},
               {"redblue", kKindOfSweep},
               {"context", parsed_context},
               {"how", sweep.how},
               {"seed", seeded ? Json(kSweepSeed) : Json()},
               {"suite", sweep.suite}};
  if (!sweep.part.is_whole()) {
    head["part"] = to_string(sweep.part);
  }
  if (!sweep.missing.empty()) {
    head["missing"] = sweep.missing;
  }
  // One line for each point, as in the journal.
  std::string text = head.document();
  text.resize(text.size() - 3);  // "\n}\n"
  text += ",\n  \"points\": [";
  const char* between = "\n";
  for (const Swept& swept : sweep.points) {
    text += between + json_of(swept).dump();
    between = ",\n";
  }
  return text + "\n]\n}\n";
}

Sweep parse_sweep(std::string_view text, const std::string& place) {
  const Json json = parse_json(text, place);
  const JsonField document(json, place);
  if (!document.has("redblue") || json.at("redblue") != kKindOfSweep) {
    throw InputError(place + " is no sweep: `redblue sweep` makes one");
  }
  if (const Json& schema = document["schema"].json(); schema != kSchema) {
    throw InputError(fmt::format("{} has schema {}; this program reads {}: sweep again", place,
                                 in_short(schema), kSchema));
  }
  Sweep sweep{.how = document["how"].text(), .suite = document["suite"].text()};
  const JsonField context = document["context"];
  sweep.context = facts_of(context);
  sweep.program = context.has(kProgram) ? context[kProgram].text() : "";
  if (document.has("part")) {
    const auto part = parse_part(document["part"].text());
    if (!part) {
      document["part"].refuse("is no i/N");
    }
    sweep.part = *part;
  }
  if (document.has("missing")) {
    for (const JsonField& point : document["missing"].items()) {
      sweep.missing.push_back(point.text());
    }
  }
  for (const JsonField& point : document["points"].items()) {
    sweep.points.push_back(swept_of(point));
  }
  return sweep;
}

}  // namespace redblue
