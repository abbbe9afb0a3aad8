#include "runtime/report/nest_report.hpp"

#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/theory/bounds.hpp"

namespace redblue {
namespace {

std::string_view to_string(NestLine::Kind kind) {
  return kind == NestLine::Kind::loop ? "loop" : "step";
}

bool is_loop(const NestLine& line) {
  return line.kind == NestLine::Kind::loop;
}

Index words_that_stay(const NestLine& line) {
  Words sum;
  for (const NestLine::Stay& stay : line.stays) {
    sum += stay.words;
  }
  return sum.value();
}

// The table leaves 0 out.
CellValue moved(Words words) {
  const CellValue value = words.value();
  return words == Words(0) ? value.shown("") : value;
}

std::string names_that_stay(const NestLine& line) {
  std::string names;
  for (const NestLine::Stay& stay : line.stays) {
    names += (names.empty() ? "" : ", ") + stay.name;
  }
  return names;
}

Json stays_json(const NestLine& line) {
  Json stays = Json::array();
  for (const NestLine::Stay& stay : line.stays) {
    stays.push_back({{"tile", stay.name}, {"words", stay.words.value()}});
  }
  return stays;
}

Cells line_cells(const NestLine& line) {
  const CellValue nothing = CellValue(nullptr).shown("");
  const auto of_loop = [&](const CellValue& value) { return is_loop(line) ? value : nothing; };
  const CellValue words = words_that_stay(line);
  return {{in_table("loop nest"),
           std::string(static_cast<std::size_t>(2 * line.depth), ' ') + line.text},
          {in_json_and_csv("phase"), line.phase},
          {in_json_and_csv("depth"), line.depth},
          {in_json_and_csv("kind"), to_string(line.kind)},
          {in_json_and_csv("text"), line.text},
          {"trips", of_loop(line.trips)},
          {"block", of_loop(line.block)},
          {in_json("stays"), stays_json(line)},
          {{"stays", "", "stays"}, of_loop(names_that_stay(line))},
          {{"words", "", "words"}, of_loop(line.stays.empty() ? words.shown("") : words)},
          {"reads", moved(line.reads)},
          {"writes", moved(line.writes)},
          {in_table("phase"), line.phase.empty() ? "-" : line.phase}};
}

Cells plan_cells(const Plan& plan) {
  return joined(joined(kernel_cells(spelled(plan), plan.problem.one_head().shape, plan.M),
                       heads_cells(plan.pass, plan.problem, 1)),
                {{in_json_and_csv("sharing"), to_string(plan.problem.sharing)}});
}

// The last row of the table.
Cells total_cells(const NestReport& report) {
  const PhaseCost all = total(report.plan.phases);
  Cells cells = {{in_table("loop nest"), "total"}};
  for (const char* title : {"trips", "block", "stays", "words"}) {
    cells.push_back({in_table(title), ""});
  }
  cells.push_back({in_table("reads"), all.reads.value()});
  cells.push_back({in_table("writes"), all.writes.value()});
  cells.push_back({in_table("phase"), "-"});
  return cells;
}

}  // namespace

NestReport report_nest(const Plan& plan) {
  return {.plan = plan,
          .M_from = std::nullopt,
          .lines = find_kernel(plan.kernel).formula.nest(plan.problem, plan.blocks)};
}

std::string to_table(const NestReport& report) {
  std::string text =
      fmt::format("{}   (all {})\n", to_string(report.plan), in_words(report.plan.problem));
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  std::vector<Cells> rows = rows_of(report.lines, line_cells);
  rows.push_back(total_cells(report));
  return text + "\n" + table_of(rows);
}

std::string to_json(const NestReport& report) {
  Json json = {{"schema", kSchema}, {"context", context_json(report.M_from)}};
  json.update(json_of(plan_cells(report.plan)));
  if (report.plan.pass != Pass::product) {
    json["mask"] = mask_json(report.plan.problem);
    json["wanted"] = wanted_json(find_kernel(report.plan.kernel).results(report.plan.problem),
                                 report.plan.problem);
    json.update(activation_json(report.plan.problem));
  }
  json["blocks"] = blocks_json(report.plan.blocks);
  json["loops"] = json_of(rows_of(report.lines, line_cells));
  return json.document();
}

std::string to_csv(const NestReport& report) {
  const Cells head = plan_cells(report.plan);
  return csv_of(
      rows_of(report.lines, [&](const NestLine& line) { return joined(head, line_cells(line)); }));
}

}  // namespace redblue
