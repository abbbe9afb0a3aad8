#include "runtime/report/as_rows.hpp"

#include <fmt/format.h>

#include "kernels/registry.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

Index peak_of(const Report& report) {
  return total(report.kernel.plan.phases).peak.value();
}

const std::string& source_of(const AsRow& row) {
  return row.schedule->of(row.pass)->source;
}

}  // namespace

bool has_tiles(Pass pass) {
  return pass == Pass::attention || pass == Pass::gradients;
}

std::optional<double> over_bound(const Report& report) {
  return report.bound ? quotient(report.kernel.io(), report.bound->words) : std::nullopt;
}

std::vector<AsRow> as_rows(const Request& asked, const Problem& problem, Pass pass,
                           const std::vector<const KnownSchedule*>& schedules) {
  std::vector<AsRow> rows;
  for (const KnownSchedule* schedule : schedules) {
    AsRow row{.schedule = schedule, .pass = pass};
    const KnownSchedule::OfPass* const of = schedule->of(pass);
    const KnownSchedule::Tiles* const tiles = of == nullptr ? nullptr : of->for_problem(problem);
    if (tiles == nullptr) {
      row.missing = of == nullptr
                        ? schedule->missing.at(pass)
                        : fmt::format("it has no tiles for d = {}", problem.one_head().shape.d);
    } else {
      Request planned = asked;
      planned.kernel = of->kernel->name;
      planned.forward_in_more_M = true;
      Request request = planned;
      request.whole_blocks = tiles->blocks;
      row.counted = count(request);
      if (const Index needed = peak_of(*row.counted); needed > request.M) {
        row.too_many = needed - request.M;
        request.M = planned.M = needed;
        row.counted = count(request);
      }
      row.planned = count(planned);
    }
    row.word_bytes = asked.word_bytes;
    rows.push_back(std::move(row));
  }
  return rows;
}

Cells as_cells(const AsRow& row) {
  const auto of = [&](const auto& value) -> CellValue {
    return row.counted ? CellValue(value(row.counted->kernel)) : CellValue(nullptr);
  };
  const auto text = [](const Part& its) { return blocks_text(its.plan.blocks); };
  return joined(
      {{{"as", "as"}, row.schedule->name},
       {{"loops of", "kernel"}, of([](const Part& its) { return spelled(its.plan); })},
       {in_table("its blocks"), of(text)},
       {in_json("blocks"), of([](const Part& its) { return blocks_json(its.plan.blocks); })},
       {in_csv("blocks"), of(text)},
       {"words", of([](const Part& its) { return its.io(); })},
       bytes_cell(row.word_bytes,
                  row.counted ? std::optional(row.counted->kernel.io()) : std::nullopt),
       {"ratio", decimals(row.counted ? over_bound(*row.counted) : std::nullopt, 3)}},
      tiles_cells(&row));
}

Cells tiles_cells(const AsRow* row) {
  const bool counted = row != nullptr && row->counted;
  const auto planned = [&](const auto& value) -> CellValue {
    return counted ? CellValue(value(row->planned->kernel)) : CellValue(nullptr);
  };
  const auto words = [](const Part& its) { return its.io(); };
  const std::optional<double> ratio = counted ? over_bound(*row->planned) : std::nullopt;
  return {{{"needs M", "peak"}, counted ? CellValue(peak_of(*row->counted)) : CellValue(nullptr)},
          {{"words beyond M", "too_many"}, counted ? CellValue(row->too_many) : CellValue(nullptr)},
          {in_table("planned"), planned(words)},
          {in_table("planned ratio"), decimals(ratio, 3)},
          {in_json("planned.blocks"),
           planned([](const Part& its) { return blocks_json(its.plan.blocks); })},
          {in_csv("planned_blocks"),
           planned([](const Part& its) { return blocks_text(its.plan.blocks); })},
          {{"", "planned.words", "planned_words"}, planned(words)},
          bytes_cell(row == nullptr ? std::nullopt : row->word_bytes,
                     counted ? std::optional(row->planned->kernel.io()) : std::nullopt,
                     in_json("planned.bytes")),
          {{"", "planned.ratio", "planned_ratio"}, decimals(ratio, 3)},
          {in_json(row == nullptr || row->missing.empty() ? "" : "missing"),
           row == nullptr ? "" : row->missing},
          {in_json(counted ? "source" : ""), counted ? source_of(*row) : ""}};
}

std::string name_of(const AsRow& row) {
  return row.counted
             ? fmt::format("{} as {}", spelled(row.counted->kernel.plan), row.schedule->name)
             : row.schedule->name;
}

std::string to_words(const std::vector<AsRow>& rows) {
  std::string text;
  for (const AsRow& row : rows) {
    text += fmt::format("{}: {}", row.schedule->name, row.schedule->title);
    if (row.counted) {
      const Plan& planned = row.planned->kernel.plan;
      text += fmt::format("\n  {}\n  planned in M = {}: {}\n", source_of(row), grouped(planned.M),
                          blocks_text(planned.blocks));
    } else {
      text += fmt::format("; {}\n", row.missing);
    }
  }
  return text;
}

}  // namespace redblue
