// Details of events and operations beyond names. They give the orientation of a block in its tile,
// and whether a tile begins with values. They also give the stored words of a row, and the part of
// a tile that a view shows.

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/machine.hpp"
#include "memsim/partial.hpp"
#include "memsim/workspace.hpp"

namespace redblue {
namespace {

class Heard final : public Listener {
 public:
  struct Move {
    Event::Kind kind;
    Orientation orientation;
    bool unset;
    float value = 0;
    friend bool operator==(const Move&, const Move&) = default;
  };
  void on(const Event& event) noexcept override {
    moves_.push_back({event.kind, event.orientation, event.unset, event.value});
  }
  void on(const Operation& operation) noexcept override {
    operations_.emplace_back(operation.name);
  }
  [[nodiscard]] const std::vector<Move>& moves() const { return moves_; }
  [[nodiscard]] const std::vector<std::string>& operations() const { return operations_; }

 private:
  std::vector<Move> moves_;
  std::vector<std::string> operations_;
};

TEST(Events, TellHowABlockLiesInItsTile) {
  SlowMatrix A("A", 3, 3);
  Machine machine(100);
  Heard heard;
  machine.listen(heard);
  {
    const Tile a = machine.read(A.whole());
    const Tile a_t = machine.read(transposed(ConstBlock(A.whole())));
    machine.write(a, A.whole());
    machine.write(a, transposed(A.whole()));
  }
  for (const Index depth : {1, 2}) {
    for (const Tile& part : machine.stream(transposed(A.row_blocks(3)), depth)) {
      static_cast<void>(part);
    }
  }
  using Kind = Event::Kind;
  const Heard::Move straight{Kind::read, Orientation::straight, false};
  const Heard::Move turned{Kind::read, Orientation::transposed, false};
  const Heard::Move gone{Kind::remove, Orientation::straight, false};
  EXPECT_EQ(heard.moves(),
            (std::vector<Heard::Move>{straight, turned,
                                      Heard::Move{Kind::write, Orientation::straight, false},
                                      Heard::Move{Kind::write, Orientation::transposed, false},
                                      gone, gone, turned, gone, turned, gone}));
}

TEST(Events, TellWhetherATileBeginsWithValues) {
  Machine machine(100);
  Heard heard;
  machine.listen(heard);
  const Tile with = machine.initialize("a", 2, 2, 1.5F);
  const Tile without = machine.initialize("b", 2, 2, kUnset);
  ASSERT_EQ(heard.moves().size(), 2U);
  EXPECT_FALSE(heard.moves()[0].unset);
  EXPECT_EQ(heard.moves()[0].value, 1.5F);
  EXPECT_TRUE(heard.moves()[1].unset);
}

TEST(Operations, AreHeardByThoseWhoAskForThem) {
  Machine machine(100);
  EXPECT_FALSE(machine.is_heard());
  Heard moves;
  machine.listen(moves);
  EXPECT_FALSE(machine.is_heard());
  Heard all;
  machine.listen(all, Hears::moves_and_arithmetic);
  EXPECT_TRUE(machine.is_heard());
  machine.tell(Operation{.form = Operation::Form::map, .name = "f", .result = {}, .operands = {}});
  machine.silence(all);
  EXPECT_FALSE(machine.is_heard());
  machine.tell(Operation{.form = Operation::Form::map, .name = "g", .result = {}, .operands = {}});
  EXPECT_TRUE(moves.operations().empty());
  EXPECT_EQ(all.operations(), std::vector<std::string>{"f"});
}

std::pair<std::uint64_t, Index> place(const SlowMatrix& matrix, Index row) {
  const StoredRow stored = matrix.whole().stored_row(row);
  return {stored.backing, stored.row};
}

TEST(StoredRow, IsOfNoOtherMatrixNorOfALaterOne) {
  std::set<std::pair<std::uint64_t, Index>> places;
  RamWorkspace workspace;
  for (int i = 0; i < 20; ++i) {
    const SlowMatrix partial = workspace.matrix("partial", 2, 3);
    const SlowMatrix again = workspace.matrix("partial", 2, 3);
    for (const Index row : {0, 1}) {
      EXPECT_TRUE(places.insert(place(partial, row)).second);
      EXPECT_TRUE(places.insert(place(again, row)).second);
    }
  }
}

TEST(StoredRow, OfAViewOfAMatrixIsTheMatrix) {
  SlowMatrix A("A", 10, 3);
  SlowMatrix moved = std::move(A);
  EXPECT_EQ(place(moved, 7), place(moved, 7));
  const SlowMatrix some = selected_rows(moved, {{6, 8}, {1, 3}});
  for (const auto& [row, whole] : {std::pair<Index, Index>{0, 6}, {1, 7}, {2, 1}, {3, 2}}) {
    EXPECT_EQ(place(some, row), place(moved, whole)) << row;
  }
  const SlowMatrix part = only_rows(moved, {{4, 9}});
  EXPECT_EQ(place(part, 5), place(moved, 5));
}

TEST(TilePart, IsTheRectangleThatAViewShows) {
  Machine machine(20000);
  const Tile before = machine.initialize("before", 3, 5);
  const auto expect_part = [&](const Tile& tile, Range rows, Range columns) {
    const TilePart whole = machine.part_of(tile);
    const TilePart part = machine.part_of(tile.part(rows, columns));
    EXPECT_EQ(part.tile, whole.tile);
    EXPECT_EQ(std::tuple(part.row, part.column, part.rows, part.columns),
              std::tuple(rows.begin, columns.begin, rows.size(), columns.size()));
    EXPECT_EQ(std::tuple(whole.row, whole.column, whole.rows, whole.columns),
              std::tuple(0, 0, tile.rows(), tile.cols()));
    EXPECT_FALSE(part.transposed);
  };
  for (const Index rows : {1, 2, 7, 40}) {
    for (const Index cols : {1, 3, 16, 17, 47, 48}) {
      const Tile tile = machine.initialize("tile", rows, cols);
      EXPECT_NE(machine.part_of(tile).tile, machine.part_of(before).tile);
      for (Index begin = 0; begin < cols; ++begin) {
        const Index panel_end = std::min(cols, (begin / kPanel + 1) * kPanel);
        const Index end = begin % kPanel == 0 ? cols : panel_end;
        for (const Range all : {Range{0, rows}, Range{rows - 1, rows}, Range{rows / 2, rows}}) {
          expect_part(tile, all, {begin, end});
          expect_part(tile, all, {begin, begin + 1});
        }
      }
    }
  }
}

}  // namespace
}  // namespace redblue
