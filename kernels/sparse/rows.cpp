// The kernels logsumexp, forward and backward for sparse A1, X and A2. A chunk of rows stays and
// keys stream (kernels/sparse/sums.hpp).
//
//   logsumexp   the maximum and the sum of exponentials of each row stay;
//   forward     Z = e A3 stays too, and O = (Z / l) Y is computed after the last key;
//   backward    after a forward pass: G = dO Y^T, v = rowsum(dO * O) and W = p A2 stay; then
//               g += A1_I^T W_I, for each row of g with an entry in A1_I.

#include "kernels/sparse/rows.hpp"

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparse/live_products.hpp"
#include "kernels/sparse/sums.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

// ---- rows with weights ---------------------------------------------------------------------

// Computes O and L from the sums.
void finish_sparse_rows(Machine& machine, const SparseRows& by, const Operands& io, Range I,
                        SparseSums& sums) {
  if (by.softmax) {
    if (by.dense) {
      divide_unless_0(sums.Z, sums.sum);
    }
    add_logarithm(sums.maximum, sums.sum);
    machine.write(sums.maximum, io.out("L").row_block(I));
    sums.maximum.reset();
    sums.sum.reset();
  }
  if (!by.dense) {
    return;
  }
  const SlowMatrix& Y = io.in("Y");
  for (const Range J : blocks(by.d, by.width)) {
    const Tile y = machine.read(Y.block({0, by.d}, J));
    Tile o = machine.initialize("O", I.size(), J.size());
    multiply(sums.Z, y, o);
    machine.write(o, io.out("O").block(I, J));
  }
}

struct SparseRowGradients {
  Tile G, v;
};

SparseRowGradients sparse_row_gradients(Machine& machine, const SparseRows& by, const Operands& io,
                                        Range I) {
  const Phase phase(machine, "G");
  Tile v = by.softmax ? machine.initialize("v", I.size()) : Tile();
  const Tile d_o = machine.read(io.in("dO").row_block(I));
  for (Index i = 0; i < v.rows(); ++i) {
    const Tile o = machine.read(io.in("O").row_block({I.begin + i, I.begin + i + 1}));
    add_row_dots(d_o.part({i, i + 1}), o, v.part({i, i + 1}));
  }
  Tile G = machine.initialize("G", I.size(), by.d, kUnset);
  for (const Range J : blocks(by.d, by.width)) {
    const Tile y_t = machine.read(transposed(std::as_const(io.in("Y")).row_block(J)));
    multiply(d_o, y_t, G.part({0, I.size()}, J));
  }
  return {std::move(G), std::move(v)};
}

// Returns row k of A1_I^T W_I, over the rows that have a live pair.
Tile gradient_row(Machine& machine, const SparseRows& by, Range I,
                  std::span<const ByColumns::Entry> column, const CsrEntries& a1, const Tile& W) {
  Tile g_k = machine.initialize("g", 1, by.d);
  float* const sums = View(g_k).at(0, 0);
  for (const ByColumns::Entry& at : column) {
    if (by.live(at.row)) {
      const float factor = *a1.word(at.entry);
      const Index first = (at.row - I.begin) * by.d;
      const float* const w = ConstView(W).at(0, 0) + first;
      for (Index l = 0; l < by.d; ++l) {
        sums[l] += factor * w[l];
      }
      machine.computed(Operations{.flops = 2 * by.d});
      if (machine.is_heard()) [[unlikely]] {
        const ConstView W_i = W.part({first, first + by.d});
        tell_product(word_of(a1.values, at.entry - a1.entries.begin, 0), transposed(W_i),
                     View(g_k));
      }
    }
  }
  return g_k;
}

// Adds to rows of g that were written before, and writes the other rows of a chunk. With partials
// it only writes the chunk's rows.
struct GradientSink {
  SlowMatrix& g;
  std::vector<bool> touched;
  SlowMatrix* partials;

  void add(Machine& machine, Index unit, Index k, Tile g_k) {
    if (partials != nullptr) {
      const Index row = unit * std::ssize(touched) + k;
      machine.write(g_k, partials->row_block({row, row + 1}));
      return;
    }
    const Block row = g.row_block({k, k + 1});
    if (touched[static_cast<std::size_t>(k)]) {
      const Tile sum = machine.read(row);
      redblue::add(g_k, sum);
    }
    touched[static_cast<std::size_t>(k)] = true;
    machine.write(g_k, row);
  }
  // Writes zeros to the rows that no chunk has.
  void end(Machine& machine) {
    for (Index k = 0; k < std::ssize(touched); ++k) {
      if (!touched[static_cast<std::size_t>(k)]) {
        const Tile zeros = machine.initialize("g", 1, g.cols());
        machine.write(zeros, g.row_block({k, k + 1}));
      }
    }
  }
};

// ---- one chunk after the other -------------------------------------------------------------

CsrPass pass_in(Machine& machine, const char* name, const SlowCsr& of) {
  const Phase phase(machine, name);
  return {machine, of};
}

StayingMatrix staying_matrix(Machine& machine, const SparseRows& by, const Operands& io) {
  StayingMatrix found;
  if (by.stays == SparseStays::X) {
    const Phase phase(machine, "X");
    found.x = read_csr(machine, {by.of.X(), io.in("X")});
    found.columns.emplace(by.of.X(), Range{0, by.d});
  }
  return found;
}

template <class Sums>
void add_keys(Machine& machine, const SparseChunk& chunk, Sums& sums) {
  chunk.by.together > 0 ? add_groups(machine, chunk, sums) : add_pairs(machine, chunk, sums);
}

void forward_chunks(Machine& machine, const SparseRows& by, const Operands& io,
                    const SlowMatrix& rows, Range units) {
  const StayingMatrix staying = staying_matrix(machine, by, io);
  const std::vector<Range> chunks = by.chunks(units);
  CsrPass pass = pass_in(machine, "core", {by.rows, rows});
  for (const Range I : chunks) {
    std::optional<Phase> phase(std::in_place, machine, "core");
    SparseSums sums(machine, by, I.size());
    add_keys(machine, {by, io, staying, I, pass.rows(I)}, sums);
    if (by.dense) {
      phase.reset();
      phase.emplace(machine, "O");
    }
    finish_sparse_rows(machine, by, io, I, sums);
  }
}

void backward_chunks(Machine& machine, const SparseRows& by, const Operands& io,
                     const SlowMatrix& rows, Range units, SlowMatrix* partials) {
  const StayingMatrix staying = staying_matrix(machine, by, io);
  const std::vector<Range> chunks = by.chunks(units);
  CsrPass pass = pass_in(machine, "core", {by.rows, rows});
  std::optional<CsrPass> of_A1;
  if (by.stays == SparseStays::S) {
    of_A1.emplace(pass_in(machine, "g", {by.of.A1(), io.in("A1")}));
  }
  GradientSink sink{io.out("g"), columns_before(by, chunks.front().begin), partials};
  for (Index unit = units.begin; const Range I : chunks) {
    SparseRowGradients of_rows = sparse_row_gradients(machine, by, io, I);
    CsrEntries a1;
    const Tile W = [&] {
      const Phase phase(machine, "core");
      SparseGradients sums(machine, by, io, I, std::move(of_rows.G), std::move(of_rows.v));
      CsrEntries chunk = pass.rows(I);
      add_keys(machine, {by, io, staying, I, chunk}, sums);
      if (!of_A1) {
        a1 = std::move(chunk);
      }
      return std::move(sums.W);
    }();
    const Phase phase(machine, "g");
    if (of_A1) {
      a1 = of_A1->rows(I);
    }
    const ByColumns columns(by.of.A1(), I);
    for (Index k = 0; k < by.d; ++k) {
      if (columns.has(k)) {
        sink.add(machine, unit, k, gradient_row(machine, by, I, columns[k], a1, W));
      }
    }
    ++unit;
  }
  if (partials == nullptr && chunks.back().end == by.n) {
    const Phase phase(machine, "g");
    sink.end(machine);
  }
}

// ---- stages --------------------------------------------------------------------------------

constexpr Signature kS{"S", &Shape::S_stored, nullptr};

void make_S(Machine& machine, const SparseRows& by, const Plan& plan, const Operands& io) {
  const Phase phase(machine, "S");
  sparse_product(machine, by.of, "S", plan.blocks, io.in("A1"), io.in("X"), io.out("S"));
}

void chunks_part(Machine& machine, const SparseRows& by, const Operands& io, Range units,
                 SlowMatrix* partials) {
  const SlowMatrix& rows = by.stays == SparseStays::X ? io.in("A1") : io.out("S");
  if (by.backward) {
    backward_chunks(machine, by, io, rows, units, partials);
  } else {
    forward_chunks(machine, by, io, rows, units);
  }
}

// Adds the partial sums written by chunks, in the order of the chunks.
void reduce_sparse(Machine& machine, const SparseRows& by, Range rows, const SlowMatrix& partials,
                   SlowMatrix& g) {
  const Phase phase(machine, "reduce");
  const std::vector<Range> chunks = by.chunks({0, by.units()});
  std::vector<std::vector<Index>> units(static_cast<std::size_t>(by.d));
  for (Index unit = 0; unit < std::ssize(chunks); ++unit) {
    const ByColumns columns(by.of.A1(), chunks[static_cast<std::size_t>(unit)]);
    for (Index k = rows.begin; k < rows.end; ++k) {
      if (columns.has(k)) {
        units[static_cast<std::size_t>(k)].push_back(unit);
      }
    }
  }
  for (Index k = rows.begin; k < rows.end; ++k) {
    Tile sum;
    for (const Index unit : units[static_cast<std::size_t>(k)]) {
      const Index row = unit * by.d + k;
      Tile partial = machine.read(partials.row_block({row, row + 1}));
      if (sum.words() > 0) {
        add(partial, sum);
      }
      sum = std::move(partial);
    }
    if (sum.words() == 0) {
      sum = machine.initialize("g", 1, by.d);
    }
    machine.write(sum, g.row_block({k, k + 1}));
  }
}

// Row pointers and X stay in fast memory from chunk to chunk, so a run in steps does all chunks in
// one step (`at_once`).
Split sparse_split(Pass pass, SparseStays stays, std::vector<std::string_view> results) {
  const auto by = [=](const Problem& problem, const Blocks& blocks) {
    return SparseRows(problem, blocks, pass, stays);
  };
  Split split;
  if (stays == SparseStays::S) {
    split.stages.push_back(
        {.units = [](const Problem&, const Blocks&) -> Index { return 1; },
         .part = [by](Machine& machine, const Plan& plan, const Operands& io, Range,
                      SlowMatrix*) { make_S(machine, by(plan.problem, plan.blocks), plan, io); },
         .part_cost =
             [](const Problem& problem, const Blocks& blocks, Range, bool) {
               return std::vector<PhaseCost>{
                   sparse_product_cost("S", problem.sparsity, "S", blocks)};
             }});
    split.left = {{.matrix = kS, .rows = [](const Problem& problem, const Blocks&, Index units) {
                     return units > 0 ? problem.shape.S_stored : 0;
                   }}};
  }
  split.stages.push_back(
      {.units = [by](const Problem& problem,
                     const Blocks& blocks) { return by(problem, blocks).units(); },
       .part =
           [by](Machine& machine, const Plan& plan, const Operands& io, Range units,
                SlowMatrix* partials) {
             chunks_part(machine, by(plan.problem, plan.blocks), io, units, partials);
           },
       .part_cost =
           [by](const Problem& problem, const Blocks& blocks, Range units, bool partials) {
             return sparse_part_cost(by(problem, blocks), units, partials);
           },
       .at_once = std::move(results)});
  if (pass == Pass::backward) {
    split.reduce = [by](Machine& machine, const Plan& plan, Range rows, const SlowMatrix& partials,
                        SlowMatrix& g) {
      reduce_sparse(machine, by(plan.problem, plan.blocks), rows, partials, g);
    };
    split.reduce_cost = [by](const Problem& problem, const Blocks& blocks, Range rows) {
      return sparse_reduce_cost(by(problem, blocks), rows);
    };
  }
  return split;
}

Kernel sparse_rows_kernel(Pass pass, SparseStays stays) {
  Kernel kernel;
  kernel.pass = pass;
  kernel.takes_sparse = true;
  kernel.takes_activations = pass != Pass::logsumexp;
  kernel.operands = {kSparseA1, kSparseX, kSparseA2};
  if (pass == Pass::logsumexp) {
    kernel.returns = {kL};
  } else {
    kernel.operands.insert(kernel.operands.end(), {kA3, kY});
    kernel.returns = {kO, kL};
  }
  if (pass == Pass::backward) {
    kernel.operands.insert(kernel.operands.end(), {kdO, kO, kL});
    kernel.returns = {kSparseg};
  }
  std::vector<std::string_view> results;
  for (const Signature& result : kernel.returns) {
    results.push_back(result.name);
  }
  kernel.schedule = in_stages(sparse_split(pass, stays, std::move(results)));
  kernel.formula.cost = [=](const Problem& problem, const Blocks& blocks) {
    return sparse_rows_cost(problem, blocks, pass, stays);
  };
  kernel.formula.nest = [=](const Problem& problem, const Blocks& blocks) {
    return sparse_rows_nest(problem, blocks, pass, stays);
  };
  if (stays == SparseStays::S) {
    kernel.formula.intermediates = [](const Problem& problem, const Blocks&) {
      return Words(problem.shape.S_stored);
    };
  }
  kernel.fitting.fit = [=](const Problem& problem, const Memory& memory, Objective objective) {
    return fit_sparse_rows(problem, memory.M, objective, pass, stays);
  };
  kernel.fitting.optional_blocks = {{SparseRows::kKeys, &Shape::m, kKeysTogether}};
  kernel.numerics = {.Y_meets_rows = true, .X_meets_keys = stays == SparseStays::X};
  if (pass != Pass::backward) {
    kernel.numerics.rescales = [](const Problem& problem, const Blocks&) {
      return Words(problem.shape.m);
    };
  }
  return kernel;
}

}  // namespace

Kernel sparse_rows(Pass pass) {
  Kernel kernel = sparse_rows_kernel(pass, SparseStays::S);
  kernel.name = pass == Pass::logsumexp ? "logsumexp/sparse-rows"
                : pass == Pass::forward ? "forward/sparse-rows"
                                        : "backward/sparse-rows";
  kernel.summary = pass == Pass::backward
                       ? "chunks of rows of S = A1 X, G = dO Y^T and W = p A2 stay, keys pass"
                       : "chunks of rows of S = A1 X stay, keys pass";
  return kernel;
}

Kernel sparse_x(Pass pass) {
  Kernel kernel = sparse_rows_kernel(pass, SparseStays::X);
  kernel.name = pass == Pass::logsumexp ? "logsumexp/sparse-x"
                : pass == Pass::forward ? "forward/sparse-x"
                                        : "backward/sparse-x";
  kernel.summary = "X and chunks of rows of A1 stay, keys pass, each with y = X A2_j^T";
  return kernel;
}

}  // namespace redblue
