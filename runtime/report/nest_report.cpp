#include "runtime/report/nest_report.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "kernels/nests/nest_kernel.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/sizes.hpp"
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

// The table shows an empty cell for 0.
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

// The last row of the table.
Cells total_cells(const NestReport& report) {
  const PhaseCost all = total(report.plan.phases);
  return {{in_table("loop nest"), "total"},
          {in_table("trips"), ""},
          {in_table("block"), ""},
          {in_table("stays"), ""},
          {in_table("words"), ""},
          {in_table("reads"), all.reads.value()},
          {in_table("writes"), all.writes.value()},
          {in_table("phase"), "-"}};
}

// The words of each matrix that moves, in the order in which they first move.
std::vector<NestLine::Move> moves_of(const Nest& lines) {
  std::vector<NestLine::Move> all;
  for (const NestLine& line : lines) {
    for (const auto& [matrix, reads, writes] : line.moves) {
      if (reads + writes == Words(0)) {
        continue;
      }
      auto known = std::ranges::find(all, matrix, &NestLine::Move::matrix);
      if (known == all.end()) {
        known = all.insert(known, NestLine::Move{matrix, 0, 0});
      }
      known->reads += reads;
      known->writes += writes;
    }
  }
  return all;
}

// The row of a matrix. Passes are the words moved over the words of the matrix, which are known for
// dense operands and results.
Cells move_cells(const NestLine::Move& move, const Plan& plan) {
  const Problem& problem = plan.problem;
  const Kernel& kernel = find_kernel(plan.kernel);
  std::vector<Signature> matrices = kernel.given(problem);
  const std::vector<Signature> results = kernel.results(problem);
  matrices.insert(matrices.end(), results.begin(), results.end());
  const Signature* const known = find_operand(matrices, move.matrix);
  std::optional<Index> words;
  if (known != nullptr && problem.sparsity.dense()) {
    words = (Words(known->rows_of(problem.shape)) * known->cols_of(problem.shape)).value();
  }
  const auto passes = [&](Words all) {
    return decimals(all == Words(0) ? std::nullopt : quotient(all.value(), words), 2, "", "");
  };
  return {{"matrix", move.matrix},
          {"words", words ? CellValue(*words) : CellValue(nullptr).shown("")},
          {"reads", moved(move.reads)},
          {{"passes", "read_passes"}, passes(move.reads)},
          {"writes", moved(move.writes)},
          {{"passes", "write_passes"}, passes(move.writes)}};
}

}  // namespace

namespace {

// Returns the nest of a kernel as text, or "" if it has none.
std::string_view text_of(std::string_view kernel) {
  for (const KnownFile& known : kernel_nests()) {
    if (known.name == std::string(kernel) + ".nest") {
      return known.text;
    }
  }
  return {};
}

}  // namespace

NestReport report_nest(const Plan& plan, Objective objective) {
  const Kernel& kernel = find_kernel(plan.kernel);
  const Formula& formula =
      kernel.formula.nest != nullptr
          ? kernel.formula
          : load_nest("loops of " + plan.kernel, text_of(plan.kernel), plan.kernel + ".nest")
                .formula;
  return {.plan = plan, .lines = formula.nest(plan.problem, plan.blocks), .objective = objective};
}

Description describe(const NestReport& report) {
  const Plan& plan = report.plan;
  const Problem& problem = plan.problem;
  const bool is_product = plan.pass == Pass::product;
  const std::vector<Signature> results = find_kernel(plan.kernel).results(problem);
  Description of =
      begin_report(fmt::format("{}   (all {})", to_string(plan), in_words(problem)), report.M_from);
  of.facts(
      joined(kernel_cells(spelled(plan), problem.one_head().shape, plan.M),
             heads_cells(plan.pass, problem, 1),
             {{in_json_and_csv("sharing"), to_string(problem.sharing)},
              {in_json("mask"), is_product ? absent() : mask_json(problem)},
              {in_json("wanted"), is_product ? absent() : wanted_json(results, problem)},
              {in_json(problem.normalised() ? "" : "activation"), to_string(problem.activation)}}));
  of.fact("blocks", blocks_json(plan.blocks));
  of.fact("objective", to_string(report.objective));
  if (!std::ranges::empty(plan.blocks)) {
    of.say("blocks: {}", goal_text(report.objective));
  }
  std::vector<Cells> rows = rows_of(report.lines, line_cells);
  rows.push_back(total_cells(report));
  of.text("\n");
  of.table("loops", std::move(rows));
  of.text("\n");
  of.table("matrices", rows_of(moves_of(report.lines), [&](const NestLine::Move& move) {
             return not_in_csv(move_cells(move, plan));
           }));
  return of;
}

namespace {

// Returns NAME of a line "block NAME of EXTENT ...", or "" for other lines.
std::string_view block_in(std::string_view line) {
  constexpr std::string_view kBlock = "block ";
  return line.starts_with(kBlock)
             ? line.substr(kBlock.size(), line.find(' ', kBlock.size()) - kBlock.size())
             : std::string_view();
}

// Returns the lines of a nest in which blocks have the sizes of a plan. A block that the plan does
// not have keeps its size: 0, or a formula of the others. Without a size, no loop of this plan uses
// it.
std::string with_blocks(std::string_view text, const Blocks& blocks, const std::string& kernel) {
  std::string all;
  std::vector<std::string_view> known;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view block = block_in(line);
    all += line.substr(0, !block.empty() && blocks.contains(block) ? line.find(" =") : line.size());
    if (!block.empty()) {
      known.push_back(block);
      all += blocks.contains(block)                      ? fmt::format(" = {}", blocks[block])
             : line.find(" =") == std::string_view::npos ? " = 1"
                                                         : "";
    }
    all += '\n';
  }
  if (blocks.contains(kKeyGroups) && blocks[kKeyGroups] == 1) {  // nothing adds sums of groups
    known.insert(known.end(), {kKeyGroups, "sum.Bc"});
  }
  for (const auto& [name, size] : blocks) {
    if (std::ranges::find(known, name) == known.end()) {
      throw UsageError(
          fmt::format("{}: a nest as text has no block {}, which this plan has: give "
                      "other sizes, or another kernel",
                      kernel, name));
    }
  }
  return all;
}

}  // namespace

std::string nest_text(const Plan& plan) {
  const std::string kernel = spelled(plan);
  if (const std::string_view text = text_of(kernel); !text.empty()) {
    return with_blocks(text, plan.blocks, kernel);
  }
  throw UsageError(
      fmt::format("{}: its loops have no text as a nest: leave out --format nest", kernel));
}

}  // namespace redblue
