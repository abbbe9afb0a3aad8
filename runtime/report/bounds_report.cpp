#include "runtime/report/bounds_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/device_figures.hpp"
#include "runtime/report/word_width.hpp"
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

// The paper has one length n, for queries and keys alike.
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

// Theorem 1.1 combines Theorem 4.3 for small caches and Theorem D.5 for large ones. It is compared
// with the proven bound, which no algorithm undercuts. If n >= d, the statement is at least n d +
// d^2 in these ranges. The compulsory words are at most four times that. So has_constant is true.
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

// Theorem D.5: the large-cache algorithm with the paper's own blocks, Br at most d.
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

// Returns the range of an asymptotic bound, and our kernel if that moves fewer words.
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
  const bool asymptotic = bound.status == Status::asymptotic;
  return {{{"bound", "name"}, always_quoted(bound.name)},
          {"words", bound.words},
          bytes_cell(report.task.problem.word_bytes, bound.words),
          {"status", to_string(bound.status)},
          {"order", to_string(bound.order)},
          {"recomputation", bound.recomputation},
          {in_table("regime"), remark(report, bound)},
          {in_json(asymptotic ? "regime" : ""), bound.regime},
          {in_json(asymptotic ? "in_regime" : ""), bound.in_regime},
          {in_json(asymptotic ? "refuted_by" : ""),
           report.undercut(bound) ? Json(spelled(report.best->plan)) : Json()}};
}

std::vector<Cells> bound_rows(const BoundReport& report) {
  return rows_of(report.bounds, [&](const Bound& bound) { return bound_cells(report, bound); });
}

// Returns the report reduced to one level.
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
            {{"how many", "all"}, of.all},
            {{"most in a part", "in_a_part"}, of.in_a_part},
            {"parts", of.parts},
            {{"words, T = M", "words"}, of.words},
            {{"best T", "best_length"}, of.best_length},
            {{"words", "best_words"}, of.best_words},
            {in_json("below_compulsory"), below},
            {in_json("best_below_compulsory"), best_below},
            {in_table("useful"), best_below ? "no: below compulsory"
                                 : below    ? "with T = M: below compulsory"
                                            : "yes"}};
  });
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

// The paper's statements are for one head and all pairs.
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
    text += task.known == Known::nothing ? ", from scratch" : ", after a forward pass";
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
  return *quotient(best->words.value(), active().words);
}

bool BoundReport::undercut(const Bound& bound) const {
  return bound.status == Status::asymptotic && bound.in_regime && best &&
         best->words < Words(bound.words);
}

BoundReport report_bounds(Task task) {
  BoundReport report;
  task.nests.clear();
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

// Returns the words of the active bound at each level.
WordsOfLevels words_of_levels(const BoundReport& report) {
  std::vector<Index> words;
  for (std::size_t level = 0; level < report.level_bounds.size(); ++level) {
    words.push_back(of_level(report, level).active().words);
  }
  return {words.empty() ? std::vector<Index>{report.active().words} : words,
          report.task.problem.word_bytes.value_or(kFloatBytes)};
}

// CSV cells for an algorithm, or for a weighted sum, which has no bytes.
Cells algorithm_cells(const BoundReport& report, std::string_view name, const CellValue& words,
                      std::string_view status, const std::optional<Index>& of_bytes) {
  return {{in_csv("name"), always_quoted(name)},
          {in_csv("words"), words},
          bytes_cell(report.task.problem.word_bytes, of_bytes, in_csv("bytes")),
          {in_csv("status"), status},
          {in_csv("order"), absent()},
          {in_csv("recomputation"), absent()}};
}
Cells algorithm_cells(const BoundReport& report, std::string_view name,
                      const std::optional<Index>& words, std::string_view status) {
  return algorithm_cells(report, name, CellValue(words), status, words);
}

// CSV lines after the lines of bounds.
std::vector<Cells> algorithm_rows(const BoundReport& report) {
  std::vector<Cells> rows;
  for (const Partition& of : report.partitions) {
    const std::string name = fmt::format("Lemma E.6, {}", of.products);
    rows.push_back(algorithm_cells(report, name, of.words, "strict game"));
    rows.push_back(algorithm_cells(report, name + ", best T", of.best_words, "strict game"));
  }
  if (report.best) {
    rows.push_back(
        algorithm_cells(report, spelled(report.best->plan), report.best->words.value(), "moved"));
  }
  return rows;
}

// The extra columns for other kernels' tiles. `row` is null for a row of a bound or of a redblue
// kernel.
Cells as_columns(const AsRow* row) {
  const bool counted = row != nullptr && row->counted;
  return joined(
      {{in_csv("as"), row != nullptr ? Json(row->as) : Json()},
       {in_csv("blocks"), counted ? Json(blocks_text(row->counted->plan.blocks)) : Json()}},
      only_in_csv(tiles_cells(row)));
}

Cells as_line(const BoundReport& report, const AsRow& row) {
  const auto words =
      row.counted ? std::optional(row.counted->words.value()) : std::optional<Index>();
  return joined(algorithm_cells(report, row.counted ? row.nest : row.as, words,
                                row.counted ? "moved" : "missing"),
                as_columns(&row));
}

// Adds the bounds of a fast memory and, in CSV, our algorithms. `last` ends each row.
void add_bounds(Description& of, const BoundReport& report, const Cells& last) {
  const Cells end = report.as.empty() ? last : joined(as_columns(nullptr), last);
  const auto ended = [&](const Cells& row) { return joined(row, end); };
  of.table("bounds", rows_of(bound_rows(report), ended));
  of.table("", rows_of(algorithm_rows(report), ended));
}

// The kernel that moves the fewest words, with its ratio to the active bound.
Json best_json(const BoundReport& report) {
  if (!report.best) {
    return nullptr;
  }
  const Choice& best = *report.best;
  return json_of({{"kernel", spelled(best.plan)},
                  {"words", best.words.value()},
                  {"ratio", report.ratio()},
                  bytes_cell(report.task.problem.word_bytes, best.words.value())});
}

void add_levels(Description& of, const BoundReport& report) {
  const Memory& memory = report.task.memory;
  const auto last = [&](const CellValue& level, const CellValue& cost) -> Cells {
    return {{in_csv("M_levels"), levels_text(memory)},
            {in_csv("level"), level},
            {in_csv("word_cost"), cost}};
  };
  for (std::size_t level = 0; level < memory.levels(); ++level) {
    const BoundReport alone = of_level(report, level);
    const Bound& active = alone.active();
    Description its;
    its.facts({{in_json("M"), alone.task.memory.M},
               {in_json("word_cost"), memory.word_cost(level)},
               {in_json("lower_bound"), bound_json(active)},
               {in_json("best"), best_json(alone)}});
    its.say("\nlevel {}, M = {} words\n", level + 1, grouped(memory.words(level)));
    add_bounds(its, alone, last(static_cast<Index>(level + 1), memory.word_cost(level)));
    its.say("\nactive, of every algorithm: {}, {} words{}", active.name, grouped(active.words),
            alone.best ? fmt::format("; {} moves {}, {:.3f} times that", to_words(*alone.best),
                                     grouped(alone.best->words.value()), alone.ratio())
                       : "");
    of.element("levels", its);
  }
  of.fact("weighted_bound", report.weighted);
  of.fact(report.word_costs_from.empty() ? "" : "word_costs_from", report.word_costs_from);
  std::string text =
      fmt::format("\nwords of the levels weighed {}: at least {:.6g} of every algorithm",
                  costs_text(memory, report.word_costs_from), report.weighted);
  std::vector<Cells> rows = {algorithm_cells(report, "weighted", report.weighted,
                                             to_string(Status::proven), std::nullopt)};
  if (report.best) {
    const double weighted = *report.best->weighted, ratio = weighted / report.weighted;
    of.facts({{in_json("best.weighted"), weighted}, {in_json("best.weighted_ratio"), ratio}});
    rows.push_back(algorithm_cells(report, spelled(report.best->plan) + ", weighted", weighted,
                                   "moved", std::nullopt));
    text += fmt::format("; least of our kernels: {}, {:.6g}, {:.3f} times that",
                        to_words(*report.best), weighted, ratio);
  } else {
    text += "\n" + report.no_best;
  }
  of.say("{}", text);
  for (Cells& row : rows) {
    row = joined(std::move(row), last(absent(), absent()));
  }
  of.table("", std::move(rows));
}

// Adds the paper's statements at this size. Its algorithms and theorems are for all pairs.
void add_statements(Description& of, const BoundReport& report) {
  const Task& task = report.task;
  if (is_linear(task.pass)) {
    of.say("the paper's Theorem 1.1 covers softmax attention only");
  }
  if (!in_the_paper(task.pass) || !task.problem.mask.full() || !task.problem.sparsity.dense()) {
    return;
  }
  const Words divides = dividing_point(task.problem.shape);
  of.fact("dividing_point", divides.value());
  of.say("the paper divides at M = d^2 = {}: this cache is {}", grouped(divides.value()),
         Words(task.memory.M) < divides ? "small" : "large");
  if (has_statements(task)) {
    of.text(report.statements.empty() ? "" : "\n");
    of.table("statements", rows_of(statement_rows(report), not_in_csv));
    for (const Statement& statement : report.statements) {
      of.say("{}: {} for {}; words: {}", statement.name, statement.says, statement.range,
             statement.about);
    }
  }
}

}  // namespace

Description describe(const BoundReport& report) {
  const Task& task = report.task;
  const Bound& active = report.active();
  const bool has_levels = !report.level_bounds.empty();
  Description of = begin_report(fmt::format("{}   (lower bounds on reads + writes, {})",
                                            to_words(task), in_words(task.problem)),
                                report.M_from, report.inner_from, report.device);
  of.facts(joined(task_cells(task), problem_cells(task),
                  {{in_json("lower_bound"), bound_json(active)},
                   {in_json("best"), best_json(report)},
                   {in_json("best.forward"), report.best && report.best->forward
                                                 ? CellValue(spelled(*report.best->forward))
                                                 : absent()}}));
  if (has_levels) {
    of.fact("bounds", json_of(bound_rows(report)));
    add_levels(of, report);
  } else {
    of.text("\n");
    add_bounds(of, report, {});
    of.say("\nactive, of every algorithm: {}, {} words", active.name, grouped(active.words));
    of.text(report.best ? fmt::format("fewest words of our kernels: {}, {} words, {:.3f} times "
                                      "that\n",
                                      to_words(*report.best), grouped(report.best->words.value()),
                                      report.ratio())
                        : report.no_best + "\n");
    add_statements(of, report);
  }
  if (!report.as.empty()) {
    of.text("\n");
    of.table("as", rows_of(report.as, [&](const AsRow& row) {
               return joined(not_in_csv(as_cells(row)), as_line(report, row));
             }));
    of.text("\n" + to_words(report.as));
  }
  if (!report.partitions.empty()) {
    of.say(
        "\npartitions: Lemma E.6, words of the strict game with M red pebbles, in parts of T "
        "words");
    of.table("partitions", rows_of(partition_rows(report), not_in_csv));
  }
  if (report.device) {
    of.member("device", device_figures(*report.device, "least words", words_of_levels(report)));
  }
  return of;
}

}  // namespace redblue
