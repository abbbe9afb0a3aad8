// Computes linear attention in a fast memory that holds two d x d matrices, so each word moves
// once. Keys stream into S = A2^T A3, then Y turns it into T = S Y, and then queries stream:
//
//   linear            O = A1 W with W = X T
//   linear-gradient   g = U T^T with U = A1^T dO
//
//   reads and writes   2 n d + 2 m d + 2 d^2;   peak   2 d^2 + d, and 2 d^2 + 2 d
//
// The peak is for one row in each block. Under the causal mask, S is the sum of the keys so far. It
// is resident together with the weights, and with g. For a block of queries and the keys that
// it is the first to meet, the kernel also computes scores, which never leave fast memory:
//
//   linear            Q_I = A1_I X, R_I = Q_I S + (live Q_I A2_I^T) A3_I, O_I = R_I Y
//   linear-gradient   G_I = dO_I Y^T, W_I = G_I S^T + (live G_I A3_I^T) A2_I, g += A1_I^T W_I
//
// The words are the same, and the peak is 3 d^2 + 3 d + 1.

#include <algorithm>
#include <string>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/fit.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/linear/running_sum.hpp"
#include "kernels/registry.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace in_linear_rows {
namespace {

// Streamed block sizes: rows of queries, keys and weights.
struct Passing {
  explicit Passing(const Blocks& blocks)
      : rows(blocks["Br"]), keys(blocks["Bc"]), weights(blocks["Bw"]) {}
  Index rows, keys, weights;
};

// ---- all keys --------------------------------------------------------------------------------

// Returns S^T. Its rows are multiplied with rows of Y.
Tile sum_of_keys(Machine& machine, const Operands& io, Index step) {
  const Phase phase(machine, "S");
  const SlowMatrix& A2 = io.in("A2");
  const SlowMatrix& A3 = io.in("A3");
  Tile s_t = machine.initialize("S", A2.cols(), A2.cols());
  for (const Range J : blocks(A2.rows(), step)) {
    const Tile a2 = machine.read(A2.row_block(J));  // A2_J (c, d)
    const Tile a3 = machine.read(A3.row_block(J));  // A3_J (c, d)
    multiply_add(transposed(a3), a2, s_t);
  }
  return s_t;
}

// Returns T, or T^T for the gradient.
Tile with_Y(Machine& machine, LinearResult of, const Operands& io, const Tile& s_t, Index step) {
  const Phase phase(machine, "T");
  const SlowMatrix& Y = io.in("Y");
  Tile t = machine.initialize("T", Y.rows(), Y.cols());
  for (const Range K : blocks(Y.rows(), step)) {
    const Tile y = machine.read(Y.row_block(K));  // Y_K (w, d)
    if (of == LinearResult::output) {
      multiply_add(transposed(s_t.part(K)), y, t);
    } else {
      multiply_add(transposed(y), s_t.part(K), t);
    }
  }
  return t;
}

void outputs(Machine& machine, const Operands& io, Tile t, const Passing& by) {
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& X = io.in("X");
  SlowMatrix& O = io.out("O");
  Tile w = machine.initialize("W", X.rows(), X.cols());
  {
    const Phase phase(machine, "W");
    for (const Range K : blocks(X.rows(), by.weights)) {
      const Tile x = machine.read(X.row_block(K));  // X_K (w, d)
      multiply(x, t, w.part(K));
    }
  }
  t.reset();
  const Phase phase(machine, "O");
  for (const Range I : blocks(A1.rows(), by.rows)) {
    const Tile a1 = machine.read(A1.row_block(I));                 // A1_I (r, d)
    Tile o = machine.initialize("O", I.size(), O.cols(), kUnset);  // O_I (r, d)
    multiply(a1, w, o);
    machine.write(o, O.row_block(I));
  }
}

void gradient(Machine& machine, const Operands& io, const Tile& t_t, const Passing& by) {
  const SlowMatrix& A1 = io.in("A1");
  const SlowMatrix& dO = io.in("dO");
  SlowMatrix& g = io.out("g");
  Tile u = machine.initialize("U", g.rows(), g.cols());
  {
    const Phase phase(machine, "U");
    for (const Range I : blocks(A1.rows(), by.rows)) {
      const Tile a1 = machine.read(A1.row_block(I));    // A1_I (r, d)
      const Tile of_O = machine.read(dO.row_block(I));  // dO_I (r, d)
      multiply_add(transposed(a1), of_O, u);
    }
  }
  const Phase phase(machine, "g");
  for (const Range K : blocks(g.rows(), by.weights)) {
    Tile rows = machine.initialize("g", K.size(), g.cols(), kUnset);  // g_K (w, d)
    multiply(u.part(K), t_t, rows);
    machine.write(rows, g.row_block(K));
  }
}

std::vector<PhaseCost> cost_of_all(const Problem& problem, const Blocks& blocks, LinearResult of) {
  const auto [n, m, d] = problem.shape;
  const Passing by(blocks);
  const Words dd = Words(d) * d;
  const Words nd = Words(n) * d;
  const Index of_sum = problem.sum_words;
  const Words sums = dd * of_sum;  // S, T, W or U
  const Words rows = Words(std::min(n, by.rows)) * d;
  const Words weights = Words(std::min(d, by.weights)) * d;
  const Words product = 2 * dd * d;
  std::vector<PhaseCost> phases = {
      {.path = "S",
       .reads = Words(2) * m * d,
       .writes = 0,
       .peak = sums + Words(2) * std::min(m, by.keys) * d,
       .flops = 2 * dd * m},
      {.path = "T", .reads = dd, .writes = 0, .peak = 2 * sums + weights, .flops = product}};
  if (of == LinearResult::output) {
    phases.push_back(
        {.path = "W", .reads = dd, .writes = 0, .peak = 2 * sums + weights, .flops = product});
    phases.push_back({.path = "O",
                      .reads = nd,
                      .writes = nd,
                      .peak = sums + rows * (1 + of_sum),
                      .flops = 2 * dd * n});
  } else {
    phases.push_back({.path = "U",
                      .reads = 2 * nd,
                      .writes = 0,
                      .peak = 2 * sums + 2 * rows,
                      .flops = 2 * dd * n});
    phases.push_back({.path = "g",
                      .reads = 0,
                      .writes = dd,
                      .peak = 2 * sums + weights * of_sum,
                      .flops = product});
  }
  return phases;
}

// ---- the causal mask -------------------------------------------------------------------------

struct Names {
  std::string_view rows, weight, made, keys, values, sums, result;
};
constexpr Names names_of(LinearResult of) {
  return of == LinearResult::output ? Names{"A1", "X", "Q", "A2", "A3", "R", "O"}
                                    : Names{"dO", "Y", "G", "A3", "A2", "W", "g"};
}

void code_of_causal(Machine& machine, const Plan& plan, const Operands& io, LinearResult of) {
  const auto [n, m, d] = plan.problem.shape;
  const Passing by(plan.blocks);
  const Names names = names_of(of);
  const bool makes_O = of == LinearResult::output;
  const SlowMatrix& rows = io.in(names.rows);
  const SlowMatrix& keys = io.in(names.keys);
  const SlowMatrix& values = io.in(names.values);
  SlowMatrix& result = io.out(names.result);
  Tile weight, Y, g;
  {
    const Phase phase(machine, "weights");
    if (makes_O) {
      weight = machine.read(io.in("X").whole());
      Y = machine.read(io.in("Y").whole());
    } else {
      weight = machine.read(transposed(io.in("Y").whole()));
    }
  }
  if (!makes_O) {
    g = machine.initialize("g", d, d);
  }
  Tile sum = machine.initialize("S", d, d);
  const RunningSum running{machine, keys, values, m - n};
  if (m > n) {
    const Phase phase(machine, "S");
    running.add_first({0, d}, {0, d}, by.keys, sum);
  }
  for (const Range I : blocks(n, by.rows)) {
    Tile made;
    {
      const Phase phase(machine, names.made);
      const Tile a = machine.read(rows.row_block(I));  // A1_I or dO_I (r, d)
      made = machine.initialize(names.made, I.size(), d, kUnset, Holds::operands);
      multiply(a, weight, made);
    }
    Tile met = machine.initialize(names.sums, I.size(), d);  // R_I or W_I (r, d)
    {
      const Phase phase(machine, "core");
      running.add(std::move(made), I, {0, d}, {0, d}, sum, met);
    }
    const Phase phase(machine, names.result);
    if (makes_O) {
      Tile o = machine.initialize("O", I.size(), d, kUnset);  // O_I (r, d)
      multiply(met, Y, o);
      machine.write(o, result.row_block(I));
    } else {
      const Tile a1 = machine.read(io.in("A1").row_block(I));  // A1_I (r, d)
      multiply_add(transposed(a1), met, g);
    }
  }
  if (!makes_O) {
    const Phase phase(machine, names.result);
    machine.write(g, result.whole());
  }
}

std::vector<PhaseCost> cost_of_causal(const Problem& problem, const Blocks& blocks,
                                      LinearResult of) {
  const auto [n, m, d] = problem.shape;
  const Passing by(blocks);
  const Names names = names_of(of);
  const bool makes_O = of == LinearResult::output;
  const Words dd = Words(d) * d;
  const Words nd = Words(n) * d;
  const Words r = std::min(n, by.rows);
  const Index of_sum = problem.sum_words;
  const Words weights = makes_O ? 2 * dd : dd;
  const Words stays = weights + (makes_O ? 1 : 2) * dd * of_sum;  // with S, and g
  std::vector<PhaseCost> phases = {
      {.path = "weights", .reads = weights, .writes = 0, .peak = weights, .flops = 0}};
  if (m > n) {
    const Words first = m - n;
    phases.push_back({.path = "S",
                      .reads = 2 * first * d,
                      .writes = 0,
                      .peak = stays + Words(2) * std::min(m - n, by.keys) * d,
                      .flops = 2 * first * dd});
  }
  phases.push_back({.path = std::string(names.made),
                    .reads = nd,
                    .writes = 0,
                    .peak = stays + 2 * r * d,
                    .flops = 2 * nd * d});
  phases.push_back({.path = "core",
                    .reads = 2 * nd,
                    .writes = 0,
                    .peak = stays + r * d * (2 + of_sum) + r * r,
                    .flops = 4 * nd * d + 4 * pairs_of_blocks(n, by.rows) * d});
  phases.push_back({.path = std::string(names.result),
                    .reads = makes_O ? Words(0) : nd,
                    .writes = makes_O ? nd : dd,
                    .peak = stays + r * d * (of_sum + (makes_O ? of_sum : 1)),
                    .flops = 2 * nd * d});
  return phases;
}

// ---- both ------------------------------------------------------------------------------------

void code(Machine& machine, const Plan& plan, const Operands& io, LinearResult of) {
  if (!plan.problem.mask.full()) {
    code_of_causal(machine, plan, io, of);
    return;
  }
  const Passing by(plan.blocks);
  Tile s_t = sum_of_keys(machine, io, by.keys);
  Tile t = with_Y(machine, of, io, s_t, by.weights);
  s_t.reset();
  if (of == LinearResult::output) {
    outputs(machine, io, std::move(t), by);
  } else {
    gradient(machine, io, t, by);
  }
}

std::vector<PhaseCost> cost(const Problem& problem, const Blocks& blocks, LinearResult of) {
  return problem.mask.full() ? cost_of_all(problem, blocks, of)
                             : cost_of_causal(problem, blocks, of);
}

// All blocks move the same words. More rows keep registers busy, but under the causal mask many
// rows need more products of scores.
Blocks fit(const Problem& problem, Index M, LinearResult of) {
  constexpr Index kBusy = 256;
  constexpr Index kBusyScores = 32;
  const auto [n, m, d] = problem.shape;
  Blocks by{{"Br", 1}, {"Bc", 1}, {"Bw", 1}};
  const auto widen = [&](std::string_view block, Index extent, Index most) {
    by.set(block, even(extent, largest(std::min({extent, most, M}), [&](Index tried) {
                         Blocks wider = by;
                         wider.set(block, tried);
                         return total(cost(problem, wider, of)).peak <= Words(M);
                       })));
  };
  widen("Br", n, problem.mask.full() ? kBusy : kBusyScores);
  widen("Bc", m, kBusy);
  widen("Bw", d, kBusy);
  return by;
}

}  // namespace
}  // namespace in_linear_rows

Kernel linear_rows(LinearResult of) {
  using namespace in_linear_rows;
  const bool makes_O = of == LinearResult::output;
  Kernel kernel = linear_kernel(of);
  kernel.name = makes_O ? "linear/rows" : "linear-gradient/rows";
  kernel.summary = makes_O ? "A2^T A3 stays, then X A2^T A3 Y, and rows pass: each word moves once"
                           : "A2^T A3 Y and A1^T dO stay, rows pass: each word moves once";
  kernel.kin = makes_O ? "" : "linear/rows";
  kernel.schedule.code = [of](Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
    code(machine, plan, io, of);
  };
  kernel.formula.cost = [of](const Problem& problem, const Blocks& blocks) {
    return cost(problem, blocks, of);
  };
  kernel.fitting.fit = [of](const Problem& problem, const Memory& memory, Objective) {
    return fit(problem, memory.M, of);
  };
  kernel.numerics.chain = [](const Problem&, const Blocks& blocks) { return Words(blocks["Br"]); };
  return kernel;
}

}  // namespace redblue
