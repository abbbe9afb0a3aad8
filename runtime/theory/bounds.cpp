#include "runtime/theory/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/attention.hpp"
#include "memsim/errors.hpp"
#include "runtime/theory/lemmas.hpp"
#include "runtime/theory/sources.hpp"
#include "runtime/theory/sparse_bounds.hpp"

namespace redblue {
namespace {

// Returns the number of live pairs.
Real pairs_of(const Problem& problem) {
  return problem.mask.full() ? real(problem.shape.n) * real(problem.shape.m)
                             : real(problem.pairs().value());
}

// Returns the words that must be moved, each once: sources and results.
Words compulsory(const Task& task) {
  if (task.compulsory) {
    return *task.compulsory;
  }
  Words words = results(task);
  for (const Source& source : sources_of(task)) {
    words += source.words;
  }
  return words;
}

// The constants of the lemmas.
struct Constants {
  Real pairs;            // D of Lemma 2
  Real two_step_pairs;   // D of Lemma 2, two-step schedules
  Real one, two, three;  // kappa of scores, of two products, of three products
  // `folds` is for A1 = A2: kappa of the products that take partial sums into g. `searched` is for
  // shared keys: kappa of the three products and of the folds together, found by search and rounded
  // up.
  Real folds, searched;
};

Constants constants(Pass pass, Sharing sharing) {
  const Real root2 = std::sqrt(2.0L);
  const Real root1_5 = std::sqrt(1.5L);
  const Real forward_two[] = {1, root2, 1 + root2};
  const Constants of[] = {
      {16, 24, 1, 1, 1, 0, 0}, {8, 12, 1, 1, root1_5, 0, 1.404L}, {4, 8, 2, 2, 2, root2, 2.198L}};
  const auto which = static_cast<std::size_t>(sharing);
  Constants chosen = of[which];
  if (!is_backward(pass)) {
    chosen.two = forward_two[which];
  }
  return chosen;
}

// Returns D if s alone is made for each pair: pairs of rows and columns, or of one source.
Real pairs_of_scores(Sharing sharing) {
  return sharing == Sharing::self ? 1 : 4;
}

void add_product_bounds(const Task& task, std::vector<Bound>& bounds) {
  const auto [n, m, d] = task.problem.shape;
  const Index M = task.memory.M;
  const Real nm = real(n) * real(m);
  const Real work = nm * real(d);
  bounds.push_back({"products", below(Products{.work = work}.events(M, d), 0)});
  bounds.push_back({"pairs", below(nm + moves_of_pairs(nm, 4, M, d), 0)});
  bounds.push_back({.name = "Smith et al. 2019",
                    .words = below(2 * work / std::sqrt(real(M)), 2 * real(M)),
                    .status = Status::cited});
}

void add_forward_bounds(const Task& task, std::vector<Bound>& bounds) {
  const auto [n, m, d] = task.problem.shape;
  const Index M = task.memory.M;
  const Constants k = constants(task.pass, task.problem.sharing);
  const Real pairs = pairs_of(task.problem);
  const Real work = pairs * real(d);
  const bool makes_O = needs_values(task);
  const Real L = task.problem.normalised() && task.problem.wanted.contains(kL.name) ? real(n) : 0;
  const Real written = real(results(task).value());
  const Products scores{.work = work, .kappa = k.one};
  const Products both{.work = 2 * work, .kappa = k.two, .per_creation = k.two};
  const SharedKeys both_of_shared{.pairs = pairs, .kinds = 2, .share = 1};
  const bool shared = task.problem.sharing == Sharing::kv;
  const Products weights{.work = real(std::min(n, m)) * real(d) * real(d)};
  bounds.push_back({"scores", below(scores.events(M, d) + written, pairs)});
  if (makes_O) {
    const Real events = shared ? both_of_shared.events(M, d) : both.events(M, d);
    bounds.push_back({"two products", below(events + L, pairs)});
  }
  const Real D = makes_O ? k.pairs : pairs_of_scores(task.problem.sharing);
  bounds.push_back({"pairs", below(moves_of_pairs(pairs, D, M, d) + L, 0)});
  if (task.pass == Pass::forward && task.problem.mask.full()) {
    bounds.push_back(
        {"weights", below(weights.events(M, d) + written, real(std::max(n, m)) * real(d))});
  }
}

void add_backward_bounds(const Task& task, std::vector<Bound>& bounds) {
  const auto [n, m, d] = task.problem.shape;
  const Index M = task.memory.M;
  const Constants k = constants(task.pass, task.problem.sharing);
  const Real pairs = pairs_of(task.problem);
  const Real work = pairs * real(d);
  const Real g = real(d) * real(d);
  const Real sums = real(std::max(n, m)) * real(d);  // the words of the larger of W and W'
  const Products scores{.work = 2 * work, .kappa = k.two};
  const Products weights{.work = 2 * real(std::min(n, m)) * g};
  const auto three = [&](Real kappa, Real per_creation) {
    return Products{.work = 3 * work, .kappa = kappa, .per_creation = per_creation}.events(
        M, task.problem.shape.d);
  };
  bounds.push_back({"scores", below(scores.events(M, d) + g, 2 * pairs)});
  bounds.push_back({"pairs", below(moves_of_pairs(pairs, k.pairs, M, d) + g, 0)});
  if (task.problem.mask.full()) {
    bounds.push_back({"weights", below(weights.events(M, d) + g, 2 * sums)});
  }
  const bool self = task.problem.sharing == Sharing::self;
  const bool shared = task.problem.sharing == Sharing::kv;
  SharedKeys of_shared{.pairs = pairs, .kinds = 3, .share = 0.5L};
  const Real two_step = shared ? of_shared.events(M, d) : three(k.three, k.three);
  of_shared.folds = true;
  const Real any_order = std::max(self ? 0 : events_beside_folds(3 * work, k.three, M, d),
                                  shared ? of_shared.events(M, d) : 0);
  bounds.push_back(
      {.name = "three products",
       .words = self ? below(three(k.three, k.three + k.folds), (2 + 3 * k.folds / k.three) * pairs)
                     : below(any_order, 2 * pairs),
       .recomputation = false});
  bounds.push_back({.name = "three products, two-step",
                    .words = below(two_step + g, 2 * pairs + sums),
                    .order = Order::two_step});
  bounds.push_back({.name = "pairs, two-step",
                    .words = below(moves_of_pairs(pairs, k.two_step_pairs, M, d) + g, sums),
                    .order = Order::two_step});
  if (self || shared) {  // otherwise "three products" is at least as large
    bounds.push_back({.name = "three products, searched",
                      .words = below(three(k.searched, k.searched), 2 * pairs),
                      .status = Status::numerical,
                      .recomputation = false});
  }
}

// Lemmas 16 to 18: D of Lemma 2, where a stay of a sum costs up to 1 + r words. If r is `share`
// times its most, D is least + share * more. The last stay of each result costs r less, in all
// share * (of_queries n d + of_keys m d).
struct Stays {
  Real least, more = 0;
  Real of_queries = 0, of_keys = 0;
};

constexpr Real kShares[] = {0, 0.25L, 0.5L, 0.75L, 1};

// Returns the bound at the best share, plus the words of results that no lemma counts.
Index moves_of_stays(const Task& task, const Stays& stays, Real results = 0) {
  const auto [n, m, d] = task.problem.shape;
  const Real lost = (stays.of_queries * real(n) + stays.of_keys * real(m)) * real(d);
  Index best = 0;
  for (const Real share : kShares) {
    // A border between phases may divide the cost of a stay. Then a phase has one word more.
    const Real M = real(task.memory.M) + (share > 0 ? 1 : 0);
    const Real D = (stays.least + share * stays.more) * real(d) * real(d);
    best =
        std::max(best, below(moves_of_pairs(pairs_of(task.problem), D, M) + results, share * lost));
    if (stays.more == 0) {
      break;
    }
  }
  return best;
}

// All of dQ, dK and dV, without sharing and with shared keys.
constexpr Stays kAnyStays[] = {{48, 8, 1.0L / 2, 2.0L / 3}, {24, 4, 1.0L / 2, 1.0L / 3}};
constexpr Stays kOnceStays[] = {{48, 16, 1, 4.0L / 3}, {24, 8, 1, 2.0L / 3}};

// Returns the stays of some of dQ, dK and dV. Requires: no `self`, and one of them is wanted.
Stays stays_of(const Problem& problem) {
  const bool shared = problem.sharing == Sharing::kv;
  const bool dQ = problem.wants(kdQ.name), dK = problem.wants(kdK.name);
  const bool dV = shared ? dK : problem.wants(kdV.name);
  if (dQ && dK && dV) {
    return kAnyStays[static_cast<std::size_t>(problem.sharing)];
  }
  if (shared) {
    return {dQ ? 12.0L : 16.0L};
  }
  if (dQ && (dK || dV)) {
    return dK ? Stays{36, 12, 1, 1} : Stays{36, 4, 1.0L / 3, 1.0L / 3};
  }
  return {dK && dV ? 32.0L : dV ? 16.0L : 24.0L};
}

// Sums of two words: the moves of dQ, dK and dV if a sum takes two words, and all else takes one.
Index moves_of_wide_sums(const Task& task) {
  const auto [n, m, d] = task.problem.shape;
  const bool shared = task.problem.sharing == Sharing::kv;
  const Real moves = moves_of_pairs(pairs_of(task.problem), shared ? 40 : 80, task.memory.M, d);
  return below(moves, (real(n) + (shared ? 1 : 2) * real(m)) * real(d));
}

// Lemma 20: the moves of dQ and dK if all sources are one. Two sources have two live pairs, or one.
Index moves_of_one_source(const Task& task) {
  const auto [n, m, d] = task.problem.shape;
  const bool causal = !task.problem.mask.full() && task.problem.mask == Mask::causal(n, m);
  const Real live = pairs_of(task.problem) - real(n);  // at most n are of one source
  const Real M = real(task.memory.M);
  Index best = 0;
  for (const Real share : kShares) {
    const Real credit = (causal ? 5 + share : 7 + 2 * share) * real(d) * real(d);
    const Real cut = share > 0 ? 2 : 0;
    const Real moves = moves_of_couples(causal ? live : live / 2, credit, M, cut);
    best = std::max(best, below(moves, 3 * share * real(n) * real(d)));
  }
  return best;
}

// Lemma 19: returns a lower bound on events with the products of s, q, dQ, dK and dV.
Real five_products(const Task& task) {
  const Real work = pairs_of(task.problem) * real(task.problem.shape.d);
  const auto events = [&](Real weights, Real kappa, Real per_creation) {
    return Products{.work = weights * work, .kappa = kappa, .per_creation = per_creation}.events(
        task.memory.M, task.problem.shape.d);
  };
  if (task.problem.sharing == Sharing::kv) {
    const Real root2 = std::sqrt(2.0L), five = std::sqrt(5 + std::sqrt(17.0L)) / 2;
    return std::max(events(4, root2, root2), events(5, five, five));
  }
  constexpr int kSteps = 8;
  const Real first = 1 / std::sqrt(3.0L);
  Real best = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const Real t = first + (1 - first) * step / kSteps;
    const Real of_s = 2 * t / (1 + t * t), of_p = 1 / std::sqrt(1 + t * t);
    best = std::max(best, events(2 + of_s + 2 * of_p, 1, 1 / of_s));
  }
  return best;
}

void add_gradients_bounds(const Task& task, std::vector<Bound>& bounds) {
  const auto [n, m, d] = task.problem.shape;
  const Index M = task.memory.M;
  const Sharing sharing = task.problem.sharing;
  const Real pairs = pairs_of(task.problem);
  const Constants k = constants(task.pass, sharing);
  const Real made = needs_values(task) ? 2 : 1;  // s and q
  const Products scores{.work = made * pairs * real(d), .kappa = made == 2 ? k.two : k.one};
  bounds.push_back(
      {"scores", below(scores.events(M, d) + real(results(task).value()), made * pairs)});
  const bool dQ = task.problem.wants(kdQ.name), dK = task.problem.wants(kdK.name);
  // If keys are values, dK + dV is one result.
  const bool of_keys = dK && (sharing == Sharing::kv || task.problem.wants(kdV.name));
  if (sharing == Sharing::self) {
    const Real D = of_keys ? 8 : made == 2 ? k.pairs : pairs_of_scores(sharing);
    const Index by_pairs = below(moves_of_pairs(pairs, D, M, d), 0);
    bounds.push_back(
        {"pairs", dQ && dK ? std::max(by_pairs, moves_of_one_source(task)) : by_pairs});
    return;
  }
  if (of_keys && dQ) {
    bounds.push_back({"five products", below(five_products(task), 2 * pairs)});
  } else if (of_keys) {
    const Real kappa = sharing == Sharing::none ? 1 : std::sqrt(2.0L);
    const Products four{.work = 4 * pairs * real(d), .kappa = kappa, .per_creation = kappa};
    bounds.push_back({"four products", below(four.events(M, d), 2 * pairs)});
  }
  bounds.push_back({"pairs", moves_of_stays(task, stays_of(task.problem))});
  if (of_keys && dQ && task.problem.sum_words == 2) {
    bounds.push_back({"pairs, wide sums", moves_of_wide_sums(task)});
  }
  if (of_keys && dQ) {
    bounds.push_back({.name = "pairs, each p once",
                      .words = moves_of_stays(task, kOnceStays[static_cast<std::size_t>(sharing)]),
                      .recomputation = false});
  }
}

// dX has the bounds of g, with the words of the other results added. The bounds for dQ, dK and dV
// also hold, but their sums may be used up, for dA1, dA2 and dA3.
void add_layer_bounds(const Task& task, std::vector<Bound>& bounds) {
  const auto [n, m, d] = task.problem.shape;
  const Index M = task.memory.M;
  const Words all = results(task);
  if (!task.problem.wanted.contains(kdX.name)) {
    const Constants k = constants(task.pass, task.problem.sharing);
    const Real made = needs_values(task) ? 2 : 1;  // s and q
    const Real of_pairs = pairs_of(task.problem);
    const Products scores{.work = made * of_pairs * real(d), .kappa = made == 2 ? k.two : k.one};
    const Real D = made == 2 ? k.pairs : pairs_of_scores(task.problem.sharing);
    bounds.push_back({"scores", below(scores.events(M, d) + real(all.value()), made * of_pairs)});
    bounds.push_back({"pairs", below(moves_of_pairs(of_pairs, D, M, d), 0)});
    return;
  }
  const auto first = std::ssize(bounds);
  add_backward_bounds(task, bounds);
  const Words others(all.value() - (Words(d) * d).value());  // all results but dX
  std::for_each(bounds.begin() + first, bounds.end(),
                [&](Bound& bound) { bound.words = (Words(bound.words) + others).value(); });
  if (task.problem.sharing == Sharing::self || !task.problem.wanted.all()) {
    return;
  }
  const Real pairs = pairs_of(task.problem);
  const auto which = static_cast<std::size_t>(task.problem.sharing);
  // dX and dY. The last writes of dA1, dA2 and dA3 pay for W, W' and U, which are used up. With
  // shared keys, W' and U lead to one result.
  const Real squares = 2 * real(d) * real(d);
  const Real used_up = task.problem.sharing == Sharing::kv ? real(m) * real(d) : 0;
  bounds.push_back({.name = "five products, two-step",
                    .words = below(five_products(task) + squares, 2 * pairs + used_up),
                    .order = Order::two_step});
  bounds.push_back({.name = "gradients' pairs, two-step",
                    .words = moves_of_stays(task, kAnyStays[which], squares),
                    .order = Order::two_step});
  bounds.push_back({.name = "gradients' pairs, each p once",
                    .words = moves_of_stays(task, kOnceStays[which], squares),
                    .order = Order::two_step,
                    .recomputation = false});
}

// The products over queries are n d^2, and over keys m d^2. The used-up sums are at most both
// results and the sums that serve as factors. For O the factors are a square and d words for each
// key, twice. For g they are d words for each query and each key.
void add_linear_bounds(const Task& task, std::vector<Bound>& bounds) {
  const auto [n, m, d] = task.problem.shape;
  if (!task.problem.mask.full() || task.problem.sharing != Sharing::none) {
    return;
  }
  const Real dd = real(d) * real(d);
  const Products sums{.work = (real(n) + real(m)) * dd};
  const Real keys = task.pass == Pass::linear ? 2 * real(m) : real(m);
  bounds.push_back(
      {.name = "two sums",
       .words = below(sums.events(task.memory.M, d), (real(n) + keys) * real(d) + 2 * dd),
       .recomputation = false});
}

// The paper's two expressions without their constants, with n m for n^2 and min(n, m) for n.
// Nullopt for an expression above 63 bits, because no bound of a count depends on it.
struct Asymptotic {
  std::optional<Index> large, small;
};
Asymptotic asymptotic(const Task& task) {
  const auto [n, m, d] = task.problem.shape;
  const Real scores = real(n) * real(m) * real(d);
  const Real weights = task.pass == Pass::backward ? real(std::min(n, m)) * real(d) * real(d) : 0;
  const auto counted = [](Real words) {
    return words < 0x1p63L ? std::optional(rounded_down(words)) : std::nullopt;
  };
  return {counted((scores + weights) * real(d) / real(task.memory.M)),
          counted((scores + weights) / std::sqrt(real(task.memory.M)))};
}

std::vector<Bound> all_bounds(const Task& task) {
  const auto [n, m, d] = task.problem.shape;
  require(n > 0 && m > 0 && d > 0, "n, m and d are at least 1");
  require(task.memory.M > 0, "M is at least 1");
  require(task.problem.sharing != Sharing::self || n == m, "n == m where A1 = A2");
  const Mask& mask = task.problem.mask;
  require(mask.full() || (mask.queries() == n && mask.keys() == m && task.pass != Pass::product),
          "the mask is of n queries and m keys");
  std::vector<Bound> bounds = {{"compulsory", compulsory(task).value()}};
  if (task.pass == Pass::own) {
    return bounds;
  }
  if (task.pass == Pass::product) {
    add_product_bounds(task, bounds);
    return bounds;
  }
  if (task.pass == Pass::gradients) {
    add_gradients_bounds(task, bounds);
    return bounds;
  }
  if (task.pass == Pass::layer) {
    add_layer_bounds(task, bounds);
    return bounds;
  }
  if (is_linear(task.pass)) {
    add_linear_bounds(task, bounds);
    return bounds;
  }
  const bool backward = task.pass == Pass::backward;
  if (backward) {
    add_backward_bounds(task, bounds);
  } else {
    add_forward_bounds(task, bounds);
  }
  if (task.pass == Pass::attention || !task.problem.mask.full() || !task.problem.normalised()) {
    return bounds;
  }
  const auto [large, small] = asymptotic(task);
  const bool is_large = Words(task.memory.M) >= dividing_point(task.problem.shape);
  if (large) {
    bounds.push_back({.name = backward ? "Theorem 4.2" : "Saha and Ye 2024, large",
                      .words = *large,
                      .status = Status::asymptotic,
                      .regime = "M >= d^2",
                      .in_regime = is_large});
  }
  if (small) {
    bounds.push_back({.name = backward ? "Theorem 4.4" : "Saha and Ye 2024, small",
                      .words = *small,
                      .status = Status::asymptotic,
                      .regime = "M < d^2",
                      .in_regime = !is_large});
  }
  return bounds;
}

}  // namespace

std::vector<Bound> lower_bounds(const Task& task) {
  // A run also solves the task for narrower matrices, without the steps of the missing columns.
  Task narrow = task;
  narrow.problem.shape.d = narrow.problem.shape.dv =
      std::min(task.problem.shape.d, task.problem.shape.dv);
  const bool sparse = !task.problem.sparsity.dense();
  std::vector<Bound> bounds = sparse ? sparse_bounds(task) : all_bounds(narrow);
  if (!sparse) {
    bounds.front().words = compulsory(task).value();
  }
  for (Bound& bound : bounds) {
    bound.sharing = task.problem.sharing;
    bound.words = (Words(bound.words) * task.heads).value();
  }
  return bounds;
}

std::vector<std::vector<Bound>> bounds_of_levels(const Task& task) {
  std::vector<std::vector<Bound>> all;
  for (std::size_t level = 0; level < task.memory.levels(); ++level) {
    Task alone = task;
    alone.memory = task.memory.alone(level);
    all.push_back(lower_bounds(alone));
  }
  return all;
}

double weighted_bound(const Memory& memory, const std::vector<std::vector<Bound>>& of_levels,
                      const Schedule& schedule) {
  std::vector<Words> least;
  for (const std::vector<Bound>& bounds : of_levels) {
    least.emplace_back(largest(bounds, schedule).words);
  }
  return memory.weighted(least);
}

bool meets(const Schedule& schedule, const Bound& bound) {
  return (bound.order == Order::any || schedule.order == bound.order) &&
         (bound.recomputation || !schedule.recomputes) && schedule.known <= bound.known &&
         schedule.sharing <= bound.sharing;
}

const Bound& largest(const std::vector<Bound>& bounds, const Schedule& schedule) {
  const Bound* best = nullptr;
  for (const Bound& bound : bounds) {
    if (bound.status == Status::proven && meets(schedule, bound) &&
        (best == nullptr || bound.words > best->words)) {
      best = &bound;
    }
  }
  require(best != nullptr, "a bound that the schedule meets");
  return *best;
}

Words dividing_point(const Shape& shape) {
  return Words(shape.d) * shape.d;
}

Index asymptotic_words(const Task& task) {
  const auto [large, small] = asymptotic(task);
  if (!large && !small) {
    throw CountOverflow("what the paper says does not fit 63 bits: the sizes are too large");
  }
  constexpr Index kNever = std::numeric_limits<Index>::max();
  return std::min(large.value_or(kNever), small.value_or(kNever));
}

std::string_view to_string(Sharing sharing) {
  constexpr std::string_view names[] = {"none", "kv", "self"};
  return names[static_cast<std::size_t>(sharing)];
}

std::string_view to_string(Known known) {
  constexpr std::string_view names[] = {"nothing", "OL"};
  return names[static_cast<std::size_t>(known)];
}

std::string_view to_string(Order order) {
  constexpr std::string_view names[] = {"any", "two-step"};
  return names[static_cast<std::size_t>(order)];
}

std::string_view to_string(Status status) {
  constexpr std::string_view names[] = {"proven", "cited", "numerical", "asymptotic"};
  return names[static_cast<std::size_t>(status)];
}

}  // namespace redblue
