#include "runtime/report/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/arithmetic/simd.hpp"
#include "kernels/masked.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/report/rank_bounds_report.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/system/memory.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/printable.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

// Flops beyond 63 bits are left out. Words beyond 63 bits are refused before.
constexpr Index kTooMany = -1;

// The counts by the formula, for a kernel that did not run.
PhaseCounts predicted(const PhaseCost& cost) {
  return {.path = cost.path,
          .io = {.reads = cost.reads.value(), .writes = cost.writes.value()},
          .operations = {.flops = cost.flops.overflowed() ? kTooMany : cost.flops.value()},
          .peak = cost.peak.value(),
          .indices = {.reads = cost.index_reads.value(), .writes = cost.index_writes.value()}};
}

// The speed of the whole run, copies included; 0 for a run too short for the clock.
double gflops(const Part& part) {
  const double seconds = part.counted->seconds->total;
  return seconds > 0 ? 1e-9 * static_cast<double>(part.counted->total.operations.flops) / seconds
                     : 0;
}

// Seconds outside phases: making matrices, starting workers, waiting for the last.
double seconds_outside(const RunCounts::Seconds& seconds) {
  return seconds.total - std::accumulate(seconds.phases.begin(), seconds.phases.end(), 0.0);
}

// Words counted beyond the formula. One read too many and one write too few do not cancel out; nor
// do an index and a value.
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

// The members of the total that phases lack.
Cells total_cells(const Part& part) {
  Cells cells;
  if (part.counted) {
    cells.push_back({in_json("span"), *part.counted->span});
    if (part.peak_gflops > 0) {
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

// The row of a phase, or of the `whole` part. `seconds` are set if it ran.
Cells count_cells(const Part& part, const PhaseCounts& counted, const PhaseCost& cost,
                  const std::optional<double>& seconds, bool whole) {
  const auto M = static_cast<double>(part.plan.M);
  const auto words = static_cast<double>(counted.io.io());
  const PhaseCounts by_formula = predicted(cost);
  const IoCount formula = by_formula.io;
  const IoCount indices = counted.indices;
  const PhaseCost all = total(part.formula);
  const bool has_indices = all.index_reads + all.index_writes > Words(0);
  const Index peak = cost.peak.value();
  const auto [flops, elementwise] = counted.operations;
  Cells cells = {
      {{"phase", whole ? "" : "path", "phase"}, whole ? "total" : cost.path},
      {"reads", counted.io.reads},
      {"writes", counted.io.writes},
      {{has_indices ? "indices" : "", "index_reads", "index_reads"}, indices.reads},
      {in_json_and_csv("index_writes"), indices.writes},
      {in_json(whole ? "io" : ""), counted.io.io()},
      bytes_cell(part.plan.problem.word_bytes, counted.io.io()),
      {in_table("share"), decimals(100 * words / static_cast<double>(part.io()), 1, "%")},
      {"peak",
       counted.peak == peak
           ? CellValue(peak)
           : CellValue(counted.peak)
                 .shown(fmt::format("{} (formula {})", grouped(counted.peak), grouped(peak)))},
      {in_table("peak / M"), decimals(static_cast<double>(counted.peak) / M, 3)},
      {in_json_and_csv("flops"), flops == kTooMany ? Json() : Json(flops)},
      {in_json_and_csv("elementwise"), seconds ? CellValue(elementwise) : absent()}};
  if (seconds) {
    cells.push_back({in_table("formula"), formula.io()});
    cells.push_back({in_table("difference"), difference(counted, by_formula)});
  }
  cells.push_back(
      {{seconds ? "seconds" : "", "seconds"}, seconds ? decimals(*seconds, 4) : absent()});
  return joined(joined(std::move(cells), whole ? total_cells(part) : Cells()),
                {{{"", whole ? "" : "formula.reads", "formula_reads"}, formula.reads},
                 {{"", whole ? "" : "formula.writes", "formula_writes"}, formula.writes},
                 {{"", whole ? "" : "formula.peak", "formula_peak"}, peak}});
}

// A row for each phase, and the last one for the whole part.
std::vector<Cells> part_rows(const Part& part) {
  const PhaseCost whole = total(part.formula);
  std::vector<Cells> rows;
  if (const auto& counted = part.counted) {
    for (std::size_t i = 0; i < part.formula.size(); ++i) {
      rows.push_back(count_cells(part, counted->phases[i], part.formula[i],
                                 counted->seconds->phases[i], false));
    }
    rows.push_back(count_cells(part, counted->total, whole, counted->seconds->total, true));
  } else {
    for (const PhaseCost& cost : part.formula) {
      rows.push_back(count_cells(part, predicted(cost), cost, std::nullopt, false));
    }
    rows.push_back(count_cells(part, predicted(whole), whole, std::nullopt, true));
  }
  return rows;
}

// The phases in which operands are brought into the layout that the others read, which serves many
// calls. Without a path where there are none.
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

Json words_json(const PhaseCost& cost) {
  return {{"reads", cost.reads.value()},
          {"writes", cost.writes.value()},
          {"io", (cost.reads + cost.writes).value()},
          {"peak", cost.peak.value()}};
}

// One rank: counted where it ran, and the formulas of the same.
Json rank_json(const Ranks& ranks, Index rank) {
  const auto at = static_cast<std::size_t>(rank);
  const RankCost& formula = ranks.formula[at];
  const bool ran = !ranks.counted.empty();
  const Links links = ranks.links(rank);
  Json json = {{"rank", rank},
               {"row", rank % ranks.grid.ranks() / ranks.grid.columns},
               {"column", rank % ranks.grid.columns},
               {"pairs", ranks.pairs[at].value()},
               {"arena", words_json(total(formula.arena))},
               {"links", links_json(links)},
               {"received", received(links, rank).value()},
               {"sent", sent(links, rank).value()},
               {"home", ranks.home(rank).value()}};
  if (ran) {
    const RankCounts& counts = ranks.counted[at];
    const PhaseCounts& all = counts.arena.total;
    json["arena"] = {{"reads", all.io.reads},
                     {"writes", all.io.writes},
                     {"io", all.io.io()},
                     {"peak", all.peak},
                     {"seconds", counts.arena.seconds->total},
                     {"seconds_in_links", counts.seconds_in_links}};
    json["formula"] = {{"arena", words_json(total(formula.arena))},
                       {"received", received(formula.links, rank).value()},
                       {"sent", sent(formula.links, rank).value()},
                       {"home", formula.home.value()}};
  }
  return json;
}

Json ranks_json(const Part& part) {
  const Ranks& ranks = *part.ranks;
  Json all = Json::array();
  for (Index rank = 0; rank < ranks.size(); ++rank) {
    all.push_back(rank_json(ranks, rank));
  }
  return {{"grid",
           {{"rows", ranks.grid.rows},
            {"columns", ranks.grid.columns},
            {"sets", ranks.sets},
            {"groups", key_groups_of(part.plan)},
            {"ring", ranks.grid.ring}}},
          {"ranks", std::move(all)},
          {"largest", rank_json(ranks, ranks.largest())},
          {"path", ranks.path().value()},
          {"rank_bounds", rank_bounds_json(beside_rank_bounds(part))}};
}

// What ranks received, sent and moved, and where that is not what the formulas say.
std::string to_words_of_ranks(const Part& part) {
  if (!part.ranks) {
    return "";
  }
  const Ranks& ranks = *part.ranks;
  const Index largest = ranks.largest();
  const Links links = ranks.links(largest);
  const PhaseCost arena = total(ranks.formula[static_cast<std::size_t>(largest)].arena);
  std::string text = fmt::format(
      "{}, {}{}: rank {} receives most, {} words, sends {}, moves {} in its arena, and "
      "has a home of {}\n{} words one after the other on the longest path\n",
      counted(ranks.size(), "rank"), ranks.sets == 1 ? "" : fmt::format("{} sets of ", ranks.sets),
      ranks.grid.ring ? "in a ring" : fmt::format("{} by {}", ranks.grid.rows, ranks.grid.columns),
      largest, grouped(received(links, largest).value()), grouped(sent(links, largest).value()),
      grouped((arena.reads + arena.writes).value()), grouped(ranks.home(largest).value()),
      grouped(ranks.path().value()));
  if (!part.plan.problem.mask.full()) {
    text += fmt::format("the rank of most pairs has {:.3f} of their mean\n", ranks.imbalance());
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

// ---- levels --------------------------------------------------------------------------------

// One level of several: what it counted, where it ran, and its formulas.
struct LevelOf {
  Index M;
  const std::vector<PhaseCost>* formula;
  const std::vector<PhaseCounts>* phases = nullptr;  // counted
  const PhaseCounts* total = nullptr;

  [[nodiscard]] PhaseCounts phase(std::size_t which) const {
    return phases != nullptr ? (*phases)[which] : predicted((*formula)[which]);
  }
  [[nodiscard]] PhaseCounts all() const {
    return total != nullptr ? *total : predicted(redblue::total(*formula));
  }
};

// All levels, from the innermost out; of levels of equal words each is the machine's.
std::vector<LevelOf> levels_of(const Part& part, std::size_t equal) {
  std::vector<LevelOf> all;
  for (std::size_t level = 0; level < part.levels.size(); ++level) {
    const LevelPlan& plan = part.levels[level];
    all.push_back({plan.M, &plan.phases});
    if (part.counted) {
      all.back().phases = &part.counted->inner[level].phases;
      all.back().total = &part.counted->inner[level].total;
    }
  }
  LevelOf own{part.plan.M, &part.formula};
  if (part.counted) {
    own.phases = &part.counted->phases;
    own.total = &part.counted->total;
  }
  all.insert(all.end(), part.levels.empty() ? equal : 1, own);
  return all;
}

Json level_words(const Part& part, const PhaseCounts& counted, const PhaseCost& formula) {
  return json_of({{"reads", counted.io.reads},
                  {"writes", counted.io.writes},
                  bytes_cell(part.plan.problem.word_bytes, counted.io.io()),
                  {"peak", counted.peak},
                  {in_json("formula.reads"), formula.reads.value()},
                  {in_json("formula.writes"), formula.writes.value()},
                  {in_json("formula.peak"), formula.peak.value()}});
}

// `bound_of(level)` adds what is known of its bound.
Json levels_json(const Part& part, std::size_t equal,
                 const std::function<void(std::size_t level, Json& json)>& bound_of) {
  Json levels = Json::array();
  for (const LevelOf& level : levels_of(part, equal)) {
    Json phases = Json::array();
    for (std::size_t k = 0; k < level.formula->size(); ++k) {
      Json phase = {{"path", (*level.formula)[k].path}};
      phase.update(level_words(part, level.phase(k), (*level.formula)[k]));
      phases.push_back(std::move(phase));
    }
    Json sum = level_words(part, level.all(), total(*level.formula));
    sum["io"] = level.all().io.io();
    Json json = {{"M", level.M}, {"total", std::move(sum)}, {"phases", std::move(phases)}};
    bound_of(levels.size(), json);
    levels.push_back(std::move(json));
  }
  return levels;
}

bool has_levels(const Part& part, std::size_t equal) {
  return !part.levels.empty() || equal > 1;
}

// The rows of an inner level, in which operations are the machine's.
std::vector<Cells> level_rows(const LevelOf& level) {
  std::vector<Cells> rows;
  const auto row = [&](const std::string& path, const PhaseCounts& counted, const PhaseCost& cost) {
    rows.push_back(
        {{in_table("phase"), path},
         {"reads", counted.io.reads},
         {"writes", counted.io.writes},
         {in_table("share"),
          decimals(100 * static_cast<double>(counted.io.io()) /
                       static_cast<double>(std::max<Index>(level.all().io.io(), 1)),
                   1, "%")},
         {"peak", counted.peak},
         {in_table("peak / M"),
          decimals(static_cast<double>(counted.peak) / static_cast<double>(level.M), 3)}});
    if (level.total != nullptr) {
      rows.back().push_back({in_table("formula"), (cost.reads + cost.writes).value()});
      rows.back().push_back({in_table("difference"), difference(counted, predicted(cost))});
    }
  };
  for (std::size_t k = 0; k < level.formula->size(); ++k) {
    row((*level.formula)[k].path, level.phase(k), (*level.formula)[k]);
  }
  row("total", level.all(), total(*level.formula));
  return rows;
}

// The part as that level alone, of which operations are not known.
Part of_level(const Part& part, std::size_t level) {
  Part alone = part;
  alone.formula = part.levels[level].phases;
  alone.levels.clear();
  if (alone.counted) {
    alone.counted->phases = part.counted->inner[level].phases;
    alone.counted->total = part.counted->inner[level].total;
  }
  return alone;
}

// "8192/262144"; empty for one level.
std::string M_levels(const Part& part, std::size_t equal) {
  std::string text;
  if (has_levels(part, equal)) {
    for (const LevelOf& level : levels_of(part, equal)) {
      text += (text.empty() ? "" : "/") + std::to_string(level.M);
    }
  }
  return text;
}

// What inner levels moved, after the machine's own table.
std::string levels_text(const Part& part) {
  std::string text;
  for (std::size_t level = 0; level < part.levels.size(); ++level) {
    text += fmt::format("\nlevel {}, M = {} words\n\n{}", level + 1, grouped(part.levels[level].M),
                        table_of(level_rows(levels_of(part, 1)[level])));
  }
  return text;
}

// The words that each level moved, of all parts.
MovedWords words_of_levels(const Report& report) {
  std::vector<Index> words;
  for (const Part* part : {&report.kernel, report.forward ? &*report.forward : nullptr}) {
    if (part != nullptr) {
      const std::vector<LevelOf> levels = levels_of(*part, 1);
      words.resize(levels.size());
      for (std::size_t k = 0; k < levels.size(); ++k) {
        words[k] += levels[k].all().io.io();
      }
    }
  }
  return {std::move(words), report.kernel.plan.problem.word_bytes.value_or(kFloatBytes)};
}

Json part_json(const Part& part) {
  std::vector<Cells> rows = part_rows(part);
  Json sum = json_of(rows.back());
  rows.pop_back();
  const PhaseCost formula = total(part.formula);
  Json json = {{"blocks", blocks_json(part.plan.blocks)},
               {"phases", json_of(rows)},
               {"total", std::move(sum)},
               {"formula",
                {{"reads", formula.reads.value()},
                 {"writes", formula.writes.value()},
                 {"io", (formula.reads + formula.writes).value()},
                 {"peak", formula.peak.value()}}}};
  if (part.ranks) {
    json.update(ranks_json(part));
  }
  if (const auto prepare = regrouping(part.plan)) {
    json["prepare"] = regrouping_json(*prepare);
  }
  if (const PhaseCost prepare = preparation(part.formula); !prepare.path.empty()) {
    json["prepare"] = {{"reads", prepare.reads.value()}, {"writes", prepare.writes.value()}};
  }
  return json;
}

// The problem as it was asked for: of sparse operands, where the kernel takes them as dense ones.
Problem asked_problem(const Report& report) {
  const Problem& problem = report.kernel.plan.problem;
  return report.densified.dense() ? problem : problem.with_sparsity(report.densified);
}

std::string operands_text(const Report& report) {
  const Plan& plan = report.kernel.plan;
  const Problem problem = asked_problem(report);
  if (problem.sparsity.dense()) {
    return "";
  }
  const Json sparse = sparse_json(plan.pass, problem, report.sparse_sources);
  std::string text;
  for (const auto& [name, of] : sparse.items()) {
    if (of.is_object()) {
      text += fmt::format(
          "{}{} {}{}", text.empty() ? "" : ", ", name, grouped(of.at("stored").get<Index>()),
          of.contains("from") ? fmt::format(" ({})", of.at("from").get<std::string>()) : "");
    }
  }
  return fmt::format(
      "entries: {}{}\n{}", text,
      plan.pass == Pass::product
          ? ""
          : fmt::format("; {} live pairs", grouped(problem.sparsity.pairs().value())),
      report.densified.dense()
          ? ""
          : "operands densified: the kernel takes A1, X and A2 as dense matrices\n");
}

// "K, V from bfloat16; Q from float64".
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

std::string title(const Part& part) {
  return to_string(part.plan, part.team.heads);
}

// The speed, and the shares of several workers.
std::string speed(const Part& part) {
  if (!part.counted || part.peak_gflops == 0) {
    return "";
  }
  const Index workers = part.team.workers;
  std::string text = fmt::format(
      "{:.1f} GF/s, {:.0f}% of the {:.1f} that multiply-adds reach ({})\n", gflops(part),
      100 * gflops(part) / part.peak_gflops, part.peak_gflops, simd_target());
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

// The rows, what a pattern takes before, and the speed.
std::string part_table(const Part& part) {
  const auto prepare = regrouping(part.plan);
  return table_of(part_rows(part)) + (prepare ? to_words(*prepare) : "") + speed(part) +
         to_words_of_ranks(part) + levels_text(part);
}

// The items of bytes with their titles for people and keys for programs.
struct Item {
  const char* title;
  const char* key;
  Index StoreBytes::*bytes;
};
constexpr Item kItems[] = {{"words", "words", &StoreBytes::words},
                           {"granules", "whole_granules", &StoreBytes::whole_granules},
                           {"padding", "padding", &StoreBytes::padding},
                           {"checksums", "checksums", &StoreBytes::checksums},
                           {"headers", "headers", &StoreBytes::headers},
                           {"repeated", "repeated", &StoreBytes::repeated},
                           {"at hand", "at_hand", &StoreBytes::at_hand}};

Json bytes_json(const StoreBytes& bytes) {
  Json json = {{"requests", bytes.requests}, {"moved", bytes.moved}};
  for (const Item& item : kItems) {
    json[item.key] = bytes.*item.bytes;
  }
  return json;
}

Json traffic_json(const std::map<Purpose, StoreTraffic>& all) {
  Json json = Json::object();
  for (const auto& [purpose, traffic] : all) {
    json[to_string(purpose)] = {{"read", bytes_json(traffic.read)},
                                {"written", bytes_json(traffic.written)}};
  }
  return json;
}

// Ranks that have checkpoints in a store, and make no requests to it.
bool of_checkpoints(const StoreReport& store) {
  return store.engine.empty();
}

Json store_json(const StoreReport& store) {
  const auto or_null = [](const auto& text) { return text.empty() ? Json() : Json(text); };
  Json json = {{"directory", store.directory},
               {"resumed_at", store.resumed_at ? Json(*store.resumed_at) : Json()},
               {"resident", store.resident},
               {"checkpoints", {{"files", store.checkpoints}, {"bytes", store.checkpoint_bytes}}}};
  if (of_checkpoints(store)) {
    return json;
  }
  json.update({{"engine", store.engine},
               {"no_uring", or_null(store.no_uring)},
               {"direct", store.indirect.empty()},
               {"indirect", or_null(store.indirect)},
               {"granule", store.granule_bytes},
               {"depth", store.depth},
               {"found", store.found},
               {"bytes", traffic_json(store.traffic)}});
  for (const StoreReport::OfRank& of_rank : store.ranks) {
    json["ranks"].push_back({{"bytes", traffic_json(of_rank.traffic)},
                             {"buffered", of_rank.buffered},
                             {"resident", of_rank.resident}});
  }
  return json;
}

// What each rank moved, of all purposes.
std::string to_words(const std::vector<StoreReport::OfRank>& ranks) {
  Table table;
  table.add({"rank", "bytes read", "requests", "bytes written", "requests", "words buffered"});
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    StoreTraffic all;
    for (const auto& [_, traffic] : ranks[rank].traffic) {
      all.read += traffic.read;
      all.written += traffic.written;
    }
    table.add({fmt::format("{}", rank), grouped(all.read.moved), grouped(all.read.requests),
               grouped(all.written.moved), grouped(all.written.requests),
               grouped(ranks[rank].buffered)});
  }
  return "\n" + table.text();
}

std::string to_words(const StoreReport& store) {
  Table table;
  std::vector<std::string> heads = {"bytes of"};
  for (const Item& item : kItems) {
    heads.emplace_back(item.title);
  }
  heads.insert(heads.end(), {"moved", "requests"});
  table.add(std::move(heads));
  for (const auto& [purpose, traffic] : store.traffic) {
    for (const auto& [direction, bytes] :
         {std::pair("read", &traffic.read), std::pair("written", &traffic.written)}) {
      if (bytes->requests == 0) {
        continue;
      }
      std::vector<std::string> cells = {fmt::format("{}, {}", to_string(purpose), direction)};
      for (const Item& item : kItems) {
        // Bytes of the cache did not move, so they are subtracted.
        const Index sign = item.bytes == &StoreBytes::at_hand ? -1 : 1;
        cells.push_back(grouped(sign * (bytes->*item.bytes)));
      }
      cells.insert(cells.end(), {grouped(bytes->moved), grouped(bytes->requests)});
      table.add(std::move(cells));
    }
  }
  std::string text =
      of_checkpoints(store)
          ? fmt::format("\ncheckpoints of ranks in {}\n", printable(store.directory))
          : fmt::format("\non disk in {}: {}{}, {}\n\n", printable(store.directory), store.engine,
                        store.no_uring.empty() ? "" : " (io_uring: " + store.no_uring + ")",
                        store.indirect.empty() ? "direct" : "not direct: " + store.indirect);
  if (!of_checkpoints(store)) {
    text += table.text();
  }
  if (!store.ranks.empty()) {
    text += to_words(store.ranks);
  }
  if (store.resumed_at) {
    text += of_checkpoints(store)
                ? fmt::format(
                      "resumed: all ranks together had done {}, counted once for each stage "
                      "and each group of keys\n",
                      counted(*store.resumed_at, "row block"))
                : fmt::format("gone on from row block {}\n", *store.resumed_at);
  }
  if (store.checkpoints > 0) {
    text += fmt::format("{} checkpoints, {} bytes\n", store.checkpoints,
                        grouped(store.checkpoint_bytes));
  }
  text += fmt::format("{} had at most {} in memory\n",
                      store.ranks.empty() ? "the process" : "the largest process",
                      format_bytes(store.resident));
  return text;
}

std::optional<Index> total_from_nothing(const Report& report) {
  if (!report.from_nothing) {
    return std::nullopt;
  }
  return (Words(report.kernel.io()) + (report.forward ? report.forward->io() : 0)).value();
}

// The name as it was asked for, or the spelling of the kernel that the planner chose.
std::string name_of(const Report& report) {
  const Plan& plan = report.kernel.plan;
  return report.asked == plan.kernel ? plan.kernel : spelled(plan);
}

}  // namespace

std::string to_words(const Verdict& error) {
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

double over_the_bound(const Report& report, Index words) {
  return static_cast<double>(words) / static_cast<double>(report.bound->words);
}

// All words moved over those of the bound.
double ratio(const Report& report) {
  return over_the_bound(report, total_from_nothing(report).value_or(report.kernel.io()));
}

// The bound of a level, its words over those, and with those of the forward kernel.
struct LevelBound {
  const Bound* bound;
  double given, ratio;
};
LevelBound level_bound(const Report& report, std::size_t level) {
  const bool inner = level < report.kernel.levels.size();
  const Bound* bound = nullptr;
  if (inner && level < report.level_bounds.size() && report.level_bounds[level]) {
    bound = &*report.level_bounds[level];
  } else if (!inner && report.bound) {
    bound = &*report.bound;
  }
  if (bound == nullptr) {
    return {nullptr, 0, 0};
  }
  const auto over = [&](Index words) {
    return static_cast<double>(words) / static_cast<double>(bound->words);
  };
  const Index words = levels_of(report.kernel, report.equal_levels)[level].all().io.io();
  const Index before =
      report.forward ? levels_of(*report.forward, report.equal_levels)[level].all().io.io() : 0;
  return {bound, over(words), over(words + before)};
}

// Of inner levels, beside those of the machine.
std::string to_words_of_level_bounds(const Report& report) {
  std::string text;
  for (std::size_t level = 0; level < report.kernel.levels.size(); ++level) {
    const auto [bound, given, over] = level_bound(report, level);
    if (bound != nullptr) {
      text += fmt::format(
          "level {}: at least {} words (bound: {}): {}\n", level + 1, grouped(bound->words),
          bound->name,
          report.forward ? fmt::format("{:.3f} times that given O and L, {:.3f} times from nothing",
                                       given, over)
                         : fmt::format("{:.3f} times that", over));
    }
  }
  return text;
}

// The words of all levels, each at the cost that the request says. Requires: costs.
double weighted(const Report& report) {
  double sum = 0;
  for (const Part* part : {&report.kernel, report.forward ? &*report.forward : nullptr}) {
    for (std::size_t level = 0; part != nullptr && level < report.word_costs.size(); ++level) {
      sum += report.word_costs[level] *
             static_cast<double>(levels_of(*part, report.equal_levels)[level].all().io.io());
    }
  }
  return sum;
}

std::string to_words_of_costs(const Report& report) {
  Memory memory(report.kernel.plan.M);
  memory.inner.resize(report.word_costs.size() - 1);
  memory.word_costs = report.word_costs;
  return fmt::format(
      "words at {}{}: {:.6g}\n", costs_text(memory),
      report.word_costs_from.empty() ? "" : fmt::format(" ns ({})", report.word_costs_from),
      weighted(report));
}

// The bounds are of algorithms that may be given O and L, and hold from nothing as well: where the
// kernel is given those of a forward kernel, both are said.
std::string to_words_of_bound(const Report& report) {
  const std::string bound = fmt::format("moves at least {} words (bound: {})",
                                        grouped(report.bound->words), report.bound->name);
  if (!report.forward) {
    return fmt::format("any algorithm of its kind {}: {:.3f} times that", bound, ratio(report));
  }
  return fmt::format(
      "any algorithm of its kind, given O and L or not, {}: {:.3f} times that given O and L, "
      "{:.3f} times from nothing",
      bound, over_the_bound(report, report.kernel.io()), ratio(report));
}

std::string to_json(const Report& report) {
  const Plan& plan = report.kernel.plan;
  Json json = {
      {"schema", kSchema},           {"context", context_json(report.M_from)},
      {"kernel", name_of(report)},   {"given", report.given},
      {"n", plan.problem.queries()}, {"m", plan.problem.shape.m},
      {"d", plan.problem.shape.d},
  };
  json.update(json_of(heads_cells(plan.pass, plan.problem, report.kernel.team.heads)));
  json["M"] = plan.M;
  if (report.kernel.counted || report.seed) {
    json["context"]["simd"] = simd_target();
    json["seed"] = report.seed;  // null: none came from it
    json["operands"] = Json::object();
    for (const auto& [name, origin] : report.operands) {
      json["operands"][name] = to_string(origin);
    }
    if (!report.converted.empty()) {
      json["converted"] = report.converted;
    }
  }
  json["problem"] = to_string(plan.pass);
  if (plan.problem.inputs == Inputs::plain) {
    json["softmax_scale"] = static_cast<double>(plan.problem.scale());
  }
  if (const Problem problem = asked_problem(report); !problem.sparsity.dense()) {
    json["sparse"] = sparse_json(plan.pass, problem, report.sparse_sources);
    if (!report.densified.dense()) {
      json["densified"] = true;
    }
    if (json["sparse"].contains("pairs")) {
      json["pairs"] = json["sparse"]["pairs"];
    }
  } else if (plan.pass != Pass::product) {
    json["mask"] = mask_json(plan.problem);
    json["pairs"] = json["mask"]["pairs"];
  }
  if (plan.pass != Pass::product) {
    json["wanted"] = wanted_json(find_kernel(plan.kernel).results(plan.problem), plan.problem);
  }
  json.update(activation_json(plan.problem));
  if (plan.problem.sharing != Sharing::none) {
    json["sharing"] = to_string(plan.problem.sharing);
  }
  json["threads"] = report.kernel.team.workers;
  json.update(part_json(report.kernel));
  if (has_levels(report.kernel, report.equal_levels)) {
    json["levels"] =
        levels_json(report.kernel, report.equal_levels, [&](std::size_t level, Json& of_level) {
          const auto [bound, given, over] = level_bound(report, level);
          of_level["lower_bound"] = bound == nullptr ? Json() : bound_json(*bound);
          of_level["ratio"] = bound == nullptr ? Json() : Json(over);
          if (bound != nullptr && report.forward) {
            of_level["ratio_given_OL"] = given;
          }
        });
  }
  if (!report.word_costs.empty()) {
    json["word_costs"] = report.word_costs;
    json["weighted"] = weighted(report);
  }
  if (report.forward) {
    json["forward"] = {{"kernel", spelled(report.forward->plan)}};
    json["forward"].update(part_json(*report.forward));
    if (has_levels(*report.forward, report.equal_levels)) {
      json["forward"]["levels"] =
          levels_json(*report.forward, report.equal_levels, [](std::size_t, Json&) {});
    }
  }
  if (const auto both = total_from_nothing(report)) {
    json["total_from_nothing"] = *both;
  }
  if (report.device) {
    json["device"] = device_json(*report.device, words_of_levels(report));
  }
  json["lower_bound"] = nullptr;
  json["ratio"] = nullptr;
  if (report.bound) {
    json["lower_bound"] = bound_json(*report.bound);
    json["ratio"] = ratio(report);
    if (report.forward) {
      json["ratio_given_OL"] = over_the_bound(report, report.kernel.io());
    }
    if (const PhaseCost prepare = preparation(report.kernel.formula); !prepare.path.empty()) {
      const Words words = prepare.reads + prepare.writes;
      json["ratio_without_prepare"] = ratio(report) - static_cast<double>(words.value()) /
                                                          static_cast<double>(report.bound->words);
    }
  }
  if (report.asked != name_of(report)) {
    json["asked"] = report.asked;
  }
  if (report.error) {
    const Verdict& error = *report.error;
    json["error"] = {{"value", error.error},       {"allowed", error.allowed}, {"ok", error.ok},
                     {"relative", error.relative}, {"output", error.output},   {"row", error.row},
                     {"column", error.col}};
    if (error.head) {
      json["error"]["head"] = *error.head;
    }
    if (error.given_off) {
      json["error"]["given_off"] = *error.given_off;
    }
  }
  if (report.store) {
    json["store"] = store_json(*report.store);
  }
  return json.document();
}

std::string to_csv(const Report& report) {
  std::vector<Cells> rows;
  const auto add = [&](const Part& part) {
    const Plan& plan = part.plan;
    const Cells head = joined(kernel_cells(spelled(plan), plan.problem.one_head().shape, plan.M),
                              heads_cells(plan.pass, plan.problem, part.team.heads));
    const std::string operands = to_cell(report.operands);
    const std::string all_M = M_levels(part, report.equal_levels);
    const auto end = [&](std::size_t level) {
      Cells cells = {{in_csv("operands"), operands}};
      if (!all_M.empty()) {
        cells.push_back({in_csv("M_levels"), all_M});
        cells.push_back({in_csv("level"), static_cast<Index>(level)});
      }
      return cells;
    };
    for (const Cells& row : part_rows(part)) {
      rows.push_back(joined(joined(head, row), end(part.levels.size() + 1)));
    }
    for (std::size_t level = 0; level < part.levels.size(); ++level) {
      for (const Cells& row : part_rows(of_level(part, level))) {
        rows.push_back(joined(joined(head, row), end(level + 1)));
      }
    }
  };
  add(report.kernel);
  if (report.forward) {
    add(*report.forward);
  }
  return csv_of(rows);
}

std::string to_table(const Report& report) {
  const Plan& plan = report.kernel.plan;
  std::string text = (report.asked == name_of(report) ? "" : report.asked + ": ") +
                     fmt::format("{}   (all {})\n", title(report.kernel), in_words(plan.problem));
  for (const FastMemoryOrigin& from : report.inner_from) {
    text += to_words(from) + "\n";
  }
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  if (report.device) {
    text += to_words(*report.device) + "\n";
  }
  if (report.kernel.counted && plan.problem.word_bytes.value_or(kFloatBytes) != kFloatBytes) {
    text += fmt::format("computed in float32; counted in words of {} bytes\n",
                        *plan.problem.word_bytes);
  }
  text += operands_text(report);
  if (!report.operands.empty()) {
    text += "operands: " + to_words(report.operands, report.seed) + "\n";
  }
  if (!report.converted.empty()) {
    text += "converted to float32: " + converted_words(report) + "\n";
  }
  text += "\n" + part_table(report.kernel);
  const Index peak = total(plan.phases).peak.value();
  if (peak > plan.M) {
    text += fmt::format("\nThese blocks do not fit: they need M = {}, {} words more.\n",
                        grouped(peak), grouped(peak - plan.M));
  }
  if (report.forward) {
    text += fmt::format("\nO and L by {}\n\n{}\nfrom nothing: {} words\n", title(*report.forward),
                        part_table(*report.forward), grouped(*total_from_nothing(report)));
  }
  if (report.bound) {
    text += "\n" + to_words_of_bound(report) + "\n" + to_words_of_level_bounds(report);
  }
  text += report.word_costs.empty() ? "" : to_words_of_costs(report);
  text += report.device ? figures_text(*report.device, "words", words_of_levels(report)) : "";
  if (report.error) {
    const Verdict& error = *report.error;
    text += "\n" + to_words(error) + "\n";
  }
  if (report.store) {
    text += to_words(*report.store);
  }
  return text;
}

}  // namespace redblue
