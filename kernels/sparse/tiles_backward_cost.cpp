#include <algorithm>
#include <utility>

#include "kernels/fit.hpp"
#include "kernels/sparse/tiles_backward.hpp"

namespace redblue {

BackwardTileBlocks BackwardTileBlocks::get(const Problem& problem, const Blocks& blocks) {
  const auto [n, m, d] = problem.shape;
  return {std::min(blocks["p.cols"], m), std::min(blocks["p.depth"], d), std::min(blocks["w"], d)};
}

LiveCounts::LiveCounts(const Sparsity& of)
    : queries_of_key(StoredScores(of, GroupCounts(of.S(), 1)).blocks_of_key) {
  for (Index query = 0; query < of.A1().rows; ++query) {
    live_query.push_back(std::ranges::any_of(of.S().row(query), [&](Index column) {
      return stored_in(of.keys_of_columns(), column) > 0;
    }));
  }
}

namespace {

// v and the pointer to the end of the block stay.
Words score_gradient_peak(const Problem& problem, Index r, Index c, Index depth) {
  return Words(r) * (problem.row_words() + c + depth) + depth + 1;
}

// For tiles of W. The three given words, the pattern, p of a key and an entry stream.
Words key_peak(Index r, Index w, Index live_pattern) {
  return Words(r) * w + 3 + live_pattern + r + 2;
}
Words fold_peak(Index r, Index w) {
  return Words(r) * w + w + 4;
}

// The live blocks of queries for each section of columns of W, and the words of A2 and p that
// stream.
struct LiveSections {
  LiveSections(const Problem& problem, const GroupCounts& S, const StoredScores& stored,
               const LiveCounts& live, Index w)
      : words(static_cast<std::size_t>(ceil_div(S.number, Index{64}))),
        blocks(static_cast<std::size_t>(ceil_div(problem.shape.d, w)), KeyBits(words)) {
    const BlockPattern& A2 = problem.sparsity.A2();
    BlockBits(S).each_row(A2, [&](Index key, const KeyBits& met) {
      const Words of_key = stored.blocks_of_key[static_cast<std::size_t>(key)];
      const Words pairs = live.queries_of_key[static_cast<std::size_t>(key)];
      Index last = -1;
      for (const Index column : A2.row(key)) {
        if (std::exchange(last, column / w) != column / w) {
          KeyBits& of_section = blocks[static_cast<std::size_t>(last)];
          for (std::size_t word = 0; word < words; ++word) {
            of_section[word] |= met[word];
          }
          keys += of_key;
          scores += pairs;
        }
      }
      entries += of_key * std::ssize(A2.row(key));
    });
  }

  std::size_t words;
  std::vector<KeyBits> blocks;  // of queries, for each section of columns
  Words keys, scores, entries;  // words that stream
};

struct FoldSums {
  Words index, values;  // of A1
  Words parts, first;   // words of g: all, and the words written without a read
  Words flops;
};

FoldSums fold_sums(const Problem& problem, const GroupCounts& A1, const LiveSections& live,
                   const LiveCounts& counts, Index w) {
  const Index d = problem.shape.d;
  std::vector<Words> entries(static_cast<std::size_t>(A1.number)), used(entries.size());
  for (Index row = 0; row < problem.shape.n; ++row) {
    const auto block = static_cast<std::size_t>(row / A1.size);
    entries[block] += stored_in(*A1.pattern, row);
    if (counts.live_query[static_cast<std::size_t>(row)]) {
      used[block] += stored_in(*A1.pattern, row);
    }
  }
  const BlockBits with(A1);
  FoldSums sum;
  for (Index K = 0; K < std::ssize(live.blocks); ++K) {
    const KeyBits& blocks = live.blocks[static_cast<std::size_t>(K)];
    const Words width = std::min(w, d - K * w);
    each_key(blocks, [&](Index block) {
      const auto which = static_cast<std::size_t>(block);
      const Words columns = std::ssize(A1.columns[which]);
      sum.index += 2 * columns + entries[which];
      sum.values += entries[which];
      sum.parts += columns * width;
      sum.flops += 2 * used[which] * width;
    });
    for (Index k = 0; k < d; ++k) {
      const KeyBits& of_column = with[k];
      bool touched = false;
      for (std::size_t word = 0; word < of_column.size() && !touched; ++word) {
        touched = (of_column[word] & blocks[word]) != 0;
      }
      sum.first += touched ? width : Words(0);
    }
  }
  return sum;
}

Words fewer(Words a, Words b) {
  return a.value() - b.value();
}

}  // namespace

PhaseCost score_gradient_cost(const Problem& problem, const StoredScores& stored,
                              const BackwardTileBlocks& by) {
  const Sparsity& of = problem.sparsity;
  const Shape& shape = problem.shape;
  const GroupCounts keys(of.A2(), by.cols);
  Words queries;         // queries of live tiles
  LiveBlocks all, last;  // blocks of keys met by the last block of queries (`last`), and by the
                         // others (`all`)
  BlockBits(keys).each_row(of.S(), [&](Index query, const KeyBits& met) {
    queries += size_of(met);
    (query / stored.size == stored.number - 1 ? last : all).add(met, keys.number);
  });
  Words peak = Words(stored.size) * problem.row_words() + 1;
  const auto of_tiles = [&](Index r, const LiveBlocks& live) {
    live.each_size(keys.size, keys.last_size, [&](Index c) {
      peak = std::max(peak,
                      Words(r) * (problem.row_words() + c) + 1 +
                          std::max(Words(stored.live_pattern()), Words(r) * by.depth + by.depth));
    });
  };
  of_tiles(stored.size, all);
  of_tiles(stored.last_size, last);
  return {.path = "p",
          .reads = stored.pairs + stored.pattern() + Words(shape.n) * problem.row_words() +
                   shape.d * (stored.met + queries),
          .writes = stored.pairs,
          .peak = peak,
          .flops = 2 * stored.pairs * shape.d,
          .index_reads = stored.pattern()};
}

std::vector<PhaseCost> folded_gradient_cost(const Problem& problem, const GroupCounts& S,
                                            const StoredScores& stored, const LiveCounts& live,
                                            const BackwardTileBlocks& by) {
  const Index d = problem.shape.d, w = by.width;
  const LiveSections sections(problem, S, stored, live, w);
  const GroupCounts A1(problem.sparsity.A1(), S.size);
  const FoldSums fold = fold_sums(problem, A1, sections, live, w);
  PhaseCost W{.path = "W",
              .reads = 0,
              .writes = 0,
              .peak = 0,
              .flops = 2 * problem.sparsity.entries_of_pairs()};
  W.index_reads = sections.keys * (3 + stored.header()) + sections.entries +
                  (stored.as_bits ? Words(0) : sections.scores);
  W.reads = W.index_reads + sections.scores + sections.entries;
  const Words all = Words(d) * d;
  PhaseCost g{.path = "g",
              .reads = fold.index + fold.values + fewer(fold.parts, fold.first),
              .writes = fold.parts + fewer(all, fold.first),
              .peak = fold.first < all ? w : 0,
              .flops = fold.flops,
              .index_reads = fold.index};
  for (Index K = 0; K < std::ssize(sections.blocks); ++K) {
    const Index width = std::min(w, d - K * w);
    LiveBlocks of_queries;
    of_queries.add(sections.blocks[static_cast<std::size_t>(K)], S.number);
    of_queries.each_size(S.size, S.last_size, [&](Index r) {
      W.peak = std::max(W.peak, key_peak(r, width, stored.live_pattern()));
      g.peak = std::max(g.peak, fold_peak(r, width));
    });
  }
  return {W, g};
}

WordsBeside beside_gradients(const Problem& problem) {
  const auto live = std::make_shared<LiveCounts>(problem.sparsity);
  return [=](const GroupCounts& S, Index M, Blocks& blocks) -> std::optional<Words> {
    const auto [n, m, d] = problem.shape;
    const Index r = S.size;
    const StoredScores stored(problem.sparsity, S);
    const GroupCounts A1(problem.sparsity.A1(), r);
    // Sections wide enough to keep registers busy, within a sixteenth of M.
    const Index depth = std::clamp<Index>(M / (16 * r), 1, std::min(narrow_slice(M), d));
    const auto p_fits = [&](Index c) {
      return score_gradient_peak(problem, r, c, depth) <= Words(M);
    };
    const auto w_fits = [&](Index w) {
      return std::max(key_peak(r, w, stored.live_pattern()), fold_peak(r, w)) <= Words(M);
    };
    const BackwardTileBlocks by{largest(std::min(m, M), p_fits), depth,
                                largest(std::min(d, M), w_fits)};
    set_block(blocks, "p.cols", by.cols);
    set_block(blocks, "p.depth", by.depth);
    set_block(blocks, "w", by.width);
    if (!p_fits(by.cols) || !w_fits(by.width) || A1.prepare_peak() > Words(M)) {
      return std::nullopt;
    }
    std::vector<PhaseCost> phases = folded_gradient_cost(problem, S, stored, *live, by);
    phases.push_back(score_gradient_cost(problem, stored, by));
    const PhaseCost cost = total(phases);
    return cost.reads + cost.writes + stored.pairs + stored.pattern() + 2 * A1.groups;
  };
}

namespace {

struct GradientPhases {
  GradientPhases(const Problem& problem, const Blocks& blocks)
      : by(BackwardTileBlocks::get(problem, blocks)),
        S(problem.sparsity.S(), blocks["r"]),
        stored(problem.sparsity, S) {
    phases = folded_gradient_cost(problem, S, stored, LiveCounts(problem.sparsity), by);
    phases.insert(phases.begin(), score_gradient_cost(problem, stored, by));
  }

  BackwardTileBlocks by;
  GroupCounts S;
  StoredScores stored;
  std::vector<PhaseCost> phases;
};

void gradients_nest(NestWriter& nest, const Problem& problem, const GradientPhases& of) {
  const Index one = problem.row_words();
  const NestLoop I("I", "queries", problem.shape.n, of.S.size);
  const NestLoop J("J", "keys", problem.shape.m, of.by.cols);
  const NestLoop H("H", "columns", problem.shape.d, of.by.depth);
  const NestLoop K("K", "columns", problem.shape.d, of.by.width);
  const PhaseCost &p = of.phases[0], &W = of.phases[1], &g = of.phases[2];
  const NestTile v("v", I, one);
  const Words dense =
      p.reads.value() - problem.shape.n * one - (of.stored.pairs + of.stored.pattern()).value();
  nest.phase("p", [&] {
    nest.loop(I, [&] {
      nest.read({v});
      nest.loop(J, {v}, [&] {
        nest.read({tile_words("pattern", of.stored.pattern())});
        nest.loop(H, {NestTile("q", I, J)}, [&] {
          nest.step("q_IJ += G_IH A3_JH^T, of live pairs", {tile_words("G, A3", dense)});
        });
        nest.step(problem.normalised() ? "p_IJ = f_IJ (q_IJ - v_I), where f_IJ was"
                                       : "p_IJ = phi'(s_IJ) q_IJ, where s_IJ was",
                  {tile_words("f", p.writes)}, {tile_words("p", p.writes)});
      });
    });
  });
  nest.loop(I, [&] {
    nest.loop(K, {NestTile("W", I, K)}, [&] {
      nest.phase("W", [&] {
        nest.step("W_IK += p_Ij A2_jK, of keys j with entries there",
                  {tile_words("p, A2", W.reads)});
      });
      nest.phase("g", [&] {
        nest.step("g_kK += A1_Ik^T W_IK, of columns k of A1_I", {tile_words("A1, g", g.reads)},
                  {tile_words("g", g.writes)});
      });
    });
  });
}

}  // namespace

Stage backward_tiles_stage(const Problem& problem) {
  return {.put = [](Index, Objective, Blocks&) {},  // planned with the tiles of scores
          .cost = [=](const Blocks& blocks) { return GradientPhases(problem, blocks).phases; },
          .nest =
              [=](NestWriter& nest, const Blocks& blocks) {
                gradients_nest(nest, problem, GradientPhases(problem, blocks));
              }};
}

}  // namespace redblue
