// Sparse kernels on fully stored operands, compared with dense kernels of the same n, d and M. The
// test gives the extra words moved, for values and for indices.

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "tests/support/random_patterns.hpp"

namespace redblue {
namespace {

constexpr Index kN = 1024, kD = 64;

struct Moved {
  Index all = 0, values = 0;
};
Moved moved(const PhaseCost& cost) {
  const Index all = (cost.reads + cost.writes).value();
  return {all, all - (cost.index_reads + cost.index_writes).value()};
}

Problem fully_stored() {
  std::mt19937_64 unused;
  const auto all = [&](Index rows) { return random_pattern(unused, rows, kD, 1); };
  return Problem(kN, kN, kD).with_sparsity({all(kN), all(kD), all(kN)});
}

const PhaseCost& core_of(const Plan& plan) {
  return *std::ranges::find(plan.phases, "core", &PhaseCost::path);
}

// The figures of docs/sparse.md.
TEST(FullyStored, MovesMoreThanDense) {
  const Problem stored = fully_stored();
  const Problem dense(kN, kN, kD);
  for (const auto& [sparse_name, dense_name, M, values, all] :
       {std::tuple{"forward/sparse-rows", "forward/rows", 16384, 2'024'448, 3'093'585},
        {"forward/sparse-rows", "forward/rows", 65536, 807'936, 1'278'024},
        {"forward/sparse-x", "forward/rows", 65536, 676'864, 1'013'830},
        {"backward/sparse-rows", "backward/rows", 16384, 2'831'360, 4'233'302},
        {"backward/sparse-rows", "backward/rows", 65536, 1'111'040, 1'714'250},
        {"backward/sparse-x", "backward/rows", 65536, 914'432, 1'317'959}}) {
    SCOPED_TRACE(std::string(sparse_name) + " " + std::to_string(M));
    const Moved sparse = moved(total(find_kernel(sparse_name).plan(stored, M).phases));
    const Moved beside = moved(total(find_kernel(dense_name).plan(dense, M).phases));
    EXPECT_EQ(sparse.values, values);
    EXPECT_EQ(sparse.all, all);
    EXPECT_LT(sparse.values, sparse.all);
    EXPECT_EQ(beside.values, beside.all) << "dense operands have no indices";
    EXPECT_LT(beside.all, sparse.values);
    EXPECT_LT(sparse.all, 3 * beside.all);
  }
}

// A row of S stays as 2 d + 1 words, and its sums take d + 2 words. Dense kernels have about 2 d
// words for a row. So fewer rows fit, and keys and values pass once for each chunk of rows.
TEST(FullyStored, KeysPassOnceAChunk) {
  const Problem stored = fully_stored();
  for (const Index M : {4096, 16384, 65536}) {
    const Plan plan = find_kernel("forward/sparse-rows").plan(stored, M);
    const Index rows = plan.blocks["chunk"] / (3 * kD + 3);
    EXPECT_LE(rows, M / (3 * kD + 3));
    const Index chunks = (kN + rows - 1) / rows;
    EXPECT_EQ(moved(core_of(plan)).values, kN * kD + chunks * 2 * kN * kD);
    // The indices of S are read once, and the indices of all keys once for each chunk. Both have
    // one index for each entry, and one more than rows.
    EXPECT_EQ(core_of(plan).index_reads, Words(kN * kD + kN + 1 + chunks * (kN * kD + kN + 1)));
    const Plan dense = find_kernel("forward/rows").plan(Problem(kN, kN, kD), M);
    const Index Br = dense.blocks["Br"];
    EXPECT_EQ(moved(core_of(dense)).all, (kN + Br - 1) / Br * 2 * kN * kD);
    EXPECT_LT(rows, Br);
  }
}

}  // namespace
}  // namespace redblue
