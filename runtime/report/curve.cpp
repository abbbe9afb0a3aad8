#include "runtime/report/curve.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "memsim/errors.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/report/word_width.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr Index kMostPower = 60;
constexpr Index kMostM = Index{1} << kMostPower;  // large enough for every task that fits in any M

Task with_M(Task task, Index M) {
  task.memory = M;
  return task;
}

std::optional<Choice> first_choice(const Task& task, Index M) {
  std::vector<Choice> all = choices(with_M(task, M));
  return all.empty() ? std::nullopt : std::optional(std::move(all.front()));
}

bool moves_at_most(const std::optional<Choice>& choice, Words words) {
  return choice && choice->words <= words;
}

// Returns the best choice in an M that is large enough for any task. Throws: FastMemoryTooSmall.
Choice choice_in_all(const Task& task) {
  std::optional<Choice> choice = first_choice(task, kMostM);
  if (!choice) {
    throw no_kernel_fits(with_M(task, kMostM));
  }
  return std::move(*choice);
}

// Returns "backward/rows", or "backward/rows + forward/rows" if that kernel computes O and L.
std::string name_of(const Choice& choice) {
  return spelled(choice.plan) + (choice.forward ? " + " + spelled(*choice.forward) : "");
}

Index size_of(const Curve& report, const Task& task) {
  const Shape shape = task.problem.one_head().shape;
  return report.over == Curve::Over::M   ? task.memory.M
         : report.over == Curve::Over::n ? shape.n
                                         : shape.d;
}

// Returns the task without the size that varies.
std::string problem_text(const Curve& report) {
  const bool square =
      report.points.size() > 1 && std::ranges::all_of(report.points, [](const Curve::Point& point) {
        const Shape shape = point.task.problem.one_head().shape;
        return shape.n == shape.m;
      });
  const bool with_n = report.over == Curve::Over::n;
  return to_words(report.points.front().task, with_n && square ? "nm" : to_string(report.over));
}

// Returns the assumptions of a bound. A bound with more assumptions can be larger for the same
// words.
std::string assumed_by(const Bound& bound) {
  return fmt::format("{}, {}", bound.order == Order::any ? "any order" : to_string(bound.order),
                     bound.recomputation ? "recomputation allowed" : "no recomputation");
}
// The same in the few letters that a legend has room for.
std::string bound_in_legend(const Choice& choice) {
  std::string kinds = choice.densified ? ", dense" : "";
  if (choice.bound.order != Order::any) {
    kinds += fmt::format(", {}", to_string(choice.bound.order));
  }
  if (!choice.bound.recomputation) {
    kinds += ", sums once";
  }
  return "bound" + kinds;
}
std::string assumed_of(const Choice& choice) {
  return (choice.densified ? "dense operands, " : "") + assumed_by(choice.bound);
}

// The cells of a point: its first choice.
Cells first_cells(const Curve& report, const Curve::Point& point) {
  const bool fits = !point.choices.empty();
  const std::optional<Index> words =
      fits ? std::optional(point.choices.front().words.value()) : std::nullopt;
  const auto of_first = [&](const auto& value) -> CellValue {
    return fits ? CellValue(value(point.choices.front())) : absent();
  };
  return {
      {in_table(std::string(to_string(report.over))), size_of(report, point.task)},
      {in_table(report.rates ? "least ms" : ""),
       of_first([](const Choice& its) { return to_ms(*its.seconds); })},
      {in_table(report.rates ? "words" : "fewest words"), words},
      {in_table("by"), of_first(name_of)},
      bytes_cell(point.task.problem.word_bytes, words, in_table("bytes")),
      {in_table("lower bound"), point.bound.words},
      {in_table("ratio"), decimals(quotient(words, point.bound.words), 3)},
      {in_table("bound of its class"), of_first([](const Choice& its) { return its.bound.words; })},
      {in_table("class ratio"),
       decimals(quotient(words, fits ? point.choices.front().bound.words : 1), 3)},
      {in_table("its bound assumes"), of_first(assumed_of)}};
}

Cells kernel_words(const Choice& choice) {
  return {
      {in_json_and_csv("kernel"), spelled(choice.plan)},
      {in_json_and_csv("forward"), choice.forward ? Json(spelled(*choice.forward)) : Json()},
      {in_json_and_csv(choice.seconds ? "seconds" : ""), choice.seconds},
      {in_json_and_csv("words"), choice.words.value()},
      bytes_cell(choice.plan.problem.word_bytes, choice.words.value(), in_json_and_csv("bytes")),
      {in_json_and_csv("ratio"), over_bound(choice)},
      {in_json_and_csv("class_bound"), choice.bound.words},
      {in_json_and_csv("class_term"), choice.bound.name},
      {in_json_and_csv("class_assumes"), assumed_of(choice)}};
}

// Returns the least power of two in which a kernel moves at most `words`. A binary search finds it,
// because the words never rise with M.
Index least_power_for(const Task& task, Words words) {
  if (const Choice in_all = choice_in_all(task); in_all.words > words) {
    throw FastMemoryTooSmall(fmt::format("no M is enough for {} words: the fewest are {}, of {}",
                                         grouped(words.value()), grouped(in_all.words.value()),
                                         name_of(in_all)));
  }
  Index too_small = -1, enough = kMostPower;
  while (enough - too_small > 1) {
    const Index tried = (too_small + enough) / 2;
    (moves_at_most(first_choice(task, Index{1} << tried), words) ? enough : too_small) = tried;
  }
  return Index{1} << enough;
}

}  // namespace

std::string_view to_string(Curve::Over over) {
  return over == Curve::Over::M ? "M" : over == Curve::Over::n ? "n" : "d";
}

std::vector<Index> curve_sizes(Index from, Index to) {
  std::set<Index> sizes = {from, to};
  for (Index power = 1; power <= to / 2; power *= 2) {
    for (const Index size : {2 * power, 3 * power}) {
      if (from < size && size < to) {
        sizes.insert(size);
      }
    }
  }
  constexpr int kFewest = 9;
  for (int k = 1; k < kFewest - 1 && sizes.size() < kFewest; ++k) {
    sizes.insert(from + (to - from) / (kFewest - 1) * k +
                 (to - from) % (kFewest - 1) * k / (kFewest - 1));
  }
  return {sizes.begin(), sizes.end()};
}

std::vector<Index> curve_memories(const Task& task) {
  const Choice in_all = choice_in_all(task);
  const Index from = least_memory(task).M;
  return curve_sizes(from, std::max(from, least_power_for(task, in_all.words)));
}

Curve report_curve(const std::vector<Task>& tasks, Curve::Over over,
                   const std::optional<Rates>& rates) {
  Curve report{.over = over, .rates = rates};
  const Goal goal{.objective = rates ? Objective::time : Objective::words,
                  .rates = rates ? &*rates : nullptr};
  for (const Task& task : tasks) {
    report.points.push_back(
        {.task = task,
         .choices = choices(task, goal),
         .bound = largest(lower_bounds(task), {.sharing = task.problem.sharing})});
  }
  if (std::ranges::all_of(report.points,
                          [](const Curve::Point& point) { return point.choices.empty(); })) {
    throw no_kernel_fits(tasks.back());
  }
  return report;
}

Curve::Reached least_M_for(const Task& task, Words words) {
  Index enough = least_power_for(task, words), too_small = enough / 2;
  std::optional<Choice> there = first_choice(task, enough);
  while (enough - too_small > 1) {
    const Index tried = too_small + (enough - too_small) / 2;
    std::optional<Choice> its = first_choice(task, tried);
    if (moves_at_most(its, words)) {
      enough = tried;
      there = std::move(its);
    } else {
      too_small = tried;
    }
  }
  return {.asked = words, .choice = std::move(*there)};
}

Description describe(const Curve& report) {
  const Curve::Point& first = report.points.front();
  Description of = begin_report(fmt::format("{}   (reads + writes, {})\n", problem_text(report),
                                            in_words(first.task.problem)));
  of.facts(only_in_json(joined(task_cells(first.task), problem_cells(first.task),
                               {{in_json("over"), to_string(report.over)},
                                {in_json(report.rates ? "rates" : ""),
                                 report.rates ? Json(report.rates->origin) : Json()}})));
  of.table("", rows_of(report.points,
                       [&](const Curve::Point& point) { return first_cells(report, point); }));
  for (const Curve::Point& point : report.points) {
    const Task& task = point.task;
    const Shape shape = task.problem.one_head().shape;
    const bool dense = task.problem.sparsity.dense();
    Description its;
    its.facts(only_in_csv(task_cells(task, true)));
    its.facts({{in_json("n"), shape.n},
               {in_json("m"), shape.m},
               {in_json("d"), shape.d},
               {in_json("dv"), shape.dv},
               {in_json("M"), task.memory.M},
               {in_json("pairs"), dense ? Json(task.problem.pairs().value()) : Json()},
               {in_json("lower_bound"), bound_json(point.bound)}});
    its.table("choices", rows_of(point.choices, [&](const Choice& choice) {
                return joined(kernel_words(choice), {{in_csv("lower_bound"), point.bound.words}});
              }));
    of.element("points", its);
  }
  of.say("\nthe lower bound assumes: {}", assumed_by(first.bound));
  if (report.rates) {
    of.say("rates: {}", report.rates->origin);
  }
  if (report.reached) {
    const auto& [asked, choice] = *report.reached;
    Description reached;
    reached.facts(only_in_json(joined({{in_json("at_most"), asked.value()},
                                       {in_json("M"), choice.plan.M},
                                       {in_json("blocks"), blocks_json(choice.plan.blocks)}},
                                      kernel_words(choice))));
    reached.say("\nat most {} words: from M = {} on, where {} moves {}\n{}", grouped(asked.value()),
                grouped(choice.plan.M), name_of(choice), grouped(choice.words.value()),
                to_string(choice.plan, first.task.heads));
    of.member("reached", reached);
  }
  return of;
}

// A kernel that is best at some size has a coloured line and a name; the others are grey. The bound
// of the first kernel's class is drawn where it exceeds the bound for every algorithm. Each class
// has one line.
Picture curve_picture(const Curve& report) {
  const std::string over(to_string(report.over));
  const bool timed = report.rates.has_value();
  Picture picture{
      .title = (timed ? "Time of kernels: " : "Words of kernels: ") + problem_text(report),
      .x_label = report.over == Curve::Over::M ? "M, words of fast memory" : over,
      .y_label = timed ? "ms, by the rates" : "words, reads and writes"};
  std::vector<std::string> first;  // kernels that are best somewhere, in the order of sizes
  std::map<std::string, std::string> lines, classes;
  std::string bound;
  double least = 0, most = 0;
  const auto line = [&](Index size, double at) {
    least = least == 0 ? at : std::min(least, at);
    most = std::max(most, at);
    return timed ? fmt::format("{} {}\n", size, at)
                 : fmt::format("{} {}\n", size, static_cast<Index>(at));
  };
  const auto height = [&](const Choice& choice) {
    return timed ? 1e3 * *choice.seconds : static_cast<double>(choice.words.value());
  };
  for (const Curve::Point& point : report.points) {
    const Index size = size_of(report, point.task);
    if (!timed) {
      bound += line(size, static_cast<double>(point.bound.words));
    }
    for (const Choice& choice : point.choices) {
      lines[spelled(choice.plan)] += line(size, height(choice));
    }
    if (!point.choices.empty()) {
      const Choice& best = point.choices.front();
      if (!timed && best.bound.words > point.bound.words) {
        classes[bound_in_legend(best)] += line(size, static_cast<double>(best.bound.words));
      }
      const std::string name = spelled(best.plan);
      if (std::ranges::find(first, name) == first.end()) {
        first.push_back(name);
      }
    }
  }
  std::string plot;
  const auto draw = [&](std::string points, const std::string& style, const std::string& title) {
    const std::string block = fmt::format("$lines{}", picture.data.size());
    picture.data.emplace_back(block, std::move(points));
    plot += fmt::format("{}{} using 1:2 with {} {}", plot.empty() ? "plot " : ", ", block, style,
                        title.empty() ? "notitle" : "title " + gnuplot_text(title));
  };
  bool named = false;
  for (const auto& [name, points] : lines) {
    if (std::ranges::find(first, name) == first.end()) {
      draw(points, "lines dashtype 1 linecolor rgb '#b0b0b0' linewidth 1",
           named ? "" : "other kernels");
      named = true;
    }
  }
  for (std::size_t k = 0; k < first.size(); ++k) {
    draw(lines[first[k]], fmt::format("lines linetype {} linewidth 2", k + 1),
         first[k].substr(first[k].find('/') + 1));
  }
  if (!timed) {
    draw(std::move(bound), "lines dashtype 1 linecolor black linewidth 3", "lower bound");
  }
  for (auto& [name, points] : classes) {
    draw(std::move(points),
         fmt::format("linespoints dashtype (6,3) linecolor black linewidth 1.5 pointtype {}",
                     picture.data.size()),
         name);
  }
  const auto from = static_cast<double>(size_of(report, report.points.front().task));
  const auto to = static_cast<double>(size_of(report, report.points.back().task));
  picture.commands =
      fmt::format("set logscale x 2\nset logscale y\nset xrange [{}:{}]\nset yrange [{}:{}]\n",
                  from / 1.1, to * 1.1, least / 1.4, most * 1.4) +
      gnuplot_size_tics('x', from, to, 10) + gnuplot_log_tics('y', least / 1.4, most * 1.4) + plot +
      "\n";
  return picture;
}

}  // namespace redblue
