#include "runtime/theory/symbolic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

namespace redblue {
namespace {

using Which = std::vector<std::size_t>;
using Conditions = std::vector<Condition>;

// Small problems have cheap counts. In large problems a small step seldom changes which polynomial
// is the peak.
constexpr Index kSmall = 150;
constexpr Index kLarge = 30000;
constexpr std::size_t kMostMonomials = 1500;
constexpr std::size_t kMostOfPeak = 12;
// The number of samples beyond the coefficients that they determine.
constexpr std::size_t kFurther = 100;
constexpr int kFewDraws = 300, kManyDraws = 1000;
// Many draws, because the conditions may omit one that seldom matters.
constexpr int kDrawsUnderConditions = 20000;

Monomial product(Monomial a, const Monomial& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::ranges::sort(a);
  return a;
}

// Returns all products of at most `degree` atoms, each once.
std::vector<Monomial> products(const std::vector<Atom>& atoms, std::size_t degree) {
  std::vector<Monomial> all = {{}};
  for (std::size_t begin = 0; degree > 0; --degree) {
    const std::size_t end = all.size();
    for (; begin < end; ++begin) {
      for (const Atom& atom : atoms) {
        if (all[begin].empty() || all[begin].back() <= atom) {
          Monomial longer = all[begin];
          longer.push_back(atom);
          all.push_back(std::move(longer));
        }
      }
    }
  }
  return all;
}

// Sorts simple monomials first, and n m before n^2 and m^2, which equal it if n = m.
void sort(std::vector<Monomial>& basis) {
  std::ranges::stable_sort(basis, {}, [](const Monomial& monomial) {
    const auto times = [&](std::size_t which) {
      return std::ranges::count(monomial, which, &Atom::of);
    };
    return std::tuple(
        monomial.size(),
        std::ranges::count_if(monomial, [](const Atom& atom) { return atom.by.has_value(); }),
        times(FormulaCase::kN) > 1 || times(FormulaCase::kM) > 1);
  });
}

// The numbers of a phase.
constexpr std::array<Words PhaseCost::*, 3> kMetrics = {&PhaseCost::reads, &PhaseCost::writes,
                                                        &PhaseCost::peak};

// The kernel's counts for a case.
class Counts {
 public:
  explicit Counts(const FormulaCase& of) : of_(of), phases_(of.cost(of.sizes())) {}

  // Returns all metrics, phase by phase. A metric is -1, which no formula equals, if it overflows.
  // All are -1 if the sizes have other phases than the plan.
  [[nodiscard]] std::vector<Index> all(const Sizes& sizes) const {
    const std::vector<PhaseCost> phases = of_.cost(sizes);
    std::vector<Index> words(phases_.size() * kMetrics.size(), -1);
    if (std::ranges::equal(phases, phases_, {}, &PhaseCost::path, &PhaseCost::path)) {
      for (std::size_t k = 0; k < words.size(); ++k) {
        const Words of = phases[k / kMetrics.size()].*kMetrics.at(k % kMetrics.size());
        words[k] = of.overflowed() ? -1 : of.value();
      }
    }
    return words;
  }

 private:
  const FormulaCase& of_;
  std::vector<PhaseCost> phases_;
};

// Returns the quantities that matter for each metric, without quantities tied to a length.
std::vector<Which> relevant(const FormulaCase& of, const Counts& counts, std::mt19937_64& random) {
  constexpr int kDraws = 200;
  std::vector<std::pair<Sizes, std::vector<Index>>> drawn;
  for (int k = 0; k < kDraws; ++k) {
    if (auto sizes = of.draw(random, kSmall)) {
      std::vector<Index> words = counts.all(*sizes);
      drawn.emplace_back(std::move(*sizes), std::move(words));
    }
  }
  std::vector<Which> of_metric(counts.all(of.sizes()).size());
  for (std::size_t which = 0; which < of.quantities().size(); ++which) {
    std::vector<bool> matters(of_metric.size());
    for (const auto& [sizes, words] : drawn) {
      Sizes other = sizes;
      other[which] = uniform(random, 1, kSmall);
      of.tie(other);
      if (other[which] == sizes[which] || !of.holds(other)) {
        continue;
      }
      const std::vector<Index> others = counts.all(other);
      for (std::size_t k = 0; k < words.size(); ++k) {
        matters[k] = matters[k] || words[k] != others[k];
      }
    }
    for (std::size_t k = 0; k < matters.size(); ++k) {
      if (matters[k]) {
        of_metric[k].push_back(which);
      }
    }
  }
  return of_metric;
}

enum class Detail { order, sums, quarters };
// The relation of n and m in a formula, for a plan with n = m. Only with `equal` may the formula
// use one for the other. `equal` is tried last.
enum class Square { n_at_most_m, m_at_most_n, equal };

class Finder {
 public:
  Finder(const FormulaCase& of, const Counts& counts, std::size_t metric, Which relevant)
      : of_(of), counts_(counts), number_(metric), relevant_(std::move(relevant)) {}

  [[nodiscard]] std::optional<Polynomial> moved(const Conditions& further) {
    for (const bool with_sizes : {false, true}) {
      for (std::size_t degree = 3; degree <= 5; ++degree) {
        const std::vector<Monomial> basis = basis_of_moved(degree, with_sizes);
        if (basis.size() > kMostMonomials) {
          break;
        }
        const auto samples = samples_of(basis.size() + kFurther, further);
        if (samples.empty()) {
          return std::nullopt;
        }
        if (auto found = interpolate(basis, samples)) {
          return found;
        }
      }
    }
    return std::nullopt;
  }

  // Returns polynomials, each found where it is the largest, until no drawn size has a larger peak.
  [[nodiscard]] std::optional<std::vector<Polynomial>> peak(const Conditions& further) {
    std::vector<Atom> atoms;
    for (const std::size_t which : relevant_) {
      atoms.push_back({which});
    }
    std::vector<Monomial> basis = products(atoms, 2);
    sort(basis);
    std::vector<Polynomial> found;
    for (int k = 0; k < kManyDraws; ++k) {
      const auto sizes = of_.draw(random_, k % 2 == 0 ? kSmall : kLarge, further);
      if (!sizes) {
        return std::nullopt;
      }
      const Index words = metric(*sizes);
      const Index so_far = value(found, *sizes);
      if (so_far > words) {
        return std::nullopt;
      }
      if (so_far < words && !add_near(*sizes, basis, further, found)) {
        return std::nullopt;
      }
    }
    // A line through two neighbouring points of a square is below the square elsewhere. It is
    // nowhere the only largest polynomial, so it can go.
    for (std::size_t k = found.size(); k-- > 0;) {
      std::vector<Polynomial> fewer = found;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      if (!fewer.empty() && has_words_of(fewer, further, kFewDraws)) {
        found = std::move(fewer);
      }
    }
    return found;
  }

  // Returns whether the formula equals the kernel's metric at sizes drawn at random.
  template <class Formula>
  [[nodiscard]] bool has_words_of(const Formula& formula, const Conditions& under, int draws) {
    for (int k = 0; k < draws; ++k) {
      const auto sizes = of_.draw(random_, k % 2 == 0 ? kSmall : kLarge, under);
      if (!sizes || value(formula, *sizes) != metric(*sizes)) {
        return false;
      }
    }
    return true;
  }

  // Returns whether the formula equals the kernel's metric at the sizes of the plan.
  template <class Formula>
  [[nodiscard]] bool has_words_of_plan(const Formula& formula) const {
    return value(formula, of_.sizes()) == metric(of_.sizes());
  }
  [[nodiscard]] bool is_square() const {
    return of_.sizes()[FormulaCase::kN] == of_.sizes()[FormulaCase::kM] &&
           std::ranges::count_if(relevant_, FormulaCase::is_n_or_m) == 2;
  }

  [[nodiscard]] static Condition of_square(Square square) {
    constexpr std::size_t n = FormulaCase::kN, m = FormulaCase::kM;
    switch (square) {
      case Square::n_at_most_m:
        return {.of = n, .is = Condition::Is::at_most, .than = m};
      case Square::m_at_most_n:
        return {.of = m, .is = Condition::Is::at_most, .than = n};
      case Square::equal:
        return {.of = m, .is = Condition::Is::equal, .than = n};
    }
    return {};
  }

  // Returns all conditions of the plan that may matter. Always: the order of the quantities, and
  // whether n = m. With `sums` and `quarters`: whether two blocks together are less or more than a
  // length. With `quarters`: how many quarters of another quantity a quantity is. For a peak: on
  // which side of the kernel's constants each quantity is.
  [[nodiscard]] Conditions of_plan(Detail detail, Square square, bool of_peak) {
    Conditions all;
    const Sizes& plan = of_.sizes();
    for (const std::size_t a : relevant_) {
      for (const std::size_t b : relevant_) {
        if (plan[a] < plan[b]) {
          all.push_back({.of = a, .is = Condition::Is::less, .than = b});
        } else if (plan[a] == plan[b] && a < b) {
          all.push_back(FormulaCase::is_n_or_m(b)
                            ? of_square(square)
                            : Condition{.of = a, .is = Condition::Is::at_most, .than = b});
        }
        for (const Index quarters : {3, 2, 1}) {
          if (detail == Detail::quarters && 4 * plan[a] <= quarters * plan[b]) {
            all.push_back(
                {.of = a, .is = Condition::Is::at_most_quarters, .than = b, .number = quarters});
          }
        }
        for (const std::size_t length : relevant_) {
          if (detail != Detail::order && a < b && !of_.is_length(a) && of_.is_length(length)) {
            all.push_back({.of = a,
                           .is = plan[a] + plan[b] <= plan[length] ? Condition::Is::sum_at_most
                                                                   : Condition::Is::sum_at_least,
                           .than = length,
                           .with = b});
          }
        }
      }
    }
    for (const std::size_t which : of_peak ? relevant_ : Which()) {
      for (const Index number : turns(which)) {
        all.push_back(plan[which] >= number
                          ? Condition{.of = which, .is = Condition::Is::at_least, .number = number}
                          : Condition{.of = which,
                                      .is = Condition::Is::at_most_number,
                                      .number = number - 1});
      }
    }
    return all;
  }

 private:
  [[nodiscard]] Index metric(const Sizes& sizes) const { return counts_.all(sizes)[number_]; }

  // Returns monomials with at most two factors from n and the blocks that cut it, and likewise from
  // m. They have at most three factors from each other length, and at most one block size.
  [[nodiscard]] std::vector<Monomial> basis_of_moved(std::size_t degree, bool with_sizes) const {
    std::vector<Monomial> basis = {{}};
    const auto times = [&](const std::vector<Monomial>& factors) {
      std::vector<Monomial> all;
      for (const Monomial& one : basis) {
        for (const Monomial& other : factors) {
          if (one.size() + other.size() <= degree) {
            all.push_back(product(one, other));
          }
        }
      }
      basis = std::move(all);
    };
    std::vector<Atom> blocks;
    for (const std::size_t which : relevant_) {
      if (!of_.is_length(which)) {
        blocks.push_back({which});
        continue;
      }
      std::vector<Atom> atoms = {{which}};
      for (const std::size_t block : relevant_) {
        if (!of_.is_length(block) && of_.cuts(block, which)) {
          atoms.push_back({which, block});
        }
      }
      times(products(atoms, FormulaCase::is_n_or_m(which) ? 2 : 3));
    }
    if (with_sizes) {
      times(products(blocks, 1));
    }
    sort(basis);
    return basis;
  }

  // Returns this many samples. Empty if the conditions allow too few.
  [[nodiscard]] std::vector<ValueAt> samples_of(std::size_t number, const Conditions& further) {
    std::vector<ValueAt> samples;
    for (std::size_t k = 0; k < number; ++k) {
      const auto sizes = of_.draw(random_, kSmall, further);
      if (!sizes) {
        return {};
      }
      samples.push_back({*sizes, metric(*sizes)});
    }
    return samples;
  }

  // Adds a polynomial that is the peak near these sizes, or near others where the peak is not found
  // yet.
  [[nodiscard]] bool add_near(const Sizes& sizes, const std::vector<Monomial>& basis,
                              const Conditions& further, std::vector<Polynomial>& found) {
    std::optional<Sizes> center = sizes;
    for (int k = 0, refused = 0; k < 400 && refused < 20; ++k) {
      if (center && (k == 0 || value(found, *center) < metric(*center))) {
        const auto polynomial = interpolate_near(*center, 1 + k % 2, basis, further);
        if (polynomial && is_below(*polynomial, further)) {
          found.push_back(*polynomial);
          return found.size() <= kMostOfPeak;
        }
        refused += polynomial ? 1 : 0;
      }
      center = of_.draw(random_, k % 4 == 0 ? kSmall : kLarge, further);
    }
    return false;
  }

  // Returns whether the polynomial is at most the metric at random sizes. It may not be, if the
  // values near a few sizes are of several polynomials.
  [[nodiscard]] bool is_below(const Polynomial& polynomial, const Conditions& further) {
    for (int k = 0; k < 200; ++k) {
      const auto sizes = of_.draw(random_, k % 2 == 0 ? kSmall : kLarge, further);
      if (!sizes || value(polynomial, *sizes) > metric(*sizes)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::optional<Polynomial> interpolate_near(const Sizes& center, Index by,
                                                           const std::vector<Monomial>& basis,
                                                           const Conditions& further) {
    std::vector<ValueAt> samples;
    while (samples.size() < basis.size() + kFurther) {
      const auto near = of_.near(center, by, random_, further);
      if (!near) {
        return std::nullopt;
      }
      samples.push_back({*near, metric(*near)});
    }
    return interpolate(basis, samples);
  }

  // Returns the numbers at which the metric bends as this quantity passes them, whatever the other
  // quantities are.
  [[nodiscard]] std::vector<Index> turns(std::size_t which) {
    constexpr std::size_t kMost = 256;
    std::vector<bool> always(kMost + 1, true);
    for (const Index more : {0, 5, 11}) {
      Sizes sizes = of_.sizes();
      for (Index& size : sizes) {
        size += size * more / 64;
      }
      std::vector<Index> at;  // 1, 2, ...
      for (sizes[which] = 1; at.size() < kMost + 3; ++sizes[which]) {
        Sizes tied = sizes;
        of_.tie(tied);
        at.push_back(metric(tied));
      }
      for (std::size_t k = 2; k <= kMost; ++k) {
        always[k] =
            always[k] && at[k] - 2 * at[k - 1] + at[k - 2] != at[k + 2] - 2 * at[k + 1] + at[k];
      }
    }
    std::vector<Index> numbers;
    for (std::size_t k = 2; k <= kMost; ++k) {
      if (always[k]) {
        numbers.push_back(static_cast<Index>(k));
      }
    }
    return numbers;
  }

  const FormulaCase& of_;
  const Counts& counts_;
  std::size_t number_;
  Which relevant_;
  std::mt19937_64 random_{2};
};

// Returns the conditions that the formula needs. Removes as many as possible in one step.
template <class Found>
Conditions needed(Finder& finder, const Found& found, Conditions conditions) {
  for (std::size_t chunk = conditions.size(); chunk > 0; chunk /= 2) {
    for (std::size_t begin = 0; begin < conditions.size();) {
      Conditions fewer = conditions;
      const auto from = fewer.begin() + static_cast<std::ptrdiff_t>(begin);
      fewer.erase(from,
                  from + static_cast<std::ptrdiff_t>(std::min(chunk, conditions.size() - begin)));
      if (finder.has_words_of(found, fewer, kFewDraws)) {
        conditions = std::move(fewer);
      } else {
        begin += chunk;
      }
    }
  }
  return conditions;
}

// Returns the formula that `find` returns under as few conditions as possible. Returns nullopt
// unless it equals the kernel's metric for the plan and for many other sizes.
template <class Find>
auto find_under(Finder& finder, bool of_peak, FormulaCase& of, const Find& find) {
  auto found = find(Conditions());
  if (found && finder.has_words_of_plan(*found) && finder.has_words_of(*found, {}, kManyDraws)) {
    return found;
  }
  const auto under = [&](const Conditions& all) {
    found = find(all);
    if (!found || !finder.has_words_of_plan(*found)) {
      return false;
    }
    for (const Conditions& conditions : {needed(finder, *found, all), all}) {
      if (finder.has_words_of(*found, conditions, kDrawsUnderConditions)) {
        for (const Condition& condition : conditions) {
          of.add(condition);
        }
        return true;
      }
    }
    return false;
  };
  std::vector<Square> squares = {Square::equal};
  if (finder.is_square()) {
    // Another formula of this plan may need one of the two. Together they would mean n = m.
    const auto has = [&](Square square) {
      return std::ranges::count(of.conditions(), Finder::of_square(square)) > 0;
    };
    if (!has(Square::n_at_most_m)) {
      squares.insert(squares.begin(), Square::m_at_most_n);
    }
    if (!has(Square::m_at_most_n)) {
      squares.insert(squares.begin(), Square::n_at_most_m);
    }
  }
  for (const Detail detail : {Detail::order, Detail::sums, Detail::quarters}) {
    for (const Square square : squares) {
      if (under(finder.of_plan(detail, square, of_peak))) {
        return found;
      }
    }
  }
  found.reset();
  return found;
}

void add(std::optional<Polynomial>& sum, const std::optional<Polynomial>& one) {
  sum = sum && one ? std::optional(*sum + *one) : std::nullopt;
}

void add_peak(std::optional<std::vector<Polynomial>>& all,
              const std::optional<std::vector<Polynomial>>& of_phase) {
  if (!all || !of_phase) {
    all.reset();
    return;
  }
  for (const Polynomial& one : *of_phase) {
    if (std::ranges::find(*all, one) == all->end()) {
      all->push_back(one);
    }
  }
}

}  // namespace

Index value(const std::vector<Polynomial>& peak, const Sizes& sizes) {
  Index most = -1;
  for (const Polynomial& polynomial : peak) {
    most = std::max(most, value(polynomial, sizes));
  }
  return most;
}

SymbolicFormula symbolic_formula(const Kernel& kernel, const Plan& plan) {
  const FormulaCase of(kernel, plan);
  const Counts counts(of);
  std::mt19937_64 random(1);
  const std::vector<Which> relevant_to = relevant(of, counts, random);
  SymbolicFormula formula{.of = of};
  for (std::size_t k = 0; k < plan.phases.size(); ++k) {
    const auto find = [&](std::size_t metric, const auto& how) {
      const std::size_t number = k * kMetrics.size() + metric;
      Finder finder(of, counts, number, relevant_to[number]);
      return find_under(finder, metric == 2, formula.of,
                        [&](const Conditions& under) { return std::invoke(how, finder, under); });
    };
    formula.phases.push_back({.path = plan.phases[k].path,
                              .reads = find(0, &Finder::moved),
                              .writes = find(1, &Finder::moved),
                              .peak = find(2, &Finder::peak)});
  }
  formula.total = {.path = "total",
                   .reads = Polynomial(),
                   .writes = Polynomial(),
                   .peak = std::vector<Polynomial>()};
  for (const SymbolicPhase& phase : formula.phases) {
    add(formula.total.reads, phase.reads);
    add(formula.total.writes, phase.writes);
    add_peak(formula.total.peak, phase.peak);
  }
  return formula;
}

std::optional<std::vector<LeadingTerm>> leading_terms(const SymbolicFormula& formula) {
  if (!formula.total.reads || !formula.total.writes) {
    return std::nullopt;
  }
  const auto degree = [](const LeadingTerm& term) {
    return std::ranges::count_if(term.factors, FormulaCase::is_n_or_m);
  };
  std::vector<LeadingTerm> all;
  for (const Term& term : *formula.total.reads + *formula.total.writes) {
    LeadingTerm leading;
    for (const Atom& atom : term.factors) {
      leading.factors.push_back(atom.of);
      if (atom.by) {
        leading.divisors.push_back(*atom.by);
      }
    }
    std::ranges::sort(leading.factors);
    const auto same = std::ranges::find_if(all, [&](const LeadingTerm& other) {
      return other.factors == leading.factors && other.divisors == leading.divisors;
    });
    LeadingTerm& sum = same == all.end() ? all.emplace_back(std::move(leading)) : *same;
    sum.coefficient += term.coefficient;
  }
  std::ptrdiff_t most = 0;
  for (const LeadingTerm& term : all) {
    most = std::max(most, degree(term));
  }
  std::erase_if(
      all, [&](const LeadingTerm& term) { return degree(term) < most || term.coefficient == 0; });
  return all;
}

std::optional<BlockOfM> block_of_M(const SymbolicFormula& formula,
                                   const std::vector<LeadingTerm>& leading, Index M) {
  std::vector<std::size_t> divisors;
  for (const LeadingTerm& term : leading) {
    divisors.insert(divisors.end(), term.divisors.begin(), term.divisors.end());
    if (term.divisors.size() > 1) {
      return std::nullopt;
    }
  }
  const FormulaCase& of = formula.of;
  if (divisors.empty() || std::ranges::count(divisors, divisors[0]) != std::ssize(divisors) ||
      !formula.total.peak) {
    return std::nullopt;
  }
  const std::size_t block = divisors[0];
  for (const Polynomial& polynomial : *formula.total.peak) {
    for (const Term& term : polynomial) {
      const auto is_block = [&](const Atom& atom) { return atom == Atom{block}; };
      const auto is_other = [&](const Atom& atom) {
        return !is_block(atom) && (atom.by || !of.is_length(atom.of));
      };
      const Index words = term.coefficient * value(term.factors, of.sizes());
      if (2 * words > M && std::ranges::any_of(term.factors, is_block) &&
          std::ranges::none_of(term.factors, is_other)) {
        BlockOfM found{.block = block};
        for (const Atom& atom : term.factors) {
          if (!is_block(atom)) {
            found.lengths.push_back(atom.of);
          }
        }
        found.squared = std::ranges::count_if(term.factors, is_block) == 2;
        const double all = static_cast<double>(M) / static_cast<double>(words / term.coefficient);
        found.coefficient = std::llround(all);
        constexpr double kAbout = 0.15;
        return std::abs(all / static_cast<double>(found.coefficient) - 1) < kAbout
                   ? std::optional(found)
                   : std::nullopt;
      }
    }
  }
  return std::nullopt;
}

}  // namespace redblue
