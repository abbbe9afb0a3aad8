#include "runtime/replay/replay_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/text/build_context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

Cells size_cells(const ReplayReport& report, Index M) {
  const Replayed& all = report.replayed;
  const std::size_t at = all.at(M);
  Cells cells = {{"M", M},
                 {{"LRU reads", "lru.reads", "lru_reads"}, all.lru_reads[at]},
                 {{"writes", "lru.writes", "lru_writes"}, all.lru_writes[at]},
                 {{"OPT reads", "opt.reads", "opt_reads"}, all.opt_reads[at]},
                 {{"Belady's writes", "belady.writes", "belady_writes"}, all.belady_writes[at]}};
  if (report.kernel && report.kernel->bound) {
    cells.push_back({{"lower bound", "lower_bound"}, report.kernel->bound(M)});
  }
  return cells;
}

std::vector<Cells> rows_of(const ReplayReport& report) {
  return redblue::rows_of(report.at, [&](Index M) { return size_cells(report, M); });
}

// What is read in a phase, of these.
Index reads_in(const std::vector<PhaseCounts>& phases, const std::string& phase) {
  const auto found = std::ranges::find(phases, phase, &PhaseCounts::path);
  return found == phases.end() ? 0 : found->io.reads;
}

std::vector<Cells> phase_rows(const ReplayReport& report) {
  std::vector<Cells> rows;
  for (const PhaseReads& of : report.replayed.phases) {
    Cells itself = {
        {"phase", always_quoted(of.phase)},
        {{"kernel's reads", "kernel_reads"}, reads_in(report.kernel->phases, of.phase)}};
    std::size_t number = 0;
    for (const TouchedRun::Level& level : report.kernel->inner) {
      ++number;
      itself.push_back(
          {{fmt::format("level {}'s", number), "", fmt::format("level_{}_reads", number)},
           reads_in(level.counted.phases, of.phase)});
    }
    for (const Index M : report.at) {
      const std::size_t at = report.replayed.at(M);
      rows.push_back(joined(itself, {{"M", M},
                                     {{"LRU reads", "lru.reads", "lru_reads"}, of.lru[at]},
                                     {{"OPT reads", "opt.reads", "opt_reads"}, of.opt[at]}}));
    }
  }
  return rows;
}

Json level_json(Index M, const PhaseCounts& total, const std::vector<PhaseCounts>& phases) {
  const auto words = [](const PhaseCounts& of) {
    return Json{{"reads", of.io.reads}, {"writes", of.io.writes}, {"peak", of.peak}};
  };
  Json all = Json::array();
  for (const PhaseCounts& phase : phases) {
    Json json = {{"path", phase.path}};
    json.update(words(phase));
    all.push_back(std::move(json));
  }
  return {{"M", M}, {"total", words(total)}, {"phases", std::move(all)}};
}

// From the innermost out; the machine's own is the last.
Json levels_json(const ReplayReport& report) {
  Json levels = Json::array();
  for (const auto& [M, counted] : report.kernel->inner) {
    levels.push_back(level_json(M, counted.total, counted.phases));
  }
  levels.push_back(level_json(report.kernel->run.M, report.kernel->moved, report.kernel->phases));
  return levels;
}

std::string moved_text(const std::string& who, const PhaseCounts& moved, Index M) {
  return fmt::format("{} reads {} and writes {} words itself, with at most {} of M = {} in use\n",
                     who, grouped(moved.io.reads), grouped(moved.io.writes), grouped(moved.peak),
                     grouped(M));
}

}  // namespace

std::string_view to_string(ReplayUnit unit) {
  return unit == ReplayUnit::word ? "word" : "row";
}

std::vector<Index> sizes_shown(const ReplayReport& report) {
  std::vector<Index> sizes;
  for (Index M = 1; M < report.replayed.words; M *= 2) {
    sizes.push_back(M);
  }
  sizes.push_back(report.replayed.words);
  if (report.kernel) {
    sizes.push_back(report.kernel->moved.peak);
    for (const TouchedRun::Level& level : report.kernel->inner) {
      sizes.push_back(level.counted.total.peak);
    }
  }
  std::erase_if(sizes, [&](Index M) { return M < report.replayed.widest; });
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::string to_table(const ReplayReport& report) {
  const Replayed& all = report.replayed;
  const std::string rows = report.unit == ReplayUnit::word
                               ? ""
                               : fmt::format("{} rows of at most {} words, in all ",
                                             grouped(all.units), grouped(all.widest));
  std::string text = fmt::format("{} accesses to {}{} words   (in words)\n", grouped(all.accesses),
                                 rows, grouped(all.words));
  if (report.kernel) {
    const TouchedRun& run = *report.kernel;
    std::string itself = moved_text(run.run.kernel, run.moved, run.run.M);
    std::size_t number = 0;
    for (const auto& [M, counted] : run.inner) {
      itself += moved_text(fmt::format("level {}", ++number), counted.total, M);
    }
    text = itself + run.note + text;
  }
  text += "\n" + table_of(rows_of(report));
  return report.per_phase ? text + "\n" + table_of(phase_rows(report)) : text;
}

std::string to_json(const ReplayReport& report) {
  Json json = {{"schema", kSchema}};
  if (report.kernel) {
    const PhaseCounts& moved = report.kernel->moved;
    json.update(followed_json(report.kernel->run));
    json.update(report.kernel->run.more);
    json["schedule"] = {
        {"peak", moved.peak}, {"reads", moved.io.reads}, {"writes", moved.io.writes}};
    if (!report.kernel->inner.empty()) {
      json["levels"] = levels_json(report);
    }
  }
  json["unit"] = to_string(report.unit);
  if (report.unit == ReplayUnit::row) {
    json["rows"] = {{"count", report.replayed.units}, {"widest", report.replayed.widest}};
  }
  json["accesses"] = report.replayed.accesses;
  json["addresses"] = report.replayed.words;
  json["curve"] = json_of(rows_of(report));
  if (report.per_phase) {
    json["phases"] = json_of(phase_rows(report));
  }
  return json.document();
}

std::string to_csv(const ReplayReport& report) {
  return csv_of(report.per_phase ? phase_rows(report) : rows_of(report));
}

}  // namespace redblue
