// Tests the bounds of gradients that charge stays of sums (Lemmas 14 to 20 of
// docs/theory/bounds.md). Their closed forms are computed again in other arithmetic, and the
// inequalities of their proofs are tried word by word on random runs.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention.hpp"
#include "runtime/theory/bounds.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/random_masks.hpp"

namespace redblue {
namespace in_stays_test {
namespace {

constexpr double kShares[] = {0, 0.25, 0.5, 0.75, 1};

std::string words_of(const Task& task) {
  return std::string(to_string(task.pass)) + " n=" + std::to_string(task.problem.shape.n) +
         " m=" + std::to_string(task.problem.shape.m) +
         " d=" + std::to_string(task.problem.shape.d) + " M=" + std::to_string(task.memory.M) +
         " " + std::string(to_string(task.problem.sharing)) + " " + task.problem.wanted.text();
}

double found_of(const Task& task, std::string_view name) {
  const std::vector<Bound> bounds = lower_bounds(task);
  const auto found = std::ranges::find(bounds, name, &Bound::name);
  EXPECT_NE(found, bounds.end()) << name << " " << words_of(task);
  return found == bounds.end() ? 0 : static_cast<double>(found->words);
}

Task gradients_of(Index n, Index m, Index d, Index M, Sharing sharing = Sharing::none) {
  Task task{Pass::gradients, Problem(n, m, d, sharing), M};
  task.problem.inputs = Inputs::plain;
  return task;
}

// Lemmas 2 and 21 in double for each whole length T of a phase, with all corners: words of pairs at
// the start of a phase and words of pairs read in it.
double moves_of_pairs(double pairs, double share, double M) {
  double best = std::sqrt(pairs * share);  // one phase
  for (double T = 1; T * T <= pairs * share; ++T) {
    double most = 0, formed = 0;
    for (const double there : {0.0, M}) {
      for (const double read : {0.0, T}) {
        const double left = M + T - there - read;
        const double pairs_of_phase = left * left / share + there + read;
        most = std::max(most, pairs_of_phase / (T + read));
        formed = std::max(formed, pairs_of_phase);
      }
    }
    best = std::max(best, (pairs - T * T / share) / most);
    const double left = pairs - (M + T) * (M + T) / share;
    if (left >= 0) {
      best = std::max(best, M + T + T * std::floor(left / formed));
    }
  }
  return best;
}

struct Case {
  Pass pass;
  Sharing sharing;
  Wanted wanted;
  std::string_view name;
  double D, more;           // D + share * more of Lemma 2
  double of_rows, of_keys;  // words lost: share * (of_rows n d + of_keys m d)
  double squares = 0;       // d^2 words more
};

// "Pairs" of gradients and of a layer: the largest of five shares. With a share above 0, M is one
// word larger.
TEST(BoundsOfStays, PairsOverAllLengths) {
  const Wanted all;
  const Case cases[] = {
      {Pass::gradients, Sharing::none, all, "pairs", 48, 8, 1.0 / 2, 2.0 / 3},
      {Pass::gradients, Sharing::kv, all, "pairs", 24, 4, 1.0 / 2, 1.0 / 3},
      {Pass::gradients, Sharing::none, all, "pairs, each p once", 48, 16, 1, 4.0 / 3},
      {Pass::gradients, Sharing::kv, all, "pairs, each p once", 24, 8, 1, 2.0 / 3},
      {Pass::gradients, Sharing::none, {"dQ"}, "pairs", 24, 0, 0, 0},
      {Pass::gradients, Sharing::none, {"dK"}, "pairs", 24, 0, 0, 0},
      {Pass::gradients, Sharing::none, {"dV"}, "pairs", 16, 0, 0, 0},
      {Pass::gradients, Sharing::none, {"dK", "dV"}, "pairs", 32, 0, 0, 0},
      {Pass::gradients, Sharing::none, {"dQ", "dV"}, "pairs", 36, 4, 1.0 / 3, 1.0 / 3},
      {Pass::gradients, Sharing::none, {"dQ", "dK"}, "pairs", 36, 12, 1, 1},
      {Pass::gradients, Sharing::kv, {"dQ"}, "pairs", 12, 0, 0, 0},
      {Pass::gradients, Sharing::kv, {"dK"}, "pairs", 16, 0, 0, 0},
      {Pass::gradients, Sharing::none, all, "pairs, wide sums", 80, 0, 0, 0},
      {Pass::gradients, Sharing::kv, all, "pairs, wide sums", 40, 0, 0, 0},
      {Pass::layer, Sharing::none, all, "gradients' pairs, two-step", 48, 8, 1.0 / 2, 2.0 / 3, 2},
      {Pass::layer, Sharing::kv, all, "gradients' pairs, two-step", 24, 4, 1.0 / 2, 1.0 / 3, 2},
      {Pass::layer, Sharing::none, all, "gradients' pairs, each p once", 48, 16, 1, 4.0 / 3, 2},
      {Pass::layer, Sharing::kv, all, "gradients' pairs, each p once", 24, 8, 1, 2.0 / 3, 2}};
  int shares_used = 0;
  for (const Case& of : cases) {
    for (const auto& [n, m, d, M] : {std::array<Index, 4>{120, 90, 1, 30},
                                     {60, 80, 2, 9},
                                     {200, 300, 2, 300},
                                     {900, 500, 1, 40}}) {
      Task task{of.pass, Problem(n, m, d, of.sharing), M};
      task.problem.wanted = of.wanted;
      task.problem.sum_words = of.name.ends_with("wide sums") ? 2 : 1;
      const auto [rn, rm, rd, rM] =
          std::array<double, 4>{static_cast<double>(n), static_cast<double>(m),
                                static_cast<double>(d), static_cast<double>(M)};
      double exact = 0;
      double best_share = 0;
      for (const double share : kShares) {
        const double moves =
            moves_of_pairs(rn * rm, (of.D + share * of.more) * rd * rd, rM + (share > 0 ? 1 : 0)) -
            share * (of.of_rows * rn + of.of_keys * rm) * rd + of.squares * rd * rd;
        best_share = moves > exact ? share : best_share;
        exact = std::max(exact, moves);
      }
      if (task.problem.sum_words == 2) {
        // The last write of each result takes one word.
        exact = std::max(0.0, exact - (rn + (of.sharing == Sharing::kv ? 1 : 2) * rm) * rd);
      }
      const double found = found_of(task, of.name);
      EXPECT_LE(found, exact + 1e-6) << words_of(task) << " " << of.name;
      // Rounding costs a word for each phase of 2 M words.
      const double phases = rn * rm * (of.D + of.more) * rd * rd / (4 * rM * rM);
      EXPECT_GE(found, 0.98 * exact - 1 - phases) << words_of(task) << " " << of.name;
      shares_used += of.more > 0 && best_share > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(shares_used, 10) << "charges for stays gain something";
}

// Lemma 19 in double for each whole length T: products of s have the weight 2 t / (1 + t^2),
// products of p 1 / sqrt(1 + t^2), and all others 1.
double five_products(double n, double m, double d, double M, double t) {
  const double of_s = 2 * t / (1 + t * t), of_p = 1 / std::sqrt(1 + t * t);
  double best = 0;
  for (double T = 1; T <= 40 * M; ++T) {
    const double z = std::pow((M + T) / 3, 1.5);
    if (of_s * T * d >= z) {
      best = std::max(best, T * ((2 + of_s + 2 * of_p) * n * m * d - std::pow(T / 3, 1.5)) / z);
    }
  }
  return best;
}

double equal_products(double products, double kappa, double d, double M) {
  double best = 0;
  for (double T = 1; T <= 40 * M; ++T) {
    const double z = std::pow((M + T) / 3, 1.5);
    if (T * d >= kappa * z) {
      best = std::max(best, T * (products / kappa - std::pow(T / 3, 1.5)) / z);
    }
  }
  return best;
}

TEST(BoundsOfStays, FiveProductsOverAllLengths) {
  int above_0 = 0, above_four = 0;
  for (const auto& [n, m, d, M] : {std::array<Index, 4>{600, 500, 30, 40},
                                   {200, 800, 30, 900},
                                   {500, 400, 8, 200},
                                   {700, 700, 8, 250},
                                   {500, 300, 10, 90}}) {
    const auto [rn, rm, rd, rM] =
        std::array<double, 4>{static_cast<double>(n), static_cast<double>(m),
                              static_cast<double>(d), static_cast<double>(M)};
    const double nm = rn * rm, four = equal_products(4 * nm * rd, 1, rd, rM);
    double of_none = 0;
    for (int step = 0; step <= 8; ++step) {
      const double first = 1 / std::sqrt(3.0), t = first + (1 - first) * step / 8;
      of_none = std::max(of_none, five_products(rn, rm, rd, rM, t));
    }
    const double root2 = std::sqrt(2.0), kappa = std::sqrt((5 + std::sqrt(17.0)) / 4);
    const double of_shared = std::max(equal_products(4 * nm * rd, root2, rd, rM),
                                      equal_products(5 * nm * rd, kappa, rd, rM));
    const auto expect = [&](const Task& task, std::string_view name, double exact) {
      const double found = found_of(task, name);
      EXPECT_LE(found, std::max(0.0, exact + 1e-6 * nm)) << words_of(task);
      EXPECT_GE(found, 0.99 * exact - 0.02 * nm - 1) << words_of(task);
      above_0 += found > 0 ? 1 : 0;
    };
    expect(gradients_of(n, m, d, M), "five products", of_none - 2 * nm);
    expect(gradients_of(n, m, d, M, Sharing::kv), "five products", of_shared - 2 * nm);
    const double dd = rd * rd;
    expect({Pass::layer, {n, m, d}, M}, "five products, two-step", of_none - 2 * nm + 2 * dd);
    expect({Pass::layer, {n, m, d, Sharing::kv}, M}, "five products, two-step",
           of_shared - 2 * nm - rm * rd + 2 * dd);
    Task keys_alone = gradients_of(n, m, d, M);
    keys_alone.problem.wanted = {"dK", "dV"};
    expect(keys_alone, "four products", four - 2 * nm);
    above_four += of_none > 1.05 * four ? 1 : 0;
  }
  EXPECT_GE(above_0, 20);
  EXPECT_GE(above_four, 3);
}

// The products that c words of pairs, of s, q and p, and words of rows, columns and sums allow.
struct FiveSorts {
  double s, q, p;           // words of pairs
  double u, u2, v, v2;      // words of Q, dO, K, V
  double of_V, of_K, of_Q;  // sums of dV, dK, dQ

  [[nodiscard]] double products(double of_s, double of_p) const {
    const double pairs = p + std::min(s, q);
    return of_s * std::sqrt(u * v * s) + std::sqrt(u2 * v2 * q) + std::sqrt(u2 * of_V * s) +
           of_p * std::sqrt(pairs) * (std::sqrt(u * of_K) + std::sqrt(v * of_Q));
  }
  // With shared keys, v serves for v2, and sums of dK serve for dV.
  [[nodiscard]] double products_of_shared() const {
    const double pairs = p + std::min(s, q);
    return std::sqrt(u * v * s) + std::sqrt(u2 * v * q) + std::sqrt(u2 * of_K * s) +
           std::sqrt(pairs) * (std::sqrt(u * of_K) + std::sqrt(v * of_Q));
  }
};

// Returns the most products over (H/3)^1.5 that a climb from random divisions of H finds.
double most_of_five(std::mt19937& random, int starts,
                    const std::function<double(const FiveSorts&)>& products, bool shared) {
  std::uniform_real_distribution<double> unit(0, 1);
  using Sorts = std::array<double, 10>;
  const auto found_by = [&](Sorts x) {
    if (shared) {
      x[6] = x[7] = 0;
    }
    double all = 0;
    for (const double each : x) {
      all += each;
    }
    const double f = all > 0 ? 1 / all : 0;
    const FiveSorts of{x[0] * f, x[1] * f, x[2] * f, x[3] * f, x[4] * f,
                       x[5] * f, x[6] * f, x[7] * f, x[8] * f, x[9] * f};
    return products(of) * std::pow(3, 1.5);
  };
  double most = 0;
  for (int start = 0; start < starts; ++start) {
    Sorts best{};
    for (double& x : best) {
      x = unit(random) < 0.3 ? 0 : unit(random);
    }
    double value = found_by(best), step = 0.5;
    for (int trial = 0; trial < 6000; ++trial) {
      Sorts next = best;
      for (int changes = 0; changes < 2; ++changes) {
        double& x = next[std::uniform_int_distribution<std::size_t>(0, 9)(random)];
        x = std::max(0.0, unit(random) < 0.05 ? 0 : x + step * (unit(random) - 0.5));
      }
      if (const double changed = found_by(next); changed > value) {
        best = next;
        value = changed;
      } else {
        step = std::max(0.0005, 0.998 * step);
      }
    }
    most = std::max(most, value);
  }
  return most;
}

// Lemma 19: with its weights the most is 1, and with equal weights it is 2 / sqrt(3). Keys that are
// shared have at most sqrt((5 + sqrt(17)) / 4).
TEST(BoundsOfStays, WeightsOfFiveProductsBySearch) {
  std::mt19937 random(4);
  for (const double t : {1 / std::sqrt(3.0), 0.8, 1.0}) {
    const double of_s = 2 * t / (1 + t * t), of_p = 1 / std::sqrt(1 + t * t);
    const double most = most_of_five(
        random, 12, [&](const FiveSorts& of) { return of.products(of_s, of_p); }, false);
    EXPECT_LE(most, 1 + 1e-9) << t;
    EXPECT_GE(most, 0.999) << t;
  }
  const double equal = most_of_five(
      random, 12, [](const FiveSorts& of) { return of.products(1, 1); }, false);
  EXPECT_NEAR(equal, 2 / std::sqrt(3.0), 0.002);
  const double shared = most_of_five(
      random, 12, [](const FiveSorts& of) { return of.products_of_shared(); }, true);
  EXPECT_LE(shared, std::sqrt((5 + std::sqrt(17.0)) / 4));
  EXPECT_GE(shared, 1.4);
}

// A stay of a word: from a phase to a phase.
struct Stay {
  int first, last;
  [[nodiscard]] bool has(int phase) const { return first <= phase && phase <= last; }
};
using Stays = std::vector<Stay>;

// What a stay of a sum costs beyond 1, at its start and at its end.
struct Charge {
  double start, end;
};

// The weight of a word in a phase: 1 if it is there at the start, and what is spent on it.
double weight_of(const Stays& stays, int phase, const Charge& charge) {
  double weight = 0;
  for (const Stay& stay : stays) {
    weight += stay.first < phase && phase <= stay.last ? 1 : 0;
    weight += stay.first == phase ? 1 + charge.start : 0;
    weight += stay.last == phase ? charge.end : 0;
  }
  return weight;
}

// A random run for one query and one key: phases, stays of the words of dQ, dK and dV, and the
// phases of their products. Operands are there only in phases that use them.
class RandomRuns {
 public:
  struct Rules {
    double pairs;  // the least sum of products of weights, in units of d^2
    Charge Q, K, V;
    bool dQ, dK, dV;      // results
    bool shared = false;  // K is V, and dK + dV is one result
    bool once = false;    // all products of p are in one phase
  };

  explicit RandomRuns(unsigned seed) : random_(seed) {}

  // Returns the sum over phases of (weights of the row) (weights of the column), over d^2, less the
  // least that the lemma states.
  double excess(const Rules& rules) {
    const int d = any(1, 3), phases = any(1, 5), at = any(0, phases - 1);
    const bool alike = any(0, 1) == 0;  // all words of a result have the same stays
    std::vector<Needs> needs(static_cast<std::size_t>(phases));
    const auto of = [&](bool wanted, bool uses_p, auto use) {
      std::vector<Stays> words;
      Stays first;
      int first_phase = 0;
      for (int k = 0; k < d && wanted; ++k) {
        if (k == 0 || !alike) {
          first = stays(phases, uses_p && rules.once ? at : any(0, phases - 1));
          const Stay& chosen =
              first[static_cast<std::size_t>(any(0, static_cast<int>(first.size()) - 1))];
          first_phase = uses_p && rules.once ? at : any(chosen.first, chosen.last);
        }
        words.push_back(first);
        use(needs[static_cast<std::size_t>(first_phase)], k);
      }
      return words;
    };
    const auto uses_p = [](Needs& phase, int) { phase.p = true; };
    const std::vector<Stays> sums_Q = of(rules.dQ, true, uses_p);
    const std::vector<Stays> sums_K = of(rules.dK, true, uses_p);
    const std::vector<Stays> sums_V =
        of(rules.dV && !rules.shared, false, [](Needs& phase, int k) { phase.f |= 1U << k; });
    double sum = 0;
    for (int phase = 0; phase < phases; ++phase) {
      const Needs& need = needs[static_cast<std::size_t>(phase)];
      const int of_f = std::popcount(need.f);
      // p takes all of Q_i, dO_i, K_j and V_j. f takes Q_i, K_j and some words of dO_i.
      double row = need.p ? 2 * d : need.f != 0 ? d + of_f : 0;
      double column = need.p ? (rules.shared ? 1 : 2) * d : need.f != 0 ? d : 0;
      for (const Stays& word : sums_Q) {
        row += weight_of(word, phase, rules.Q);
      }
      for (const Stays& word : sums_K) {
        column += weight_of(word, phase, rules.K);
      }
      for (const Stays& word : sums_V) {
        column += weight_of(word, phase, rules.V);
      }
      sum += row * column;
    }
    return sum / (d * d) - rules.pairs;
  }

  // Returns the least excess of many runs.
  double least(const Rules& rules, int runs) {
    double found = std::numeric_limits<double>::infinity();
    for (int run = 0; run < runs; ++run) {
      found = std::min(found, excess(rules));
    }
    return found;
  }

 private:
  struct Needs {
    bool p = false;
    unsigned f = 0;  // the words of dO_i that meet f
  };

  int any(int from, int to) { return std::uniform_int_distribution<>(from, to)(random_); }

  // Returns one to three stays. One of them has the given phase.
  Stays stays(int phases, int with) {
    const Stay chosen{any(0, with), any(with, phases - 1)};
    Stays all;
    if (any(0, 2) == 0) {
      const int last = any(0, chosen.first);
      all.push_back({any(0, last), last});
    }
    all.push_back(chosen);
    if (any(0, 2) == 0) {
      const int first = any(chosen.last, phases - 1);
      all.push_back({first, any(first, phases - 1)});
    }
    return all;
  }

  std::mt19937 random_;
};

// Lemmas 16 to 18 and the bounds of some results: the products of weights of a pair add up to its
// credit. Some run has no more, so no larger credit holds.
TEST(BoundsOfStays, CreditsWordByWord) {
  RandomRuns runs(5);
  const auto start = [](double most) { return Charge{most, 0}; };
  const auto halves = [](double most) { return Charge{most / 2, most / 2}; };
  constexpr int kRuns = 20'000;
  for (const double r : kShares) {
    const RandomRuns::Rules all[] = {
        {12 + 2 * r, start(r / 2), start(r / 3), start(r / 3), true, true, true},
        {12 + 4 * r, halves(r), halves(r), halves(r / 3), true, true, true, false, true},
        {6 + r, start(r / 2), start(r / 3), {}, true, true, true, true},
        {6 + 2 * r, halves(r), halves(2 * r / 3), {}, true, true, true, true, true},
        {9 + r, start(r / 3), {}, start(r / 3), true, false, true},
        {9 + 3 * r, halves(r), halves(r), {}, true, true, false}};
    for (const RandomRuns::Rules& rules : all) {
      const double least = runs.least(rules, kRuns);
      EXPECT_GE(least, -1e-9) << rules.pairs << " " << r;
      EXPECT_LE(least, 1e-9) << rules.pairs << " " << r;
    }
  }
  const RandomRuns::Rules without[] = {
      {6, {}, {}, {}, true, false, false},       {6, {}, {}, {}, false, true, false},
      {4, {}, {}, {}, false, false, true},       {8, {}, {}, {}, false, true, true},
      {3, {}, {}, {}, true, false, false, true}, {4, {}, {}, {}, false, true, false, true}};
  for (const RandomRuns::Rules& rules : without) {
    EXPECT_NEAR(runs.least(rules, kRuns), 0, 1e-9) << rules.pairs;
  }
  // Without charges for stays, or with less at the end than at the start, the credits are too
  // large.
  EXPECT_LT(runs.least({14, {}, {}, {}, true, true, true}, kRuns), -0.5);
  EXPECT_LT(runs.least({14, start(0.5), start(0.3), start(0.3), true, true, true}, kRuns), -0.05);
  EXPECT_LT(
      runs.least({16, start(1), start(1), start(1.0 / 3), true, true, true, false, true}, kRuns),
      -0.3);
}

// Sums of two words: shares of the products of a phase, at the corners and on a grid.
TEST(BoundsOfStays, CreditsOfWideSums) {
  const double of_V = 3 + 2 * std::sqrt(2.0), of_K = 12 - of_V;
  double nearest = 1, nearest_f = 1;
  for (double q = 0; q <= 1; q += 0.0625) {
    for (double k = 0; k <= 1; k += 0.0625) {
      for (double v = 0; v <= 1; v += 0.0625) {
        const double left = (2 + 2 * q) * (2 + 2 * k + 2 * v) - (8 * q + of_K * k + of_V * v);
        EXPECT_GE(left, -1e-9) << q << " " << k << " " << v;
        nearest = std::min(nearest, left);
      }
      EXPECT_GE((2 + 2 * q) * (1 + 2 * k), 4 * q + 6 * k - 1e-9);
    }
    const double left = (1 + q) * (1 + 2 * q) - of_V * q;
    EXPECT_GE(left, 0) << q;
    nearest_f = std::min(nearest_f, left);
  }
  EXPECT_NEAR(nearest, 0, 1e-9);
  EXPECT_LT(nearest_f, 0.01) << "near 1 / sqrt(2)";
}

// Lemma 20 for one word of each sort of two sources: source words, dO and sums. The proof does not
// use couples of two words of dO. The words of i come
// first. A couple of stays that have a phase in common counts once, with the units of the later
// one.
double couples(const std::array<Stays, 6>& words, double share) {
  double sum = 0;
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 3; b < 6; ++b) {
      if (a == 1 && b == 4) {
        continue;
      }
      const double units_a = a == 2 ? 1 + share : 1, units_b = b == 5 ? 1 + share : 1;
      for (const Stay& of_i : words[a]) {
        for (const Stay& of_j : words[b]) {
          if (of_i.has(of_j.first) || of_j.has(of_i.first)) {
            sum += of_i.first > of_j.first   ? units_a
                   : of_i.first < of_j.first ? units_b
                                             : units_a * units_b;
          }
        }
      }
    }
  }
  return sum;
}

TEST(BoundsOfStays, CouplesOfOneSourceWordByWord) {
  std::mt19937 random(6);
  const auto any = [&](int from, int to) {
    return std::uniform_int_distribution<>(from, to)(random);
  };
  constexpr int kPhases = 6;
  // Returns stays that have all these phases. Phases that follow each other may share a stay.
  const auto stays_with = [&](std::vector<int> phases) {
    std::ranges::sort(phases);
    Stays all;
    for (const int phase : phases) {
      if (!all.empty() && (all.back().has(phase) || any(0, 1) == 0)) {
        all.back().last = std::max(all.back().last, phase);
      } else {
        const int first = all.empty() ? 0 : all.back().last;
        const int begin = any(0, 1) == 0 ? phase : any(first, phase);
        all.push_back({begin, phase});
      }
      if (any(0, 3) == 0) {
        all.back().last = any(all.back().last, kPhases - 1);
      }
    }
    return all;
  };
  // p_ij meets Q_j for dQ_i, and Q_i for dK_j; p_ji meets Q_i for dQ_j, and Q_j for dK_i.
  const auto of_run = [&](bool both) {
    const int A = any(0, kPhases - 1), B = any(0, kPhases - 1);
    const int C = any(0, kPhases - 1), E = any(0, kPhases - 1);
    return both ? std::array<Stays, 6>{stays_with({A, B, C, E}), stays_with({A, B}),
                                       stays_with({A, E}),       stays_with({A, B, C, E}),
                                       stays_with({C, E}),       stays_with({B, C})}
                : std::array<Stays, 6>{stays_with({A, B}),
                                       stays_with({A, B}),
                                       stays_with({A}),
                                       stays_with({A, B}),
                                       {},
                                       stays_with({B})};
  };
  for (const double share : kShares) {
    for (const bool both : {false, true}) {
      const double credit = both ? 7 + 2 * share : 5 + share;
      double least = 100, without = 100;
      for (int run = 0; run < 60'000; ++run) {
        const std::array<Stays, 6> words = of_run(both);
        least = std::min(least, couples(words, share) - credit);
        without = std::min(without, couples(words, 0) - credit);
      }
      EXPECT_NEAR(least, 0, 1e-9) << share << " " << both;
      EXPECT_NEAR(without, (both ? 7 : 5) - credit, 1e-9) << "units of sums are needed";
    }
  }
}

// Lemma 20 in double for each whole length T, and for all numbers of words of pairs in steps.
TEST(BoundsOfStays, OneSourceOverAllLengths) {
  const auto best = [](double pairs, double share, double M, double cut) {
    double largest = 0;
    for (double T = 1; T * T <= 2 * pairs * share; ++T) {
      double most = 0;
      for (int i = 0; i <= 8; ++i) {
        for (int k = 0; k <= 8; ++k) {
          const double there = M * i / 8, read = T * k / 8, units = T + cut - read;
          const double formed = ((M - there) * units + units * units / 2) / share;
          most = std::max(most, (formed + there + read) / (T + read));
        }
      }
      largest = std::max(largest, (pairs - T * T / (2 * share)) / most);
    }
    return largest;
  };
  int above_pairs = 0;
  for (const bool causal : {false, true}) {
    for (const auto& [n, d, M] :
         {std::array<Index, 3>{60, 1, 20}, {300, 1, 60}, {200, 2, 200}, {120, 1, 40}}) {
      Task task = gradients_of(n, n, d, M, Sharing::self);
      if (causal) {
        task.problem.mask = Mask::causal(n, n);
      }
      const auto [rn, rd, rM] = std::array<double, 3>{
          static_cast<double>(n), static_cast<double>(d), static_cast<double>(M)};
      const double pairs = causal ? rn * (rn + 1) / 2 : rn * rn;
      const double by_pairs = moves_of_pairs(pairs, 8 * rd * rd, rM);
      double exact = by_pairs;
      for (const double share : kShares) {
        const double credit = (causal ? 5 + share : 7 + 2 * share) * rd * rd;
        exact = std::max(
            exact, best(rn * (rn - 1) / 2, credit, rM, share > 0 ? 2 : 0) - 3 * share * rn * rd);
      }
      const double found = found_of(task, "pairs");
      EXPECT_LE(found, exact + 1e-6) << words_of(task);
      EXPECT_GE(found, 0.97 * exact - 1) << words_of(task);
      above_pairs += exact > 1.2 * by_pairs ? 1 : 0;
    }
  }
  EXPECT_GE(above_pairs, 4);
}

// Words from the closed forms in other arithmetic (double, in Python), for n = m.
TEST(BoundsOfStays, Figures) {
  const struct {
    Index n, d, M;
    double any, five, once;
  } cases[] = {{4096, 64, 4096, 32'050'589, 120'726'944, 32'050'589},
               {4096, 64, 4 * 4096, 28'144'065, 40'485'945, 28'519'417},
               {4096, 64, 16 * 4096, 14'131'440, 0, 15'388'286},
               {4096, 64, 64 * 4096, 3'626'298, 0, 3'844'747},
               {4096, 64, 256 * 4096, 1'816'186, 0, 1'816'186},
               {1 << 18, 128, 1 << 12, 136.134e9, 1126.471e9, 136.248e9},
               {1 << 18, 128, 1 << 14, 132.475e9, 494.516e9, 133.017e9},
               {1 << 18, 128, 1 << 16, 116.753e9, 165.903e9, 119.574e9},
               {1 << 18, 128, 1 << 18, 59.1983e9, 0, 65.5978e9},
               {1 << 18, 128, 1 << 20, 14.99426e9, 0, 17.10259e9}};
  for (const auto& [n, d, M, any, five, once] : cases) {
    const Task task = gradients_of(n, n, d, M);
    EXPECT_NEAR(found_of(task, "pairs"), any, 1 + 1e-5 * any) << words_of(task);
    EXPECT_NEAR(found_of(task, "five products"), five, 1 + 1e-5 * five) << words_of(task);
    EXPECT_NEAR(found_of(task, "pairs, each p once"), once, 1 + 1e-5 * once) << words_of(task);
  }
  const Index n = Index{1} << 18;
  const Task shared = gradients_of(n, n, 128, 1 << 18, Sharing::kv);
  EXPECT_NEAR(found_of(shared, "pairs"), 30.0366e9, 1e6);
  EXPECT_NEAR(found_of(shared, "pairs, each p once"), 34.3036e9, 1e6);
  EXPECT_NEAR(found_of(gradients_of(n, n, 128, 1 << 18, Sharing::self), "pairs"), 14.9433e9, 1e6);
  EXPECT_NEAR(found_of(gradients_of(n, n, 128, 1 << 20, Sharing::self), "pairs"), 4.41003e9, 1e5);
}

// Plans of some of the results, of any mask, sharing and width of sums, move no fewer words than
// the bounds that they meet.
TEST(BoundsOfStays, AreBelowPlansOfSomeResults) {
  const Wanted wanted[] = {{}, {"dQ"}, {"dK"}, {"dV"}, {"dK", "dV"}, {"dQ", "dV"}, {"dQ", "dK"}};
  const Index count = cases(1500);
  Index held = 0;
  for (Index i = 0; i < count; ++i) {
    SCOPED_TRACE(reproduced_by(i));
    RandomMasks random(static_cast<unsigned>(seed_of_case(i)));
    const Index d = random.any(1, 12), n = random.any(1, 1 << random.any(1, 11));
    const Index m = random.any(0, 1) == 0 ? n : random.any(1, 1 << random.any(1, 11));
    Task task = gradients_of(n, m, d, d * d * random.any(1, 64) / 4 + random.any(8, 60));
    task.problem.sharing = random.any(0, 1) == 0 ? Sharing::none
                           : n == m              ? Sharing::self
                                                 : Sharing::kv;
    // With shared keys, dV is part of dK.
    task.problem.wanted = wanted[random.any(0, task.problem.sharing == Sharing::none ? 6 : 2)];
    if (random.any(0, 2) == 0 && n < 200 && m < 200) {
      task.problem.mask = random.expression(n, m).mask;
    } else if (random.any(0, 3) == 0) {
      task.problem.mask = Mask::causal(n, m);
    }
    task.problem.sum_words = random.any(1, 2);
    const std::vector<Bound> bounds = lower_bounds(task);
    for (const Choice& choice : choices(task)) {
      for (const Bound& bound : bounds) {
        if (bound.status == Status::proven && meets(schedule_of(choice.plan), bound)) {
          ASSERT_LE(Words(bound.words), choice.words)
              << bound.name << " " << to_string(choice.plan) << " " << words_of(task);
          ++held;
        }
      }
    }
  }
  EXPECT_GT(held, count > 1 ? 8 * count : 0);
}

// With n far above d, the best kernels move a few percent more than the bounds of their class: 14
// d^2 / M words for a pair, and 16 if each p is made once. Below d^2 they move more.
TEST(BoundsOfStays, PlansOverBounds) {
  constexpr Index n = Index{1} << 18, d = 128;
  const struct {
    Index M;
    double any, once;
  } cases[] = {{d * d / 16, 1.26, 1.26}, {d * d / 4, 1.42, 1.42},  {d * d, 1.54, 1.54},
               {4 * d * d, 1.48, 1.69},  {16 * d * d, 1.04, 1.07}, {64 * d * d, 1.04, 1.03},
               {256 * d * d, 1.13, 1.1}};
  for (const auto& [M, any, once] : cases) {
    const Task task = gradients_of(n, n, d, M);
    const std::vector<Bound> bounds = lower_bounds(task);
    const std::vector<Choice> all = choices(task);
    const auto least = std::ranges::find_if(
        all, [](const Choice& choice) { return !schedule_of(choice.plan).recomputes; });
    ASSERT_NE(least, all.end());
    const auto over = [](const Choice& choice, const Bound& bound) {
      return static_cast<double>(choice.words.value()) / static_cast<double>(bound.words);
    };
    EXPECT_LE(over(all.front(), largest(bounds)), any) << M;
    EXPECT_LE(over(*least, largest(bounds, {.recomputes = false})), once) << M;
  }
}

}  // namespace
}  // namespace in_stays_test
}  // namespace redblue
