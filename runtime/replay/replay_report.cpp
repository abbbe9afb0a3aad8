#include "runtime/replay/replay_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/text/build_context.hpp"
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

std::vector<Cells> size_rows(const ReplayReport& report) {
  return rows_of(report.at, [&](Index M) { return size_cells(report, M); });
}

// Returns the words read in a phase.
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

// Adds a level to the document. Called from the innermost level out, with the machine last.
void add_level(Description& of, Index M, const PhaseCounts& total,
               const std::vector<PhaseCounts>& phases) {
  const auto words = [](const PhaseCounts& counts) -> Cells {
    return {{in_json("reads"), counts.io.reads},
            {in_json("writes"), counts.io.writes},
            {in_json("peak"), counts.peak}};
  };
  Description level;
  level.fact("M", M);
  level.fact("total", json_of(words(total)));
  level.table("phases", rows_of(phases, [&](const PhaseCounts& phase) {
                return joined({{in_json("path"), phase.path}}, words(phase));
              }));
  of.element("levels", level);
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

Description describe(const ReplayReport& report) {
  const Replayed& all = report.replayed;
  Description of;
  of.fact("schema", kSchema);
  if (report.kernel) {
    const TouchedRun& run = *report.kernel;
    of.facts({{in_json("schedule.peak"), run.moved.peak},
              {in_json("schedule.reads"), run.moved.io.reads},
              {in_json("schedule.writes"), run.moved.io.writes}});
    of.members(followed_json(run.run));
    of.members(run.run.more);
    of.text(moved_text(run.run.kernel, run.moved, run.run.M));
    for (std::size_t k = 0; k < run.inner.size(); ++k) {
      const auto& [M, counted] = run.inner[k];
      of.text(moved_text(fmt::format("level {}", k + 1), counted.total, M));
      add_level(of, M, counted.total, counted.phases);
    }
    if (!run.inner.empty()) {
      add_level(of, run.run.M, run.moved, run.phases);
    }
    of.text(run.note);
  }
  std::string rows;
  of.fact("unit", to_string(report.unit));
  if (report.unit == ReplayUnit::row) {
    of.fact("rows", Json{{"count", all.units}, {"widest", all.widest}});
    rows = fmt::format("{} rows of at most {} words, in all ", grouped(all.units),
                       grouped(all.widest));
  }
  of.fact("accesses", all.accesses);
  of.fact("addresses", all.words);
  of.say("{} accesses to {}{} words   (in words)\n", grouped(all.accesses), rows,
         grouped(all.words));
  if (report.per_phase) {  // CSV then has the rows of the phases
    of.table("curve", rows_of(size_rows(report), not_in_csv));
    of.text("\n");
    of.table("phases", phase_rows(report));
  } else {
    of.table("curve", size_rows(report));
  }
  return of;
}

}  // namespace redblue
