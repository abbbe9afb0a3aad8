#include "runtime/report/replay_report.hpp"

#include <fmt/format.h>

#include "runtime/report/context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

std::vector<Cells> rows_of(const ReplayReport& report) {
  return redblue::rows_of(report.at, [&](Index M) -> Cells {
    const Replayed& all = report.replayed;
    const std::size_t at = all.at(M);
    return {{"M", M},
            {{"LRU reads", "lru.reads", "lru_reads"}, all.lru_reads[at]},
            {{"writes", "lru.writes", "lru_writes"}, all.lru_writes[at]},
            {{"OPT reads", "opt.reads", "opt_reads"}, all.opt_reads[at]},
            {{"Belady's writes", "belady.writes", "belady_writes"}, all.belady_writes[at]}};
  });
}

}  // namespace

std::vector<Index> sizes_shown(Index words) {
  std::vector<Index> sizes;
  for (Index M = 1; M < words; M *= 2) {
    sizes.push_back(M);
  }
  sizes.push_back(words);
  return sizes;
}

std::string to_table(const ReplayReport& report) {
  return fmt::format("{} accesses to {} words   (in words)\n\n", grouped(report.replayed.accesses),
                     grouped(report.replayed.words)) +
         table_of(rows_of(report));
}

std::string to_json(const ReplayReport& report) {
  const Json json = {{"schema", kSchema},
                     {"accesses", report.replayed.accesses},
                     {"addresses", report.replayed.words},
                     {"curve", json_of(rows_of(report))}};
  return json.document();
}

std::string to_csv(const ReplayReport& report) {
  return csv_of(rows_of(report));
}

}  // namespace redblue
