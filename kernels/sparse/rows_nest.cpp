#include <algorithm>
#include <string>
#include <string_view>

#include "kernels/sparse/rows.hpp"

namespace redblue {

Nest sparse_rows_nest(const Problem& problem, const Blocks& blocks, Pass pass, SparseStays stays) {
  const SparseRows by(problem, blocks, pass, stays);
  NestWriter nest;
  Index chunks = 0, most = 0, entries = 0;
  by.each([&](Range I) {
    ++chunks;
    most = std::max(most, I.size());
    entries = std::max(entries, 2 * stored_in(by.rows, I) + I.size());
  });
  std::vector<PhaseCost> phases = sparse_rows_cost(problem, blocks, pass, stays);
  const auto cost = [&](std::string_view path) {
    return *std::ranges::find(phases, path, &PhaseCost::path);
  };
  const auto of = [](std::string_view name, Words words) {
    return NestTile(name, 1).of_words(words);
  };
  const std::string row = stays == SparseStays::S ? "S" : "A1";
  NestWriter::Tiles throughout;
  if (stays == SparseStays::S) {
    nest.phase("S", [&] { sparse_product_nest(nest, {"S", "A1", "X"}, by.of, "S", blocks); });
  } else {
    throughout.push_back(NestTile("X", csr_words(by.of.X()).value()));
    nest.phase("X", [&] { nest.read({of("X", csr_words(by.of.X()))}); });
  }
  const Words rows = csr_words(by.rows);
  const Index d = by.d;
  const NestLoop I("I", "chunks of rows", chunks, 1);
  nest.loop(I, throughout, [&] {
    if (by.backward) {
      nest.phase("G", [&] {
        if (by.softmax) {
          nest.step("v_I = rowsum(dO_I * O_I)",
                    {of("dO", Words(by.n) * d), of("O", Words(by.n) * d)});
          nest.step("G_I = dO_I Y^T", {of("Y", Words(chunks) * d * d)});
        } else {
          nest.step("G_I = dO_I Y^T", {of("dO", Words(by.n) * d), of("Y", Words(chunks) * d * d)});
        }
      });
    }
    nest.phase("core", [&] {
      const Words L = by.backward && by.softmax ? Words(by.n) : Words(0);
      NestWriter::Tiles stay = {NestTile(row, entries)};
      if (by.backward) {
        nest.read(by.softmax ? NestWriter::Tiles{of(row, rows), of("L", L)}
                             : NestWriter::Tiles{of(row, rows)});
        stay.insert(stay.end(), {NestTile("G", most * d), NestTile("W", most * d)});
      } else {
        nest.read({of(row, rows)});
        if (by.dense) {
          stay.emplace_back("Z", most * d);
        }
      }
      const Words keys = cost("core").reads.value() - rows.value() - L.value();
      const std::string j = by.together > 0 ? "J" : "j";
      if (by.together > 0) {
        stay.emplace_back("s", most * by.together);
        if (by.backward) {
          stay.emplace_back("q", most * by.together);
        }
      }
      nest.loop({j, "keys", by.m, std::max<Index>(by.together, 1)}, stay, [&] {
        const std::string s =
            stays == SparseStays::S ? "S_I A2_" + j + "^T" : "A1_I (X A2_" + j + "^T)";
        const std::string e = by.softmax ? "e_" + j : "f_" + j, of_s = ", of s_" + j + " = " + s;
        const std::string text = by.backward ? "W_I += p_" + j + " A2_" + j + of_s + " and q_" + j +
                                                   " = G_I A3_" + j + "^T"
                                 : by.dense ? "Z_I += " + e + " A3_" + j + of_s
                                            : "l_I += " + e + of_s;
        nest.step(text, {of(by.dense ? "A2, A3" : "A2", keys)});
      });
      if (!by.dense) {
        nest.write({of("L", by.n)});
      }
    });
    if (by.backward) {
      const PhaseCost g = cost("g");
      nest.phase(
          "g", [&] { nest.step("g += A1_I^T W_I", {of("A1, g", g.reads)}, {of("g", g.writes)}); });
    } else if (by.dense) {
      nest.phase("O", [&] {
        if (by.softmax) {
          nest.write({of("L", by.n)});
        }
        nest.step(by.softmax ? "O_I = (Z_I / l_I) Y" : "O_I = Z_I Y",
                  {of("Y", Words(chunks) * d * d)}, {of("O", Words(by.n) * d)});
      });
    }
  });
  return nest.lines();
}

}  // namespace redblue
