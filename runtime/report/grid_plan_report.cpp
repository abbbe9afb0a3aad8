#include "runtime/report/grid_plan_report.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "memsim/errors.hpp"
#include "runtime/report/calibration.hpp"
#include "runtime/report/context.hpp"
#include "runtime/report/plan_report.hpp"
#include "runtime/run/run.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

GridChoice choice_of(const RanksAsked& asked, PlannedGrid on) {
  double computes = 0;
  const GridPlan of(*asked.kernel, on.plan, on.grid);
  for (std::size_t k = 0; k < on.ranks.size(); ++k) {
    const RankPart part(of, on.ranks[k]);
    if (asked.rates && part.computes()) {
      Plan its = part.plan_of_place();
      its.phases = on.costs[k].arena;
      computes = std::max(computes, seconds(its, *asked.rates));
    }
  }
  std::optional<double> takes;
  if (asked.rates) {
    const LinkCosts& links = *asked.rates->links;
    takes = computes + links.seconds_a_message * static_cast<double>(on.path.messages) +
            links.seconds_a_word * static_cast<double>(on.path.words);
  }
  BesideRankBounds beside = beside_rank_bounds(on);
  return {std::move(on), std::move(beside), takes};
}

bool has_room(const RanksAsked& asked, const GridChoice& choice) {
  return !asked.home || choice.on.home <= Words(*asked.home);
}

double over(const GridChoice& choice, const GridChoice& best) {
  return choice.seconds ? *choice.seconds / *best.seconds
                        : *quotient(choice.on.received.value(), best.on.received.value());
}

std::string reason(const GridPlanReport& report) {
  const GridChoice& best = report.choices.front();
  const BesideBound& links = best.beside.largest_of_links();
  const auto ratio = links.ratio();
  std::string text = to_string(best.on.grid) + ": ";
  text += best.seconds
              ? fmt::format("{} ms by the rates and links", to_ms(*best.seconds))
              : fmt::format("a rank receives {} words at most", grouped(best.on.received.value()));
  if (ratio) {
    text += fmt::format("; {} as the bound {} ({}) counts them, {:.3f} times that",
                        grouped(links.words), links.bound->name, to_string(links.bound->status),
                        *ratio);
  }
  const char* const what = best.seconds ? "takes" : "receives";
  const char* const many = best.seconds ? "times as long" : "times as many";
  // A single rank receives no words.
  const bool compares = best.seconds || best.on.received > Words(0);
  if (report.choices.size() > 1 && compares) {
    text += fmt::format("; {}, the next, {} {:.3f} {}", to_string(report.choices[1].on.grid), what,
                        over(report.choices[1], best), many);
  }
  if (report.with_more_room && compares) {
    text += fmt::format(
        "; {} {} {:.3f} {}, and has a home of {}", to_string(report.with_more_room->on.grid), what,
        over(*report.with_more_room, best), many, grouped(report.with_more_room->on.home.value()));
  }
  return text;
}

Cells choice_cells(const GridChoice& choice) {
  const PlannedGrid& on = choice.on;
  Cells cells = {{in_table("grid"), to_string(on.grid)}};
  if (choice.seconds) {
    cells.push_back({in_table("ms"), to_ms(*choice.seconds)});
  }
  return joined(std::move(cells),
                {{in_json("grid"), Json{{"rows", on.grid.rows},
                                        {"columns", on.grid.columns},
                                        {"groups", key_groups_of(on.plan)},
                                        {"ring", on.grid.ring}}},
                 {in_csv("rows"), on.grid.rows},
                 {in_csv("columns"), on.grid.columns},
                 {in_csv("ring"), on.grid.ring},
                 {"received", on.received.value()},
                 {{"bound counts", "", "counted"}, choice.beside.links.words},
                 {{"ratio", "", "ratio"}, decimals(choice.beside.largest_of_links().ratio(), 3)},
                 {"arena", on.arena.value()},
                 {{"over its bound", "", "arena_ratio"}, decimals(choice.beside.arena.ratio(), 3)},
                 {"home", on.home.value()},
                 {{"on the path", "path", "path"}, on.path.words},
                 {in_json_and_csv("path_messages"), on.path.messages},
                 {in_json_and_csv("seconds"), choice.seconds},
                 {in_json("blocks"), blocks_json(on.plan.blocks)},
                 {in_json("rank_bounds"), rank_bounds_json(choice.beside)}});
}

}  // namespace

GridPlanReport report_grids(const RanksAsked& asked) {
  const Objective objective = asked.rates ? Objective::time : Objective::words;
  std::vector<GridChoice> all;
  for (PlannedGrid& on :
       plans_on_grids(*asked.kernel, asked.problem, asked.M, objective, asked.ranks)) {
    all.push_back(choice_of(asked, std::move(on)));
  }
  if (asked.ring) {
    PlannedGrid ring = plan_on_grid(*asked.kernel, asked.problem, asked.M, objective,
                                    {.rows = asked.ranks, .columns = 1, .ring = true});
    if (total(ring.plan.phases).peak <= Words(asked.M)) {
      all.push_back(choice_of(asked, std::move(ring)));
    }
  }
  if (all.empty()) {
    const PlannedGrid first =
        plan_on_grid(*asked.kernel, asked.problem, asked.M, objective, {asked.ranks, 1});
    const Index least = total(first.plan.phases).peak.value();
    throw FastMemoryTooSmall(
        fmt::format("{} on {} does not fit in M = {} words: it needs M of at least {}",
                    spelled(asked.kernel->name, asked.problem.sharing),
                    counted(asked.ranks, "rank"), asked.M, least),
        least);
  }
  std::ranges::stable_sort(all, {}, [](const GridChoice& choice) {
    return std::tuple(choice.seconds.value_or(0), choice.on.received, choice.on.arena,
                      choice.on.home);
  });
  GridPlanReport report{.asked = asked};
  for (const GridChoice& choice : all) {
    if (has_room(asked, choice)) {
      report.choices.push_back(choice);
    }
  }
  if (report.choices.empty()) {
    const GridChoice& least =
        *std::ranges::min_element(all, {}, [](const GridChoice& choice) { return choice.on.home; });
    throw UsageError(fmt::format("{} {}: no grid of {} has so small a home: the least is {}, of {}",
                                 asked.said_home, *asked.home, counted(asked.ranks, "rank"),
                                 least.on.home.value(), to_string(least.on.grid)));
  }
  if (!has_room(asked, all.front())) {
    report.with_more_room = all.front();
  }
  return report;
}

Description describe(const GridPlanReport& report) {
  const RanksAsked& asked = report.asked;
  const std::string kernel = spelled(asked.kernel->name, asked.problem.sharing);
  const Problem& problem = report.choices.front().on.plan.problem;
  const auto [n, m, d] = asked.problem.shape;
  Description of = begin_report(
      fmt::format(
          "{} n={} m={} d={} M={} on {}{}   (words of the busiest rank)", kernel, n, m, d, asked.M,
          counted(asked.ranks, "rank"),
          asked.home ? fmt::format(", homes of at most {} words", grouped(*asked.home)) : ""),
      report.M_from);
  of.facts(
      joined(kernel_cells(kernel, asked.problem.shape, asked.M),
             {{in_json_and_csv("ranks"), asked.ranks},
              {in_json("problem"), to_string(asked.kernel->pass)},
              {in_json("home"), asked.home},
              {in_json("objective"), asked.rates ? "time" : "words"},
              {in_json("mask"), mask_json(problem)},
              {in_json("sharing"),
               problem.sharing == Sharing::none ? absent() : CellValue(to_string(problem.sharing))},
              {in_json("reason"), reason(report)}}));
  const std::vector<Cells> rows = rows_of(report.choices, choice_cells);
  of.fact("plan", json_of(rows.front()));
  of.fact("runners_up", json_of(std::vector(rows.begin() + 1, rows.end())));
  of.text("\n");
  of.table("", rows);
  of.say("\n{}", reason(report));
  of.fact("rates", asked.rates ? Json(asked.rates->origin) : Json());
  of.fact("links", asked.rates ? links_json(*asked.rates->links) : Json());
  if (asked.rates) {
    of.say("rates: {}; {}", asked.rates->origin, to_words(*asked.rates->links));
  }
  of.say("{}", to_string(report.choices.front().on.plan, 1));
  return of;
}

}  // namespace redblue
