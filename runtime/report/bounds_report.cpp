#include "runtime/report/bounds_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

Index io(const PhaseCost& cost) {
  return (cost.reads + cost.writes).value();
}

Index without_constant(long double words) {
  return words < 0x1p63L ? static_cast<Index>(words)
                         : throw CountOverflow("what the paper says does not fit 63 bits");
}

// The paper has one length n, of queries and of keys.
bool one_length(const Task& task) {
  return task.problem.shape.n == task.problem.shape.m;
}
bool small_cache(const Task& task) {
  return Words(task.memory.M) < dividing_point(task.problem.shape);
}
// Theorem D.5 is stated for nd >= M >= d^2.
bool large_cache(const Task& task) {
  const Shape& shape = task.problem.shape;
  return !small_cache(task) && Words(task.memory.M) <= Words(shape.n) * shape.d;
}

// Theorem 1.1: no algorithm moves fewer words than a proven bound says. It sums up Theorem 4.3 for
// small caches and D.5 for large ones. In these ranges it says at least n d + d^2 where n >= d, and
// compulsory words are at most four times that.
Statement main_theorem(const Task& task, const Task& larger) {
  const std::vector<Bound> bounds = lower_bounds(task);
  const Bound& active = largest(bounds, {.sharing = task.problem.sharing});
  return {.name = "Theorem 1.1",
          .says = "Theta(min{(n^2 d^2 + n d^3) / M, (n^2 d + n d^2) / sqrt(M)})",
          .range = "m = n, and M < d^2 or d^2 <= M <= n d",
          .at_M = one_length(task) && (small_cache(task) || large_cache(task)),
          .at_4M = small_cache(larger) || large_cache(larger),
          .says_words = asymptotic_words(task),
          .says_at_4M = asymptotic_words(larger),
          .about = fmt::format("every algorithm, by the bound {}", active.name),
          .words = active.words,
          .words_at_4M = largest(lower_bounds(larger), {.sharing = task.problem.sharing}).words,
          .has_constant = task.problem.shape.n >= task.problem.shape.d};
}

// Lemma C.9: phase 3 of the small-cache algorithm reads its three matrices of n x m words.
std::optional<Statement> phase_3(const Task& task, const Task& larger) {
  const Kernel& small = find_kernel("backward/small");
  if (task.memory.M < small.least_M(Problem(task.problem.shape))) {
    return std::nullopt;
  }
  const auto words = [&](Index M) {
    Index sum = 0;
    for (const PhaseCost& phase : small.plan(Problem(task.problem.shape), M).phases) {
      sum += phase.path.starts_with("phase3/") ? io(phase) : 0;
    }
    return sum;
  };
  const auto says = [&](Index M) {
    return without_constant(static_cast<long double>(task.problem.shape.n) *
                            static_cast<long double>(task.problem.shape.m) /
                            std::sqrt(static_cast<long double>(M)));
  };
  return Statement{.name = "Lemma C.9",
                   .says = "O(n^2 / sqrt(M))",
                   .range = "m = n, any M",
                   .at_M = one_length(task),
                   .says_words = says(task.memory.M),
                   .says_at_4M = says(larger.memory.M),
                   .about = "phase3 of backward/small",
                   .words = words(task.memory.M),
                   .words_at_4M = words(larger.memory.M)};
}

// Theorem D.5: the large-cache algorithm with the blocks that it prints, Br at most d.
std::optional<Statement> algorithm_9(const Task& task, const Task& larger) {
  if (!large_cache(task)) {
    return std::nullopt;
  }
  const Kernel& large = find_kernel("backward/large");
  const auto words = [&](Index of) {
    return io(total(large.formula.cost(Problem(task.problem.shape),
                                       large.fitting.printed(Problem(task.problem.shape), of))));
  };
  return Statement{.name = "Theorem D.5",
                   .says = "O((n^2 d^2 + n d^3) / M)",
                   .range = "m = n, d^2 <= M <= n d",
                   .at_M = one_length(task),
                   .at_4M = large_cache(larger),
                   .says_words = asymptotic_words(task),
                   .says_at_4M = asymptotic_words(larger),
                   .about = "backward/large, blocks as printed",
                   .words = words(task.memory.M),
                   .words_at_4M = words(larger.memory.M)};
}

std::vector<Statement> statements_of(const Task& task) {
  Task larger = task;
  larger.memory.M = (Words(4) * task.memory.M).value();
  std::vector<Statement> statements = {main_theorem(task, larger)};
  for (auto& statement : {phase_3(task, larger), algorithm_9(task, larger)}) {
    if (statement) {
      statements.push_back(*statement);
    }
  }
  return statements;
}

// Where an asymptotic bound holds, and what undercuts it here.
std::string remark(const BoundReport& report, const Bound& bound) {
  if (bound.status != Status::asymptotic) {
    return "-";
  }
  if (!bound.in_regime) {
    return std::string(bound.regime);
  }
  return report.undercut(bound)
             ? fmt::format("{}, but {} moves fewer", bound.regime, spelled(report.best->plan))
             : fmt::format("{}, as here", bound.regime);
}

Cells bound_cells(const BoundReport& report, const Bound& bound) {
  Cells cells = {{{"bound", "name"}, always_quoted(bound.name)},
                 {"words", bound.words},
                 bytes_cell(report.task.problem.word_bytes, bound.words),
                 {"status", to_string(bound.status)},
                 {"order", to_string(bound.order)},
                 {"recomputation", bound.recomputation},
                 {in_table("regime"), remark(report, bound)}};
  if (bound.status == Status::asymptotic) {
    cells.push_back({in_json("regime"), bound.regime});
    cells.push_back({in_json("in_regime"), bound.in_regime});
    cells.push_back({in_json("refuted_by"),
                     report.undercut(bound) ? Json(spelled(report.best->plan)) : Json()});
  }
  return cells;
}

std::vector<Cells> bound_rows(const BoundReport& report) {
  return rows_of(report.bounds, [&](const Bound& bound) { return bound_cells(report, bound); });
}

// The report as that of one level.
BoundReport of_level(const BoundReport& report, std::size_t level) {
  BoundReport alone = report;
  alone.task.memory = report.task.memory.alone(level);
  alone.bounds = report.level_bounds[level];
  if (alone.best) {
    alone.best->words = alone.best->levels[level].words();
  }
  alone.level_bounds.clear();
  return alone;
}

std::string_view to_string(StatementVerdict verdict) {
  switch (verdict) {
    case StatementVerdict::falls:
      return "yes";
    case StatementVerdict::within_constant:
      return "no: within a constant";
    case StatementVerdict::refuted:
      return "no: refuted";
    case StatementVerdict::M_outside:
      return "outside the stated range";
    case StatementVerdict::next_M_outside:
      return "4 M is outside the stated range";
  }
  return "";
}

std::vector<Cells> statement_rows(const BoundReport& report) {
  return rows_of(report.statements, [](const Statement& statement) -> Cells {
    return {{{"the paper", "name"}, statement.name},
            {in_json("says"), statement.says},
            {in_json("range"), statement.range},
            {{"says", "says_words"}, statement.says_words},
            {{"at 4 M", "says_words_at_4M"}, statement.says_at_4M},
            {in_json("about"), statement.about},
            {"words", statement.words},
            {{"at 4 M", "words_at_4M"}, statement.words_at_4M},
            {{"falls with M", "verdict"}, to_string(statement.verdict())},
            {in_json("refuted"), statement.refuted()}};
  });
}

std::vector<Cells> partition_rows(const BoundReport& report) {
  const Index compulsory = report.bounds.front().words;
  return rows_of(report.partitions, [&](const Partition& of) -> Cells {
    const bool below = of.words < compulsory;
    const bool best_below = of.best_words < compulsory;
    return {{"products", of.products},
            {{"of them", "all"}, of.all},
            {{"in a part", "in_a_part"}, of.in_a_part},
            {"parts", of.parts},
            {{"words, T = M", "words"}, of.words},
            {{"best T", "best_length"}, of.best_length},
            {{"words", "best_words"}, of.best_words},
            {in_json("below_compulsory"), below},
            {in_json("best_below_compulsory"), best_below},
            {in_table("vacuous"), best_below ? "yes: below compulsory"
                                  : below    ? "with T = M: below compulsory"
                                             : "no"}};
  });
}

std::string partition_table(const BoundReport& report) {
  return "\npartitions: Lemma E.6, words of the strict game with M red pebbles, in parts of T "
         "words\n" +
         table_of(partition_rows(report));
}

std::string as_table(const BoundReport& report) {
  return fmt::format("\n{}\n{}", table_of(rows_of(report.as, as_cells)), to_words(report.as));
}

// "8192,262144"
std::string commas(const Memory& memory) {
  std::string text = levels_text(memory);
  std::ranges::replace(text, '/', ',');
  return text;
}

bool in_the_paper(Pass pass) {
  return pass == Pass::forward || pass == Pass::backward;
}

// The paper's are of one head and all pairs.
bool has_statements(const Task& task) {
  return task.pass == Pass::backward && task.problem.mask.full() && task.problem.sparsity.dense() &&
         task.heads == 1;
}

}  // namespace

std::string to_words(const Task& task, std::string_view without) {
  const Shape shape = task.problem.one_head().shape;
  std::string text(to_string(task.pass));
  const auto add = [&](char name, const auto& size) {
    text += without.find(name) == std::string_view::npos ? fmt::format(" {}={}", name, size) : "";
  };
  add('n', shape.n);
  add('m', shape.m);
  add('d', shape.d);
  text += shape.dv != shape.d ? fmt::format(" dv={}", shape.dv) : "";
  add('M', commas(task.memory));
  const bool has_pairs = without.find('n') == std::string_view::npos;
  if (const Index heads = task.problem.stacked * task.heads; heads > 1) {
    text += fmt::format(", {} heads", heads);
    text += task.problem.stacked > 1 ? fmt::format(", {} of keys", task.heads) : "";
  }
  if (is_backward(task.pass)) {
    text += task.known == Known::nothing ? ", from nothing" : ", given O and L";
  }
  if (!task.problem.normalised()) {
    text += fmt::format(", {}", to_string(task.problem.activation));
  }
  if (task.problem.sharing != Sharing::none) {
    const bool weighted = inputs_of(task.pass) == Inputs::weighted;
    const bool kv = task.problem.sharing == Sharing::kv;
    text += weighted ? (kv ? ", A2 = A3" : ", A1 = A2 = A3") : (kv ? ", K = V" : ", Q = K = V");
  }
  if (!task.problem.wanted.all()) {
    text += fmt::format(", wanted {}", task.problem.wanted.text());
  }
  if (!task.problem.mask.spec().empty()) {
    text += fmt::format(", mask {}", task.problem.mask.spec());
    text += has_pairs ? fmt::format(": {} live pairs", grouped(task.problem.pairs().value())) : "";
  }
  if (!task.problem.sparsity.dense()) {
    text += ", sparse";
    text += task.pass != Pass::product && has_pairs
                ? fmt::format(": {} live pairs", grouped(task.problem.sparsity.pairs().value()))
                : "";
  }
  return text;
}

std::string to_words(const Choice& choice) {
  return spelled(choice.plan) + (choice.forward ? " after " + spelled(*choice.forward) : "") +
         (choice.densified ? " (densified)" : "");
}

StatementVerdict Statement::verdict() const {
  if (!at_M) {
    return StatementVerdict::M_outside;
  }
  if (!at_4M) {
    return StatementVerdict::next_M_outside;
  }
  if (words_at_4M < words) {
    return StatementVerdict::falls;
  }
  return has_constant ? StatementVerdict::within_constant : StatementVerdict::refuted;
}

const Bound& BoundReport::active() const {
  return largest(bounds, {.sharing = task.problem.sharing});
}

double BoundReport::ratio() const {
  return static_cast<double>(best->words.value()) / static_cast<double>(active().words);
}

bool BoundReport::undercut(const Bound& bound) const {
  return bound.status == Status::asymptotic && bound.in_regime && best &&
         best->words < Words(bound.words);
}

BoundReport report_bounds(const Task& task) {
  BoundReport report;
  report.task = task;
  const bool has_levels = !task.memory.inner.empty();
  if (has_levels) {
    report.level_bounds = bounds_of_levels(task);
    report.bounds = report.level_bounds.back();
    report.weighted =
        weighted_bound(task.memory, report.level_bounds, {.sharing = task.problem.sharing});
  } else {
    report.bounds = lower_bounds(task);
  }
  try {
    if (std::vector<Choice> all = choices(task); !all.empty()) {
      report.best = std::move(all.front());
    } else {
      report.no_best = has_levels ? "none of our kernels works and fits in these levels"
                                  : "none of our kernels fits in this M";
    }
  } catch (const CountOverflow& error) {
    report.no_best = error.what();
  }
  if (has_statements(task) && !has_levels) {
    try {
      report.statements = statements_of(task);
    } catch (const CountOverflow&) {  // a count at 4 M exceeds 63 bits: no statements
    }
  }
  return report;
}

namespace {

std::string best_of_level(const BoundReport& report) {
  return report.best ? fmt::format("; {} moves {}, {:.3f} times that", to_words(*report.best),
                                   grouped(report.best->words.value()), report.ratio())
                     : std::string();
}

std::string table_of_levels(const BoundReport& report) {
  const Memory& memory = report.task.memory;
  std::string text = fmt::format("{}   (lower bounds on reads + writes, {})\n",
                                 to_words(report.task), in_words(report.task.problem));
  for (const FastMemoryOrigin& from : report.inner_from) {
    text += to_words(from) + "\n";
  }
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  text += report.device ? to_words(*report.device) + "\n" : "";
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    const BoundReport alone = of_level(report, level);
    text += fmt::format("\nlevel {}, M = {} words\n\n{}", level + 1, grouped(memory.words(level)),
                        table_of(bound_rows(alone)));
    text += fmt::format("\nactive, of every algorithm: {}, {} words{}\n", alone.active().name,
                        grouped(alone.active().words), best_of_level(alone));
  }
  text += fmt::format(
      "\nwords of the levels weighed {}{}: at least {:.6g} of every algorithm", costs_text(memory),
      report.word_costs_from.empty() ? std::string()
                                     : fmt::format(" ns ({})", report.word_costs_from),
      report.weighted);
  if (!report.best) {
    return text + "\n" + report.no_best + "\n";
  }
  return text + fmt::format("; least of our kernels: {}, {:.6g}, {:.3f} times that\n",
                            to_words(*report.best), *report.best->weighted,
                            *report.best->weighted / report.weighted);
}

std::string table_without_partitions(const BoundReport& report) {
  const Task& task = report.task;
  std::string text = fmt::format("{}   (lower bounds on reads + writes, {})\n", to_words(task),
                                 in_words(task.problem));
  if (report.M_from) {
    text += to_words(*report.M_from) + "\n";
  }
  text += report.device ? to_words(*report.device) + "\n" : "";
  text += "\n" + table_of(bound_rows(report));
  const Bound& active = report.active();
  text += fmt::format("\nactive, of every algorithm: {}, {} words\n", active.name,
                      grouped(active.words));
  if (report.best) {
    text +=
        fmt::format("fewest words of our kernels: {}, {} words, {:.3f} times that\n",
                    to_words(*report.best), grouped(report.best->words.value()), report.ratio());
  } else {
    text += report.no_best + "\n";
  }
  if (is_linear(task.pass)) {
    return text + "the paper's Theorem 1.1 is of softmax attention: it does not speak of this\n";
  }
  if (!in_the_paper(task.pass) || !task.problem.mask.full() || !task.problem.sparsity.dense()) {
    return text;  // the paper is about all pairs
  }
  const Words divides = dividing_point(task.problem.shape);
  text += fmt::format("the paper divides at M = d^2 = {}: this cache is {}\n",
                      grouped(divides.value()), Words(task.memory.M) < divides ? "small" : "large");
  if (report.statements.empty()) {
    return text;
  }
  text += "\n" + table_of(statement_rows(report));
  for (const Statement& statement : report.statements) {
    text += fmt::format("{}: {} for {}; words: {}\n", statement.name, statement.says,
                        statement.range, statement.about);
  }
  return text;
}

}  // namespace

namespace {

// The words of the active bound of each level.
MovedWords words_of_levels(const BoundReport& report) {
  std::vector<Index> words;
  for (std::size_t level = 0; level < report.level_bounds.size(); ++level) {
    words.push_back(of_level(report, level).active().words);
  }
  return {words.empty() ? std::vector<Index>{report.active().words} : words,
          report.task.problem.word_bytes.value_or(kFloatBytes)};
}

}  // namespace

std::string to_table(const BoundReport& report) {
  std::string text =
      report.level_bounds.empty() ? table_without_partitions(report) : table_of_levels(report);
  text += report.as.empty() ? "" : as_table(report);
  text += report.partitions.empty() ? "" : partition_table(report);
  return text + (report.device
                     ? figures_text(*report.device, "least words", words_of_levels(report))
                     : "");
}

namespace {

// The least that our kernel of the least weighted sum moves over a level's active bound.
Json level_json(const BoundReport& report, std::size_t level) {
  const BoundReport alone = of_level(report, level);
  Json json = {{"M", alone.task.memory.M},
               {"word_cost", report.task.memory.word_cost(level)},
               {"bounds", json_of(bound_rows(alone))},
               {"lower_bound", bound_json(alone.active())},
               {"best", nullptr}};
  if (alone.best) {
    json["best"] = {{"kernel", spelled(alone.best->plan)},
                    {"words", alone.best->words.value()},
                    {"ratio", alone.ratio()}};
    json["best"].update(
        json_of({bytes_cell(report.task.problem.word_bytes, alone.best->words.value())}));
  }
  return json;
}

// What a line says of an algorithm; a weighted sum has no bytes.
Cells line(const BoundReport& report, std::string_view name, const CellValue& words,
           std::string_view status, const std::optional<Index>& of_bytes) {
  return {{in_csv("name"), always_quoted(name)},
          {in_csv("words"), words},
          bytes_cell(report.task.problem.word_bytes, of_bytes, in_csv("bytes")),
          {in_csv("status"), status},
          {in_csv("order"), absent()},
          {in_csv("recomputation"), absent()}};
}
Cells line(const BoundReport& report, std::string_view name, const std::optional<Index>& words,
           std::string_view status) {
  return line(report, name, words ? CellValue(*words) : CellValue(nullptr), status, words);
}
Cells weighted_line(const BoundReport& report, std::string_view name, double words,
                    std::string_view status) {
  return line(report, name, words, status, std::nullopt);
}

std::vector<Cells> csv_rows(const BoundReport& report) {
  std::vector<Cells> rows = bound_rows(report);
  for (const Partition& of : report.partitions) {
    rows.push_back(
        line(report, fmt::format("Lemma E.6, {}", of.products), of.words, "strict game"));
    rows.push_back(line(report, fmt::format("Lemma E.6, {}, best T", of.products), of.best_words,
                        "strict game"));
  }
  if (report.best) {
    rows.push_back(line(report, spelled(report.best->plan), report.best->words.value(), "moved"));
  }
  if (report.as.empty()) {
    return rows;
  }
  const auto add = [](Cells& cells, const CellValue& as, const CellValue& blocks,
                      const AsRow* row) {
    cells.push_back({in_csv("as"), as});
    cells.push_back({in_csv("blocks"), blocks});
    cells = joined(std::move(cells), tiles_cells(row));
  };
  for (Cells& row : rows) {
    add(row, nullptr, nullptr, nullptr);
  }
  for (const AsRow& row : report.as) {
    std::optional<Index> words;
    CellValue blocks = nullptr;
    if (row.counted) {
      words = row.counted->kernel.io();
      blocks = blocks_text(row.counted->kernel.plan.blocks);
    }
    add(rows.emplace_back(line(report, name_of(row), words, row.counted ? "moved" : "missing")),
        row.schedule->name, blocks, &row);
  }
  return rows;
}

// All levels, and the weighted sums, of no level.
std::vector<Cells> csv_rows_of_levels(const BoundReport& report) {
  const Memory& memory = report.task.memory;
  std::vector<Cells> rows;
  const auto add = [&](const Cells& cells, const CellValue& level, const CellValue& cost) {
    rows.push_back(joined(cells, {{in_csv("M_levels"), levels_text(memory)},
                                  {in_csv("level"), level},
                                  {in_csv("word_cost"), cost}}));
  };
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    for (const Cells& cells : csv_rows(of_level(report, level))) {
      add(cells, static_cast<Index>(level + 1), memory.word_cost(level));
    }
  }
  add(weighted_line(report, "weighted", report.weighted, to_string(Status::proven)), absent(),
      absent());
  if (report.best) {
    add(weighted_line(report, spelled(report.best->plan) + ", weighted", *report.best->weighted,
                      "moved"),
        absent(), absent());
  }
  return rows;
}

}  // namespace

std::string to_json(const BoundReport& report) {
  const Task& task = report.task;
  Json json = task_json(report.task, report.M_from);
  json["bounds"] = json_of(bound_rows(report));
  const Bound& active = report.active();
  json["lower_bound"] = bound_json(active);
  json["best"] = nullptr;
  if (report.best) {
    const Choice& best = *report.best;
    json["best"] = {
        {"kernel", spelled(best.plan)}, {"words", best.words.value()}, {"ratio", report.ratio()}};
    json["best"].update(json_of({bytes_cell(task.problem.word_bytes, best.words.value())}));
    if (best.forward) {
      json["best"]["forward"] = spelled(*best.forward);
    }
  }
  if (report.device) {
    json["device"] = device_json(*report.device, words_of_levels(report));
  }
  if (!report.level_bounds.empty()) {
    json["levels"] = Json::array();
    for (std::size_t level = 0; level < report.level_bounds.size(); ++level) {
      json["levels"].push_back(level_json(report, level));
    }
    json["weighted_bound"] = report.weighted;
    if (report.best) {
      json["best"]["weighted"] = *report.best->weighted;
      json["best"]["weighted_ratio"] = *report.best->weighted / report.weighted;
    }
    if (!report.word_costs_from.empty()) {
      json["word_costs_from"] = report.word_costs_from;
    }
    return json.document();
  }
  if (in_the_paper(task.pass) && task.problem.mask.full() && task.problem.sparsity.dense()) {
    json["dividing_point"] = dividing_point(task.problem.shape).value();
  }
  if (has_statements(task)) {
    json["statements"] = json_of(statement_rows(report));
  }
  if (!report.partitions.empty()) {
    json["partitions"] = json_of(partition_rows(report));
  }
  if (!report.as.empty()) {
    json["as"] = json_of(rows_of(report.as, as_cells));
  }
  return json.document();
}

std::string to_csv(const BoundReport& report) {
  const std::vector<Cells> rows =
      report.level_bounds.empty() ? csv_rows(report) : csv_rows_of_levels(report);
  const Cells problem = task_cells(report.task);
  return csv_of(rows_of(rows, [&](const Cells& row) { return joined(problem, row); }));
}

}  // namespace redblue
