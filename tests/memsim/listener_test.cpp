// Listeners hear every move, in order, after it is counted.

#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/events.hpp"
#include "memsim/machine.hpp"

namespace redblue {
namespace {

class Transcript final : public Listener {
 public:
  void on(const Event& event) noexcept override {
    static constexpr const char* kKinds[] = {"read",   "write", "initialize",
                                             "remove", "enter", "leave"};
    std::ostringstream line;
    line << kKinds[static_cast<int>(event.kind)] << ' ' << event.name;
    if (event.kind != Event::Kind::enter_phase && event.kind != Event::Kind::leave_phase) {
      line << '#' << event.tile << ' ' << event.rows << 'x' << event.cols;
      if (event.kind == Event::Kind::read || event.kind == Event::Kind::initialize) {
        fresh_ = ids_.insert(event.tile).second && fresh_;
      }
    }
    if (event.block != nullptr) {
      const auto [rows, columns] = std::pair(event.block->row_range(), event.block->column_range());
      line << ' ' << event.block->matrix().name() << '[' << rows.begin << ',' << rows.end << ")["
           << columns.begin << ',' << columns.end << ')';
    }
    line << " live " << event.live;
    lines_.push_back(line.str());
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }
  [[nodiscard]] bool ids_are_unique() const { return fresh_; }

 private:
  std::vector<std::string> lines_;
  std::set<std::uint64_t> ids_;
  bool fresh_ = true;
};

TEST(Listener, HearsEveryMoveOfASmallProgram) {
  SlowMatrix A("A", 4, 4);
  SlowMatrix S("S", 4, 4);
  Machine machine(100);
  Transcript transcript;
  machine.listen(transcript);
  {
    const Phase phase(machine, "copy");
    Tile s = machine.initialize("s", 2, 3);
    {
      const Phase inner(machine, "in");
      const Tile a = machine.read(A.block({1, 3}, {0, 3}));
    }
    machine.write(s, S.block({0, 2}, {1, 4}));
    Tile moved = std::move(s);  // no event: no word moves
    moved.reset();
    for (const Tile& row : machine.stream(A.row_blocks(3))) {
      static_cast<void>(row);
    }
  }
  const std::vector<std::string> expected = {
      "enter copy live 0",
      "initialize s#0 2x3 live 6",
      "enter in live 6",
      "read A#1 2x3 A[1,3)[0,3) live 12",
      "remove A#1 2x3 live 6",
      "leave in live 6",
      "write s#0 2x3 S[0,2)[1,4) live 6",
      "remove s#0 2x3 live 0",
      "read A#2 3x4 A[0,3)[0,4) live 12",
      "remove A#2 3x4 live 0",
      "read A#3 1x4 A[3,4)[0,4) live 4",
      "remove A#3 1x4 live 0",
      "leave copy live 0",
  };
  EXPECT_EQ(transcript.lines(), expected);
  EXPECT_TRUE(transcript.ids_are_unique());
}

TEST(Listener, HearsNothingOfARefusedRequest) {
  SlowMatrix A("A", 4, 4);
  Machine machine(10);
  Transcript transcript;
  machine.listen(transcript);
  EXPECT_THROW(static_cast<void>(machine.read(A.whole())), FastMemoryOverflow);
  EXPECT_THROW(static_cast<void>(machine.initialize("t", 0)), ShapeMismatch);
  EXPECT_TRUE(transcript.lines().empty());
}

TEST(Listener, NeverMeetsATileNumberTwice) {
  Machine machine(10);
  Transcript transcript;
  machine.listen(transcript);
  for (int i = 0; i < 100; ++i) {
    const Tile a = machine.initialize("a", 3);
    const Tile b = machine.initialize("b", 4);
  }
  EXPECT_EQ(transcript.lines().size(), 400U);
  EXPECT_TRUE(transcript.ids_are_unique());
}

TEST(Listener, IsOneOfSeveralUntilItIsSilenced) {
  Machine machine(10);
  Transcript first;
  Transcript second;
  machine.listen(first);
  { const Tile a = machine.initialize("a", 1); }
  machine.listen(second);
  { const Tile b = machine.initialize("b", 1); }
  machine.silence(first);
  { const Tile c = machine.initialize("c", 1); }
  machine.silence(second);
  { const Tile d = machine.initialize("d", 1); }

  const std::vector<std::string> a = {"initialize a#0 1x1 live 1", "remove a#0 1x1 live 0"};
  const std::vector<std::string> b = {"initialize b#1 1x1 live 1", "remove b#1 1x1 live 0"};
  const std::vector<std::string> c = {"initialize c#2 1x1 live 1", "remove c#2 1x1 live 0"};
  EXPECT_EQ(first.lines(), (std::vector<std::string>{a[0], a[1], b[0], b[1]}));
  EXPECT_EQ(second.lines(), (std::vector<std::string>{b[0], b[1], c[0], c[1]}));
}

// A listener is called after the move is counted: the machine's counters agree with the event. This
// also holds when words weigh more than one.
TEST(Listener, SeesTheCountersOfItsOwnMove) {
  class Checker final : public Listener {
   public:
    explicit Checker(const Machine& machine) : machine_(machine) {}
    void on(const Event& event) noexcept override {
      const bool reads = event.kind == Event::Kind::read;
      counted_.reads += reads ? event.moved : 0;
      counted_.writes += event.kind == Event::Kind::write ? event.moved : 0;
      live_ += reads || event.kind == Event::Kind::initialize ? event.words
               : event.kind == Event::Kind::remove            ? -event.words
                                                              : 0;
      agrees_ = agrees_ && live_ == event.live && event.live == machine_.live() &&
                counted_ == total(machine_.phases()).io && counted_.io() == machine_.moved();
    }
    [[nodiscard]] bool agrees() const { return agrees_; }

   private:
    const Machine& machine_;
    IoCount counted_;
    Index live_ = 0;
    bool agrees_ = true;
  };
  SlowMatrix A("A", 4, 4);
  Machine machine(64);
  machine.weigh(Holds::sums, 2);
  Checker checker(machine);
  machine.listen(checker);
  const Phase phase(machine, "p");
  {
    const Tile a = machine.read(std::as_const(A).whole());
    const Tile b = machine.read(std::as_const(A).row_block({1, 2}));
    const Tile sums = machine.initialize("sums", 2, 4);
    machine.write(sums, A.row_block({0, 2}).holding(Holds::sums));  // as partial results
    machine.write(sums, A.row_block({0, 2}));
    const Tile again = machine.read(std::as_const(A).row_block({0, 2}).holding(Holds::sums));
  }
  EXPECT_TRUE(checker.agrees());
  EXPECT_EQ(total(machine.phases()).io, (IoCount{36, 24}));
  machine.silence(checker);
}

// A level reports loans, new tiles, writes and returns, with the words then live in it, until the
// listener is silenced. Its machine does not report them.
TEST(Listener, HearsALevel) {
  SlowMatrix A("A", 4, 4);
  Transcript of_machine, of_level;  // both hear the end of the tile
  Machine machine(100, {20});
  Level& level = machine.inner().front();
  const Tile a = machine.read(A.block({0, 4}, {0, 4}));
  machine.listen(of_machine);
  level.listen(of_level);
  {
    const Loan part(level, a, {0, 2}, {0, 3}, Level::How::reads);
    const Loan fresh(level, a, {2, 4}, {0, 4}, Level::How::makes);
  }
  level.silence(of_level);
  const Loan unheard(level, a, {0, 1}, {0, 1}, Level::How::reads);
  EXPECT_EQ(of_level.lines(),
            (std::vector<std::string>{"read A#0 2x3 live 6", "initialize A#0 2x4 live 14",
                                      "write A#0 2x4 live 14", "remove A#0 2x4 live 6",
                                      "remove A#0 2x3 live 0"}));
  EXPECT_EQ(of_machine.lines(), std::vector<std::string>());
}

}  // namespace
}  // namespace redblue
