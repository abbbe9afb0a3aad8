#include "runtime/report/table1.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/report/context.hpp"
#include "runtime/text/cells.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// As far out as 63 bits of words allow. Large caches need d^2 << M << nd: else the words of X, and
// words that are read once, show beside n^2 d^2 / M. Small caches need sqrt(M) << d << n: else n^2
// and n d^2 / sqrt(M) show.
constexpr Grid kLarge{"large", {26, 30}, {6, 8}, {6, 10}};
constexpr Grid kSmall{"small", {21, 25}, {12, 14}, {-16, -12}};
// The edge at which the paper's cap on Br does not bind yet.
constexpr Grid kEdge{"large, M <= 4 d^2", {24, 28}, {6, 8}, {0, 2}};
// The region in which the second term of small caches is the larger one: sqrt(M) << n << d. For
// large caches it never is: nd >= M >= d^2 excludes d > n.
constexpr Grid kWide{"small, d >> n", {12, 14}, {20, 22}, {8, 12}, false};

struct Measured {
  std::string by;
  Index words = 0;
  Words peak = 0;
};
using Source = std::function<Measured(const Task&)>;

Measured measured(std::string by, const std::vector<PhaseCost>& phases) {
  const PhaseCost all = total(phases);
  return {std::move(by), (all.reads + all.writes).value(), all.peak};
}

Source kernel(std::string_view name) {
  return [&kernel = find_kernel(name)](const Task& task) {
    return measured(std::string(kernel.name),
                    kernel.plan(Problem(task.problem.shape), task.memory.M).phases);
  };
}

Measured large_as_printed(const Task& task) {
  const Kernel& large = find_kernel("backward/large");
  return measured(
      "backward/large, printed",
      large.formula.cost(Problem(task.problem.shape),
                         large.fitting.printed(Problem(task.problem.shape), task.memory.M)));
}

Measured phase_3_of_small(const Task& task) {
  auto phases =
      find_kernel("backward/small").plan(Problem(task.problem.shape), task.memory.M).phases;
  std::erase_if(phases, [](const PhaseCost& phase) { return !phase.path.starts_with("phase3/"); });
  return measured("backward/small, phase 3", phases);
}

Measured fewest(const Task& task) {
  const Choice best = choices(task).front();
  const Words peak = total(best.plan.phases).peak;
  return {"fewest: " + to_words(best), best.words.value(),
          best.forward ? std::max(peak, total(best.forward->phases).peak) : peak};
}

Measured bound(const Task& task) {
  const std::vector<Bound> bounds = lower_bounds(task);
  const Bound& active = largest(bounds);
  return {fmt::format("bound: {}", active.name), active.words};
}

Row fitted(const Claim& claim, const Grid& grid, Task task, const Source& source) {
  std::vector<Sample> samples = grid.points();
  std::set<std::string> by;
  double peak_over_M = 0;
  for (Sample& sample : samples) {
    task.problem.shape = {sample.n, sample.n, sample.d};
    task.memory.M = sample.M;
    const Measured found = source(task);
    by.insert(found.by);
    sample.words = static_cast<double>(found.words);
    peak_over_M = std::max(peak_over_M,
                           static_cast<double>(found.peak.value()) / static_cast<double>(sample.M));
  }
  return {claim, fmt::format("{}", fmt::join(by, "; ")),
          Fit{grid, fit_power_law(samples),
              peak_over_M > 0 ? std::optional(peak_over_M) : std::nullopt}};
}

Claim large(const char* pass, const char* which, const char* from) {
  return {pass, which, "large", from, "n^2 d^2 / M", {2, 2, -1}};
}

Claim small(const char* pass, const char* which, const char* from) {
  return {pass, which, "small", from, "n^2 d / sqrt(M)", {2, 1, -0.5}};
}

Claim small_second_term(const char* which, const char* from) {
  return {"backward", which, "small", from, "n d^2 / sqrt(M)", {1, 2, -0.5}};
}

// An exponent by its name.
using Named = std::pair<const char*, double Exponents::*>;
constexpr Named kNames[] = {{"n", &Exponents::n}, {"d", &Exponents::d}, {"M", &Exponents::M}};

bool agree(double found, double claimed) {
  return std::abs(found - claimed) <= kTolerance;
}

// Two digits after the point, without the sign of a zero.
std::string two_digits(double value) {
  return fmt::format("{:.2f}", std::round(100 * value) / 100 + 0.0);
}

std::string to_words(const Grid::Octaves& octaves) {
  return fmt::format("2^{}..2^{}", octaves.from, octaves.to);
}

// The claims that the fits contradict, with their rows.
std::string unlike_claimed(const Table1& report) {
  std::vector<std::string> names;
  for (const Row& row : report.rows) {
    if (!row.holds().value_or(true)) {
      names.push_back(fmt::format("{} ({})", row.claim.from, row.by));
    }
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, "; "));
}

// The grids of all fits, without repetition.
std::vector<Grid> grids(const Table1& report) {
  std::vector<Grid> found;
  for (const Row& row : report.rows) {
    if (row.fit && std::ranges::find(found, row.fit->grid.name, &Grid::name) == found.end()) {
      found.push_back(row.fit->grid);
    }
  }
  return found;
}

Json to_json(const Grid& grid) {
  Json json = {{"name", grid.name}};
  const std::vector<Sample> points = grid.points();
  for (const auto& [name, of] :
       {std::pair{"n", &Sample::n}, {"d", &Sample::d}, {"M", &Sample::M}}) {
    const auto [least, most] = std::ranges::minmax_element(points, {}, of);
    json[name] = {{"from", (*least).*of}, {"to", (*most).*of}};
  }
  json["text"] = to_words(grid);
  json["points"] = points.size();
  return json;
}

CellValue number(double value) {
  return CellValue(value).shown(two_digits(value));
}

Cells row_cells(const Row& row) {
  const Claim& claim = row.claim;
  const Fit fit = row.fit.value_or(Fit());
  const auto& [n, d, M] = fit.law.exponents;
  Cells cells = {
      {in_table("cell"),
       fmt::format("{} {}, {}", claim.pass, claim.bound, row.fit ? fit.grid.name : claim.cache)},
      {in_json_and_csv("pass"), claim.pass},
      {in_json_and_csv("bound"), claim.bound},
      {in_json_and_csv("cache"), claim.cache},
      {{"the paper", "from"}, claim.from},
      {"says", claim.says},
      {{"words of", "words_of"}, always_quoted(row.by)},
      {in_json("claimed"),
       row.fit ? Json{{"n", claim.exponents.n}, {"d", claim.exponents.d}, {"M", claim.exponents.M}}
               : Json()}};
  Cells of_fit = {{{"", "fit.grid", "grid"}, always_quoted(fit.grid.name)},
                  {{"c", "fit.constant", "constant"}, number(fit.law.constant)},
                  {{"n", "fit.exponents.n", "n"}, number(n)},
                  {{"d", "fit.exponents.d", "d"}, number(d)},
                  {{"M", "fit.exponents.M", "M"}, number(M)},
                  {{"off", "fit.residual", "residual"}, number(fit.law.residual)},
                  {{"peak/M", "fit.peak_over_M", "peak_over_M"},
                   fit.peak_over_M ? number(*fit.peak_over_M) : CellValue(nullptr)}};
  if (!row.fit) {
    cells.push_back({in_json("fit"), nullptr});
    for (Cell& cell : of_fit) {
      cell.value = absent();
    }
  }
  return joined(joined(std::move(cells), of_fit),
                {{in_json("holds"), row.holds()}, {"verdict", always_quoted(row.verdict())}});
}

std::vector<Cells> table1_rows(const Table1& report) {
  return rows_of(report.rows, row_cells);
}

}  // namespace

std::vector<Sample> Grid::points() const {
  const auto along = [](Octaves range) {
    return std::array{range.from, (range.from + range.to) / 2, range.to};
  };
  std::vector<Sample> all;
  for (const int log2_n : along(n)) {
    for (const int log2_d : along(d)) {
      for (const int log2_M : along(M)) {
        all.push_back({.n = Index{1} << log2_n,
                       .d = Index{1} << log2_d,
                       .M = Index{1} << (log2_M + (M_in_squares ? 2 * log2_d : 0))});
      }
    }
  }
  return all;
}

std::optional<bool> Row::holds() const {
  if (!fit) {
    return std::nullopt;
  }
  return std::ranges::all_of(kNames, [this](const Named& name) {
    return agree(fit->law.exponents.*name.second, claim.exponents.*name.second);
  });
}

std::string Row::verdict() const {
  if (!fit) {
    return "not there yet";
  }
  std::vector<std::string> off;
  for (const auto& [name, of] : kNames) {
    if (!agree(fit->law.exponents.*of, claim.exponents.*of)) {
      off.push_back(fmt::format("of {} is {}", name, two_digits(fit->law.exponents.*of)));
    }
  }
  return off.empty() ? "holds" : fmt::format("no: exponent {}", fmt::join(off, ", "));
}

Table1 report_table1() {
  Table1 report;
  // A row for each source of words that should follow the claim.
  const auto add = [&](const Claim& claim, const Grid& grid, const Task& task,
                       std::initializer_list<Source> sources) {
    for (const Source& source : sources) {
      report.rows.push_back(fitted(claim, grid, task, source));
    }
  };
  // Like the algorithms, rows of large caches start from O and L, rows of small ones from nothing.
  const Task forward{.pass = Pass::forward};
  const Task given{.pass = Pass::backward, .known = Known::O_and_L};
  const Task nothing{.pass = Pass::backward, .known = Known::nothing};

  add(large("forward", "upper", "Dao et al. 2022"), kLarge, forward,
      {kernel("forward/flash"), fewest});
  add(large("forward", "lower", "Saha and Ye 2024"), kLarge, forward, {bound});
  add(small("forward", "upper", "Saha and Ye 2024"), kSmall, forward,
      {kernel("forward/small"), fewest});
  add(small("forward", "lower", "Saha and Ye 2024"), kSmall, forward, {bound});
  add(large("backward", "upper", "Dao et al. 2022"), kLarge, given,
      {kernel("backward/flash"), fewest});
  add(large("backward", "upper", "Theorem D.5"), kLarge, given,
      {kernel("backward/large"), large_as_printed});
  add(large("backward", "upper", "Theorem D.5"), kEdge, given, {large_as_printed});
  add(large("backward", "lower", "Theorem 4.2"), kLarge, given, {bound});
  add(small("backward", "upper", "Theorem 4.3"), kSmall, nothing,
      {kernel("backward/small"), fewest});
  add({"backward", "upper", "small", "Lemma C.9", "n^2 / sqrt(M)", {2, 0, -0.5}}, kSmall, nothing,
      {phase_3_of_small});
  add(small("backward", "lower", "Theorem 4.4"), kSmall, nothing, {bound});
  add(small_second_term("upper", "Theorem 4.3"), kWide, nothing,
      {kernel("backward/small"), fewest});
  add(small_second_term("lower", "Theorem 4.4"), kWide, nothing, {bound});
  for (const char* pass : {"sparse forward", "sparse backward"}) {
    report.rows.push_back(
        {{pass, "lower", "large", "Theorem 4.5", "Z_in^2 / M"}, "-", std::nullopt});
    report.rows.push_back(
        {{pass, "lower", "small", "Theorem 4.5", "Z_in sqrt(Z_QK / M)"}, "-", std::nullopt});
  }
  return report;
}

std::string to_words(const Grid& grid) {
  return fmt::format("n = {}, d = {}, M = {}{}", to_words(grid.n), to_words(grid.d),
                     to_words(grid.M), grid.M_in_squares ? " d^2" : "");
}

std::string to_table(const Table1& report) {
  std::string text = fmt::format(
      "Table 1, by the formulas: words as c n^a d^b M^e; it holds where each exponent is within {} "
      "of the paper's\n\n",
      kTolerance);
  text += table_of(table1_rows(report)) + "\n";
  for (const Grid& grid : grids(report)) {
    text += fmt::format("{}: {}\n", grid.name, to_words(grid));
  }
  text += "each grid: ends and middles, m = n; off: by how many octaves the law misses, at most\n";
  text += "peak/M: over 1, the blocks take more than M words and do not fit\n";
  text += fmt::format("not as claimed: {}\n", unlike_claimed(report));
  return text;
}

std::string to_json(const Table1& report) {
  Json grids_json = Json::array();
  for (const Grid& grid : grids(report)) {
    grids_json.push_back(to_json(grid));
  }
  return Json{{"schema", kSchema},
              {"context", context_json(std::nullopt)},
              {"tolerance", kTolerance},
              {"grids", std::move(grids_json)},
              {"rows", json_of(table1_rows(report))}}
      .document();
}

std::string to_csv(const Table1& report) {
  return csv_of(table1_rows(report));
}

}  // namespace redblue
