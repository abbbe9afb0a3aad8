#include "runtime/report/replay_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/report/context.hpp"
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
  if (report.kernel && report.kernel->report.bound) {
    cells.push_back({{"lower bound", "lower_bound"}, report.kernel->bound(M)});
  }
  return cells;
}

std::vector<Cells> rows_of(const ReplayReport& report) {
  return redblue::rows_of(report.at, [&](Index M) { return size_cells(report, M); });
}

// What the kernel reads in a phase itself.
Index reads_of(const ReplayReport& report, const std::string& phase) {
  const std::vector<PhaseCounts>& phases = report.kernel->phases;
  const auto found = std::ranges::find(phases, phase, &PhaseCounts::path);
  return found == phases.end() ? 0 : found->io.reads;
}

std::vector<Cells> phase_rows(const ReplayReport& report) {
  std::vector<Cells> rows;
  for (const PhaseReads& of : report.replayed.phases) {
    for (const Index M : report.at) {
      const std::size_t at = report.replayed.at(M);
      rows.push_back({{"phase", always_quoted(of.phase)},
                      {{"kernel's reads", "kernel_reads"}, reads_of(report, of.phase)},
                      {"M", M},
                      {{"LRU reads", "lru.reads", "lru_reads"}, of.lru[at]},
                      {{"OPT reads", "opt.reads", "opt_reads"}, of.opt[at]}});
    }
  }
  return rows;
}

}  // namespace

std::vector<Index> sizes_shown(const ReplayReport& report) {
  std::vector<Index> sizes;
  for (Index M = 1; M < report.replayed.words; M *= 2) {
    sizes.push_back(M);
  }
  sizes.push_back(report.replayed.words);
  if (report.kernel) {
    sizes.push_back(report.kernel->moved.peak);
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
    const PhaseCounts& moved = report.kernel->moved;
    text = fmt::format("{} reads {} and writes {} words itself, with at most {} of M = {} in use\n",
                       spelled(report.kernel->report.kernel.plan), grouped(moved.io.reads),
                       grouped(moved.io.writes), grouped(moved.peak),
                       grouped(report.kernel->report.kernel.plan.M)) +
           text;
  }
  text += "\n" + table_of(rows_of(report));
  return report.per_phase ? text + "\n" + table_of(phase_rows(report)) : text;
}

std::string to_json(const ReplayReport& report) {
  Json json = {{"schema", kSchema}};
  if (report.kernel) {
    const Plan& plan = report.kernel->report.kernel.plan;
    const PhaseCounts& moved = report.kernel->moved;
    json.update(json_of(kernel_cells(plan.kernel, plan.problem.shape, plan.M)));
    json["blocks"] = blocks_json(plan.blocks);
    if (plan.pass != Pass::product) {
      json["mask"] = mask_json(plan.problem);
    }
    json["schedule"] = {
        {"peak", moved.peak}, {"reads", moved.io.reads}, {"writes", moved.io.writes}};
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
