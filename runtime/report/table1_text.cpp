#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/report/context.hpp"
#include "runtime/report/table1.hpp"

namespace redblue {
namespace {

// Returns two digits after the point, and 0.00 without a sign.
std::string two_digits(double value) {
  return fmt::format("{:.2f}", std::round(100 * value) / 100 + 0.0);
}

std::string to_words(const FitPoints::Octaves& octaves) {
  return fmt::format("2^{}..2^{}", octaves.from, octaves.to);
}

// Returns the exponents that miss the claim, with their names.
std::vector<std::string> off(const Row& row) {
  std::vector<std::string> found;
  const Exponents& exponents = row.fit.law.exponents;
  for (const auto& [name, of] : {std::pair{std::string_view("n"), &Exponents::n},
                                 {row.fit.grid.width(), &Exponents::d},
                                 {std::string_view("M"), &Exponents::M}}) {
    if (std::abs(exponents.*of - row.claim.exponents.*of) > row.claim.tolerance.*of) {
      found.push_back(fmt::format("of {} is {}", name, two_digits(exponents.*of)));
    }
  }
  return found;
}

bool of_sparse(const Row& row) {
  return row.fit.grid.family.has_value();
}

std::string to_words(const Counted& counted) {
  return counted.before ? (counted.index ? "all" : "values")
                        : (counted.index ? "core" : "values of core");
}

std::string what_counts(const Row& row) {
  return of_sparse(row) && row.claim.bound == "none"
             ? fmt::format("{}, {}", row.by, to_words(row.counted))
             : row.by;
}

// Returns the claims that the fits contradict, with their rows.
std::string unlike_claimed(const Table1& report) {
  std::vector<std::string> names;
  for (const Row& row : report.rows) {
    if (row.holds() == false) {
      names.push_back(fmt::format("{} ({})", row.claim.from, what_counts(row)));
    }
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, "; "));
}

// Returns the grids of all fits, without repetition.
std::vector<FitPoints> grids(const Table1& report) {
  std::vector<FitPoints> found;
  for (const Row& row : report.rows) {
    if (std::ranges::find(found, row.fit.grid.name, &FitPoints::name) == found.end()) {
      found.push_back(row.fit.grid);
    }
  }
  return found;
}

Json to_json(const FitPoints& grid) {
  Json json = {{"name", grid.name}};
  const std::vector<Sample> points = grid.points();
  for (const auto& [name, of] : {std::pair{std::string("n"), &Sample::n},
                                 {std::string(grid.width()), &Sample::d},
                                 {std::string("M"), &Sample::M}}) {
    const auto [least, most] = std::ranges::minmax_element(points, {}, of);
    json[name] = {{"from", (*least).*of}, {"to", (*most).*of}};
  }
  json["text"] = to_words(grid);
  json["points"] = points.size();
  if (const auto& family = grid.family) {
    json["d"] = {{"from", family->d}, {"to", family->d}};
    json["X"] = family->full_X ? "full" : "identity";
  }
  return json;
}

CellValue number(double value) {
  return CellValue(value).shown(two_digits(value));
}

Json to_json(const Exponents& exponents, std::string_view width) {
  return {{"n", exponents.n}, {std::string(width), exponents.d}, {"M", exponents.M}};
}

// A row has either d or s.
Cells width_cells(const Row& row) {
  const auto cell = [&](const std::string& name) {
    const bool its = name == row.fit.grid.width();
    return Cell{its ? CellNames(name, "fit.exponents." + name, name) : in_csv(name),
                its ? number(row.fit.law.exponents.d) : absent()};
  };
  return {cell("d"), cell("s")};
}

Cells claim_cells(const Row& row) {
  const auto& [claim, by, counted, fit] = row;
  const std::string_view cell = claim.bound == "none" ? "kernel" : claim.bound;
  return {{in_table("cell"), fmt::format("{} {}, {}", claim.pass, cell, fit.grid.name)},
          {in_json_and_csv("pass"), claim.pass},
          {in_json_and_csv("bound"), claim.bound},
          {in_json_and_csv("cache"), claim.cache},
          {{"the paper", "from"}, claim.from},
          {"says", claim.says},
          {in_table("words of"), what_counts(row)},
          {in_json_and_csv("words_of"), always_quoted(by)},
          {in_json_and_csv("counted"), to_words(counted)},
          {in_json("claimed"), to_json(claim.exponents, fit.grid.width())},
          {in_json("tolerance"), to_json(claim.tolerance, fit.grid.width())}};
}

Cells row_cells(const Row& row) {
  const Fit& fit = row.fit;
  const Cells head = {{{"", "fit.grid", "grid"}, always_quoted(fit.grid.name)},
                      {{"c", "fit.constant", "constant"}, number(fit.law.constant)},
                      {{"n", "fit.exponents.n", "n"}, number(fit.law.exponents.n)}};
  const Cells tail = {
      {{"M", "fit.exponents.M", "M"}, number(fit.law.exponents.M)},
      {{"off", "fit.residual", "residual"}, number(fit.law.residual)},
      {in_table("times the law"),
       fmt::format("{}..{}", two_digits(fit.least_over_claim), two_digits(fit.most_over_claim))},
      {{"", "fit.over_claim.least", "least_over_claim"}, fit.least_over_claim},
      {{"", "fit.over_claim.most", "most_over_claim"}, fit.most_over_claim},
      {{"peak/M", "fit.peak_over_M", "peak_over_M"},
       fit.peak_over_M ? number(*fit.peak_over_M) : CellValue(nullptr)},
      {in_json("holds"), row.holds() ? Json(*row.holds()) : Json()},
      {"verdict", always_quoted(row.verdict())}};
  return joined(joined(claim_cells(row), head), joined(width_cells(row), tail));
}

void add_rows(Description& of, const Table1& report, const std::function<bool(const Row&)>& which) {
  std::vector<Cells> rows;
  for (const Row& row : report.rows) {
    if (which(row)) {
      rows.push_back(row_cells(row));
    }
  }
  if (!rows.empty()) {
    of.table("rows", std::move(rows));
    of.text("\n");
  }
}

}  // namespace

bool Row::follows() const {
  return off(*this).empty();
}

std::optional<bool> Row::holds() const {
  const bool silent = claim.bound == "none" || (claim.bound == "lower" && !follows());
  return silent ? std::nullopt : std::optional(follows());
}

std::string Row::verdict() const {
  const bool none = claim.bound == "none";
  if (follows()) {
    return none ? "same law" : "holds";
  }
  return fmt::format("{}: exponent {}",
                     none                     ? "other law"
                     : claim.bound == "lower" ? "not proven here"
                                              : "no",
                     fmt::join(off(*this), ", "));
}

std::string to_words(const FitPoints& grid) {
  const std::string sizes =
      grid.family ? fmt::format("s = {} of d = {}, X {}", fmt::join(grid.s, ", "), grid.family->d,
                                grid.family->full_X ? "full" : "the identity")
                  : "d = " + to_words(grid.d);
  return fmt::format("n = {}, {}, M = {}{}", to_words(grid.n), sizes, to_words(grid.M),
                     grid.M_in_squares ? fmt::format(" {}^2", grid.width()) : "");
}

Description describe(const Table1& report) {
  Description of = begin_report(fmt::format(
      "Table 1, by the formulas: words as c n^a d^b M^e; it holds where each exponent is within {} "
      "of the paper's\n",
      Claim::kTolerance));
  of.fact("tolerance", Claim::kTolerance);
  add_rows(of, report, [](const Row& row) { return !of_sparse(row); });
  of.text(
      "Its sparse rows are lower bounds. Our largest proven bound on the words of L is fitted as "
      "c n^a s^b M^e, where each row of A1 and A2 has s random entries. It holds where each "
      "exponent is within 0.1 of the paper's, that of M in small caches within 0.2\n\n");
  add_rows(of, report, [](const Row& row) { return of_sparse(row) && row.claim.bound == "lower"; });
  of.text(
      "The paper claims no upper bound for sparse operands. Words of our kernels beside the law of "
      "its lower bound\n\n");
  add_rows(of, report, [](const Row& row) { return row.claim.bound == "none"; });
  Json grids_json = Json::array();
  for (const FitPoints& grid : grids(report)) {
    grids_json.push_back(to_json(grid));
    of.say("{}: {}", grid.name, to_words(grid));
  }
  of.fact("grids", std::move(grids_json));
  of.say(
      "each size of a grid: the least, the middle and the largest; m = n\n"
      "off: the most, in octaves, by which the fitted law misses a count\n"
      "times the law: the words over the paper's law with a constant of 1\n"
      "peak/M: where it is over 1, the blocks take more than M words and do not fit\n"
      "not as claimed: {}",
      unlike_claimed(report));
  return of;
}

}  // namespace redblue
