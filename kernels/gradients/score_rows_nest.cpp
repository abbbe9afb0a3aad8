#include "kernels/gradients/score_rows.hpp"

namespace redblue {

Nest score_rows_nest(const Problem& problem, const Blocks& blocks) {
  const Index m = problem.shape.m, d = problem.shape.d, dv = problem.shape.dv;
  const ScoreRowPlan by(problem, blocks);
  const Index G = by.groups();
  const NestLoop groups("group", "groups of queries", G, 1);
  const NestLoop I("I", "queries", problem.shape.n, by.rows);
  const NestLoop kept("J", "keys that stay", by.kept, by.keys);
  const Units::Sum met = by.row_blocks.sum();
  const Words brought = by.row_blocks.met_from(by.kept);
  const NestLoop passing =
      problem.mask.full() ? NestLoop("J", "keys that pass", m - by.kept, by.keys)
                          : I.met("J", "keys that pass", brought.value(), met.longest, by.keys);
  const NestTile K_kept("K", by.kept, d), V_kept("V", by.kept, dv), dK_kept("dK", by.kept, d),
      dV_kept("dV", by.kept, dv);
  const NestTile Q("Q", I, d), dO("dO", I, dv), dQ("dQ", I, d), e("e", I, met.most),
      q("q", I, met.most);
  const NestTile maximum("max", I), sum("sum", I), v("v", I);
  // Keys for which groups write sums, and the streaming keys among them.
  Words left, passed;
  for (Index g = 0; g < G; ++g) {
    passed += size_of(by.passing(g));
    left += size_of(summed(by, g, {0, m}));
  }
  const Words sums = problem.key_words() * (brought.value() - passed.value());
  const bool shared = by.shares_keys();
  const auto of_keys = [&](NestWriter::Tiles tiles, const NestWriter::Tiles& of_values) {
    if (!shared) {
      tiles.insert(tiles.end(), of_values.begin(), of_values.end());
    }
    return tiles;
  };
  const std::string values = values_text(problem);
  const std::string sum_of_dV = shared ? "dK_J += " : "dV_J += ";
  NestWriter nest;
  nest.phase("core", [&] {
    const auto keys = [&](const NestWriter::Tiles& stays, const std::string& text,
                          const NestWriter::Tiles& reads, const NestWriter::Tiles& writes) {
      index_nest(nest, met);
      nest.loop(kept, stays, [&] { nest.step(text); });
      nest.loop(passing, stays, [&] { nest.step(text, reads, writes); });
    };
    const auto row_blocks = [&] {
      if (shared) {
        nest.read({Q, dO});
        keys({Q, dO, e, q, maximum}, "s = c Q_I K_J^T; q = dO_I K_J^T; max_I", {{"K", passing, d}},
             {});
        nest.step("e = exp(s - max_I); sum_I, v_I");
      } else {
        nest.read({Q});
        keys({Q, e, maximum}, "s = c Q_I K_J^T; max_I", {{"K", passing, d}}, {});
        nest.read({dO});
        keys({Q, dO, e, q, maximum, sum, v}, "q = dO_I V_J^T; e = exp(s - max_I); sum_I, v_I",
             {{"V", passing, dv}}, {});
      }
      nest.step("v_I = v_I / sum_I; Q_I = c Q_I / sum_I; dO_I = dO_I / sum_I");
      keys({Q, dO, dQ, e, q, sum, v},
           "p = e (q - v_I); dQ_I += p K_J; dK_J += p^T Q_I; " + sum_of_dV + "e^T dO_I",
           {{"K", passing, d}, NestTile("dK", passing, d).of_words(sums)},
           of_keys({{"dK", passing, d}}, {{"dV", passing, dv}}));
      nest.step("dQ_I = c dQ_I / sum_I", {}, {dQ});
    };
    const auto activated = [&] {
      NestWriter::Tiles reads = of_keys({{"K", passing, d}}, {{"V", passing, dv}});
      reads.push_back(NestTile("dK", passing, d).of_words(sums));
      const Index at_a_time = std::min(by.keys, met.most);
      nest.read({Q, dO});
      keys({Q, {"Q^T", d, I}, dO, {"dO^T", dv, I}, dQ, {"f", I, at_a_time}, {"p", I, at_a_time}},
           "s = c Q_I K_J^T; f = phi(s); p = phi'(s) (dO_I " + values +
               "^T); dQ_I += p K_J; dK_J += c p^T Q_I; " + sum_of_dV + "f^T dO_I",
           reads, of_keys({{"dK", passing, d}}, {{"dV", passing, dv}}));
      nest.step("dQ_I = c dQ_I", {}, {dQ});
    };
    const auto stays = [&](Index times) {
      const auto of = [&](const NestTile& tile) { return tile.of_words(tile.largest() * times); };
      if (by.kept > 0) {
        nest.read(of_keys({of(K_kept)}, {of(V_kept)}));
      }
      const NestWriter::Tiles kept_tiles =
          shared ? NestWriter::Tiles{K_kept, dK_kept}
                 : NestWriter::Tiles{K_kept, V_kept, dK_kept, dV_kept};
      if (problem.normalised()) {
        nest.loop(I, kept_tiles, row_blocks);
      } else {
        nest.loop(I, kept_tiles, activated);
      }
      if (by.kept > 0) {
        nest.write(of_keys({of(dK_kept)}, {of(dV_kept)}));
      }
    };
    stays(G);
  });
  if (G > 1) {
    const NestLoop J("J", "keys", m, blocks["sum.Bc"]);
    nest.phase("sum", [&] {
      nest.loop(J, [&] {
        nest.loop(groups, of_keys({{"dK", J, d}}, {{"dV", J, dv}}), [&] {
          nest.step(
              shared ? "dK_J += dK_J of group" : "dK_J += dK_J of group; dV_J += dV_J of group",
              of_keys({NestTile("dK", J, d).of_words(left * d)},
                      {NestTile("dV", J, dv).of_words(left * dv)}));
        });
        nest.write(of_keys({{"dK", J, d}}, {{"dV", J, dv}}));
      });
    });
  }
  return nest.lines();
}

}  // namespace redblue
