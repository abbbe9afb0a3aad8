// Tests lower bounds. They are at most the words of every kernel, of every schedule with a known
// formula, and of the least that a search finds. They fall with M. Their closed forms and constants
// are computed again in other arithmetic.

#include "runtime/theory/bounds.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "memsim/errors.hpp"
#include "memsim/sanitized.hpp"
#include "runtime/report/bounds_report.hpp"
#include "runtime/theory/lemmas.hpp"
#include "runtime/theory/planner.hpp"
#include "tests/runtime/theory/product_pebbles.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/tested_kernel.hpp"

namespace redblue {
namespace {

constexpr Pass kPasses[] = {Pass::product,   Pass::forward, Pass::backward, Pass::attention,
                            Pass::gradients, Pass::layer,   Pass::linear,   Pass::linear_gradient};
constexpr Sharing kSharings[] = {Sharing::none, Sharing::kv, Sharing::self};

std::string words_of(const Task& task) {
  const auto [n, m, d] = task.problem.shape;
  return fmt::format("{} n={} m={} d={} M={} {}", to_string(task.pass), n, m, d, task.memory.M,
                     to_string(task.problem.sharing));
}

const Bound& named(const std::vector<Bound>& bounds, std::string_view name) {
  const auto found = std::ranges::find(bounds, name, &Bound::name);
  if (found == bounds.end()) {
    throw std::out_of_range(std::string(name));
  }
  return *found;
}

Index words(const Task& task, std::string_view name) {
  return named(lower_bounds(task), name).words;
}

// Checks that every proven, cited or numerical bound that applies to the schedule is at most the
// words it moves.
void expect_below(const Task& task, const Schedule& schedule, Index moved,
                  const std::string& mover) {
  for (const Bound& bound : lower_bounds(task)) {
    if (bound.status != Status::asymptotic && meets(schedule, bound)) {
      ASSERT_LE(bound.words, moved) << bound.name << ", " << mover << ", " << words_of(task);
    }
  }
}

// Draws sizes from 1 up, often small, with n and m often far apart.
class Sizes {
 public:
  explicit Sizes(std::uint64_t seed = 20) : random_(seed) {}
  Index operator()(double most) {
    const double size = std::exp2(std::uniform_real_distribution<>(0, std::log2(most))(random_));
    return std::max<Index>(1, std::llround(size));
  }
  Shape shape() { return {(*this)(3e5), (*this)(3e5), (*this)(700)}; }
  bool coin() { return random_() % 2 == 0; }

 private:
  std::mt19937_64 random_;
};

// Returns the known properties of a kernel. For an unknown kernel, it makes no assumption.
Schedule schedule_of(std::string_view kernel) {
  if (kernel.ends_with("-shared")) {
    Schedule schedule = schedule_of(kernel.substr(0, kernel.rfind('-')));
    schedule.sharing = Sharing::kv;
    return schedule;
  }
  static const std::map<std::string_view, Schedule> known = {
      {"backward/small", {.order = Order::two_step, .recomputes = false}},
      {"backward/large", {.order = Order::any, .recomputes = false}},
      {"backward/flash", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows-onepass", {.order = Order::two_step, .recomputes = false}},
      {"backward/score-rows", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows-xg", {.order = Order::any, .recomputes = false}},
      {"backward/rows-resident", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows-w", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows-onepass-w", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows-q", {.order = Order::two_step, .recomputes = false}},
      {"backward/rows-q-onepass", {.order = Order::two_step, .recomputes = false}},
      {"backward/columns", {.order = Order::two_step, .recomputes = false}},
      {"backward/tiles", {.order = Order::two_step, .recomputes = false}},
      {"backward/tiles-sq", {.order = Order::two_step, .recomputes = false}},
      {"backward/tiles-sqp", {.order = Order::two_step, .recomputes = false}},
      {"gradients/flash", {.order = Order::two_step, .recomputes = false}},
      {"gradients/rows-keys", {.order = Order::two_step, .recomputes = true}},
      {"gradients/score-rows", {.order = Order::two_step, .recomputes = false}},
      {"gradients/rows-keys-onepass", {.order = Order::two_step, .recomputes = true}},
      {"gradients/sources",
       {.order = Order::two_step, .recomputes = true, .sharing = Sharing::self}},
      {"gradients/tiles", {.order = Order::two_step, .recomputes = false}},
      {"gradients/resident", {.order = Order::two_step, .recomputes = false}},
      {"gradients/resident-queries", {.order = Order::two_step, .recomputes = false}},
      {"layer/flash", {.order = Order::two_step, .recomputes = false}},
      {"layer/rows-keys", {.order = Order::two_step, .recomputes = true}},
      {"layer/score-rows", {.order = Order::two_step, .recomputes = false}},
      {"layer/tiles", {.order = Order::two_step, .recomputes = false}},
      {"linear/rows", {.order = Order::two_step, .recomputes = false}},
      {"linear/products", {.order = Order::two_step, .recomputes = false}},
      {"linear-gradient/rows", {.order = Order::two_step, .recomputes = false}},
      {"linear-gradient/products", {.order = Order::two_step, .recomputes = false}},
  };
  const auto found = known.find(kernel);
  return found == known.end() ? Schedule{} : found->second;
}

Pass pass_of(std::string_view kernel) {
  return kernel.starts_with("matmul/")            ? Pass::product
         : kernel.starts_with("forward/")         ? Pass::forward
         : kernel.starts_with("attention/")       ? Pass::attention
         : kernel.starts_with("gradients/")       ? Pass::gradients
         : kernel.starts_with("layer/")           ? Pass::layer
         : kernel.starts_with("linear/")          ? Pass::linear
         : kernel.starts_with("linear-gradient/") ? Pass::linear_gradient
                                                  : Pass::backward;
}

// Reports and these tests agree on the properties of each kernel.
TEST(Bounds, OfAKernelsKindAreThoseItMeets) {
  for (const TestedKernel& kernel : tested_kernels()) {
    const Schedule schedule = schedule_of(kernel.name);
    const Schedule reported = redblue::schedule_of(kernel, schedule.sharing);
    const Pass pass = kernel.kernel->pass;
    if ((is_backward(pass) || is_linear(pass)) && kernel.name != "backward/naive") {
      EXPECT_EQ(reported.order, schedule.order) << kernel.name;
      EXPECT_EQ(reported.recomputes, schedule.recomputes) << kernel.name;
    }
  }
}

TEST(Bounds, AreBelowWhatEveryKernelMoves) {
  const Index count = cases(kUsualCases);
  Index held = 0;
  for (Index i = 0; i < count && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(reproduced_by(i));
    Sizes sizes(seed_of_case(i));
    Shape shape = sizes.shape();
    if (sizes.coin()) {
      shape.m = shape.n;
    }
    const Index M = 2 + sizes(4e7);
    for (const TestedKernel& kernel : tested_kernels()) {
      Plan plan;
      try {
        plan = kernel.plan(shape, M);
      } catch (const FastMemoryTooSmall&) {
        continue;
      }
      const PhaseCost cost = total(plan.phases);
      const Index moved = (cost.reads + cost.writes).value();
      for (const Sharing sharing : kSharings) {
        const Schedule schedule = schedule_of(kernel.name);
        if ((sharing == Sharing::self && shape.n != shape.m) || sharing < schedule.sharing) {
          continue;
        }
        expect_below({pass_of(kernel.name), Problem(shape, sharing), M}, schedule, moved,
                     to_string(plan));
        ++held;
      }
    }
  }
  EXPECT_GT(held, count > 1 ? 10 * count : 0);
}

// Schedules that need not be kernels, with formulas for the words that they move and hold. They are
// the best known ones of their regimes, so they reveal a constant that is too large.
struct Formula {
  std::string name;
  Pass pass;
  Schedule schedule;
  // The words moved with blocks of `b` rows, and the most words held.
  std::function<double(double n, double m, double d, double b)> moved, held;
};

std::vector<Formula> formulas() {
  const auto blocks = [](double extent, double b) { return std::ceil(extent / b); };
  // C (n x m) = A (n x d) B in resident tiles of b x b, with a column of A and a word of B.
  const auto product = [=](double n, double m, double d, double b) {
    return n * d * blocks(m, b) + d * m * blocks(n, b) + n * m;
  };
  const auto tile = [](double, double, double, double b) { return b * b + b + 1; };
  const Schedule two_step{.order = Order::two_step, .recomputes = false};
  const Schedule any{.order = Order::any, .recomputes = false};
  const auto shared = [](Schedule schedule) {
    schedule.sharing = Sharing::kv;
    return schedule;
  };
  return {
      {"product, C stays", Pass::product, any, product, tile},
      {"product, rows of A stay", Pass::product, any,
       [=](double n, double m, double d, double b) { return n * d + d * m * blocks(n, b) + n * m; },
       [](double, double, double d, double b) { return b * d + b + 1; }},
      // Rows of A1 and G, X and g stay. X A2_j is computed for each block of rows.
      {"backward, two row blocks", Pass::backward, any,
       [=](double n, double m, double d, double b) {
         return 2 * m * d * blocks(n, b) + d * d * (blocks(n, b) + 2) + 3 * n * d + n;
       },
       [](double, double, double d, double b) {
         return 2 * d * d + 2 * b * d + 2 * b + 3 * d + std::min(b + 1, d + 2);
       }},
      {"backward, two row blocks, A2 = A3", Pass::backward, shared(any),
       [=](double n, double m, double d, double b) {
         return m * d * blocks(n, b) + d * d * (blocks(n, b) + 2) + 3 * n * d + n;
       },
       [](double, double, double d, double b) {
         return 2 * d * d + 2 * b * d + 2 * b + 4 * d + std::min(b + 1, d + 2);
       }},
      {"backward, rows, A2 = A3", Pass::backward, shared(two_step),
       [=](double n, double m, double d, double b) {
         const double T = blocks(n, b);
         return m * d * T + 4 * d * d * T - d * d + 4 * n * d + n;
       },
       [](double, double, double d, double b) { return 3 * b * d + 2 * b + 3 * d + 2; }},
      // Scores and p are written, and W is a product, so no block is wider than a tile.
      {"backward, tiles", Pass::backward, two_step,
       [=](double n, double m, double d, double b) {
         const double e = product(n, m, d, b) + n * blocks(m, b);
         const double p = product(n, m, d, b) + n * m + n * blocks(m, b) + 2 * n * d + n;
         const double W = product(n, d, m, b);
         return e + p + W + 2 * product(n, d, d, b) + product(d, d, n, b);
       },
       [](double, double, double, double b) { return b * b + 2 * b + 3; }},
      {"forward, rows", Pass::forward, any,
       [=](double n, double m, double d, double b) {
         return 2 * m * d * blocks(n, b) + 2 * d * d * blocks(n, b) + 2 * n * d + n;
       },
       [](double, double, double d, double b) { return 2 * b * d + 3 * b + 1; }},
      {"forward, rows, A2 = A3", Pass::forward, shared(any),
       [=](double n, double m, double d, double b) {
         return m * d * blocks(n, b) + 2 * d * d * blocks(n, b) + 2 * n * d + n;
       },
       [](double, double, double d, double b) { return 2 * b * d + 2 * b + d + 2; }},
      {"forward, tiles", Pass::forward, any,
       [=](double n, double m, double d, double b) {
         return product(n, m, d, b) + product(n, d, m, b) + product(n, d, d, b) +
                product(m, d, d, b) + n * blocks(m, b) + 2 * n;
       },
       [](double, double, double, double b) { return b * b + 2 * b + 3; }},
  };
}

TEST(Bounds, AreBelowWhatTheBestSchedulesMove) {
  Sizes sizes;
  std::map<std::string, int> held;
  for (const Formula& formula : formulas()) {
    double nearest = 1e9;
    for (int i = 0; i < 1500; ++i) {
      Shape shape = sizes.shape();
      if (sizes.coin()) {
        shape = {shape.n * 1000, shape.n * 1000, shape.d};
      }
      const auto of = [&](const auto& f, Index b) {
        return f(static_cast<double>(shape.n), static_cast<double>(shape.m),
                 static_cast<double>(shape.d), static_cast<double>(b));
      };
      const Index b = sizes(static_cast<double>(std::max(shape.n, shape.m)));
      const double M = of(formula.held, b);
      const double moved = of(formula.moved, b);
      if (moved > 4e15 || M > 1e12) {
        continue;
      }
      for (const Sharing sharing : kSharings) {
        if (sharing < formula.schedule.sharing ||
            (sharing == Sharing::self && shape.n != shape.m)) {
          continue;
        }
        const Task task{formula.pass, Problem(shape, sharing), static_cast<Index>(M)};
        expect_below(task, formula.schedule, static_cast<Index>(moved), formula.name);
        ++held[formula.name];
        if (sharing == formula.schedule.sharing) {
          const Bound bound = largest(lower_bounds(task), formula.schedule);
          nearest = std::min(nearest, moved / static_cast<double>(bound.words));
        }
      }
    }
    EXPECT_GT(held[formula.name], 300) << formula.name;
    // A schedule near its bound would not stay above a bound that is much too large.
    EXPECT_LT(nearest, 1.25) << formula.name;
  }
}

// C = A B by search: bound <= least <= the words of matmul/blocked.
TEST(Bounds, AreBelowTheLeastThatASearchFinds) {
  const auto least_of = [](const Shape& shape, Index M) {
    const Task task{.pass = Pass::product, .problem = Problem(shape), .memory = M};
    const Index least = ProductPebbles(shape).least(M);
    expect_below(task, {}, least, "search");
    const PhaseCost blocked = total(tested_kernel("matmul/blocked").plan(shape, M).phases);
    EXPECT_LE(least, (blocked.reads + blocked.writes).value()) << words_of(task);
    return least;
  };
  // By hand: with no spare room, a word of C takes 2 d reads and one write.
  for (Index d = 1; d <= 4; ++d) {
    EXPECT_EQ(least_of({1, 1, d}, 3), 2 * d + 1);
  }
  // Results of another search, which plays the pebble game with recomputation.
  const Index two_by_two[] = {17, 14, 13, 12};
  for (Index M = 3; M <= 6; ++M) {
    EXPECT_EQ(least_of({2, 2, 2}, M), two_by_two[M - 3]) << M;
  }
  for (const Shape& shape :
       {Shape{2, 1, 2}, {2, 2, 1}, {3, 1, 2}, {1, 3, 3}, {3, 2, 2}, {2, 2, 3}, {3, 3, 1}}) {
    const Index all = shape.n * shape.d + shape.m * shape.d + shape.n * shape.m;
    Index before = least_of(shape, 3);
    for (const Index M : {4, 5, 6, 7, 9}) {
      const Index least = least_of(shape, M);
      EXPECT_LE(least, before);
      before = least;
    }
    EXPECT_EQ(least_of(shape, all), all) << "with all of it here, each word moves once";
  }
}

TEST(Bounds, NeverRiseWithM) {
  Sizes sizes;
  for (int i = 0; i < 40; ++i) {
    Shape shape = sizes.shape();
    shape.m = sizes.coin() ? shape.n : shape.m;
    for (const Pass pass : kPasses) {
      for (const Sharing sharing : kSharings) {
        if (sharing == Sharing::self && shape.n != shape.m) {
          continue;
        }
        Index M = 1;
        std::vector<Bound> before = lower_bounds({pass, Problem(shape, sharing), M});
        while (M < 100'000'000) {
          M += sizes.coin() ? 1 : sizes(static_cast<double>(8 * M + 1));
          const std::vector<Bound> now = lower_bounds({pass, Problem(shape, sharing), M});
          for (std::size_t at = 0; at < now.size(); ++at) {
            ASSERT_LE(now[at].words, before[at].words)
                << now[at].name << " " << words_of({pass, Problem(shape, sharing), M});
          }
          before = now;
        }
      }
    }
  }
}

// An algorithm that may read more matrices as one, or that has more freedom, has no larger bound.
TEST(Bounds, NeverRiseWithFreedom) {
  Sizes sizes;
  for (int i = 0; i < 300; ++i) {
    const Index n = sizes(3e5);
    const Shape shape{n, n, sizes(700)};
    const Index M = sizes(1e7);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const std::vector<Bound> none = lower_bounds({pass, Problem(shape, Sharing::none), M});
      const std::vector<Bound> kv = lower_bounds({pass, Problem(shape, Sharing::kv), M});
      const std::vector<Bound> self = lower_bounds({pass, Problem(shape, Sharing::self), M});
      for (const Bound& of : kv) {
        EXPECT_LE(named(self, of.name).words, of.words) << of.name;
      }
      for (const Bound& of : none) {
        EXPECT_LE(named(kv, of.name).words, of.words) << of.name;
      }
      const Schedule two_step{.order = Order::two_step, .recomputes = false};
      EXPECT_LE(largest(none).words, largest(none, {.recomputes = false}).words);
      EXPECT_LE(largest(none, {.recomputes = false}).words, largest(none, two_step).words);
    }
  }
}

// Compulsory words, counted by hand: each operand once.
TEST(Bounds, Compulsory) {
  const Shape shape{5, 7, 3};
  const auto compulsory = [](Pass pass, const Shape& of, Sharing sharing = Sharing::none) {
    return words({pass, Problem(of, sharing), 10}, "compulsory");
  };
  EXPECT_EQ(compulsory(Pass::product, shape), 15 + 21 + 35);
  EXPECT_EQ(compulsory(Pass::forward, shape), 15 + 21 + 21 + 9 + 9 + 15 + 5);
  EXPECT_EQ(compulsory(Pass::forward, shape, Sharing::kv), 15 + 21 + 9 + 9 + 15 + 5);
  EXPECT_EQ(compulsory(Pass::backward, shape), 15 + 21 + 21 + 9 + 9 + 15 + 9);
  EXPECT_EQ(compulsory(Pass::backward, shape, Sharing::kv), 15 + 21 + 9 + 9 + 15 + 9);
  EXPECT_EQ(compulsory(Pass::layer, shape), 2 * (15 + 21 + 21 + 9 + 9) + 15);
  EXPECT_EQ(compulsory(Pass::layer, shape, Sharing::kv), 2 * (15 + 21 + 9 + 9) + 15);
  EXPECT_EQ(compulsory(Pass::layer, {5, 5, 3}, Sharing::self), 2 * (15 + 9 + 9) + 15);
  EXPECT_EQ(compulsory(Pass::linear, shape), 15 + 21 + 21 + 9 + 9 + 15);
  EXPECT_EQ(compulsory(Pass::linear_gradient, shape), 15 + 21 + 21 + 9 + 15 + 9);
  EXPECT_EQ(compulsory(Pass::forward, {5, 5, 3}, Sharing::self), 15 + 9 + 9 + 15 + 5);
  EXPECT_EQ(compulsory(Pass::backward, {5, 5, 3}, Sharing::self), 15 + 9 + 9 + 15 + 9);
  // Naive kernels move exactly these words.
  for (const char* name : {"forward/naive", "backward/naive"}) {
    const TestedKernel kernel = tested_kernel(name);
    const PhaseCost naive = total(kernel.plan(shape, kernel.least_M(shape)).phases);
    EXPECT_EQ((naive.reads + naive.writes).value(), compulsory(pass_of(name), shape)) << name;
  }
}

// Lemmas 2 and 21 again, in integers. For every length T of a phase, they maximise the pairs that a
// phase of cost T + c_1 may form. The maximum is over every number c_0 of pairs present at its
// start and every number c_1 of pairs read. A first phase of M + T words and the full phases of T
// words after it form no more pairs than there are.
TEST(Bounds, PairsInIntegers) {
  struct Best {
    double by_cost = 0;
    Index events = 0, phases = 1;
    [[nodiscard]] double words() const { return std::max(by_cost, static_cast<double>(events)); }
  };
  const auto best = [](Index pairs, Index K, Index M, Index d) {
    Best largest;
    const Index all = pairs * K * d * d;
    while ((largest.events + 1) * (largest.events + 1) <= all) {
      ++largest.events;  // one phase
    }
    for (Index T = 1; T * T <= all; ++T) {
      double most = 0;
      Index formed_in_phase = 0;
      for (Index c_0 = 0; c_0 <= M; ++c_0) {
        for (Index c_1 = 0; c_1 <= T; ++c_1) {
          const Index left = M + T - c_0 - c_1;
          const Index formed = left * left + K * d * d * (c_0 + c_1);
          most = std::max(most, static_cast<double>(formed) / static_cast<double>(T + c_1));
          formed_in_phase = std::max(formed_in_phase, formed);
        }
      }
      largest.by_cost = std::max(largest.by_cost, static_cast<double>(all - T * T) / most);
      const Index H = M + T, more = (all - H * H) / formed_in_phase;
      if (H * H <= all && H + more * T > largest.events) {
        largest.events = H + more * T;
        largest.phases = 1 + more;
      }
    }
    return largest;
  };
  int by_equal_phases = 0;
  const struct {
    Pass pass;
    Sharing sharing;
    const char* name;
    Index K;
  } cases[] = {
      {Pass::product, Sharing::none, "pairs", 4},
      {Pass::forward, Sharing::none, "pairs", 16},
      {Pass::forward, Sharing::kv, "pairs", 8},
      {Pass::forward, Sharing::self, "pairs", 4},
      {Pass::backward, Sharing::none, "pairs", 16},
      {Pass::backward, Sharing::kv, "pairs", 8},
      {Pass::backward, Sharing::self, "pairs", 4},
      {Pass::backward, Sharing::none, "pairs, two-step", 24},
      {Pass::backward, Sharing::kv, "pairs, two-step", 12},
      {Pass::backward, Sharing::self, "pairs, two-step", 8},
      {Pass::layer, Sharing::none, "pairs", 16},
      {Pass::layer, Sharing::kv, "pairs", 8},
      {Pass::layer, Sharing::none, "pairs, two-step", 24},
  };
  // The results of a layer, minus the sums that the proof uses up.
  const auto beside_of_layer = [](Sharing sharing, std::string_view name, Index nd, Index dd) {
    const Index results = (sharing == Sharing::none ? 3 : 2) * nd + 2 * dd;
    return results - (name == "pairs" ? 0 : nd);
  };
  for (const auto& [pass, sharing, name, K] : cases) {
    for (const auto& [n, d, M] :
         {std::tuple<Index, Index, Index>{12, 1, 3}, {17, 2, 9}, {9, 3, 20}, {30, 1, 12}}) {
      const Task task{pass, {n, n, d, sharing}, M};
      const Index beside = pass == Pass::product   ? n * n
                           : pass == Pass::forward ? n
                           : pass == Pass::layer   ? beside_of_layer(sharing, name, n * d, d * d)
                           : name == std::string("pairs") ? d * d
                                                          : d * d - n * d;
      const Best largest = best(n * n, K, M, d);
      const double exact = largest.words() + static_cast<double>(beside);
      // Rounding costs a word for each phase.
      const auto rounded = static_cast<double>(largest.phases);
      const auto found = static_cast<double>(words(task, name));
      EXPECT_LE(found, std::max(exact, 0.0)) << words_of(task) << " " << name;
      EXPECT_GE(found, 0.98 * exact - 1 - rounded) << words_of(task) << " " << name;
      by_equal_phases += static_cast<double>(largest.events) > largest.by_cost + rounded ? 1 : 0;
    }
  }
  EXPECT_GE(by_equal_phases, 12);
}

// Lemmas 1 and 21 again, in double: N products, where H words allow kappa (H/3)^1.5 of them, over
// all lengths T, for n = m. If `limit` is not 0, only lengths with T d >= limit ((M + T) / 3)^1.5
// count, and only for Lemma 1.
TEST(Bounds, ProductsOverAllLengths) {
  const auto best = [](double W, double kappa, double limit, double M, double d) {
    double largest = limit == 0 ? 3 * std::pow(W / kappa, 2.0 / 3) : 0;  // one phase
    for (double T = 1; T <= 40 * M; ++T) {
      const double each = std::pow((M + T) / 3, 1.5);
      if (T * d >= limit * each) {
        largest = std::max(largest, T * (W - kappa * std::pow(T / 3, 1.5)) / (kappa * each));
      }
      const double phases = std::floor(W / (kappa * each));
      if (limit == 0 && phases >= 1) {
        largest = std::max(largest, phases * T + M);  // the first phase has M + T events
      }
    }
    return largest;
  };
  const double root2 = std::sqrt(2.0);
  const struct {
    Pass pass;
    Sharing sharing;
    const char* name;
    double products, kappa, limit;  // n^2 d products
    double free;                    // times n^2 words that cost nothing
    double n_d, n_1, d_d;           // times n d, n and d^2 further words, or fewer
  } cases[] = {
      {Pass::product, Sharing::none, "products", 1, 1, 0, 0, 0, 0, 0},
      {Pass::forward, Sharing::none, "scores", 1, 1, 0, 1, 1, 1, 0},
      {Pass::forward, Sharing::kv, "scores", 1, 1, 0, 1, 1, 1, 0},
      {Pass::forward, Sharing::self, "scores", 1, 2, 0, 1, 1, 1, 0},
      {Pass::forward, Sharing::none, "two products", 2, 1, 1, 1, 0, 1, 0},
      {Pass::forward, Sharing::self, "two products", 2, 1 + root2, 1 + root2, 1, 0, 1, 0},
      {Pass::backward, Sharing::none, "scores", 2, 1, 0, 2, 0, 0, 1},
      {Pass::backward, Sharing::kv, "scores", 2, 1, 0, 2, 0, 0, 1},
      {Pass::backward, Sharing::self, "scores", 2, 2, 0, 2, 0, 0, 1},
      {Pass::backward, Sharing::self, "three products", 3, 2, 2 + root2, 2 + 3 / root2, 0, 0, 0},
      {Pass::backward, Sharing::none, "three products, two-step", 3, 1, 1, 2, -1, 0, 1},
      {Pass::backward, Sharing::self, "three products, two-step", 3, 2, 2, 2, -1, 0, 1},
      {Pass::backward, Sharing::kv, "three products, searched", 3, 1.404, 1.404, 2, 0, 0, 0},
      {Pass::backward, Sharing::self, "three products, searched", 3, 2.198, 2.198, 2, 0, 0, 0},
      {Pass::attention, Sharing::none, "scores", 1, 1, 0, 1, 1, 1, 0},
      {Pass::attention, Sharing::none, "two products", 2, 1, 1, 1, 0, 1, 0},
      {Pass::gradients, Sharing::none, "scores", 2, 1, 0, 2, 3, 0, 0},
      {Pass::gradients, Sharing::kv, "scores", 2, 1, 0, 2, 2, 0, 0},
      {Pass::layer, Sharing::none, "scores", 2, 1, 0, 2, 3, 0, 2},
      {Pass::layer, Sharing::none, "three products, two-step", 3, 1, 1, 2, 2, 0, 2},
  };
  int above_0 = 0;
  for (const auto& [pass, sharing, name, products, kappa, limit, free, n_d, n_1, d_d] : cases) {
    for (const auto& [n, d, M] :
         {std::tuple<Index, Index, Index>{60, 30, 40}, {8, 40, 30}, {50, 3, 8}, {300, 10, 90}}) {
      const Task task{pass, {n, n, d, sharing}, M};
      const auto [rn, rd, rM] = std::tuple<double, double, double>(n, d, M);
      const double gain = best(products * rn * rn * rd, kappa, limit, rM, rd);
      const double rest = n_d * rn * rd + n_1 * rn + d_d * rd * rd - free * rn * rn;
      const auto found = static_cast<double>(words(task, name));
      EXPECT_LE(found, std::max(0.0, gain + rest)) << words_of(task) << " " << name;
      // Rounding costs a word for each phase of 3 M words.
      const double phases = limit == 0 ? products * rn * rn * rd / (kappa * std::pow(rM, 1.5)) : 0;
      EXPECT_GE(found, 0.999 * gain + rest - 1 - phases) << words_of(task) << " " << name;
      above_0 += found > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(above_0, 40);
}

// The products that H = M + T available words allow: of s, q, W and W', and of folds with the
// weight y. Products are in d^3, words and H in d^2. These are the sums of docs/theory/bounds.md
// before any simplification. Each sort of word has a share of H. `columns` and `rows` are the
// shares of X's lines that are whole.
struct AtHand {
  double a, v, S, R, u, h, w, t, g, scores, q, p, columns, rows;
  bool shared;      // keys: q also has words of A2
  double meetings;  // share of the possible meetings

  [[nodiscard]] double words() const {
    return a + v + S + R + u + h + w + t + g + scores + q + p + columns + rows - columns * rows;
  }
  [[nodiscard]] double met() const { return meetings * std::min(scores, q); }
  [[nodiscard]] double products(double y) const {
    const double both = (S + columns * a) * v + a * (R + rows * v);
    const double charged = (a + S) * (v + R);
    const double pairs = p + met();
    return std::sqrt(scores * std::min(both, charged)) + std::sqrt(u * (h + (shared ? v : 0)) * q) +
           std::sqrt(pairs * (v * w + a * t)) +
           y * std::sqrt(g) * (std::sqrt(a * w) + std::sqrt(v * t));
  }
};

// Lemmas 7 to 9: returns the most that a climb from random shares finds, over kappa (H/3)^1.5.
double most_by_search(double B, double y, double kappa, std::mt19937& random, int starts,
                      bool shared = false, double charge = 0) {
  std::uniform_real_distribution<double> unit(0, 1);
  // Twelve shares of B, then the shares of X's columns and rows, then the share of meetings.
  using Shares = std::array<double, 15>;
  const auto at_hand = [&](const Shares& x) -> std::optional<AtHand> {
    const double lines = x[12] + x[13] - x[12] * x[13];
    const double left = B - lines;
    if (left < 0) {
      return std::nullopt;
    }
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      sum += x[i];
    }
    const double f = sum > 0 ? left / sum : 0;
    return AtHand{x[0] * f, x[1] * f, x[2] * f,  x[3] * f,
                  x[4] * f, x[5] * f, x[6] * f,  x[7] * f,
                  x[8] * f, x[9] * f, x[10] * f, x[11] * f,
                  x[12],    x[13],    shared,    charge > 0 ? x[14] : 1};
  };
  const auto found_by = [&](const Shares& x) {
    const std::optional<AtHand> all = at_hand(x);
    return all ? (all->products(y) - charge * std::sqrt(B) * all->met()) /
                     (kappa * std::pow(B / 3, 1.5))
               : 0.0;
  };
  double most = 0;
  for (int start = 0; start < starts; ++start) {
    Shares best;
    for (double& x : best) {
      x = unit(random) < 0.4 ? 0 : unit(random);
    }
    double value = found_by(best);
    double step = 0.5;
    for (int trial = 0; trial < 4000; ++trial) {
      Shares next = best;
      for (int changes = 0; changes < 2; ++changes) {
        double& x = next[std::uniform_int_distribution<std::size_t>(0, 14)(random)];
        x = std::clamp(unit(random) < 0.1 ? 0 : x + step * (unit(random) - 0.5), 0.0, 1.0);
      }
      if (const double changed = found_by(next); changed > value) {
        best = next;
        value = changed;
      } else {
        step = std::max(0.001, 0.998 * step);
      }
    }
    most = std::max(most, value);
  }
  return most;
}

// Lemma 7: folds with a weight up to 1 / sqrt(2) are free up to H = 8.2 d^2. Folds of weight y =
// kappa theta have kappa^2 = 1/2 + y^2. Above that H, holding X costs less than it saves.
TEST(Bounds, FoldsBesideThreeProductsBySearch) {
  std::mt19937 random(1);
  for (const double B : {0.3, 1.0, 3.0, 6.0, 8.2}) {
    const double most = most_by_search(B, std::sqrt(0.5), 1, random, 12);
    EXPECT_LE(most, 1 + 1e-9) << "B = " << B;
    EXPECT_GE(most, 0.99) << "B = " << B;
    for (const double y : {0.8, 1.0}) {
      EXPECT_LE(most_by_search(B, y, std::sqrt(0.5 + y * y), random, 6), 1 + 1e-9)
          << "B = " << B << ", y = " << y;
    }
  }
  EXPECT_GT(most_by_search(20, std::sqrt(0.5), 1, random, 20), 1.02);
}

// Lemma 8: for shared keys, kappa is sqrt(3/2), with free folds of a weight up to sqrt(3/4).
TEST(Bounds, FoldsBesideThreeProductsOfSharedKeysBySearch) {
  std::mt19937 random(2);
  for (const double B : {0.3, 1.0, 3.0, 6.0, 8.2}) {
    const double most = most_by_search(B, std::sqrt(0.75), std::sqrt(1.5), random, 12, true);
    EXPECT_LE(most, 1 + 1e-9) << "B = " << B;
    EXPECT_GE(most, 0.99) << "B = " << B;
  }
}

// Lemmas 5 and 9: with a charge of l sqrt(H) for each meeting, kappa is the larger of 1 and the
// products of a phase in which all pairs meet. From l = 0.2976 on it is 1.
double kappa_with_charge(double l, double share) {
  double most = 1;
  for (double C = 0; C < 1; C += 1e-5) {
    const double made = std::sqrt((1 + share) * C) * (1 - C) / 2 - l * share * C;
    most = std::max(most, std::pow(3, 1.5) * made);
  }
  return most;
}

TEST(Bounds, MeetingsOfSharedKeysBySearch) {
  EXPECT_NEAR(kappa_with_charge(0, 0.5), std::sqrt(1.5), 1e-6);
  EXPECT_NEAR(kappa_with_charge(0, 1), std::sqrt(2), 1e-6);
  EXPECT_EQ(kappa_with_charge(0.2976, 0.5), 1);
  EXPECT_EQ(kappa_with_charge(0.3029, 1), 1);
  EXPECT_GT(kappa_with_charge(0.2974, 0.5), 1);
  EXPECT_GT(kappa_with_charge(0.3027, 1), 1);
  std::mt19937 random(3);
  for (const double B : {0.5, 3.0, 7.1}) {
    for (const double l : {0.1, 0.2, 0.2976}) {
      const double kappa = kappa_with_charge(l, 0.5);
      const double most = most_by_search(B, std::sqrt(0.5), kappa, random, 12, true, l);
      EXPECT_LE(most, 1 + 1e-9) << "B = " << B << ", l = " << l;
      EXPECT_GE(most, 0.99) << "B = " << B << ", l = " << l;
    }
  }
}

// Lemmas 5 and 9 with these charges again, in double, over all lengths T for which repeated scores
// and folds pay, for n = m. In any order and without charges, the lengths of the test above count
// as well.
TEST(Bounds, ProductsOfSharedKeysOverAllLengths) {
  const struct {
    Pass pass;
    const char* name;
    double kinds, share;
    bool folds;
    double n_d, n_1, d_d;  // times n d, n and d^2 further words, or fewer
  } cases[] = {{Pass::forward, "two products", 2, 1, false, 0, 1, 0},
               {Pass::backward, "three products", 3, 0.5, true, 0, 0, 0},
               {Pass::backward, "three products, two-step", 3, 0.5, false, -1, 0, 1}};
  int above_0 = 0;
  for (const auto& [pass, name, kinds, share, folds, n_d, n_1, d_d] : cases) {
    for (const auto& [n, d, M] : {std::tuple<Index, Index, Index>{400, 30, 40},
                                  {400, 30, 900},
                                  {800, 12, 190},
                                  {50, 3, 8},
                                  {600, 10, 130}}) {
      const auto [rn, rd, rM] = std::tuple<double, double, double>(n, d, M);
      double gain = 0;
      for (int step = 0; step <= 24; ++step) {
        const double l = (share < 1 ? 0.2976 : 0.3029) * step / 24;
        const double kappa = kappa_with_charge(l, share);
        for (double T = 1; T <= 40 * rM; ++T) {
          const double B = rM + T, z = std::pow(B / 3, 1.5), charge = l * std::sqrt(B);
          const bool pays = T * (rd - share * charge) >= kappa * z &&
                            (!folds || (T * rd >= std::sqrt(2) * kappa * z && B <= 7.1 * rd * rd));
          const bool beside = folds && l == 0 && T * rd >= std::sqrt(2) * z && B <= 8.2 * rd * rd;
          if (pays || beside) {
            gain = std::max(
                gain, T * ((kinds * rd - charge) * rn * rn / kappa - std::pow(T / 3, 1.5)) / z);
          }
        }
      }
      const double rest = n_d * rn * rd + n_1 * rn + d_d * rd * rd - (kinds - 1) * rn * rn;
      const Task task{pass, {n, n, d, Sharing::kv}, M};
      const auto found = static_cast<double>(words(task, name));
      EXPECT_LE(found, std::max(0.0, gain + rest)) << words_of(task) << " " << name;
      EXPECT_GE(found, 0.99 * gain + rest - 1) << words_of(task) << " " << name;
      above_0 += found > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(above_0, 10);
}

// Lemma 7 over all whole lengths T with M + T <= 8.2 d^2. Here theta = z / (T d), z = ((M + T) /
// 3)^1.5 and theta^2 <= 2/3. kappa is 1 up to theta^2 = 1/2.
TEST(Bounds, ThreeProductsBesideFolds) {
  int above_0 = 0;
  for (const auto& [n, m, d, M] : {std::tuple<Index, Index, Index, Index>{60, 60, 30, 40},
                                   {300, 500, 10, 90},
                                   {8, 40, 40, 30},
                                   {400, 300, 8, 140},
                                   {1000, 1000, 8, 160},
                                   {1000, 1000, 8, 600}}) {
    const auto [rn, rm, rd, rM] = std::tuple<double, double, double, double>(n, m, d, M);
    double gain = 0;
    for (double T = 1; rM + T <= 8.2 * rd * rd; ++T) {
      const double z = std::pow((rM + T) / 3, 1.5);
      const double r = z / (T * rd);
      const double kappa = r * r <= 0.5 ? 1 : std::sqrt(0.5 / (1 - r * r));
      if (r * r <= 2.0 / 3) {
        gain = std::max(gain, T * (3 * rn * rm * rd / kappa - std::pow(T / 3, 1.5)) / z);
      }
    }
    const Task task{Pass::backward, {n, m, d}, M};
    const auto found = static_cast<double>(words(task, "three products"));
    EXPECT_LE(found, std::max(0.0, gain - 2 * rn * rm)) << words_of(task);
    EXPECT_GE(found, 0.995 * gain - 2 * rn * rm - 1) << words_of(task);
    above_0 += found > 0 ? 1 : 0;
  }
  EXPECT_GE(above_0, 4);
}

// "three products, searched" is needed: with shared keys it is the largest bound of some task,
// proven or not. Without shared keys, its kappa of 1.342 never gives more than the proven "three
// products", at any size, so it is not among the bounds.
TEST(Bounds, SearchedProductsWinOnlyWhereKeysAreShared) {
  const struct {
    Task task;
    double times;  // the largest proven bound of algorithms that make each sum once
  } wins[] = {{{Pass::backward, {2345716, 1557277, 7, Sharing::kv}, 98}, 1.06},
              {{Pass::backward, {8542, 8542, 274, Sharing::self}, 22093}, 1.7}};
  for (const auto& [task, times] : wins) {
    const std::vector<Bound> bounds = lower_bounds(task);
    const Bound proven = largest(bounds, {.recomputes = false, .sharing = task.problem.sharing});
    EXPECT_GT(static_cast<double>(named(bounds, "three products, searched").words),
              times * static_cast<double>(proven.words))
        << words_of(task);
  }
  Sizes sizes;
  int above_0 = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto [n, m, d] = sizes.shape();
    const Index M = sizes(1e7);
    const Real pairs = real(n) * real(m);
    const Products searched{.work = 3 * pairs * real(d), .kappa = 1.342L, .per_creation = 1.342L};
    const Index found = below(searched.events(M, d), 2 * pairs);
    const std::vector<Bound> bounds = lower_bounds({Pass::backward, {n, m, d}, M});
    EXPECT_LE(found, named(bounds, "three products").words)
        << n << " " << m << " " << d << " " << M;
    EXPECT_FALSE(std::ranges::any_of(
        bounds, [](const Bound& bound) { return bound.status == Status::numerical; }));
    above_0 += found > 0 ? 1 : 0;
  }
  EXPECT_GT(above_0, 500);
}

// Lemma 7, folds without sharing, step by step. The letters come from docs/theory/bounds.md: a1,
// a2, bS, bR, w, w' (here w2) are words. sigma is the share of X's lines that are whole, rows plus
// columns. y is the weight of folds.
struct FoldWords {
  double a1, a2, bS, bR, w, w2, sigma;

  // Products of scores for each root of a word of pairs: the smaller result of two ways to count.
  [[nodiscard]] double psi() const {
    return std::min(bS * a2 + bR * a1 + sigma * a1 * a2, (a1 + bS) * (a2 + bR));
  }
  [[nodiscard]] double beside() const { return a1 * bS + a2 * bR; }
  [[nodiscard]] double mu() const { return a1 + a2; }
  [[nodiscard]] double nu() const { return bS + bR + w + w2; }
  [[nodiscard]] double X() const { return std::min(sigma, 1.0) * mu() * mu() / 4; }
  // With folds of weight y, the square of their products is at most 2 (a1 w + a2 w') y^2, and at
  // most (delta + a1 w + a2 w') y^2.
  [[nodiscard]] double delta() const { return a2 * (bS + w) + a1 * (bR + w2); }
  [[nodiscard]] double epsilon() const { return a1 * (bS + w) + a2 * (bR + w2); }
  [[nodiscard]] double with_folds(double y) const {
    const double folds = a1 * w + a2 * w2;
    return psi() + a2 * w + a1 * w2 + y * y * std::min(2 * folds, delta() + folds);
  }
};

template <class F>
void for_each_of_a_grid(F f) {
  constexpr double kWords[] = {0, 0.3, 1, 2.5};
  for (const double a1 : kWords) {
    for (const double a2 : kWords) {
      for (const double bS : kWords) {
        for (const double bR : kWords) {
          for (const double w : kWords) {
            for (const double w2 : kWords) {
              for (const double sigma : {0.0, 0.5, 1.0, 1.2, 1.6, 2.0}) {
                f(FoldWords{a1, a2, bS, bR, w, w2, sigma});
              }
            }
          }
        }
      }
    }
  }
}

TEST(Bounds, FoldsWithoutSharingOnAGrid) {
  constexpr double kRound = 1 + 1e-12;
  double nearest = 0, without_slack = 0;
  for_each_of_a_grid([&](const FoldWords& of) {
    // Step 4: the term beyond bS a2 + bR a1 + mu^2 / 4 is at most half of the remaining terms of mu
    // nu.
    const double extra = of.psi() - (of.bS * of.a2 + of.bR * of.a1 + of.X());
    EXPECT_LE(extra, of.beside() / 2 + 1e-12);
    EXPECT_LE(of.psi() + of.mu() * (of.w + of.w2), (of.mu() * of.nu() + of.X()) * kRound);
    // Step 5.
    const double all = of.mu() + of.nu();
    EXPECT_LE(of.mu() * of.nu() + of.X(), all * all / (4 - std::min(of.sigma, 1.0)) * kRound);
    // Step 7: 1/2 < theta^2 <= 2/3 has 1/2 < y^2 <= 1 and kappa^2 = 1/2 + y^2. The folds have a1 w
    // + a2 w' = epsilon - (a1 bS + a2 bR). This leaves y^2 (a1 bS + a2 bR) for the extra term.
    for (const double y2 : {0.5, 0.6, 0.75, 1.0}) {
      const double y = std::sqrt(y2);
      const double most = (0.5 + y2) * of.mu() * of.nu() + of.X();
      EXPECT_LE(of.with_folds(y), most * kRound) << y2;
      EXPECT_LE(of.delta() + y2 * std::min(2 * of.epsilon(), of.delta() + of.epsilon()),
                (0.5 + y2) * of.mu() * of.nu() * kRound);
      if (most > 0) {
        nearest = std::max(nearest, of.with_folds(y) / most);
        // With epsilon instead of a1 w + a2 w', the extra term would have no room.
        const double rough = of.psi() + of.a2 * of.w + of.a1 * of.w2 +
                             y2 * std::min(2 * of.epsilon(), of.delta() + of.epsilon());
        without_slack = std::max(without_slack, rough / most);
      }
    }
  });
  EXPECT_GT(nearest, 0.999) << "the grid has the cases of equality";
  EXPECT_GT(without_slack, 1.01) << "the slack is needed";
}

// Around the dividing point, the words of plans are near the bounds for any order.
TEST(Bounds, PlansOverBoundsOfAnyOrderAroundTheDividingPoint) {
  constexpr Index d = 128;
  const struct {
    Index M;
    double most, most_of_shared_keys;
  } cases[] = {{d * d / 16, 1.26, 1.22}, {d * d / 8, 1.37, 1.32}, {d * d / 4, 1.47, 1.43},
               {d * d / 2, 1.27, 1.18},  {d * d, 1.27, 1.02},     {2 * d * d, 1.37, 1.05},
               {4 * d * d, 1.59, 1.53}};
  for (const auto& [M, most, most_of_shared_keys] : cases) {
    for (const Sharing sharing : {Sharing::none, Sharing::kv}) {
      const Index n = Index{1} << 18;
      const Task task{Pass::backward, {n, n, d, sharing}, M};
      const Bound bound = largest(lower_bounds(task), {.recomputes = false, .sharing = sharing});
      const double over = static_cast<double>(choices(task).front().words.value()) /
                          static_cast<double>(bound.words);
      EXPECT_LE(over, sharing == Sharing::kv ? most_of_shared_keys : most)
          << words_of(task) << " " << bound.name << " " << over;
    }
  }
}

// For linear attention: the products over queries and over keys, (n + m) d^2, minus the sums that
// the proof uses up.
TEST(Bounds, TwoSumsOfLinearAttention) {
  int above_0 = 0;
  for (const auto& [n, m, d, M] : {std::tuple<Index, Index, Index, Index>{60, 40, 30, 12},
                                   {8, 90, 40, 30},
                                   {50, 50, 3, 8},
                                   {300, 20, 100, 40}}) {
    const auto [rn, rm, rd, rM] = std::tuple<double, double, double, double>(n, m, d, M);
    double gain = 0;
    for (double T = 1; T <= 40 * rM; ++T) {
      gain = std::max(
          gain, T * ((rn + rm) * rd * rd - std::pow(T / 3, 1.5)) / std::pow((rM + T) / 3, 1.5));
    }
    for (const Pass pass : {Pass::linear, Pass::linear_gradient}) {
      const Task task{pass, {n, m, d}, M};
      const double keys = pass == Pass::linear ? 2 * rm : rm;
      const double rest = (rn + keys) * rd + 2 * rd * rd;
      const auto found = static_cast<double>(words(task, "two sums"));
      EXPECT_LE(found, std::max(0.0, gain - rest)) << words_of(task);
      EXPECT_GE(found, 0.999 * gain - rest - 1) << words_of(task);
      above_0 += found > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(above_0, 4);
}

// The leading term is 2 W / (kappa sqrt(M)), which is also an upper limit.
TEST(Bounds, LeadingConstantsOfSmallCaches) {
  const auto small = [](Pass pass, const char* name) {
    const Task task{pass, {1 << 24, 1 << 24, 4096}, 1024};
    return static_cast<double>(words(task, name)) / std::exp2(24 + 24 + 12 - 5);
  };
  // n m words are sqrt(M) / d = 1 / 128 in this unit.
  EXPECT_NEAR(small(Pass::product, "products"), 2, 0.001);
  EXPECT_NEAR(small(Pass::forward, "two products"), 4 - 1.0 / 128, 0.001);
  EXPECT_NEAR(small(Pass::backward, "scores"), 4 - 2.0 / 128, 0.001);
  EXPECT_NEAR(small(Pass::backward, "three products"), 6 - 2.0 / 128, 0.001);
  EXPECT_NEAR(small(Pass::backward, "three products, two-step"), 6 - 2.0 / 128, 0.001);
  EXPECT_NEAR(small(Pass::gradients, "five products"), 4 + 3 * std::sqrt(3.0) - 2.0 / 128, 0.001);
}

// As n and m grow, words M / (n m d^2) tend to these constants for M above d^2, and words sqrt(M) /
// (n m d) for M below.
TEST(Bounds, LeadingConstants) {
  const auto large = [](Pass pass, Sharing sharing, const char* name) {
    const Task task{pass, {Index{1} << 28, Index{1} << 28, 64, sharing}, Index{1} << 20};
    const auto found = static_cast<double>(words(task, name));
    return found / std::exp2(28 + 28 + 12 - 20);
  };
  EXPECT_NEAR(large(Pass::backward, Sharing::none, "pairs"), 4, 0.01);
  EXPECT_NEAR(large(Pass::backward, Sharing::kv, "pairs"), 2, 0.01);
  EXPECT_NEAR(large(Pass::backward, Sharing::self, "pairs"), 1, 0.01);
  EXPECT_NEAR(large(Pass::backward, Sharing::none, "pairs, two-step"), 6, 0.01);
  EXPECT_NEAR(large(Pass::backward, Sharing::kv, "pairs, two-step"), 3, 0.01);
  EXPECT_NEAR(large(Pass::backward, Sharing::self, "pairs, two-step"), 2, 0.01);
  EXPECT_NEAR(large(Pass::forward, Sharing::none, "pairs"), 4, 0.01);
  EXPECT_NEAR(large(Pass::gradients, Sharing::none, "pairs"), 14, 0.01);
  EXPECT_NEAR(large(Pass::gradients, Sharing::kv, "pairs"), 7, 0.01);
  EXPECT_NEAR(large(Pass::gradients, Sharing::none, "pairs, each p once"), 16, 0.01);
  EXPECT_NEAR(large(Pass::gradients, Sharing::kv, "pairs, each p once"), 8, 0.01);
  EXPECT_NEAR(large(Pass::layer, Sharing::none, "gradients' pairs, two-step"), 14, 0.01);
  EXPECT_NEAR(large(Pass::layer, Sharing::none, "gradients' pairs, each p once"), 16, 0.01);
  // Without the n m results, the constant of a product is 1.
  EXPECT_NEAR(large(Pass::product, Sharing::none, "pairs") - std::exp2(8), 1, 0.01);

  // Far below d^2, every score is written and read, or is computed from ever more words.
  const Task small{Pass::backward, {1 << 20, 1 << 20, 4096}, 64};
  EXPECT_NEAR(static_cast<double>(words(small, "pairs")) / std::exp2(40), 2, 0.01);
}

// If d is large against n and m, the bound of the products of weights is largest.
TEST(Bounds, WeightsWhereTheyAreLarge) {
  const Task task{Pass::backward, {1000, 2000, 50'000}, 1000};
  // 2 n d^2 products, minus the words of S and of G or h, plus g.
  const double first = 2 * 2 * 1000.0 * 2.5e9 / std::sqrt(1000.0);
  EXPECT_NEAR(static_cast<double>(words(task, "weights")), first - 2 * 2000 * 5e4 + 2.5e9,
              0.001 * first);
  EXPECT_EQ(largest(lower_bounds(task)).name, "weights");
}

TEST(Bounds, AssumptionsAndRegimes) {
  const std::vector<Bound> bounds = lower_bounds({Pass::backward, {4096, 4096, 64}, 1024});
  const Bound& two_step = named(bounds, "pairs, two-step");
  const Bound& three = named(bounds, "three products");
  EXPECT_FALSE(meets({}, two_step));
  EXPECT_TRUE(meets({.order = Order::two_step}, two_step));
  EXPECT_FALSE(meets({.order = Order::two_step}, three));
  EXPECT_TRUE(meets({.recomputes = false}, three));
  // A schedule that reads A2 = A3 once may move fewer words than a bound for two matrices.
  EXPECT_FALSE(meets({.sharing = Sharing::kv}, named(bounds, "compulsory")));
  EXPECT_TRUE(meets({.known = Known::nothing}, named(bounds, "compulsory")));
  for (const Bound& bound : bounds) {
    EXPECT_EQ(bound.order == Order::two_step, bound.name.ends_with("two-step")) << bound.name;
  }
  // The dividing point belongs to the large caches.
  for (const Index M : {4095, 4096}) {
    const std::vector<Bound> at = lower_bounds({Pass::backward, {4096, 4096, 64}, M});
    EXPECT_EQ(named(at, "Theorem 4.2").in_regime, M == 4096);
    EXPECT_EQ(named(at, "Theorem 4.4").in_regime, M == 4095);
  }
  EXPECT_EQ(dividing_point({9, 9, 64}), Words(4096));
  // (n^2 d^2 + n d^3) / M and (n^2 d + n d^2) / sqrt(M).
  const std::vector<Bound> at = lower_bounds({Pass::backward, {100, 100, 10}, 64});
  EXPECT_EQ(named(at, "Theorem 4.2").words, (1'000'000 + 100'000) / 64);
  EXPECT_EQ(named(at, "Theorem 4.4").words, (100'000 + 10'000) / 8);
  EXPECT_EQ(asymptotic_words({Pass::backward, {100, 100, 10}, 64}), 110'000 / 8);
}

TEST(Bounds, RefuseWhatIsNoTask) {
  EXPECT_THROW(lower_bounds({Pass::backward, {0, 1, 1}, 1}), ShapeMismatch);
  EXPECT_THROW(lower_bounds({Pass::backward, {1, 1, 1}, 0}), ShapeMismatch);
  EXPECT_THROW(lower_bounds({Pass::forward, {2, 3, 1, Sharing::self}, 1}), ShapeMismatch);
  const Index huge = Index{1} << 40;
  EXPECT_THROW(lower_bounds({Pass::backward, {huge, huge, huge}, 1}), CountOverflow);
}

TEST(PerfOfBoundFormulas, AreThereAtOnce) {
  double least = 1;
  // Other load may slow down some calls, but not all.
  for (Index i = 0; i < 50; ++i) {
    const auto start = std::chrono::steady_clock::now();
    static_cast<void>(lower_bounds({Pass::backward, {1 << 20, 1 << 20, 64}, (1 << 20) + i}));
    const std::chrono::duration<double> each = std::chrono::steady_clock::now() - start;
    least = std::min(least, each.count());
  }
  EXPECT_LT(least, 0.001);
}

// An asymptotic bound above the words of a kernel is not a bound, at least not with the constant 1.
TEST(Bounds, AsymptoticOnesThatAKernelUndercuts) {
  BoundReport report = report_bounds({Pass::backward, {4096, 4096, 64}, 8192});
  const Index says = named(report.bounds, "Theorem 4.2").words;
  report.best->plan.kernel = "some/kernel";
  report.best->words = says;
  EXPECT_FALSE(report.undercut(named(report.bounds, "Theorem 4.2")));
  report.best->words = says - 1;
  EXPECT_TRUE(report.undercut(named(report.bounds, "Theorem 4.2")));
  EXPECT_FALSE(report.undercut(named(report.bounds, "Theorem 4.4"))) << "it is for M < d^2";
  EXPECT_FALSE(report.undercut(named(report.bounds, "pairs")));
  EXPECT_NE(to_table(report).find("some/kernel moves fewer"), std::string::npos);
  EXPECT_NE(to_json(report).find("\"refuted_by\": \"some/kernel\""), std::string::npos);
}

// The paper's statements where they cannot hold for any constant: they fall with M, but the words
// that they describe do not.
TEST(Bounds, StatementsOfThePaper) {
  const auto statement = [](const BoundReport& report, const char* name) {
    const auto found = std::ranges::find(report.statements, name, &Statement::name);
    return found == report.statements.end() ? std::nullopt : std::optional(*found);
  };
  const Shape shape{4096, 4096, 64};
  const BoundReport small = report_bounds({Pass::backward, Problem(shape), 1024});
  const auto phase_3 = statement(small, "Lemma C.9");
  ASSERT_TRUE(phase_3);
  EXPECT_EQ(phase_3->says_words, 4096 * 4096 / 32);
  EXPECT_EQ(phase_3->words, 5 * 4096 * 4096);  // f and q are read twice, p is written
  EXPECT_TRUE(phase_3->refuted());
  EXPECT_FALSE(statement(small, "Theorem 1.1")->refuted());
  EXPECT_FALSE(statement(small, "Theorem D.5"));

  // Br = min(M / 4d, d): from M = 4 d^2 on it is d, and the words no longer fall.
  EXPECT_FALSE(
      statement(report_bounds({Pass::backward, Problem(shape), 4096}), "Theorem D.5")->refuted());
  for (const Index M : {16384, 65536}) {
    const auto capped =
        statement(report_bounds({Pass::backward, Problem(shape), M}), "Theorem D.5");
    ASSERT_TRUE(capped);
    EXPECT_TRUE(capped->refuted()) << M;
    EXPECT_GT(capped->words, 2 * 4096 * 4096) << M;
  }

  // At M = n d the paper makes no statement for 4 M, and above it none for M. There its Theta falls
  // below the compulsory words, which contradicts no theorem.
  const BoundReport edge = report_bounds({Pass::backward, Problem(shape), 4096 * 64});
  for (const char* name : {"Theorem 1.1", "Theorem D.5"}) {
    EXPECT_EQ(statement(edge, name)->verdict(), StatementVerdict::next_M_outside) << name;
  }
  const BoundReport far = report_bounds({Pass::backward, Problem(shape), 1 << 24});
  EXPECT_EQ(statement(far, "Theorem 1.1")->verdict(), StatementVerdict::M_outside);
  EXPECT_LT(statement(far, "Theorem 1.1")->says_words, statement(far, "Theorem 1.1")->words);
  EXPECT_FALSE(statement(far, "Theorem D.5"));
}

// In its range and with n >= d, Theorem 1.1 states at least n d + d^2 words. This is at least a
// quarter of the compulsory words, so no M and no sizes refute it.
TEST(Bounds, TheMainTheoremStandsInItsRange) {
  for (const Index d : {1, 2, 5, 16, 64}) {
    for (const Index times : {1, 2, 4, 9, 40}) {
      const Index n = times * d;
      for (Index M = 1; M <= 5 * n * d; M += 1 + M / 2) {
        const Statement main = report_bounds({Pass::backward, {n, n, d}, M}).statements.front();
        EXPECT_FALSE(main.refuted()) << n << " " << d << " " << M;
        EXPECT_EQ(main.verdict() == StatementVerdict::M_outside, M > n * d && M >= d * d)
            << n << " " << M;
      }
    }
  }
}

}  // namespace
}  // namespace redblue
