#include "runtime/report/table1.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/kernel.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/run/inputs.hpp"
#include "runtime/run/rules.hpp"
#include "runtime/theory/planner.hpp"

namespace redblue {
namespace {

// Sizes as extreme as words of 63 bits allow. Large caches need d^2 << M << nd. Otherwise the words
// of X, and the words that are read once, show next to n^2 d^2 / M. Small caches need sqrt(M) << d
// << n. Otherwise n^2 and n d^2 / sqrt(M) show.
constexpr FitPoints kLarge{"large", {26, 30}, {6, 8}, {6, 10}};
constexpr FitPoints kSmall{"small", {21, 25}, {12, 14}, {-16, -12}};
// The lower edge of large caches, d^2 <= M <= 4 d^2. The paper's cap on Br does not bind yet there.
constexpr FitPoints kEdge{"large, M <= 4 d^2", {24, 28}, {6, 8}, {0, 2}};
// The region where the second term of small caches is the larger one: sqrt(M) << n << d. For large
// caches it never is, because nd >= M >= d^2 excludes d > n.
constexpr FitPoints kWide{"small, d >> n", {12, 14}, {20, 22}, {8, 12}, false};

// The supports of rows overlap: s^2 >= 2 d, so that nearly all pairs are live.
constexpr EntryFamily kMixed{"U", 512};
constexpr std::array<Index, 3> kMixedEntries = {32, 64, 128};
constexpr FitPoints kSparseLarge{"U, large", {10, 12}, {}, {1, 3}, true, kMixed, kMixedEntries};
// Further below M = n s. Above it, S stays in fast memory as a whole.
constexpr FitPoints kSparseFar{"U, large, far", {12, 14}, {}, {1, 3}, true, kMixed, kMixedEntries};
// s = 32 is left out, because then S = A1 X needs more than s^2 / 8 words.
constexpr FitPoints kSparseSmall{"U, small", {10, 12}, {}, {-3, -1}, true, kMixed, {40, 64, 128}};
// S = A1 X has all entries and is not computed.
constexpr FitPoints kFullX{"D, large", {13, 15}, {}, {12, 14}, false, EntryFamily{"D", 16, true},
                           {4, 8, 12}};

struct Measured {
  std::string by;
  Words words;
  Words index = {};  // words of indices among them
  Words peak = {};
  Words core = {}, index_of_core = {};  // words of the phase `core`

  [[nodiscard]] double of(const Counted& counted) const {
    const auto [of, indices] =
        counted.before ? std::pair(words, index) : std::pair(core, index_of_core);
    return static_cast<double>(of.value()) -
           (counted.index ? 0 : static_cast<double>(indices.value()));
  }
};
using Source = std::function<Measured(const Task&)>;

Measured measured(std::string by, std::vector<PhaseCost> phases) {
  const PhaseCost all = total(phases);
  std::erase_if(phases, [](const PhaseCost& phase) { return phase.path != "core"; });
  const PhaseCost core = total(phases);
  return {.by = std::move(by),
          .words = all.reads + all.writes,
          .index = all.index_reads + all.index_writes,
          .peak = all.peak,
          .core = core.reads + core.writes,
          .index_of_core = core.index_reads + core.index_writes};
}

Source kernel(std::string_view name) {
  return [&kernel = find_kernel(name)](const Task& task) {
    return measured(std::string(kernel.name), kernel.plan(task.problem, task.memory.M).phases);
  };
}

Measured large_as_printed(const Task& task) {
  const Kernel& large = find_kernel("backward/large");
  return measured(
      "backward/large, printed",
      large.formula.cost(task.problem, large.fitting.printed(task.problem, task.memory.M)));
}

Measured phase_3_of_small(const Task& task) {
  auto phases = find_kernel("backward/small").plan(task.problem, task.memory.M).phases;
  std::erase_if(phases, [](const PhaseCost& phase) { return !phase.path.starts_with("phase3/"); });
  return measured("backward/small, phase 3", phases);
}

Measured fewest(const Task& task) {
  const Choice best = choices(task).front();
  const Words peak = total(best.plan.phases).peak;
  return {.by = "fewest: " + to_words(best),
          .words = best.words,
          .peak = best.forward ? std::max(peak, total(best.forward->phases).peak) : peak};
}

Measured bound(const Task& task) {
  const std::vector<Bound> bounds = lower_bounds(task);
  const Bound& active = largest(bounds);
  return {fmt::format("bound: {}", active.name), active.words};
}

// Makes the task at each point of a grid. It generates the entries of a family once for all M and
// all kernels.
class Tasks {
 public:
  explicit Tasks(Task of) : of_(std::move(of)) {}
  [[nodiscard]] Task at(const FitPoints& grid, const Sample& sample) {
    Task task = of_;
    task.memory.M = sample.M;
    task.problem.shape = {sample.n, sample.n, sample.d};
    if (const auto& family = grid.family) {
      Sparsity& made = made_[{family->name, sample.n, sample.d}];
      if (made.dense()) {
        made = entries(*family, sample.n, sample.d);
      }
      task.problem = Problem(sample.n, sample.n, family->d).with_sparsity(made);
    }
    return task;
  }

 private:
  static Sparsity entries(const EntryFamily& family, Index n, Index s) {
    const Rule random{.kind = Rule::Kind::random, .entries = static_cast<std::uint64_t>(s)};
    const Rule identity{.kind = Rule::Kind::identity};
    const Index d = family.d;
    return {pattern_by_rule(random, "A1", kDefaultSeed, n, d),
            family.full_X ? full_pattern(d, d) : pattern_by_rule(identity, "X", kDefaultSeed, d, d),
            pattern_by_rule(random, "A2", kDefaultSeed, n, d)};
  }

  Task of_;
  std::map<std::tuple<std::string_view, Index, Index>, Sparsity> made_;
};

double power(const Exponents& exponents, const Sample& at) {
  return std::pow(static_cast<double>(at.n), exponents.n) *
         std::pow(static_cast<double>(at.d), exponents.d) *
         std::pow(static_cast<double>(at.M), exponents.M);
}

// Fits the power law of the words that `counted` selects.
Fit fit_of(const FitPoints& grid, const Claim& claim, const std::vector<Measured>& found,
           const Counted& counted) {
  std::vector<Sample> samples = grid.points();
  Fit fit{.grid = grid, .law = {}};
  double peak_over_M = 0;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    Sample& sample = samples[k];
    sample.words = found[k].of(counted);
    const double over = sample.words / power(claim.exponents, sample);
    fit.least_over_claim = k == 0 ? over : std::min(fit.least_over_claim, over);
    fit.most_over_claim = std::max(fit.most_over_claim, over);
    peak_over_M = std::max(
        peak_over_M, static_cast<double>(found[k].peak.value()) / static_cast<double>(sample.M));
  }
  if (peak_over_M > 0) {
    fit.peak_over_M = peak_over_M;
  }
  fit.law = fit_power_law(samples);
  return fit;
}

// Returns the ways to count. If S = A1 X is computed first, they include counts without it, because
// the law is not about its words.
std::vector<Counted> ways_of(const FitPoints& grid) {
  if (grid.family->full_X) {
    return {{}, {.index = false}};
  }
  return {{}, {.index = false}, {.before = false}, {.index = false, .before = false}};
}

// Returns a row for each way to count.
std::vector<Row> fitted(const Claim& claim, const FitPoints& grid, Tasks& tasks,
                        const Source& source, const std::vector<Counted>& ways = {{}}) {
  std::vector<Measured> found;
  std::set<std::string> by;
  for (const Sample& sample : grid.points()) {
    found.push_back(source(tasks.at(grid, sample)));
    by.insert(found.back().by);
  }
  std::vector<Row> rows;
  for (const Counted& counted : ways) {
    rows.push_back({claim, fmt::format("{}", fmt::join(by, "; ")), counted,
                    fit_of(grid, claim, found, counted)});
  }
  return rows;
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

// The law of Theorem 4.5, a lower bound. For our bounds it is a claim of the paper. For kernels it
// is only a law to compare with, because the paper has no upper bound. The tolerance is a tenth of
// each exponent, and `of_M` times the exponent of M.
Claim sparse(const char* cache, const char* says, const Exponents& exponents, bool of_kernel,
             double of_M) {
  return {"sparse",
          of_kernel ? "none" : "lower",
          cache,
          of_kernel ? "no claim" : "Theorem 4.5",
          says,
          exponents,
          {.n = 0.1 * exponents.n, .d = 0.1 * exponents.d, .M = of_M * std::abs(exponents.M)}};
}

SparseLaw sparse_large(const FitPoints& grid, std::string_view kernel = {}) {
  return {sparse("large", "Z_in^2 / M", {2, 2, -1}, !kernel.empty(), 0.1), grid, kernel};
}

SparseLaw sparse_small(const FitPoints& grid, std::string_view kernel = {}) {
  return {sparse("small", "Z_in sqrt(Z_QK / M)", {2, 1, -0.5}, !kernel.empty(), 0.2), grid, kernel};
}

}  // namespace

std::vector<Sample> FitPoints::points() const {
  const auto along = [](Octaves range) {
    return std::array{range.from, (range.from + range.to) / 2, range.to};
  };
  std::vector<Sample> all;
  for (const int log2_n : along(n)) {
    for (std::size_t k = 0; k < s.size(); ++k) {
      const Index size = family ? s[k] : Index{1} << along(d)[k];
      for (const int log2_M : along(M)) {
        const Index unit = M_in_squares ? size * size : 1;
        all.push_back({.n = Index{1} << log2_n,
                       .d = size,
                       .M = log2_M < 0 ? unit >> -log2_M : unit << log2_M});
      }
    }
  }
  return all;
}

const std::vector<SparseLaw>& sparse_laws() {
  // Only L follows the paper's laws. In a whole pass most words belong to the dense A3, Y and dO.
  static const std::vector<SparseLaw> laws = {sparse_large(kFullX),
                                              sparse_small(kSparseSmall),
                                              sparse_large(kSparseLarge, "logsumexp/sparse-rows"),
                                              sparse_large(kSparseFar, "logsumexp/sparse-rows"),
                                              sparse_small(kSparseSmall, "logsumexp/sparse-tiles"),
                                              sparse_large(kFullX, "logsumexp/sparse-x")};
  return laws;
}

std::vector<Row> sparse_rows(const std::vector<SparseLaw>& laws) {
  std::vector<Row> rows;
  Tasks tasks({.pass = Pass::logsumexp});
  for (const auto& [claim, grid, name] : laws) {
    std::ranges::move(name.empty() ? fitted(claim, grid, tasks, bound)
                                   : fitted(claim, grid, tasks, kernel(name), ways_of(grid)),
                      std::back_inserter(rows));
  }
  return rows;
}

Table1 report_table1(const std::vector<SparseLaw>& laws) {
  Table1 report;
  // Adds a row for each source of words that should follow the claim.
  const auto add = [&](const Claim& claim, const FitPoints& grid, const Task& task,
                       std::initializer_list<Source> sources) {
    Tasks tasks(task);
    for (const Source& source : sources) {
      std::ranges::move(fitted(claim, grid, tasks, source), std::back_inserter(report.rows));
    }
  };
  // Rows of large caches start from O and L, rows of small caches from nothing, as their algorithms
  // do.
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
  std::ranges::move(sparse_rows(laws), std::back_inserter(report.rows));
  return report;
}

}  // namespace redblue
