#include "runtime/report/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/masked.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/report/part_times.hpp"
#include "runtime/report/rank_bounds_report.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"
#include "runtime/theory/rates.hpp"

namespace redblue {
namespace {

// Stands for flops beyond 63 bits, which are left out. Words beyond 63 bits are refused earlier.
constexpr Index kTooMany = -1;

// Returns the counts by the formula, for a kernel that did not run.
PhaseCounts predicted(const PhaseCost& cost) {
  return {.path = cost.path,
          .io = {.reads = cost.reads.value(), .writes = cost.writes.value()},
          .operations = {.flops = cost.flops.overflowed() ? kTooMany : cost.flops.value()},
          .peak = cost.peak.value(),
          .indices = {.reads = cost.index_reads.value(), .writes = cost.index_writes.value()}};
}

// Returns the speed of the whole run, copies included; 0 for a run too short for the clock.
double gflops(const Part& part) {
  const double seconds = part.counted->seconds->total;
  return seconds > 0 ? 1e-9 * static_cast<double>(part.counted->total.operations.flops) / seconds
                     : 0;
}

// Returns the seconds outside phases: creating matrices, starting workers, waiting for the last
// worker.
double seconds_outside(const RunCounts::Seconds& seconds) {
  return seconds.total - std::accumulate(seconds.phases.begin(), seconds.phases.end(), 0.0);
}

// Returns the words counted beyond the formula. An extra read and a missing write do not cancel
// out, and neither do an index and a value.
std::string difference(const PhaseCounts& counted, const PhaseCounts& formula) {
  const IoCount off = counted.io - formula.io;
  const std::string words = (off.reads < 0) == (off.writes < 0) || off.reads == 0 || off.writes == 0
                                ? grouped(off.io())
                                : fmt::format("{}, {}", grouped(off.reads), grouped(off.writes));
  return counted.indices == formula.indices
             ? words
             : fmt::format("{}; {} of indices", words,
                           grouped((counted.indices - formula.indices).io()));
}

// One fast memory of a part, with the counts of its run, or of the formulas if it did not run.
struct Level {
  Index M;
  const std::vector<PhaseCost>* formula;
  std::vector<PhaseCounts> phases;
  PhaseCounts total;
};

// Returns the levels of a part from the innermost out. Without inner levels it returns `equal`
// copies of the machine's level.
std::vector<Level> levels_of(const Part& part, std::size_t equal) {
  std::vector<Level> all;
  const auto add = [&](Index M, const std::vector<PhaseCost>& formula, const auto* counted) {
    Level& level = all.emplace_back(Level{M, &formula, {}, predicted(total(formula))});
    if (counted != nullptr) {
      level.phases = counted->phases;
      level.total = counted->total;
    } else {
      std::ranges::transform(formula, std::back_inserter(level.phases), predicted);
    }
  };
  for (std::size_t k = 0; k < part.levels.size(); ++k) {
    add(part.levels[k].M, part.levels[k].phases, part.counted ? &part.counted->inner[k] : nullptr);
  }
  for (std::size_t k = 0; k < (part.levels.empty() ? equal : 1); ++k) {
    add(part.plan.M, part.formula, part.counted ? &*part.counted : nullptr);
  }
  return all;
}

// Returns false for a nest, whose run moves words and computes nothing.
bool computes(const Part& part) {
  const auto name = parse_kernel_name(part.plan.kernel);
  return !name || !name->kernel->is_nest;
}

// Returns the members that the total has and phases lack.
Cells total_cells(const Part& part) {
  Cells cells;
  if (part.counted) {
    cells.push_back({in_json("span"), *part.counted->span});
    if (part.peak_gflops > 0 && computes(part)) {
      cells.push_back({in_json("gflops"), gflops(part)});
      cells.push_back({in_json("peak_gflops"), part.peak_gflops});
      cells.push_back({in_json("percent_of_peak"), 100 * gflops(part) / part.peak_gflops});
    }
  }
  if (part.team.workers > 1) {
    cells.push_back({in_json("largest_worker.io"),
                     part.counted ? *part.counted->largest : part.largest.value()});
    cells.push_back({in_json("largest_worker.formula"), part.largest.value()});
  }
  return cells;
}

// Returns the row of a phase, or of the whole part if `whole` is true. `seconds` is set if it ran.
// A row of one of several levels (`of_levels`) has no operations, seconds and kinds of words. They
// belong to the machine.
Cells count_cells(const Part& part, const Level& level, const PhaseCounts& counted,
                  const PhaseCost& cost, const std::optional<double>& seconds, bool whole,
                  bool of_levels) {
  const auto own = [&](const char* name) { return of_levels ? "" : name; };
  const auto of_formula = [&](const char* key, const char* column) {
    return CellNames("", whole && !of_levels ? "" : key, column);
  };
  const auto words = static_cast<double>(counted.io.io());
  const auto all_words = static_cast<double>(std::max<Index>(level.total.io.io(), 1));
  const PhaseCounts formula = predicted(cost);
  const PhaseCost all = total(*level.formula);
  const bool has_indices = all.index_reads + all.index_writes > Words(0);
  const auto [flops, elementwise] = counted.operations;
  const CellValue peak = counted.peak;
  return joined(
      {{{"phase", whole ? "" : "path", "phase"}, whole ? "total" : cost.path},
       {"reads", counted.io.reads},
       {"writes", counted.io.writes},
       {{has_indices ? own("indices") : "", own("index_reads"), "index_reads"},
        counted.indices.reads},
       {{"", own("index_writes"), "index_writes"}, counted.indices.writes},
       {in_json(whole ? "io" : ""), counted.io.io()},
       bytes_cell(part.plan.problem.word_bytes, counted.io.io(), {own("bytes"), "bytes"}),
       {in_table("share"), decimals(100 * words / all_words, 1, "%")},
       {"peak", counted.peak == formula.peak
                    ? peak
                    : peak.shown(fmt::format("{} (formula {})", grouped(counted.peak),
                                             grouped(formula.peak)))},
       {in_table("peak / M"),
        decimals(static_cast<double>(counted.peak) / static_cast<double>(level.M), 3)},
       {{"", own("flops"), "flops"}, flops == kTooMany ? Json() : Json(flops)},
       {{"", own("elementwise"), "elementwise"}, seconds ? CellValue(elementwise) : absent()},
       {in_table(seconds ? "formula" : ""), formula.io.io()},
       {in_table(seconds ? "difference" : ""), difference(counted, formula)},
       {{seconds ? own("seconds") : "", own("seconds"), "seconds"},
        seconds ? decimals(*seconds, 4) : absent()}},
      whole && !of_levels ? total_cells(part) : Cells(),
      {{of_formula("formula.reads", "formula_reads"), formula.io.reads},
       {of_formula("formula.writes", "formula_writes"), formula.io.writes},
       {of_formula("formula.peak", "formula_peak"), formula.peak}});
}

// Returns a row for each phase and a last row for the whole part. `last` ends each row.
std::vector<Cells> level_rows(const Part& part, const Level& level, bool of_levels,
                              const Cells& last) {
  const auto seconds = part.counted ? part.counted->seconds : std::nullopt;
  std::vector<Cells> rows;
  const auto add = [&](const PhaseCounts& counted, const PhaseCost& cost,
                       const std::optional<double>& its_seconds, bool whole) {
    rows.push_back(
        joined(count_cells(part, level, counted, cost, its_seconds, whole, of_levels), last));
  };
  for (std::size_t k = 0; k < level.phases.size(); ++k) {
    add(level.phases[k], (*level.formula)[k],
        seconds ? std::optional(seconds->phases[k]) : std::nullopt, false);
  }
  add(level.total, total(*level.formula), seconds ? std::optional(seconds->total) : std::nullopt,
      true);
  return rows;
}

// Returns the sum of the phases that bring operands into the layout of the other phases. This work
// serves many calls. The path is empty if the kernel has no such phases.
PhaseCost preparation(const std::vector<PhaseCost>& phases) {
  constexpr std::string_view kPrepare = "prepare";
  PhaseCost sum{};
  for (const PhaseCost& phase : phases) {
    if (std::string_view(phase.path).substr(0, phase.path.find('/')) == kPrepare) {
      sum.path = kPrepare;
      sum.reads += phase.reads;
      sum.writes += phase.writes;
    }
  }
  return sum;
}

Json links_json(const Links& links) {
  const auto rank = [](Index of) { return of == kOthers ? Json() : Json(of); };
  Json json = Json::array();
  for (const auto& [link, count] : links) {
    json.push_back({{"phase", link.phase},
                    {"from", rank(link.from)},
                    {"to", rank(link.to)},
                    {"words", count.words},
                    {"messages", count.messages}});
  }
  return json;
}

Json words_json(const IoCount& io, Index peak) {
  return {{"reads", io.reads}, {"writes", io.writes}, {"io", io.io()}, {"peak", peak}};
}

// Returns one rank, with the counts of a run if it ran and with the formulas.
Json rank_json(const Ranks& ranks, Index rank) {
  const auto at = static_cast<std::size_t>(rank);
  const RankCost& formula = ranks.formula[at];
  const PhaseCounts arena = predicted(total(formula.arena));
  const Links links = ranks.links(rank);
  Json json = {{"rank", rank},
               {"row", rank % ranks.grid.ranks() / ranks.grid.columns},
               {"column", rank % ranks.grid.columns},
               {"pairs", ranks.pairs[at].value()},
               {"arena", words_json(arena.io, arena.peak)},
               {"links", links_json(links)},
               {"received", received(links, rank).value()},
               {"sent", sent(links, rank).value()},
               {"home", ranks.home(rank).value()}};
  if (!ranks.counted.empty()) {
    const RankCounts& counts = ranks.counted[at];
    json["formula"] = {{"arena", json.at("arena")},
                       {"received", received(formula.links, rank).value()},
                       {"sent", sent(formula.links, rank).value()},
                       {"home", formula.home.value()}};
    json["arena"] = words_json(counts.arena.total.io, counts.arena.total.peak);
    json["arena"].update(
        {{"seconds", counts.arena.seconds->total}, {"seconds_in_links", counts.seconds_in_links}});
  }
  return json;
}

// Says what ranks received, sent and moved, and where the counts differ from the formulas.
std::string to_words_of_ranks(const Part& part) {
  const Ranks& ranks = *part.ranks;
  const Index largest = ranks.largest();
  const Links links = ranks.links(largest);
  const PhaseCost arena = total(ranks.formula[static_cast<std::size_t>(largest)].arena);
  std::string text = fmt::format(
      "{}, {}{}: busiest rank {}: receives {} words, sends {}, moves {} in its fast memory, "
      "has a home of {}\n{} words on the longest chain of messages\n",
      counted(ranks.size(), "rank"), ranks.sets == 1 ? "" : fmt::format("{} sets of ", ranks.sets),
      ranks.grid.ring ? "in a ring" : fmt::format("{} by {}", ranks.grid.rows, ranks.grid.columns),
      largest, grouped(received(links, largest).value()), grouped(sent(links, largest).value()),
      grouped((arena.reads + arena.writes).value()), grouped(ranks.home(largest).value()),
      grouped(ranks.path().value()));
  if (!part.plan.problem.mask.full()) {
    text += fmt::format("most pairs on one rank / mean: {:.3f}\n", ranks.imbalance());
  }
  text += to_words(beside_rank_bounds(part));
  for (Index rank = 0; rank < std::ssize(ranks.counted); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    if (ranks.links(rank) != ranks.formula[at].links ||
        Words(ranks.counted[at].home) != ranks.formula[at].home) {
      text += fmt::format("rank {}: other links or another home than by the formulas\n", rank);
    }
  }
  return text;
}

void add_ranks(Description& of, const Part& part) {
  const Ranks& ranks = *part.ranks;
  Json all = Json::array();
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    all.push_back(rank_json(ranks, rank));
  }
  of.fact("grid", Json{{"rows", ranks.grid.rows},
                       {"columns", ranks.grid.columns},
                       {"sets", ranks.sets},
                       {"groups", key_groups_of(part.plan)},
                       {"ring", ranks.grid.ring}});
  of.fact("ranks", all);
  of.fact("largest", rank_json(ranks, ranks.largest()));
  of.fact("path", ranks.path().value());
  of.fact("rank_bounds", rank_bounds_json(beside_rank_bounds(part)));
  of.text(to_words_of_ranks(part));
}

// Returns "K, V from bfloat16; Q from float64".
std::string converted_words(const Report& report) {
  std::map<std::string, std::vector<std::string>> names;
  for (const auto& [name, type] : report.converted) {
    names[type].push_back(name);
  }
  std::string words;
  for (const auto& [type, its] : names) {
    words += fmt::format("{}{} from {}", words.empty() ? "" : "; ", fmt::join(its, ", "), type);
  }
  return words;
}

// Returns a text on the speed and the shares of several workers.
std::string speed(const Part& part) {
  if (!part.counted || part.peak_gflops == 0) {
    return "";
  }
  const Index workers = part.team.workers;
  std::string text;
  if (computes(part)) {
    text += fmt::format("{:.1f} GF/s, {:.0f}% of the {:.1f} that multiply-adds reach ({})\n",
                        gflops(part), 100 * gflops(part) / part.peak_gflops, part.peak_gflops,
                        simd_target());
  }
  if (workers > 1) {
    text += fmt::format("{} workers, the busiest moved {} words (formula {}){}\n", workers,
                        grouped(*part.counted->largest), grouped(part.largest.value()),
                        part.unpinned.empty() ? "" : "; not pinned: " + part.unpinned);
    text += fmt::format(
        "seconds of a phase are the mean of the workers; outside all phases they spent {:.4f}\n",
        seconds_outside(*part.counted->seconds));
  }
  return text;
}

// Cells for bytes of a store. The text shows bytes found in memory with a minus, because they did
// not move.
Cells bytes_cells(const StoreBytes& bytes) {
  return {{{"words", "words", ""}, bytes.words},
          {{"granules", "whole_granules", ""}, bytes.whole_granules},
          {{"padding", "padding", ""}, bytes.padding},
          {{"checksums", "checksums", ""}, bytes.checksums},
          {{"headers", "headers", ""}, bytes.headers},
          {{"repeated", "repeated", ""}, bytes.repeated},
          {{"cached", "at_hand", ""}, CellValue(bytes.at_hand).shown(grouped(-bytes.at_hand))},
          {{"moved", "moved", ""}, bytes.moved},
          {{"requests", "requests", ""}, bytes.requests}};
}

Json traffic_json(const StoreReport::Traffic& all) {
  Json json = Json::object();
  for (const auto& [purpose, traffic] : all) {
    json[to_string(purpose)] = {{"read", json_of(bytes_cells(traffic.read))},
                                {"written", json_of(bytes_cells(traffic.written))}};
  }
  return json;
}

std::vector<Cells> traffic_rows(const StoreReport& store) {
  std::vector<Cells> rows;
  for (const auto& [purpose, traffic] : store.traffic) {
    for (const auto& [direction, bytes] :
         {std::pair("read", &traffic.read), std::pair("written", &traffic.written)}) {
      if (bytes->requests != 0) {
        rows.push_back(
            joined({{in_table("bytes of"), fmt::format("{}, {}", to_string(purpose), direction)}},
                   bytes_cells(*bytes)));
      }
    }
  }
  return rows;
}

// Returns the bytes that a rank moved for all purposes.
Cells rank_cells(Index rank, const StoreReport::OfRank& of) {
  StoreTraffic all;
  for (const auto& [_, traffic] : of.traffic) {
    all.read += traffic.read;
    all.written += traffic.written;
  }
  return {{in_table("rank"), std::to_string(rank)},
          {in_table("bytes read"), all.read.moved},
          {in_table("requests"), all.read.requests},
          {in_table("bytes written"), all.written.moved},
          {in_table("requests"), all.written.requests},
          {{"words buffered", "buffered", ""}, of.buffered},
          {in_json("bytes"), traffic_json(of.traffic)},
          {in_json("resident"), of.resident}};
}

Description describe(const StoreReport& store) {
  const auto or_null = [](const auto& text) { return text.empty() ? Json() : Json(text); };
  // Ranks may keep their checkpoints in a store without reading or writing operands there.
  const bool of_checkpoints = store.engine.empty();
  Description of;
  of.fact("directory", store.directory);
  if (of_checkpoints) {
    of.say("\ncheckpoints of ranks in {}", printable(store.directory));
  } else {
    of.say("\non disk in {}: {}{}, {}\n", printable(store.directory), store.engine,
           store.no_uring.empty() ? "" : " (io_uring: " + store.no_uring + ")",
           store.indirect.empty() ? "direct" : "not direct: " + store.indirect);
    of.facts({{in_json("engine"), store.engine},
              {in_json("no_uring"), or_null(store.no_uring)},
              {in_json("direct"), store.indirect.empty()},
              {in_json("indirect"), or_null(store.indirect)},
              {in_json("granule"), store.granule_bytes},
              {in_json("depth"), store.depth},
              {in_json("found"), store.found},
              {in_json("bytes"), traffic_json(store.traffic)}});
    of.table("", traffic_rows(store));
  }
  if (!store.ranks.empty()) {
    of.text("\n");
    Index rank = 0;
    of.table(of_checkpoints ? "" : "ranks",
             rows_of(store.ranks, [&](const auto& its) { return rank_cells(rank++, its); }));
  }
  of.fact("resumed_at", store.resumed_at);
  if (store.resumed_at) {
    of.text(of_checkpoints
                ? fmt::format("resumed: all ranks together had done {}, counted once for each "
                              "stage and each group of keys\n",
                              counted(*store.resumed_at, "row block"))
                : fmt::format("gone on from row block {}\n", *store.resumed_at));
  }
  of.fact("checkpoints", Json{{"files", store.checkpoints}, {"bytes", store.checkpoint_bytes}});
  if (store.checkpoints > 0) {
    of.say("{} checkpoints, {} bytes", store.checkpoints, grouped(store.checkpoint_bytes));
  }
  of.fact("resident", store.resident);
  of.say("{} had at most {} in memory", store.ranks.empty() ? "the process" : "the largest process",
         format_bytes(store.resident));
  return of;
}

// Returns the words of both kernels, unless the request gave O and L.
std::optional<Index> total_from_nothing(const Report& report) {
  if (!report.from_nothing) {
    return std::nullopt;
  }
  return (Words(report.kernel.io()) + (report.forward ? report.forward->io() : 0)).value();
}

// Returns the name in the request, or the name of the kernel that the planner chose.
std::string name_of(const Report& report) {
  const Plan& plan = report.kernel.plan;
  return report.asked == plan.kernel ? plan.kernel : spelled(plan);
}

// Returns the words that all parts moved at each level. Without inner levels it has `equal` copies
// of the machine's level.
std::vector<Index> moved_at_levels(const Report& report, std::size_t equal) {
  std::vector<Index> words;
  for (const Part* part : {&report.kernel, report.forward ? &*report.forward : nullptr}) {
    if (part != nullptr) {
      const std::vector<Level> levels = levels_of(*part, equal);
      words.resize(levels.size());
      for (std::size_t k = 0; k < levels.size(); ++k) {
        words[k] += levels[k].total.io.io();
      }
    }
  }
  return words;
}

WordsOfLevels words_of_levels(const Report& report) {
  return {moved_at_levels(report, 1), report.kernel.plan.problem.word_bytes.value_or(kFloatBytes)};
}

// Returns the sum of the words of all levels, weighted with the costs in the request. Requires:
// costs.
double weighted(const Report& report) {
  const std::vector<Index> words = moved_at_levels(report, report.equal_levels);
  return std::inner_product(report.word_costs.begin(), report.word_costs.end(), words.begin(), 0.0);
}

// A bound and its ratios. `given` is the ratio of the kernel alone, `ratio` of the kernel and its
// forward kernel. Bounds are for algorithms that may be given O and L, so they also hold for
// computing from nothing. If a forward kernel computes O and L, the report has both ratios.
struct OverBound {
  std::optional<Bound> bound;
  double given = 0, ratio = 0;
  bool after_forward = false;
};

OverBound over_bound(const Report& report, const std::optional<Bound>& bound, Index kernel,
                     Index both) {
  const double least = bound ? static_cast<double>(bound->words) : 1;
  return {bound, static_cast<double>(kernel) / least, static_cast<double>(both) / least,
          report.forward.has_value()};
}

OverBound over_bound_of_level(const Report& report, std::size_t level) {
  const bool inner = level < report.kernel.levels.size();
  const std::vector<std::optional<Bound>>& of_inner = report.level_bounds;
  return over_bound(report,
                    !inner                    ? report.bound
                    : level < of_inner.size() ? of_inner[level]
                                              : std::nullopt,
                    levels_of(report.kernel, report.equal_levels)[level].total.io.io(),
                    moved_at_levels(report, report.equal_levels)[level]);
}

void add_bound(Description& of, const OverBound& over) {
  of.fact("lower_bound", over.bound ? bound_json(*over.bound) : Json());
  of.fact("ratio", over.bound ? Json(over.ratio) : Json());
  of.fact("ratio_given_OL", over.bound && over.after_forward ? CellValue(over.given) : absent());
}

std::string times_text(const OverBound& over) {
  return over.after_forward ? fmt::format("ratio {:.3f} after a forward pass, {:.3f} from scratch",
                                          over.given, over.ratio)
                            : fmt::format("ratio {:.3f}", over.ratio);
}

// ---- a kernel ------------------------------------------------------------------------------

bool has_levels(const Report& report) {
  return !report.kernel.levels.empty() || report.equal_levels > 1;
}

// Returns "8192/262144".
std::string M_levels(const std::vector<Level>& levels) {
  std::string text;
  for (const Level& level : levels) {
    text += (text.empty() ? "" : "/") + std::to_string(level.M);
  }
  return text;
}

// The CSV cells after the cells of a phase.
Cells last_cells(const Report& report, const std::vector<Level>& levels, std::size_t level) {
  Cells cells = {{in_csv("operands"), to_cell(report.operands)}};
  if (has_levels(report)) {
    cells.push_back({in_csv("M_levels"), M_levels(levels)});
    cells.push_back({in_csv("level"), static_cast<Index>(level + 1)});
  }
  return cells;
}

// Adds all levels. The text leaves out the machine's own level, because the main table has it.
void add_levels(Description& of, const Report& report, const Part& part) {
  const std::vector<Level> levels = levels_of(part, report.equal_levels);
  for (std::size_t k = 0; k < levels.size(); ++k) {
    const bool inner = k < part.levels.size();
    Description level;
    level.fact("M", levels[k].M);
    if (inner) {
      level.say("\nlevel {}, M = {} words\n", k + 1, grouped(levels[k].M));
    }
    std::vector<Cells> rows = level_rows(part, levels[k], true, last_cells(report, levels, k));
    if (!inner) {
      std::ranges::transform(rows, rows.begin(), only_in_json);
    }
    level.table("phases", "total", std::move(rows));
    if (&part == &report.kernel) {
      add_bound(level, over_bound_of_level(report, k));
    }
    of.element("levels", level);
  }
}

// Adds the words that prepare a sparse pattern, once for many calls.
void add_preparation(Description& of, const Part& part) {
  if (const auto prepare = regrouping(part.plan)) {
    of.fact("prepare", regrouping_json(*prepare));
    of.text(to_words(*prepare));
  }
  if (const PhaseCost prepare = preparation(part.formula); !prepare.path.empty()) {
    of.fact("prepare", regrouping_json({prepare.reads, prepare.writes}));
  }
}

// Describes a kernel on one machine or on ranks, with one or several levels of fast memory.
Description describe(const Report& report, const Part& part) {
  const Plan& plan = part.plan;
  const std::vector<Level> levels = levels_of(part, 1);
  const PhaseCounts formula = predicted(total(part.formula));
  Description of;
  of.facts(only_in_csv(joined(kernel_cells(spelled(plan), plan.problem.one_head().shape, plan.M),
                              heads_cells(plan.pass, plan.problem, part.team.heads))));
  of.fact("blocks", blocks_json(plan.blocks));
  if (!part.levels.empty()) {
    of.say("level {}, M = {} words\n", part.levels.size() + 1, grouped(plan.M));
  } else if (report.equal_levels > 1) {
    of.say("levels 1 to {}, M = {} words each\n", report.equal_levels, grouped(plan.M));
  }
  of.table("phases", "total",
           level_rows(part, levels.back(), false, last_cells(report, levels, part.levels.size())));
  of.fact("formula", words_json(formula.io, formula.peak));
  add_preparation(of, part);
  of.text(speed(part));
  if (part.ranks) {
    add_ranks(of, part);
  }
  if (has_levels(report)) {
    add_levels(of, report, part);
  }
  return of;
}

// Adds the median, the least and the most seconds of several runs.
void add_repeated(Description& of, std::vector<double> seconds) {
  if (seconds.empty()) {
    return;
  }
  const auto [least, most] = std::ranges::minmax(seconds);
  const std::size_t runs = seconds.size();
  const double middle = median(std::move(seconds));
  of.facts({{in_json("repeat.runs"), runs},
            {in_json("repeat.median"), middle},
            {in_json("repeat.least"), least},
            {in_json("repeat.most"), most}});
  of.say("{} runs: median {:.2f} ms, from {:.2f} to {:.2f} ms", runs, 1e3 * middle, 1e3 * least,
         1e3 * most);
}

// ---- the problem ---------------------------------------------------------------------------

// Returns the problem of the request. It is sparse also if the kernel takes its operands as dense.
Problem asked_problem(const Report& report) {
  const Problem& problem = report.kernel.plan.problem;
  return report.densified.dense() ? problem : problem.with_sparsity(report.densified);
}

void add_pattern(Description& of, const Report& report) {
  const Plan& plan = report.kernel.plan;
  const Problem problem = asked_problem(report);
  if (problem.sparsity.dense()) {
    const Words pairs = problem.one_head().pairs();
    of.fact("pairs", plan.pass == Pass::product ? absent()
                     : pairs.overflowed()       ? CellValue(nullptr)
                                                : CellValue(pairs.value()));
    return;
  }
  std::string text;
  const Json sparse = sparse_json(plan.pass, problem, report.sparse_sources);
  for (const auto& [name, operand] : sparse.items()) {
    if (operand.is_object()) {
      text += fmt::format(
          "{}{} {}{}", text.empty() ? "" : ", ", name, grouped(operand.at("stored").get<Index>()),
          operand.contains("from") ? fmt::format(" ({})", operand.at("from").get<std::string>())
                                   : "");
    }
  }
  if (plan.pass == Pass::product) {
    of.say("entries: {}", text);
  } else {
    of.fact("pairs", sparse.at("pairs"));
    of.say("entries: {}; {} live pairs", text, grouped(problem.sparsity.pairs().value()));
  }
  if (!report.densified.dense()) {
    of.fact("densified", true);
    of.say("operands densified: the kernel takes A1, X and A2 as dense matrices");
  }
}

void add_problem(Description& of, const Report& report) {
  const Plan& plan = report.kernel.plan;
  const Problem& problem = plan.problem;
  of.facts(
      {{in_json("kernel"), name_of(report)},
       {in_json("given"), report.given},
       {in_json("n"), problem.queries()},
       {in_json("m"), problem.shape.m},
       {in_json("d"), problem.shape.d},
       {in_json("M"), plan.M},
       {in_json("problem"), to_string(plan.pass)},
       {in_json("objective"), to_string(report.objective)},
       {in_json("balanced_share"), report.narrow ? CellValue(report.balanced_share) : absent()},
       {in_json("given_blocks"),
        report.given_blocks.empty() ? absent() : CellValue(report.given_blocks)},
       {in_json("multiple"), report.multiple > 1 ? CellValue(report.multiple) : absent()},
       {in_json("threads"), report.kernel.team.workers},
       {in_json("softmax_scale"), problem.inputs == Inputs::plain
                                      ? CellValue(static_cast<double>(problem.scale()))
                                      : absent()},
       {in_json("sharing"),
        problem.sharing == Sharing::none ? absent() : CellValue(to_string(problem.sharing))},
       {in_json("asked"), report.asked == name_of(report) ? absent() : CellValue(report.asked)}});
  of.facts(only_in_json(heads_cells(plan.pass, problem, report.kernel.team.heads)));
  of.facts(problem_cells(plan.pass, asked_problem(report),
                         plan.pass == Pass::product ? std::vector<Signature>()
                                                    : find_kernel(plan.kernel).results(problem),
                         report.sparse_sources));
  add_pattern(of, report);
}

void add_operands(Description& of, const Report& report) {
  if (report.kernel.counted || report.seed) {
    of.fact("context.simd", simd_target());
    of.fact("seed", report.seed);  // null if the seed was not used
    of.fact("operands", origins_json(report.operands));
    of.fact("converted", report.converted.empty() ? absent() : CellValue(report.converted));
  }
  if (!report.operands.empty()) {
    of.say("operands: {}", to_words(report.operands, report.seed));
  }
  if (!report.converted.empty()) {
    of.say("converted to float32: {}", converted_words(report));
  }
}

// Adds bounds, costs and a device, after all words.
void add_beside(Description& of, const Report& report) {
  const OverBound over = over_bound(report, report.bound, report.kernel.io(),
                                    total_from_nothing(report).value_or(report.kernel.io()));
  add_bound(of, over);
  if (report.bound) {
    const std::size_t inner = report.kernel.levels.size();
    of.say("\nlower bound{} ({}): {} words; {}",
           inner == 0 ? "" : fmt::format(" of level {}", inner + 1), report.bound->name,
           grouped(report.bound->words), times_text(over));
    if (const PhaseCost prepare = preparation(report.kernel.formula); !prepare.path.empty()) {
      of.fact("ratio_without_prepare",
              over.ratio - static_cast<double>((prepare.reads + prepare.writes).value()) /
                               static_cast<double>(report.bound->words));
    }
    for (std::size_t level = 0; level < inner; ++level) {
      if (const OverBound its = over_bound_of_level(report, level); its.bound) {
        of.say("lower bound of level {} ({}): {} words; {}", level + 1, its.bound->name,
               grouped(its.bound->words), times_text(its));
      }
    }
  }
  if (!report.word_costs.empty()) {
    Memory memory(report.kernel.plan.M);
    memory.inner.resize(report.word_costs.size() - 1);
    memory.word_costs = report.word_costs;
    of.fact("word_costs", report.word_costs);
    of.fact("weighted", weighted(report));
    of.say("words at {}: {:.6g}", costs_text(memory, report.word_costs_from), weighted(report));
  }
  if (report.device) {
    of.member("device", device_figures(*report.device, "words", words_of_levels(report)));
  }
}

// Adds whether the traffic matters. Words of a store or between ranks have another bandwidth.
void add_part_times(Description& of, const Report& report) {
  const bool has_speeds = report.device || report.calibration;
  if (!has_speeds || report.store || report.kernel.ranks) {
    return;
  }
  Work work{.moved = words_of_levels(report), .workers = report.kernel.team.workers};
  add_operations(work, report.kernel.plan, report.kernel.team.heads);
  if (report.forward) {
    const Team& team = report.forward->team;
    add_operations(work, report.forward->plan, team.heads, team.workers);
  }
  Memory memory(report.kernel.plan.M);
  memory.inner = inner_levels(report.kernel.plan);
  if (const auto times = part_times(work, report.device, report.calibration, memory)) {
    of.member("part_times", describe(*times));
  }
}

Json verdict_json(const Verdict& error) {
  Json json = {{"value", error.error},       {"bound", error.allowed}, {"ok", error.ok},
               {"relative", error.relative}, {"output", error.output}, {"row", error.row},
               {"column", error.col}};
  if (error.head) {
    json["head"] = *error.head;
  }
  if (error.given_off) {
    json["given_off"] = *error.given_off;
  }
  return json;
}

}  // namespace

std::string to_words(const Verdict& error) {
  if (error.of_counts) {
    return error.ok ? "verified: yes: the counts equal the formulas (a nest computes no values)"
                    : "verified: NO: the counts differ from the formulas";
  }
  const std::string where =
      fmt::format("{}{}({}, {})", error.head ? fmt::format("head {}, ", *error.head) : "",
                  error.output, error.row, error.col);
  if (!error.ok && std::isinf(error.allowed)) {
    return fmt::format(
        "verified: NO: no error can be stated at {}: the scores are too large: smaller inputs, "
        "--scale or --softmax-scale",
        where);
  }
  std::string words = fmt::format(
      "verified: {}: error {:.2g} at {}, {:.2g} of what is allowed; relative error "
      "{:.2g}",
      error.ok ? "yes" : "NO", error.error, where, error.part(), error.relative);
  if (error.given_off) {
    constexpr double kOfAnotherProblem = 1e-3;
    words += fmt::format("; {}O and L are taken as given, {:.2g} off those of the other operands",
                         *error.given_off > kOfAnotherProblem ? "WARNING: " : "", *error.given_off);
  }
  return words;
}

std::string to_words(const Origins& operands, const std::optional<std::uint64_t>& seed) {
  std::string words;
  for (const Origin origin : kOrigins) {
    std::vector<std::string> names;
    for (const auto& [name, its] : operands) {
      if (its == origin) {
        names.push_back(name);
      }
    }
    if (!names.empty()) {
      words += fmt::format("{}{} {}", words.empty() ? "" : "; ", fmt::join(names, ", "),
                           origin == Origin::file    ? "from files"
                           : origin == Origin::array ? "from arrays"
                           : origin == Origin::store ? "from the store"
                           : origin == Origin::made  ? "made"
                                                     : fmt::format("from seed {}", *seed));
    }
  }
  return words;
}

std::string to_cell(const Origins& operands) {
  std::string cell;
  for (const auto& [name, origin] : operands) {
    cell += fmt::format("{}{}={}", cell.empty() ? "" : " ", name, to_string(origin));
  }
  return cell;
}

Json origins_json(const Origins& operands) {
  Json json = Json::object();
  for (const auto& [name, origin] : operands) {
    json[name] = to_string(origin);
  }
  return json;
}

// Returns the goal by which the block sizes were chosen, or names the ones that the request set.
std::string blocks_text(const Report& report) {
  const std::string goal = goal_text(report.objective, report.balanced_share);
  if (report.given_blocks.empty()) {
    return goal;
  }
  return std::ssize(report.given_blocks) == std::ranges::distance(report.kernel.plan.blocks)
             ? "as given"
             : fmt::format("{} as given, the others {}", fmt::join(report.given_blocks, ", "),
                           goal);
}

Description describe(const Report& report) {
  const Plan& plan = report.kernel.plan;
  const auto title = [](const Part& part) { return to_string(part.plan, part.team.heads); };
  Description of = begin_report(
      fmt::format("{}{}   (all {})", report.asked == name_of(report) ? "" : report.asked + ": ",
                  title(report.kernel), in_words(plan.problem)),
      report.M_from, report.inner_from, report.device);
  if (!std::ranges::empty(plan.blocks)) {
    of.say("blocks: {}", blocks_text(report));
  }
  if (report.narrow) {
    of.say("{}", narrow_text(*report.narrow));
  }
  if (report.kernel.counted && plan.problem.word_bytes.value_or(kFloatBytes) != kFloatBytes) {
    of.say("computed in float32; counted in words of {} bytes", *plan.problem.word_bytes);
  }
  add_problem(of, report);
  add_operands(of, report);
  of.text("\n");
  of.add(describe(report, report.kernel));
  if (const Index peak = total(plan.phases).peak.value(); peak > plan.M) {
    of.say("\nThese blocks do not fit: they need M = {}, {} words more.", grouped(peak),
           grouped(peak - plan.M));
  }
  if (const auto both = total_from_nothing(report)) {
    of.fact("total_from_nothing", *both);
  }
  if (report.forward) {
    Description forward = describe(report, *report.forward);
    forward.fact("kernel", spelled(report.forward->plan));
    of.say("\nO and L by {}\n", title(*report.forward));
    of.member("forward", forward);
    of.say("\nfrom scratch, with the forward pass: {} words", grouped(*total_from_nothing(report)));
  }
  add_repeated(of, report.repeated);
  add_beside(of, report);
  if (report.error) {
    if (report.error->of_counts) {
      of.fact("counts_equal_formulas", report.error->ok);
    } else {
      of.fact("error", verdict_json(*report.error));
    }
    of.say("\n{}", to_words(*report.error));
  }
  if (report.store) {
    of.member("store", describe(*report.store));
  }
  add_part_times(of, report);
  return of;
}

}  // namespace redblue
