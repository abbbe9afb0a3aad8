#include "kernels/sparse/tiles.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernels/arithmetic/arithmetic.hpp"
#include "kernels/attention.hpp"
#include "kernels/parts/activations.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/product.hpp"
#include "kernels/sparse/telling.hpp"
#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"

namespace redblue {

namespace {

bool is_absent(float score) {
  return std::bit_cast<std::uint32_t>(score) == kAbsentBits;
}

// The offsets of a tile's scores from its first word.
struct TileOffsets {
  TileOffsets(Index rows, Index cols) {
    for (Index j = 0; j < cols; ++j) {
      const Index panel = j / kPanel * kPanel;
      first.push_back(panel * rows + j - panel);
      stride.push_back(std::min(kPanel, cols - panel));
    }
  }
  [[nodiscard]] Index at(Index i, Index j) const {
    return first[static_cast<std::size_t>(j)] + i * stride[static_cast<std::size_t>(j)];
  }

  std::vector<Index> first, stride;  // for each column
};

// A group of a block, in slow memory.
struct SlowGroup {
  const SlowMatrix& values;
  const RowGroups& block;
  Range entries;

  [[nodiscard]] Index row(Index entry) const {
    return block.row_of[static_cast<std::size_t>(entry - block.entries.begin)];
  }
};

// Adds the products of all pairs of entries to `scores`: `few` stays, `many` streams. offset(few,
// many) returns the place of the score of two rows.
template <class Offset>
void add_products(Machine& machine, const SlowGroup& few, const SlowGroup& many, Tile& scores,
                  const Offset& offset) {
  const Tile rows = machine.read_indices(few.entries.size(), few.entries.size());
  const Tile staying = machine.read(few.values.row_block(few.entries));
  const Tile row = machine.read_indices(many.entries.size());
  for (Index entry = many.entries.begin; entry < many.entries.end; ++entry) {
    const Tile value = machine.read(many.values.row_block({entry, entry + 1}));
    const float factor = value(0, 0);
    const float* const words = ConstView(staying).at(0, 0);
    float* const to = View(scores).at(0, 0);
    const Index of_many = many.row(entry);
    if (machine.is_heard()) [[unlikely]] {
      for (Index k = 0; k < few.entries.size(); ++k) {
        const float* const score = to + offset(few.row(few.entries.begin + k), of_many);
        tell_term(machine, ConstView(value).at(0, 0), words + k, score,
                  is_absent(*score) ? Old::overwritten : Old::taken);
      }
    }
    for (Index k = 0; k < few.entries.size(); ++k) {
      float& score = to[offset(few.row(few.entries.begin + k), of_many)];
      score = is_absent(score) ? factor * words[k] : score + factor * words[k];
    }
  }
  machine.computed(Operations{.flops = 2 * few.entries.size() * many.entries.size()});
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

struct SlowTiles {
  const SlowMatrix &S, &A2;
};

Tile tile_of_scores(Machine& machine, const SlowTiles& x, const RowGroups& s, const RowGroups& a2,
                    const Common& common) {
  Tile scores = machine.initialize("scores", s.rows.size(), a2.rows.size(),
                                   std::bit_cast<float>(kAbsentBits), Holds::scores);
  const Tile headers = machine.read_indices(2 * (std::ssize(s.groups) + std::ssize(a2.groups)), 4);
  const TileOffsets at(s.rows.size(), a2.rows.size());
  for (const auto& [of_rows, of_keys] : common) {
    const SlowGroup rows{x.S, s, of_rows}, keys{x.A2, a2, of_keys};
    if (of_rows.size() <= of_keys.size()) {
      add_products(machine, rows, keys, scores, [&](Index i, Index j) { return at.at(i, j); });
    } else {
      add_products(machine, keys, rows, scores, [&](Index j, Index i) { return at.at(i, j); });
    }
  }
  return scores;
}

// Adds a tile's scores to the maximum and the sum of each row. One word holds first a factor for
// the sum, and then one exponential after the other.
void add_exponentials(Machine& machine, const Tile& scores, Tile& maximum, Tile& sum) {
  Tile between = machine.initialize("exponential", 1, 1, kUnset, Holds::scores);
  float& e = between(0, 0);
  float* const largest = View(maximum).at(0, 0);
  float* const sums = View(sum).at(0, 0);
  const float* const words = ConstView(scores).at(0, 0);
  const TileOffsets at(scores.rows(), scores.cols());
  const bool heard = machine.is_heard();
  Index pairs = 0;
  for (Index i = 0; i < scores.rows(); ++i) {
    const auto each = [&](const auto& visit) {
      for (Index j = 0; j < scores.cols(); ++j) {
        if (const float* const score = words + at.at(i, j); !is_absent(*score)) {
          visit(score);
        }
      }
    };
    e = largest[i];
    each([&](const float* score) {
      largest[i] = std::max(largest[i], *score);
      ++pairs;
    });
    e = std::exp(e - largest[i]);
    sums[i] *= e;
    if (heard) [[unlikely]] {
      tell_map(machine, "copy", &e, Old::overwritten, {largest + i});
      each([&](const float* score) { tell_fold(machine, "maximum", largest + i, score); });
      tell_map(machine, "exp_difference", &e, Old::taken, {largest + i});
      tell_map(machine, "multiply", sums + i, Old::taken, {&e});
    }
    each([&](const float* score) {
      e = std::exp(*score - largest[i]);
      sums[i] += e;
      if (heard) [[unlikely]] {
        tell_map(machine, "exp_difference", &e, Old::overwritten, {score, largest + i});
        tell_fold(machine, "sum", sums + i, &e);
      }
    });
  }
  machine.computed(Operations{.elementwise = 3 * pairs});
}

// Uses the scores of a block of rows, as the pass and the activation require.
class RowsOfTiles {
 public:
  RowsOfTiles(Machine& machine, const Plan& plan, const Operands& io, Range I)
      : machine_(machine), problem_(plan.problem), I_(I), given_(plan.pass == Pass::backward) {
    if (given_) {
      L_ = read_row_values(machine, problem_, io, "L", I);
    } else if (problem_.normalised()) {
      L_ = machine.initialize("maximum", I.size(), 1, kNoMaximum);
      sum_ = machine.initialize("sum", I.size());
    }
  }
  // Adds scores to the sums, or replaces them by the values to be stored.
  void take(Tile& scores) {
    if (given_) {
      make_factor(problem_, scores, L_);
    } else if (problem_.normalised()) {
      add_exponentials(machine_, scores, L_, sum_);
    } else {
      activate(problem_.activation, scores, scores);
    }
  }
  void finish(const Operands& io) {
    if (!given_ && problem_.normalised()) {
      add_logarithm(L_, sum_);
      machine_.write(L_, io.out("L").row_block(I_));
    }
  }

 private:
  Machine& machine_;
  const Problem& problem_;
  Range I_;
  bool given_;
  Tile L_, sum_;  // L_ holds the maximum until L is known
};

// Writes the scores of a tile, and their pattern.
void store_scores(Machine& machine, const StoredScores& layout, const ByColumns& pairs,
                  const Tile& tile, Range I, Range J, SlowMatrix& scores) {
  const Tile index = machine.initialize("index", layout.live_pattern(), 1, Holds::indices);
  machine.write_indices(index, layout.pattern(pairs, J));
  machine.write(tile, scores.block(I, J));
}

void core_of_tiles(Machine& machine, const Plan& plan, const Operands& io, const SlowTiles& x,
                   SlowMatrix* scores) {
  const Phase phase(machine, "core");
  const Problem& problem = plan.problem;
  const Sparsity& of = problem.sparsity;
  std::vector<RowGroups> keys;
  for (const Range J : blocks(problem.shape.m, plan.blocks["c"])) {
    keys.emplace_back(of.A2(), J);
  }
  std::optional<StoredScores> layout;
  if (plan.pass != Pass::logsumexp) {
    layout.emplace(of, GroupCounts(of.S(), plan.blocks["r"]));
  }
  for (const Range I : blocks(problem.shape.n, plan.blocks["r"])) {
    const RowGroups s(of.S(), I);
    std::optional<ByColumns> pairs;
    if (layout) {
      pairs.emplace(pairs_of(of, I), Range{0, I.size()});
    }
    RowsOfTiles rows(machine, plan, io, I);
    for (const RowGroups& a2 : keys) {
      if (const Common common = common_groups(s, a2); !common.empty()) {
        const Tile begin = machine.read_indices(1);
        Tile tile = tile_of_scores(machine, x, s, a2, common);
        rows.take(tile);
        if (layout) {
          store_scores(machine, *layout, *pairs, tile, I, a2.rows, *scores);
        }
      }
    }
    if (layout) {
      const Tile end = machine.initialize("index", 1, 1, Holds::indices);
      machine.write_indices(end, 1);
    }
    rows.finish(io);
  }
}

}  // namespace

void over_tiles(Machine& machine, const Plan& plan, const Operands& io, Workspace& workspace,
                SlowMatrix* scores) {
  const Shape& shape = plan.problem.shape;
  const Sparsity& of = plan.problem.sparsity;
  SlowMatrix grouped_S = workspace.matrix("S_grouped", shape.S_stored, 1);
  {
    SlowMatrix S = workspace.matrix("S", shape.S_stored, 1);
    {
      const Phase phase(machine, "S");
      sparse_product(machine, of, "S", plan.blocks, io.in("A1"), io.in("X"), S);
    }
    regroup(machine, {of.S(), S}, plan.blocks["r"], grouped_S);
  }
  SlowMatrix grouped_A2 = workspace.matrix("A2_grouped", shape.A2_stored, 1);
  regroup(machine, {of.A2(), io.in("A2")}, plan.blocks["c"], grouped_A2);
  core_of_tiles(machine, plan, io, {grouped_S, grouped_A2}, scores);
}

Kernel logsumexp_sparse_tiles() {
  const Stages stages = [](const Problem& problem) -> std::vector<Stage> {
    return {sparse_tiles_stage(problem, Pass::logsumexp)};
  };
  Kernel kernel;
  kernel.name = "logsumexp/sparse-tiles";
  kernel.summary = "tiles of scores stay; S = A1 X and A2, regrouped by columns, pass";
  kernel.pass = Pass::logsumexp;
  kernel.takes_sparse = true;
  kernel.operands = {kSparseA1, kSparseX, kSparseA2};
  kernel.returns = {kL};
  kernel.schedule.code = [](Machine& machine, const Plan& plan, const Operands& io,
                            Workspace& workspace) {
    over_tiles(machine, plan, io, workspace, nullptr);
  };
  kernel.formula.cost = cost_of(stages);
  kernel.formula.intermediates = [](const Problem& problem, const Blocks&) {
    return sparse_tiles_intermediates(problem, Pass::logsumexp);
  };
  kernel.formula.nest = nest_of(stages);
  kernel.fitting = fitting_of(stages);
  kernel.numerics.rescales = rescales_of_tiles;
  return kernel;
}

}  // namespace redblue
