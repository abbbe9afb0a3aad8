#include "runtime/report/dividing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "runtime/report/context.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/text/table.hpp"

namespace redblue {
namespace {

constexpr int kFirst = 14;  // the first M is 2^(14/2)

Index fast_words(int half_octaves) {
  return static_cast<Index>(std::floor(std::exp2(half_octaves / 2.0)));
}

std::optional<Dividing::Moved> moved(std::string_view name, const Problem& problem, Index M) {
  try {
    const std::vector<PhaseCost> phases = find_kernel(name).plan(problem, M).phases;
    const PhaseCost all = total(phases);
    Words prepare;
    for (const PhaseCost& phase : phases) {
      if (phase.path == "prepare") {
        prepare += phase.reads + phase.writes;
      }
    }
    return Dividing::Moved{.words = (all.reads + all.writes).value(),
                           .index = (all.index_reads + all.index_writes).value(),
                           .prepare = prepare.value()};
  } catch (const FastMemoryTooSmall&) {
    return std::nullopt;
  }
}

std::string text_of(const std::optional<double>& M) {
  return M ? grouped(static_cast<Index>(std::llround(*M))) : "-";
}

std::string verdict(const Dividing& report) {
  const auto first = [](const std::optional<Index>& M) {
    return M ? "first at M = " + grouped(*M) : "at no M of these";
  };
  return fmt::format(
      "rows move fewer words than tiles {}, and where regrouping is not counted {}; Z_A^2 / Z_QK "
      "is "
      "{} (Remark 4.7)",
      first(report.measured), first(report.measured_without_prepare), text_of(report.remark));
}

CellValue words(const std::optional<Dividing::Moved>& moved, Index Dividing::Moved::*which) {
  return moved ? CellValue((*moved).*which) : CellValue(nullptr);
}

Cells point_cells(const Dividing::Point& point) {
  const auto& [M, tiles, rows] = point;
  const auto words_of = [](const auto& moved) {
    return moved ? std::optional(moved->words) : std::nullopt;
  };
  return {{"M", M},
          {{"sparse-tiles", "tiles.words", "tiles"}, words(tiles, &Dividing::Moved::words)},
          {{"indices", "tiles.index", "tiles_index"}, words(tiles, &Dividing::Moved::index)},
          {{"sparse-rows", "rows.words", "rows"}, words(rows, &Dividing::Moved::words)},
          {{"indices", "rows.index", "rows_index"}, words(rows, &Dividing::Moved::index)},
          {in_table("rows / tiles"), decimals(quotient(words_of(rows), words_of(tiles)), 3)}};
}

std::string sizes_of(const Dividing& report) {
  const auto [n, m, d] = report.problem.shape;
  return n == m ? fmt::format("n = m = {}, d = {}", grouped(n), grouped(d))
                : fmt::format("n = {}, m = {}, d = {}", grouped(n), grouped(m), grouped(d));
}

// "A1 random:32, A2 random:32, X identity"
std::string family_of(const Dividing& report) {
  std::string text;
  for (const auto& [name, from] : report.sources) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, from);
  }
  return text;
}

// Draws a vertical line. Its text stands above the plot, to the right or left of the line.
std::string mark_at(double M, const std::string& text, bool right, int line_type) {
  return fmt::format(
      "set arrow from {0}, graph 0 to {0}, graph 1 nohead linetype {1} linewidth 1.5 back\n"
      "set label {2} at {0}, graph 1 offset {3}, char 0.5 {4} font ',{5}' textcolor rgb "
      "'#333333'\n",
      M, line_type, gnuplot_text(text), right ? 0.3 : -0.3, right ? "left" : "right", kSmallFont);
}

}  // namespace

Dividing report_dividing(const Problem& problem, std::map<std::string, std::string> sources) {
  Dividing report{.problem = problem, .sources = std::move(sources)};
  const Sparsity& of = problem.sparsity;
  const auto Z_A = static_cast<double>(std::min(of.A1().stored(), of.A2().stored()));
  const auto Z_QK = static_cast<double>(of.pairs().value());
  if (Z_QK > 0) {
    report.remark = Z_A * Z_A / Z_QK;
  }
  // Words of S with its indices, maxima and sums. In a larger M, rows move every word once.
  const auto whole = static_cast<double>(2 * of.S().stored() + 4 * problem.shape.n);
  for (int k = kFirst;; ++k) {
    const Index M = fast_words(k);
    const auto& [its_M, tiles, rows] = report.points.emplace_back(
        Dividing::Point{M, moved(kDividingTiles, problem, M), moved(kDividingRows, problem, M)});
    if (!report.measured && tiles && rows && rows->words < tiles->words) {
      report.measured = M;
    }
    if (!report.measured_without_prepare && tiles && rows &&
        rows->words - rows->prepare < tiles->words - tiles->prepare) {
      report.measured_without_prepare = M;
    }
    const double past =
        std::max(report.remark.value_or(0), static_cast<double>(report.measured.value_or(1)));
    const bool over = static_cast<double>(its_M) >= 8 * past && report.measured;
    if (over || static_cast<double>(its_M) >= 2 * std::max(whole, past)) {
      return report;
    }
  }
}

Description describe(const Dividing& report) {
  const auto [n, m, d] = report.problem.shape;
  Description of = begin_report(fmt::format("words of L, read and written: {}; {}\n{} live pairs\n",
                                            sizes_of(report), family_of(report),
                                            grouped(report.problem.sparsity.pairs().value())));
  of.facts({{in_json("n"), n},
            {in_json("m"), m},
            {in_json("d"), d},
            {in_json("sparse"), sparse_json(Pass::logsumexp, report.problem, report.sources)},
            {in_json("measured"), report.measured},
            {in_json("measured_without_prepare"), report.measured_without_prepare},
            {in_json("remark_4_7"), report.remark}});
  of.table("points", rows_of(report.points, point_cells));
  of.say("\n{}", verdict(report));
  return of;
}

Picture dividing_picture(const Dividing& report) {
  Picture picture{.title = fmt::format("Words of L: {}; {}", sizes_of(report), family_of(report)),
                  .x_label = "M, words of fast memory",
                  .y_label = "words moved, read and written",
                  .words_above = true};
  double least = 0, most = 0;
  std::string plot;
  const auto draw = [&](std::string_view kernel,
                        std::optional<Dividing::Moved> Dividing::Point::*of, int type) {
    std::string lines;
    int points = 0;
    for (const Dividing::Point& point : report.points) {
      if (const auto& moved = point.*of) {
        const auto all = static_cast<double>(moved->words);
        least = least == 0 ? all : std::min(least, all);
        most = std::max(most, all);
        lines += fmt::format("{} {} {}\n", point.M, moved->words, moved->words - moved->index);
        ++points;
      }
    }
    if (points < 2) {
      throw InputError(fmt::format("{} fits with fewer than two sizes of M", kernel));
    }
    const std::string name = fmt::format("$curve{}", type);
    picture.data.emplace_back(name, std::move(lines));
    plot += fmt::format("{}{} using 1:2 with linespoints linetype {} title {}",
                        plot.empty() ? "plot " : ", ", name, type,
                        gnuplot_text(kernel.substr(kernel.find('/') + 1)));
  };
  draw(kDividingTiles, &Dividing::Point::tiles, 1);
  draw(kDividingRows, &Dividing::Point::rows, 2);
  const auto from = static_cast<double>(report.points.front().M);
  const auto to = static_cast<double>(report.points.back().M);
  picture.commands =
      fmt::format("set logscale x 2\nset logscale y\nset xrange [{}:{}]\nset yrange [{}:{}]\n",
                  from / 1.1, to * 1.1, least / 1.2, most * 1.2);
  picture.commands +=
      gnuplot_size_tics('x', from, to, 10) + gnuplot_log_tics('y', least / 1.2, most * 1.2);
  const double measured = report.measured ? static_cast<double>(*report.measured) : 0;
  if (report.measured) {
    picture.commands += mark_at(measured, "rows from M = " + grouped(*report.measured),
                                measured >= report.remark.value_or(0), 4);
  }
  if (report.remark && *report.remark >= from && *report.remark <= to) {
    picture.commands += mark_at(*report.remark, "Z_A^2 / Z_QK = " + text_of(report.remark),
                                *report.remark > measured, 7);
  }
  picture.commands += plot + "\n";
  return picture;
}

}  // namespace redblue
