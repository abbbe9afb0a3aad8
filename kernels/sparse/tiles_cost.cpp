#include <algorithm>
#include <utility>

#include "kernels/fit.hpp"
#include "kernels/sparse/product.hpp"
#include "kernels/sparse/tiles.hpp"

namespace redblue {
namespace {

// Words of each row that stay with its scores.
Index words_of_row(const Problem& problem, Pass pass) {
  return (pass == Pass::backward ? 1 : 2) * problem.row_words();
}

// In each column, the fullest block of S and the fullest block of keys share a live tile, so their
// entry counts give the peak. If scores are stored, one more word says where a block ends.
Words core_peak(const GroupCounts& S, const GroupCounts& A2, Index of_row, bool stores) {
  Words peak = Words(of_row) * S.size + (stores ? 1 : 0);
  const auto of_tiles = [&](Index r, const std::vector<Index>& of_S, Index c,
                            const std::vector<Index>& of_A2) {
    Index few = 0;
    for (std::size_t k = 0; k < of_S.size(); ++k) {
      few = std::max(few, std::min(of_S[k], of_A2[k]));
    }
    if (few > 0) {
      peak = std::max(peak, Words(of_row) * r + Words(r) * c + 5 + 2 * Words(few) + 2);
    }
  };
  of_tiles(S.size, S.most, A2.size, A2.most);
  of_tiles(S.size, S.most, A2.last_size, A2.most_in_last);
  of_tiles(S.last_size, S.most_in_last, A2.size, A2.most);
  of_tiles(S.last_size, S.most_in_last, A2.last_size, A2.most_in_last);
  return peak;
}

// Index words of all live tiles: one for the beginning of the block of keys, and two for each
// column of the rows of S and of the keys.
Words header_words(const GroupCounts& S, const GroupCounts& A2) {
  const BlockBits with(A2);
  Words sum;
  KeyBits met(with.words());
  for (const std::vector<Index>& of_rows : S.columns) {
    std::ranges::fill(met, 0);
    for (const Index column : of_rows) {
      const KeyBits& bits = with[column];
      for (std::size_t word = 0; word < bits.size(); ++word) {
        met[word] |= bits[word];
      }
    }
    each_key(met, [&](Index block) {
      sum += 1 + 2 * Words(std::ssize(of_rows) +
                           std::ssize(A2.columns[static_cast<std::size_t>(block)]));
    });
  }
  return sum;
}

// Cost of the core without the stored scores.
PhaseCost core_cost(const Problem& problem, Pass pass, const GroupCounts& S,
                    const GroupCounts& A2) {
  Words passing, products;
  for (std::size_t k = 0; k < S.entries.size(); ++k) {
    passing += Words(S.entries[k]) * A2.blocks_with[k] + Words(A2.entries[k]) * S.blocks_with[k];
    products += Words(S.entries[k]) * A2.entries[k];
  }
  const Words headers = header_words(S, A2);
  const Words of_rows = Words(problem.shape.n) * problem.row_words();  // L
  const bool given = pass == Pass::backward;
  return {.path = "core",
          .reads = headers + 2 * passing + (given ? of_rows : Words(0)),
          .writes = given ? Words(0) : of_rows,
          .peak = core_peak(S, A2, words_of_row(problem, pass), pass != Pass::logsumexp),
          .flops = 2 * products,
          .index_reads = headers + passing};
}

}  // namespace

std::vector<PhaseCost> sparse_tiles_cost(const Problem& problem, const Blocks& blocks, Pass pass) {
  const Sparsity& of = problem.sparsity;
  const GroupCounts S(of.S(), blocks["r"]), A2(of.A2(), blocks["c"]);
  std::vector<PhaseCost> phases = {sparse_product_cost("S", of, "S", blocks),
                                   prepare_cost({&S, &A2}), core_cost(problem, pass, S, A2)};
  if (pass == Pass::backward) {
    const GroupCounts A1(of.A1(), blocks["r"]);
    phases[1] = prepare_cost({&S, &A2, &A1});
  }
  if (pass != Pass::logsumexp) {
    const StoredScores stored(of, S);
    phases.back().writes += stored.pairs + stored.pattern();
    phases.back().index_writes += stored.pattern();
  }
  return phases;
}

void sparse_tiles_nest(NestWriter& nest, const Problem& problem, const Blocks& blocks, Pass pass) {
  const std::vector<PhaseCost> phases = sparse_tiles_cost(problem, blocks, pass);
  const PhaseCost &prepare = phases[1], &core = phases[2];
  const Index r = std::min(blocks["r"], problem.shape.n),
              c = std::min(blocks["c"], problem.shape.m), one = problem.row_words();
  const NestLoop I("I", "queries", problem.shape.n, r), J("J", "keys", problem.shape.m, c);
  const NestTile L("L", I, one);
  const Words of_rows = Words(problem.shape.n) * one;
  const bool given = pass == Pass::backward, stores = pass != Pass::logsumexp;
  const Words reads = core.reads.value() - (given ? of_rows.value() : 0);
  const NestWriter::Tiles scores = {
      tile_words("s", core.writes.value() - (given ? 0 : of_rows.value()))};
  nest.phase("S", [&] {
    sparse_product_nest(nest, {"S", "A1", "X"}, problem.sparsity, "S", blocks);
  });
  nest.phase("prepare", [&] {
    const std::string_view regrouped = given ? "S, A1, A2" : "S, A2";
    nest.step(given ? "S and A1 in blocks of r rows, A2 in blocks of c, each column by column"
                    : "S in blocks of r rows, A2 in blocks of c, each column by column",
              {tile_words(regrouped, prepare.reads)}, {tile_words(regrouped, prepare.writes)});
  });
  const auto text = [&](const char* of_softmax, const char* of_others) {
    return std::string("s_IJ = S_I A2_J^T, of columns that both have") +
           (problem.normalised() ? of_softmax : of_others);
  };
  nest.phase("core", [&] {
    if (given) {
      nest.loop(I, [&] {
        nest.read({L});
        nest.loop(J, {L, NestTile("scores", I, J)}, [&] {
          nest.step(text("; f_IJ = exp(s_IJ - L_I) of live pairs", "; of live pairs"),
                    {tile_words("S, A2", reads)}, scores);
        });
      });
      return;
    }
    nest.loop(I, {NestTile("maximum", I, one), NestTile("sum", I, one)}, [&] {
      nest.loop(J, {NestTile("scores", I, J)}, [&] {
        nest.step(text("; l_I += rowsum(exp(s_IJ))", "; f_IJ = phi(s_IJ) of live pairs"),
                  {tile_words("S, A2", reads)}, stores ? scores : NestWriter::Tiles());
      });
      nest.write({L});
    });
  });
}

Words sparse_tiles_intermediates(const Problem& problem, Pass pass) {
  const Words S = problem.shape.S_stored;
  const Words pairs = pass == Pass::logsumexp ? Words(0) : problem.sparsity.pairs();
  return pairs + S + std::max(S, Words(problem.shape.A2_stored));
}

Words rescales_of_tiles(const Problem& problem, const Blocks& blocks) {
  return problem.normalised() ? Words(ceil_div(problem.shape.m, blocks["c"])) : Words(0);
}

void fit_sparse_tiles(const Problem& problem, Index M, Pass pass, Blocks& blocks,
                      const WordsBeside& beside) {
  const Sparsity& of = problem.sparsity;
  const Index n = problem.shape.n, m = problem.shape.m, of_row = words_of_row(problem, pass);
  blocks.add("r", 1);
  blocks.add("c", 1);
  if (beside) {
    static_cast<void>(beside(GroupCounts(of.S(), 1), M, blocks));
  }
  std::optional<Words> least;
  Index tried = 0;
  for (Index rows = 1; tried < n; rows = std::min(n, rows + std::max<Index>(rows / 8, 1))) {
    const Index r = even(n, rows);
    if (std::exchange(tried, r) == r) {
      continue;
    }
    const GroupCounts S(of.S(), r);
    const auto fits = [&](Index c) {
      const GroupCounts A2(of.A2(), c);
      return std::max({core_peak(S, A2, of_row, pass != Pass::logsumexp), S.prepare_peak(),
                       A2.prepare_peak()}) <= Words(M);
    };
    if (!fits(1)) {
      break;
    }
    Blocks candidate = blocks;
    const std::optional<Words> others = beside ? beside(S, M, candidate) : Words(0);
    if (!others) {
      break;
    }
    const Index c = largest(std::clamp<Index>(M / r, 1, m), fits);
    const GroupCounts A2(of.A2(), c);
    const PhaseCost cost = total({prepare_cost({&S, &A2}), core_cost(problem, pass, S, A2)});
    const Words words = cost.reads + cost.writes + *others;
    if (!least || words < *least) {
      blocks = candidate;
      blocks.set("r", r);
      blocks.set("c", c);
      least = words;
    }
  }
}

void set_block(Blocks& blocks, const char* name, Index size) {
  if (blocks.contains(name)) {
    blocks.set(name, size);
  } else {
    blocks.add(name, size);
  }
}

Stage sparse_tiles_stage(const Problem& problem, Pass pass, const WordsBeside& beside) {
  return {.put =
              [=](Index M, Objective, Blocks& blocks) {
                plan_sparse_product(problem.sparsity, M, "S", blocks);
                fit_sparse_tiles(problem, M, pass, blocks, beside);
              },
          .cost = [=](const Blocks& blocks) { return sparse_tiles_cost(problem, blocks, pass); },
          .nest = [=](NestWriter& nest,
                      const Blocks& blocks) { sparse_tiles_nest(nest, problem, blocks, pass); }};
}

}  // namespace redblue
