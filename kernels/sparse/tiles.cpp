#include "kernels/sparse/tiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/product.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

RowGroups::RowGroups(const BlockPattern& of, Range its_rows)
    : rows(its_rows), entries(entries_of(of, its_rows)) {
  const ByColumns columns(of, rows);
  Index begin = entries.begin;
  for (Index k = 0; k < of.cols; ++k) {
    if (columns.has(k)) {
      groups.push_back({k, {begin, begin + std::ssize(columns[k])}});
      begin = groups.back().entries.end;
      for (const ByColumns::Entry& entry : columns[k]) {
        row_of.push_back(entry.row - rows.begin);
      }
    }
  }
}

namespace {

// The score of a pair that is not live: a NaN that no arithmetic makes of others.
constexpr std::uint32_t kAbsentBits = 0x7fd5a5a5;
bool is_absent(float score) {
  return std::bit_cast<std::uint32_t>(score) == kAbsentBits;
}

// A block of rows after the other; of each the entries with the least column that is left.
void regroup(Machine& machine, const SlowCsr& from, Index block, SlowMatrix& to) {
  const Phase phase(machine, "prepare");
  for (const Range I : blocks(from.pattern.rows, block)) {
    const Tile next = machine.read_indices(I.size() + 1, 3 * I.size());
    const ByColumns columns(from.pattern, I);
    Index at = entries_of(from.pattern, I).begin;
    for (Index k = 0; k < from.pattern.cols; ++k) {
      const Index size = std::ssize(columns[k]);
      if (size == 0) {
        continue;
      }
      {
        const Tile header_and_rows = machine.initialize("index", 1, 1, Holds::indices);
        machine.write_indices(header_and_rows, 2 + size);
      }
      machine.read_indices(size).reset();  // into `next`
      for (const ByColumns::Entry& entry : columns[k]) {
        const Tile value = machine.read(from.values.row_block({entry.entry, entry.entry + 1}));
        machine.write(value, to.row_block({at, at + 1}));
        ++at;
      }
    }
  }
}

// A group of a block, in the slow store.
struct SlowGroup {
  const SlowMatrix& values;
  const RowGroups& block;
  Range entries;
  Index stride;  // in a tile, between scores of rows that follow each other

  [[nodiscard]] Index offset(Index entry) const {
    return stride * block.row_of[static_cast<std::size_t>(entry - block.entries.begin)];
  }
};

// scores += the products of all pairs of entries: the few stay, the many pass.
void add_products(Machine& machine, const SlowGroup& few, const SlowGroup& many, Tile& scores) {
  const Tile rows = machine.read_indices(few.entries.size(), few.entries.size());
  const Tile staying = machine.read(few.values.row_block(few.entries));
  const Tile row = machine.read_indices(many.entries.size());
  for (Index entry = many.entries.begin; entry < many.entries.end; ++entry) {
    const Tile value = machine.read(many.values.row_block({entry, entry + 1}));
    const float factor = value(0, 0);
    const float* const words = ConstView(staying).at(0, 0);
    float* const to = View(scores).at(0, 0) + many.offset(entry);
    for (Index k = 0; k < few.entries.size(); ++k) {
      float& score = to[few.offset(few.entries.begin + k)];
      score = is_absent(score) ? factor * words[k] : score + factor * words[k];
    }
  }
  machine.computed(Operations{.flops = 2 * few.entries.size() * many.entries.size()});
}

// The maximum and the sum of each row take in its scores of a tile.
void add_exponentials(Machine& machine, const Tile& scores, Tile& maximum, Tile& sum) {
  float* const largest = View(maximum).at(0, 0);
  float* const sums = View(sum).at(0, 0);
  const float* row = ConstView(scores).at(0, 0);
  const Index cols = scores.words() / maximum.words();
  Index pairs = 0;
  for (Index i = 0; i < maximum.words(); ++i, row += cols) {
    const float before = largest[i];
    for (Index j = 0; j < cols; ++j) {
      if (!is_absent(row[j])) {
        largest[i] = std::max(largest[i], row[j]);
        ++pairs;
      }
    }
    sums[i] *= std::exp(before - largest[i]);
    for (Index j = 0; j < cols; ++j) {
      if (!is_absent(row[j])) {
        sums[i] += std::exp(row[j] - largest[i]);
      }
    }
  }
  machine.computed(Operations{.elementwise = 3 * pairs});
}

using Common = std::vector<std::pair<Range, Range>>;
Common common_groups(const RowGroups& s, const RowGroups& a2) {
  Common found;
  auto at = a2.groups.begin();
  for (const RowGroups::Group& group : s.groups) {
    while (at != a2.groups.end() && at->column < group.column) {
      ++at;
    }
    if (at != a2.groups.end() && at->column == group.column) {
      found.emplace_back(group.entries, at->entries);
    }
  }
  return found;
}

void over_tiles(Machine& machine, const Problem& problem, const Blocks& by, const SlowMatrix& S,
                const SlowMatrix& A2, SlowMatrix& L) {
  const Phase phase(machine, "core");
  std::vector<RowGroups> keys;
  for (const Range J : blocks(problem.shape.m, by["c"])) {
    keys.emplace_back(problem.sparsity.A2(), J);
  }
  for (const Range I : blocks(problem.shape.n, by["r"])) {
    const RowGroups s(problem.sparsity.S(), I);
    Tile maximum = machine.initialize("maximum", I.size(), 1, kNoMaximum);
    Tile sum = machine.initialize("sum", I.size());
    for (const RowGroups& a2 : keys) {
      const Common common = common_groups(s, a2);
      if (common.empty()) {
        continue;
      }
      const Index c = a2.rows.size();
      const Tile begin = machine.read_indices(1);
      Tile scores = machine.initialize("scores", I.size() * c, 1, std::bit_cast<float>(kAbsentBits),
                                       Holds::scores);
      {
        const Tile headers =
            machine.read_indices(2 * (std::ssize(s.groups) + std::ssize(a2.groups)), 4);
        for (const auto& [of_rows, of_keys] : common) {
          const SlowGroup rows{S, s, of_rows, c}, columns{A2, a2, of_keys, 1};
          const bool few_rows = of_rows.size() <= of_keys.size();
          add_products(machine, few_rows ? rows : columns, few_rows ? columns : rows, scores);
        }
      }
      add_exponentials(machine, scores, maximum, sum);
    }
    add_logarithm(maximum, sum);
    machine.write(maximum, L.row_block(I));
  }
}

void sparse_tiles_code(Machine& machine, const Plan& plan, const Operands& io,
                       Workspace& workspace) {
  const Problem& problem = plan.problem;
  const Sparsity& of = problem.sparsity;
  SlowMatrix grouped_S = workspace.matrix("S_grouped", problem.shape.S_stored, 1);
  {
    SlowMatrix S = workspace.matrix("S", problem.shape.S_stored, 1);
    {
      const Phase phase(machine, "S");
      sparse_product(machine, of, "S", plan.blocks, io.in("A1"), io.in("X"), S);
    }
    regroup(machine, {of.S(), S}, plan.blocks["r"], grouped_S);
  }
  SlowMatrix grouped_A2 = workspace.matrix("A2_grouped", problem.shape.A2_stored, 1);
  regroup(machine, {of.A2(), io.in("A2")}, plan.blocks["c"], grouped_A2);
  over_tiles(machine, problem, plan.blocks, grouped_S, grouped_A2, io.out("L"));
}

Nest sparse_tiles_nest(const Problem& problem, const Blocks& blocks) {
  const Sparsity& of = problem.sparsity;
  const std::vector<PhaseCost> phases = sparse_tiles_cost(problem, blocks);
  const PhaseCost &prepare = phases[1], &core = phases[2];
  const auto words = [](std::string_view name, Words all) {
    return NestTile(name, 1).of_words(all);
  };
  const Index r = std::min(blocks["r"], problem.shape.n),
              c = std::min(blocks["c"], problem.shape.m);
  const NestLoop I("I", "queries", problem.shape.n, r), J("J", "keys", problem.shape.m, c);
  NestWriter nest;
  nest.phase("S", [&] { sparse_product_nest(nest, {"S", "A1", "X"}, of, "S", blocks); });
  nest.phase("prepare", [&] {
    nest.step("S in blocks of r rows, A2 in blocks of c, each column by column",
              {words("S, A2", prepare.reads)}, {words("S, A2", prepare.writes)});
  });
  nest.phase("core", [&] {
    nest.loop(I, {NestTile("maximum", I), NestTile("sum", I)}, [&] {
      nest.loop(J, {NestTile("scores", I, J)}, [&] {
        nest.step("s_IJ = S_I A2_J^T, of columns that both have; l_I += rowsum(exp(s_IJ))",
                  {words("S, A2", core.reads)});
      });
      nest.write({NestTile("L", I)});
    });
  });
  return nest.lines();
}

}  // namespace

Kernel logsumexp_sparse_tiles() {
  Kernel kernel;
  kernel.name = "logsumexp/sparse-tiles";
  kernel.summary = "tiles of scores stay; S = A1 X and A2, regrouped by columns, pass";
  kernel.pass = Pass::logsumexp;
  kernel.takes_sparse = true;
  kernel.operands = {kSparseA1, kSparseX, kSparseA2};
  kernel.returns = {kL};
  kernel.schedule.code = sparse_tiles_code;
  kernel.formula.cost = sparse_tiles_cost;
  kernel.formula.intermediates = [](const Problem& problem, const Blocks&) {
    const Words S = problem.shape.S_stored;
    return S + std::max(S, Words(problem.shape.A2_stored));
  };
  kernel.formula.nest = sparse_tiles_nest;
  kernel.fitting.fit = [](const Problem& problem, const Memory& memory, Objective) {
    return fit_sparse_tiles(problem, memory.M);
  };
  kernel.numerics.rescales = [](const Problem& problem, const Blocks& blocks) {
    return Words(ceil_div(problem.shape.m, blocks["c"]));
  };
  return kernel;
}

}  // namespace redblue
