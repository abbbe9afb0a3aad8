// Tests the accesses of a run's moves: each word that it reads or writes, in order, by its place in
// slow memory.

#include "runtime/replay/move_accesses.hpp"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {
namespace {

// Returns text such as "n0 o1": unit 0 is needed, and unit 1 is overwritten.
std::string moves_text(const Accesses& accesses) {
  std::string text;
  for (const auto& [kind, unit] : accesses.in_order) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " ",
                        kind == Access::Kind::need        ? "n"
                        : kind == Access::Kind::overwrite ? "o"
                                                          : "?",
                        unit);
  }
  return text;
}

TEST(MoveAccesses, AreWordsOfTheSlowStoreRowByRow) {
  SlowMatrix A("A", 2, 3);
  Machine machine(20);
  MoveAccesses moves(machine);
  {
    const Phase phase(machine, "a");
    const Tile corner = machine.read(A.block({0, 2}, {1, 3}));  // units 0 to 3
    const Tile again = machine.read(A.block({1, 2}, {0, 3}));   // unit 4, and 2 and 3 again
  }
  {
    const Phase phase(machine, "b");
    const Tile row = machine.initialize("row", 1, 2);
    machine.write(row, A.block({0, 1}, {0, 2}));  // units 5 and 0
    SlowMatrix same("A", 2, 3);                   // another matrix of this name and shape
    machine.write(row, same.block({1, 2}, {1, 3}));
  }
  const Accesses found = moves.take();
  EXPECT_EQ(moves_text(found), "n0 n1 n2 n3 n4 n2 n3 o5 o0 o2 o3");
  EXPECT_EQ(found.widths, std::vector<std::uint32_t>(6, 1));
  ASSERT_EQ(found.stretches.size(), 2U);
  EXPECT_EQ(found.stretches[0].phase, "a");
  EXPECT_EQ(found.stretches[0].begin, 0U);
  EXPECT_EQ(found.stretches[1].phase, "b");
  EXPECT_EQ(found.stretches[1].begin, 7U);
}

}  // namespace
}  // namespace redblue
