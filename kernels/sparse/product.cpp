#include "kernels/sparse/product.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/fit.hpp"
#include "kernels/registry.hpp"
#include "kernels/sparse/arithmetic.hpp"
#include "kernels/sparse/csr.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

struct ProductPlan {
  ProductPlan(const Sparsity& of, std::string_view prefix, const Blocks& blocks)
      : A(of.A1()), B(of.X()), C(of.S()), piece(blocks[name(prefix, "entries")]) {
    const std::string of_chunk = name(prefix, "chunk");
    way = blocks.contains(of_chunk) ? SparseWay::passes : SparseWay::stays;
    chunk = way == SparseWay::passes ? blocks[of_chunk] : 0;
  }
  static std::string name(std::string_view prefix, std::string_view block) {
    return (prefix.empty() ? "" : std::string(prefix) + ".") + std::string(block);
  }

  const BlockPattern &A, &B, &C;
  Index piece;
  SparseWay way = SparseWay::stays;
  Index chunk = 0;

  // The sums of a row take one word per column, or two per entry if packed.
  [[nodiscard]] bool packed(Index row) const { return 2 * stored_in(C, row) < B.cols; }
  [[nodiscard]] Index sums_of(Index row) const { return std::min(2 * stored_in(C, row), B.cols); }
  // Words of a resident row of A with its sums.
  [[nodiscard]] Words words_of(Index row) const {
    return 2 * Words(stored_in(A, row)) + 1 + sums_of(row);
  }
  [[nodiscard]] Words all_rows() const {
    Words sum;
    for (Index row = 0; row < A.rows; ++row) {
      sum += words_of(row);
    }
    return sum;
  }
  template <class Visit>
  void each(const Visit& visit) const {
    each_chunk(
        A.rows, chunk, [&](Index row) { return words_of(row); }, visit);
  }
  // Words of a piece of a row with at most `longest` entries, two words each.
  [[nodiscard]] Words piece_words(Index longest) const {
    return 2 * Words(std::min(piece, longest));
  }
};

void product_staying(Machine& machine, const ProductPlan& by, const SlowCsr& A, const SlowCsr& B,
                     SlowMatrix& C) {
  const CsrEntries b = read_csr(machine, B);
  Tile sums = machine.initialize("sums", by.B.cols);
  CsrPass pass(machine, A);
  CsrWriter writer(machine, by.C, C, by.piece);
  for (Index row = 0; row < by.A.rows; ++row) {
    pass.row();
    for (const Index column : by.C.row(row)) {
      fill_word(machine, &sums(column, 0), 0);
    }
    const Range all = entries_of(by.A, row);
    for (Index begin = all.begin; begin < all.end; begin += by.piece) {
      const Range some{begin, std::min(begin + by.piece, all.end)};
      const CsrEntries a = read_entries(machine, A, some);
      for (Index entry = some.begin; entry < some.end; ++entry) {
        const Index k = by.A.columns[static_cast<std::size_t>(entry)];
        if (stored_in(by.B, k) > 0) {
          add_scaled(machine, {by.B.row(k), b.word(entries_of(by.B, k).begin)}, a.word(entry),
                     View(sums).at(0, 0));
          machine.computed(Operations{.flops = 2 * stored_in(by.B, k)});
        }
      }
    }
    writer.row(sums, 0, false);
  }
}

void product_passing(Machine& machine, const ProductPlan& by, const SlowCsr& A, const SlowCsr& B,
                     SlowMatrix& C) {
  CsrPass rows(machine, A);
  CsrWriter writer(machine, by.C, C, by.piece);
  by.each([&](Range I) {
    std::vector<Index> first = {0};  // offset of each row's sums, in words
    for (Index row = I.begin; row < I.end; ++row) {
      first.push_back(first.back() + by.sums_of(row));
    }
    Tile sums = first.back() > 0 ? machine.initialize("sums", first.back()) : Tile();
    {
      const CsrEntries a = rows.rows(I);
      const ByColumns a_of(by.A, I);
      Tile pointer;
      for (Index k = 0, next = -1; k < by.B.rows; ++k) {
        if (!a_of.has(k)) {
          continue;
        }
        pointer.reset();
        pointer = machine.read_indices(k == next ? 1 : 2);
        next = k + 1;
        const Range all = entries_of(by.B, k);
        for (Index begin = all.begin; begin < all.end; begin += by.piece) {
          const Range some{begin, std::min(begin + by.piece, all.end)};
          const CsrEntries b = read_entries(machine, B, some);
          const SparseRow piece{by.B.row(k).subspan(static_cast<std::size_t>(begin - all.begin),
                                                    static_cast<std::size_t>(some.size())),
                                b.word(begin)};
          for (const ByColumns::Entry& at : a_of[k]) {
            float* const to =
                View(sums).at(0, 0) + first[static_cast<std::size_t>(at.row - I.begin)];
            if (by.packed(at.row)) {
              add_scaled(machine, piece, a.word(at.entry), by.C.row(at.row), to);
            } else {
              add_scaled(machine, piece, a.word(at.entry), to);
            }
          }
          machine.computed(Operations{.flops = 2 * some.size() * std::ssize(a_of[k])});
        }
      }
    }
    for (Index row = I.begin; row < I.end; ++row) {
      writer.row(sums, first[static_cast<std::size_t>(row - I.begin)], by.packed(row));
    }
  });
}

// Words of B that all chunks read: pointers and entries of the rows that they need. Also the peak
// and the most words of a chunk's sums.
struct Passed {
  Words pointers, entries, peak;
  Index chunks = 0, sums = 0;
};

Passed passed(const ProductPlan& by) {
  Passed sum;
  std::vector<Index> last(static_cast<std::size_t>(by.B.rows) + 1, -1);
  by.each([&](Range I) {
    Index longest = 0, written = 0, sums = 0;
    std::vector<Index> needed;
    for (Index row = I.begin; row < I.end; ++row) {
      written = std::max(written, stored_in(by.C, row));
      sums += by.sums_of(row);
      for (const Index k : by.A.row(row)) {
        if (std::exchange(last[static_cast<std::size_t>(k)], I.begin) != I.begin) {
          needed.push_back(k);
          sum.entries += stored_in(by.B, k);
          longest = std::max(longest, stored_in(by.B, k));
        }
      }
    }
    // One pointer for the end of each needed row, and one for its beginning unless it follows
    // another.
    for (const Index k : needed) {
      sum.pointers += k > 0 && last[static_cast<std::size_t>(k) - 1] == I.begin ? 1 : 2;
    }
    const Words rows = 2 * Words(stored_in(by.A, I)) + I.size();
    const Words of_B = needed.empty() ? Words(0) : 1 + by.piece_words(longest);
    sum.peak = std::max({sum.peak, sums + rows + 1 + of_B,
                         Words(sums) + 1 + std::max(by.piece_words(written), Words(1))});
    ++sum.chunks;
    sum.sums = std::max(sum.sums, sums);
  });
  return sum;
}

Words flops_of(const ProductPlan& by) {
  Words sum;
  for (const Index k : by.A.columns) {
    sum += 2 * stored_in(by.B, k);
  }
  return sum;
}

PhaseCost cost_of(std::string path, const ProductPlan& by) {
  PhaseCost cost{.path = std::move(path),
                 .reads = csr_words(by.A),
                 .writes = csr_words(by.C),
                 .peak = 0,
                 .flops = flops_of(by),
                 .index_reads = Words(by.A.stored()) + by.A.rows + 1,
                 .index_writes = Words(by.C.stored()) + by.C.rows + 1};
  if (by.way == SparseWay::stays) {
    cost.reads += csr_words(by.B);
    cost.index_reads += Words(by.B.stored()) + by.B.rows + 1;
    const Words pieces = by.piece_words(std::max(longest_row(by.A), longest_row(by.C)));
    cost.peak = csr_words(by.B) + by.B.cols + 1 + std::max(pieces, Words(1));
  } else {
    const Passed of_B = passed(by);
    cost.reads += of_B.pointers + 2 * of_B.entries;
    cost.index_reads += of_B.pointers + of_B.entries;
    cost.peak = of_B.peak;
  }
  return cost;
}

bool fits(const PhaseCost& cost, Index M) {
  return cost.peak <= Words(M);
}

}  // namespace

void sparse_product(Machine& machine, const Sparsity& of, std::string_view prefix,
                    const Blocks& blocks, const SlowMatrix& A, const SlowMatrix& B, SlowMatrix& C) {
  const ProductPlan by(of, prefix, blocks);
  (by.way == SparseWay::stays ? product_staying : product_passing)(machine, by, {of.A1(), A},
                                                                   {of.X(), B}, C);
}

PhaseCost sparse_product_cost(std::string path, const Sparsity& of, std::string_view prefix,
                              const Blocks& blocks) {
  return cost_of(std::move(path), {of, prefix, blocks});
}

void sparse_product_nest(NestWriter& nest, const SparseProductNames& names, const Sparsity& of,
                         std::string_view prefix, const Blocks& blocks) {
  const ProductPlan by(of, prefix, blocks);
  const auto words = [](std::string_view name, Words largest, Words all) {
    return NestTile(name, largest.value()).of_words(all);
  };
  const std::string text =
      std::string(names.C) + "_I += " + std::string(names.A) + "_I " + std::string(names.B);
  const NestTile A = words(names.A, 0, csr_words(by.A)), C = words(names.C, 0, csr_words(by.C));
  if (by.way == SparseWay::stays) {
    const NestTile B = words(names.B, csr_words(by.B), csr_words(by.B));
    nest.read({B});
    nest.loop({"I", "rows", by.A.rows, 1}, {B, NestTile("sums", by.B.cols)}, [&] {
      nest.step(text, {A});
      nest.write({C});
    });
    return;
  }
  const Passed of_B = passed(by);
  nest.loop({"I", "chunks of rows", of_B.chunks, 1}, {NestTile("sums", of_B.sums)}, [&] {
    nest.read({A});
    nest.step(text, {words(names.B, 0, of_B.pointers + 2 * of_B.entries)});
    nest.write({C});
  });
}

void plan_sparse_product(const Sparsity& of, SparseWay way, Index M, std::string_view prefix,
                         Blocks& blocks) {
  const std::string chunk = ProductPlan::name(prefix, "chunk");
  const std::string entries = ProductPlan::name(prefix, "entries");
  const auto with = [&](Index words, Index piece) {
    Blocks by;
    if (way == SparseWay::passes) {
      by.add(chunk, words);
    }
    by.add(entries, piece);
    return by;
  };
  const auto cost = [&](const Blocks& by) { return sparse_product_cost("", of, prefix, by); };
  const Index longest = std::max({longest_row(of.A1()), longest_row(of.S()),
                                  way == SparseWay::passes ? longest_row(of.X()) : 0, Index{1}});
  // The rest of M holds two pointers and a piece of entries. Pieces of whole rows take less time,
  // so they are preferred if they move no more words.
  const Index all = ProductPlan(of, prefix, with(1, 1)).all_rows().value();
  const auto beside = [&](Index piece) {
    return std::clamp<Index>(M - 2 - 2 * piece, 1, std::max<Index>(all, 1));
  };
  Blocks best = with(beside(1), 1);
  const PhaseCost least = cost(best);
  if (const Blocks whole = with(beside(longest), longest);
      fits(cost(whole), M) && cost(whole).reads <= least.reads) {
    best = whole;
  } else if (way == SparseWay::stays) {
    best = with(1, largest(longest, [&](Index piece) { return fits(cost(with(1, piece)), M); }));
  }
  for (const auto& [name, size] : best) {
    blocks.add(name, size);
  }
}

void plan_sparse_product(const Sparsity& of, Index M, std::string_view prefix, Blocks& blocks) {
  Blocks staying, passing;
  plan_sparse_product(of, SparseWay::stays, M, prefix, staying);
  plan_sparse_product(of, SparseWay::passes, M, prefix, passing);
  const PhaseCost stays = sparse_product_cost("", of, prefix, staying);
  const PhaseCost passes = sparse_product_cost("", of, prefix, passing);
  const bool by_words = fits(stays, M) && fits(passes, M);
  const bool takes_passing = by_words ? passes.reads < stays.reads : passes.peak < stays.peak;
  for (const auto& [name, size] : takes_passing ? passing : staying) {
    blocks.add(name, size);
  }
}

namespace {

Kernel kernel(std::string_view name, std::string_view summary, SparseWay way) {
  return {.name = name,
          .summary = summary,
          .operands = {{"A", &Shape::A1_stored, nullptr}, {"B", &Shape::X_stored, nullptr}},
          .returns = {{"C", &Shape::S_stored, nullptr}},
          .takes_sparse = true,
          .schedule = {.code =
                           [](Machine& machine, const Plan& plan, const Operands& io, Workspace&) {
                             const Phase phase(machine, "C");
                             sparse_product(machine, plan.problem.sparsity, "", plan.blocks,
                                            io.in("A"), io.in("B"), io.out("C"));
                           }},
          .formula = {
              .cost = [](const Problem& problem, const Blocks& blocks) -> std::vector<PhaseCost> {
                return {sparse_product_cost("C", problem.sparsity, "", blocks)};
              },
              .nest =
                  [](const Problem& problem, const Blocks& blocks) {
                    NestWriter nest;
                    nest.phase("C", [&] {
                      sparse_product_nest(nest, {"C", "A", "B"}, problem.sparsity, "", blocks);
                    });
                    return nest.lines();
                  }},
          .fitting = {.fit = [way](const Problem& problem, const Memory& memory, Objective) {
            Blocks blocks;
            plan_sparse_product(problem.sparsity, way, memory.M, "", blocks);
            return blocks;
          }}};
}

}  // namespace

Kernel matmul_sparse_stay() {
  return kernel("matmul/sparse-stay", "C = A B of sparse matrices: B stays, rows of A pass",
                SparseWay::stays);
}

Kernel matmul_sparse_pass() {
  return kernel("matmul/sparse-pass",
                "C = A B of sparse matrices: rows of A and of sums stay, the rows of B that they "
                "need pass",
                SparseWay::passes);
}

}  // namespace redblue
