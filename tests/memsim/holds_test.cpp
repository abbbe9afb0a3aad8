// Words moved and words live are counted by kind: the kind that a tile holds.

#include "memsim/holds.hpp"

#include <set>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/machine.hpp"
#include "memsim/slow_matrix.hpp"

namespace redblue {
namespace {

TEST(Holds, KindsHaveNames) {
  std::set<std::string_view> names;
  for (const Holds holds : kHolds) {
    names.insert(to_string(holds));
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"operands", "scores", "sums", "indices"}));
}

// A tile that is read has the kind of its matrix. An initialized tile holds sums, unless another
// kind is given. A move counts for the kind of the matrix.
TEST(Holds, MovesAndPeaksAreCountedByKind) {
  Machine machine(100);
  SlowMatrix A("A", 4, 5);
  SlowMatrix L = SlowMatrix("L", 4, 1).holding(Holds::sums);
  EXPECT_EQ(A.holds(), Holds::operands);
  EXPECT_EQ(L.holds(), Holds::sums);
  {
    const Phase phase(machine, "first");
    const Tile sum = machine.initialize("sum", 4);
    machine.write(sum, L.whole());
    const Tile scores = machine.initialize("s", 4, 5, Holds::scores);
    machine.write(scores, A.whole());
    const Tile unset = machine.initialize("e", 2, 5, kUnset, Holds::scores);
    const Tile set = machine.initialize("max", 2, 1, 7.0F, Holds::indices);
  }
  const ByKind<KindCounts> first = total_by_kind(machine.phases());
  EXPECT_EQ(first[Holds::operands], (KindCounts{{0, 20}, 0}));
  EXPECT_EQ(first[Holds::scores], (KindCounts{{0, 0}, 30}));
  EXPECT_EQ(first[Holds::sums], (KindCounts{{0, 4}, 4}));
  EXPECT_EQ(first[Holds::indices], (KindCounts{{0, 0}, 2}));

  const Tile a = machine.read(A.row_block({0, 3}));
  {
    const Phase phase(machine, "second");  // tiles that already live count here too
    const Tile l = machine.read(L.whole());
  }
  EXPECT_EQ(machine.phases().children[1]->kinds[Holds::operands].peak, 15);
  const ByKind<KindCounts> all = total_by_kind(machine.phases());
  EXPECT_EQ(all[Holds::operands], (KindCounts{{15, 20}, 15}));
  EXPECT_EQ(all[Holds::sums], (KindCounts{{4, 4}, 4}));
}

// Tiles of a stream count as their matrix's kind, including tiles read ahead. A moved tile keeps
// its kind.
TEST(Holds, StreamsAreOfTheirMatrix) {
  Machine machine(100);
  const SlowMatrix f = SlowMatrix("f", 6, 2).holding(Holds::scores);
  for (const Tile& rows : machine.stream(f.row_blocks(2), 3)) {
    EXPECT_EQ(rows.rows(), 2);
  }
  EXPECT_EQ(total_by_kind(machine.phases())[Holds::scores], (KindCounts{{12, 0}, 12}));
  Tile a = machine.initialize("a", 3, 3, Holds::operands);
  Tile b = std::move(a);
  b.reset();
  const Tile c = machine.initialize("c", 2, 2, Holds::operands);
  EXPECT_EQ(total_by_kind(machine.phases())[Holds::operands].peak, 9);
}

// A word of a kind has the weight that was set, in M and when it moves. Other words weigh one. A
// request that is too heavy is refused with weights in the message, and the state is unchanged.
TEST(Holds, KindsWeighWhatIsSaid) {
  Machine machine(30);
  machine.weigh(Holds::sums, 2);
  EXPECT_EQ(machine.weight(Holds::sums), 2);
  EXPECT_EQ(machine.weight(Holds::operands), 1);
  SlowMatrix A("A", 4, 5);
  SlowMatrix L = SlowMatrix("L", 4, 1).holding(Holds::sums);
  {
    Tile sum = machine.initialize("sum", 4);
    EXPECT_EQ(machine.live(), 8);
    machine.write(sum, L.whole());
    const Tile a = machine.initialize("a", 4, 5, Holds::operands);
    EXPECT_EQ(machine.live(), 28);
    EXPECT_EQ(machine.contents(), "sum 8, a 20");
    machine.write(a, A.whole());
    EXPECT_THROW(static_cast<void>(machine.initialize("more", 2)), FastMemoryOverflow);
    const Tile rest = machine.initialize("rest", 1);
    EXPECT_EQ(machine.live(), 30);
    EXPECT_THROW(machine.weigh(Holds::scores, 2), ShapeMismatch);  // too late: it has moved words
  }
  const ByKind<KindCounts> all = total_by_kind(machine.phases());
  EXPECT_EQ(all[Holds::sums], (KindCounts{{0, 8}, 10}));
  EXPECT_EQ(all[Holds::operands], (KindCounts{{0, 20}, 20}));
  EXPECT_EQ(total(machine.phases()).io, (IoCount{0, 28}));
  EXPECT_EQ(machine.live(), 0);
}

// Partial results are sums, even when they go to a matrix of another kind and come back.
TEST(Holds, ABlockMayHoldAnotherKindThanItsMatrix) {
  Machine machine(30);
  machine.weigh(Holds::sums, 2);
  SlowMatrix C("C", 2, 3);
  {
    const Tile c = machine.initialize("c", 2, 3);
    machine.write(c, C.whole().holding(Holds::sums));
  }
  {
    const Tile c = machine.read(std::as_const(C).whole().holding(Holds::sums));
    EXPECT_EQ(machine.live(), 12);
    machine.write(c, C.whole());
  }
  const ByKind<KindCounts> all = total_by_kind(machine.phases());
  EXPECT_EQ(all[Holds::sums], (KindCounts{{12, 12}, 12}));
  EXPECT_EQ(all[Holds::operands], (KindCounts{{0, 6}, 0}));
}

// Words of inner levels weigh one each, so levels refuse weights.
TEST(Holds, LevelsTakeNoWeights) {
  Machine machine(30, {10});
  EXPECT_THROW(machine.weigh(Holds::sums, 2), ShapeMismatch);
  EXPECT_THROW(Machine(30).weigh(Holds::sums, 0), ShapeMismatch);
}

}  // namespace
}  // namespace redblue
