#include "runtime/report/scaling.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "memsim/errors.hpp"
#include "runtime/ranks/plan_on_grid.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/rank_bounds_report.hpp"
#include "runtime/run/run.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/text/parse_json.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

Scaling::OnGrid of_grid(const PlannedGrid& on) {
  const BesideBound links = beside_rank_bounds(on).links;
  return {.grid = on.grid,
          .received = on.received.value(),
          .words = links.words,
          .bound = links.bound ? std::optional(links.bound->words) : std::nullopt,
          .ratio = links.ratio()};
}

std::string name_of(const Scaling& report) {
  return spelled(report.kernel->name, report.problem.sharing);
}

Scaling::Run read_run(const std::string& file, const Scaling& report) {
  const Json json = parse_json(read_text(file), file);
  try {
    const auto problem = [](const std::string& kernel, const Shape& shape) {
      return fmt::format("{} n={} m={} d={}", kernel, shape.n, shape.m, shape.d);
    };
    const auto size = [&](const char* name) { return json.at(name).get<Index>(); };
    const std::string its =
        problem(json.at("kernel").get<std::string>(), {size("n"), size("m"), size("d")});
    if (const std::string drawn = problem(name_of(report), report.problem.shape); its != drawn) {
      throw InputError(fmt::format("{}: a run of {}, but {} is drawn: give runs of one problem",
                                   file, its, drawn));
    }
    const Json& grid = json.at("grid");
    const Json& links = json.at("rank_bounds").at("links");
    Scaling::Run run{.file = file,
                     .ranks = std::ssize(json.at("ranks")),
                     .on = {.grid = {grid.at("rows").get<Index>(), grid.at("columns").get<Index>()},
                            .received = json.at("largest").at("received").get<Index>(),
                            .words = links.at("words").get<Index>()}};
    if (const Json& bound = links.at("lower_bound"); !bound.is_null()) {
      run.on.bound = bound.at("words").get<Index>();
    }
    if (!links.at("ratio").is_null()) {
      run.on.ratio = links.at("ratio").get<double>();
    }
    return run;
  } catch (const JsonMismatch&) {
    throw InputError(fmt::format(
        "{}: expected what `redblue run --format json` writes of a run on ranks", file));
  }
}

std::string sizes_of(const Scaling& report) {
  const auto [n, m, d] = report.problem.shape;
  return fmt::format("{}, d = {}, M = {}",
                     n == m ? fmt::format("n = m = {}", grouped(n))
                            : fmt::format("n = {}, m = {}", grouped(n), grouped(m)),
                     grouped(d), size_text(report.M));
}

Cells cells_of(Index ranks, std::string_view what, const Scaling::OnGrid& on) {
  return {{"ranks", ranks},
          {{"", "what", "what"}, what},
          {in_table(" "), what},
          {in_table("grid"), to_string(on.grid)},
          {in_json_and_csv("rows"), on.grid.rows},
          {in_json_and_csv("columns"), on.grid.columns},
          {"received", on.received},
          {{"bound counts", "words"}, on.words},
          {{"bound", "lower_bound"}, on.bound},
          {"ratio", decimals(on.ratio, 3)}};
}

std::vector<Cells> scaling_rows(const Scaling& report) {
  std::vector<Cells> rows;
  for (const auto& [ranks, best, ring] : report.points) {
    rows.push_back(cells_of(ranks, "best grid", best));
    if (ring) {
      rows.push_back(cells_of(ranks, "ring", *ring));
    }
  }
  for (const Scaling::Run& run : report.runs) {
    rows.push_back(joined(cells_of(run.ranks, "run", run.on), {{in_json("file"), run.file}}));
  }
  return rows;
}

}  // namespace

Scaling report_scaling(const Kernel& kernel, const Problem& problem, Index M, Index most,
                       const std::vector<std::string>& runs) {
  Scaling report{.kernel = &kernel, .problem = problem, .M = M};
  for (const std::string& file : runs) {
    report.runs.push_back(read_run(file, report));
  }
  for (Index ranks = 2;; ranks = std::min(2 * ranks, most)) {
    const std::vector<PlannedGrid> plans =
        plans_on_grids(kernel, problem, M, Objective::words, ranks);
    if (!plans.empty()) {
      const PlannedGrid& first = plans.front();
      report.points.push_back(
          {.ranks = ranks,
           .best = of_grid(best_of(plans)),
           .ring = first.grid.columns == 1 ? std::optional(of_grid(first)) : std::nullopt});
    }
    if (ranks == most) {
      break;
    }
  }
  if (report.points.empty()) {
    throw FastMemoryTooSmall(
        fmt::format("{} fits in M = {} words on no grid: take a larger --M", name_of(report), M));
  }
  return report;
}

Description describe(const Scaling& report) {
  Description of = begin_report(
      fmt::format("words of the busiest rank: {}, {}\n", name_of(report), sizes_of(report)));
  of.facts(only_in_json(kernel_cells(name_of(report), report.problem.shape, report.M)));
  of.table("points", scaling_rows(report));
  return of;
}

Picture scaling_picture(const Scaling& report) {
  Picture picture{
      .title = fmt::format("Words of one rank: {}, {}", name_of(report), sizes_of(report)),
      .x_label = "ranks",
      .y_label = "words of the links of one rank, as the bound counts them"};
  std::string best, ring, bound, runs;
  double least = 0, most = 0;
  Index from = report.points.front().ranks, to = report.points.back().ranks;
  const auto line = [&](Index ranks, Index words) {
    if (words == 0) {  // the axis is logarithmic
      return std::string();
    }
    const auto at = static_cast<double>(words);
    least = least == 0 ? at : std::min(least, at);
    most = std::max(most, at);
    from = std::min(from, ranks);
    to = std::max(to, ranks);
    return fmt::format("{} {}\n", ranks, words);
  };
  for (const auto& [ranks, of_best, of_ring] : report.points) {
    best += line(ranks, of_best.words);
    ring += of_ring ? line(ranks, of_ring->words) : "";
    bound += line(ranks, of_best.bound.value_or(0));
  }
  for (const Scaling::Run& run : report.runs) {
    runs += line(run.ranks, run.on.words);
  }
  std::string plot;
  const auto draw = [&](const char* block, std::string lines, const char* style,
                        const char* title) {
    if (lines.empty()) {
      return;
    }
    picture.data.emplace_back(block, std::move(lines));
    plot += fmt::format("{}{} using 1:2 with {} title {}", plot.empty() ? "plot " : ", ", block,
                        style, gnuplot_text(title));
  };
  draw("$bound", std::move(bound), "lines linecolor black linewidth 3", "lower bound");
  draw("$ring", std::move(ring), "linespoints linetype 2", "ring, P x 1");
  draw("$best", std::move(best), "linespoints linetype 1", "best grid");
  draw("$runs", std::move(runs), "points pointtype 6 pointsize 1.6 linecolor black linewidth 1.5",
       "runs");
  if (plot.empty()) {
    throw UsageError("nothing goes over links of so few ranks: take more --ranks");
  }
  const auto left = static_cast<double>(from), right = static_cast<double>(to);
  picture.commands =
      fmt::format("set logscale x 2\nset logscale y\nset xrange [{}:{}]\nset yrange [{}:{}]\n",
                  left / 1.1, right * 1.1, least / 1.4, most * 1.4) +
      gnuplot_size_tics('x', left, right, 10) + gnuplot_log_tics('y', least / 1.4, most * 1.4) +
      plot + "\n";
  return picture;
}

}  // namespace redblue
