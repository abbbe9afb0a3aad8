// A stream gives every block once, in order, and holds min(depth, blocks left) of them. With a
// depth above one it begins its reads before it waits for the present one. A word is counted when
// its read has ended.

#include "memsim/stream.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "tests/support/print.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

SlowMatrix numbered_matrix(Index rows, Index cols) {
  SlowMatrix A("A", rows, cols);
  std::vector<float> words(static_cast<std::size_t>(rows * cols));
  std::iota(words.begin(), words.end(), 0.0F);
  HostAccess::put(A, words);
  return A;
}

TEST(Stream, GivesEveryBlockOnceInOrder) {
  for (Index rows = 1; rows <= 9; ++rows) {
    const SlowMatrix A = numbered_matrix(rows, 3);
    for (Index step = 1; step <= rows + 1; ++step) {
      for (Index depth = 1; depth <= 5; ++depth) {
        Machine machine(rows * 3);
        float next = 0;
        Index begin = 0;
        for (const Tile& tile : machine.stream(A.row_blocks(step), depth)) {
          EXPECT_EQ(tile.rows(), std::min(step, rows - begin));
          EXPECT_EQ(tile.cols(), 3);
          for (Index k = 0; k < tile.words(); ++k) {
            EXPECT_EQ(ConstView(tile).at(0, 0)[k], next++);
          }
          begin += tile.rows();
        }
        EXPECT_EQ(begin, rows);
        EXPECT_EQ(total(machine.phases()).io, (IoCount{rows * 3, 0}));
        EXPECT_EQ(machine.live(), 0);
      }
    }
  }
}

TEST(Stream, HoldsExactlyItsDepthOrWhatIsLeft) {
  constexpr Index kBlocks = 6;
  const SlowMatrix A = numbered_matrix(2 * kBlocks, 5);
  for (Index depth = 1; depth <= kBlocks + 3; ++depth) {
    Machine machine(1000);
    Index k = 0;
    for (const Tile& tile : machine.stream(A.row_blocks(2), depth)) {
      EXPECT_EQ(machine.live(), std::min(depth, kBlocks - k) * tile.words());
      ++k;
    }
    EXPECT_EQ(k, kBlocks);
    EXPECT_EQ(total(machine.phases()).peak, std::min(depth, kBlocks) * 10);
  }
}

TEST(Stream, FitsExactlyItsDepth) {
  const SlowMatrix A = numbered_matrix(8, 1);
  for (Index depth = 1; depth <= 3; ++depth) {
    const auto pass = [&](Index M) {
      Machine machine(M);
      for (const Tile& tile : machine.stream(A.row_blocks(2), depth)) {
        EXPECT_EQ(tile.rows(), 2);
      }
    };
    EXPECT_NO_THROW(pass(2 * depth));
    EXPECT_THROW(pass(2 * depth - 1), FastMemoryOverflow);
  }
}

TEST(Stream, WalksColumnsOfAStripOfRows) {
  const SlowMatrix A = numbered_matrix(5, 7);
  Machine machine(100);
  Index begin = 0;
  for (const Tile& tile : machine.stream(A.column_blocks({1, 4}, 3), 2)) {
    EXPECT_EQ(tile.rows(), 3);
    EXPECT_EQ(tile.cols(), std::min<Index>(3, 7 - begin));
    for (Index i = 0; i < tile.rows(); ++i) {
      for (Index j = 0; j < tile.cols(); ++j) {
        EXPECT_EQ(tile(i, j), static_cast<float>((i + 1) * 7 + begin + j));
      }
    }
    begin += tile.cols();
  }
  EXPECT_EQ(begin, 7);
  EXPECT_EQ(total(machine.phases()).io, (IoCount{21, 0}));
}

TEST(Stream, LeftEarlyReleasesWhatItHeld) {
  const SlowMatrix A = numbered_matrix(10, 2);
  Machine machine(100);
  for (const Tile& tile : machine.stream(A.row_blocks(1), 4)) {
    if (tile(0, 0) == 4) {
      break;
    }
  }
  EXPECT_EQ(machine.live(), 0);
  EXPECT_EQ(total(machine.phases()).io, (IoCount{12, 0})) << "three blocks and three ahead";
}

TEST(Stream, LeftByAnOverflowReleasesWhatItHeld) {
  const SlowMatrix A = numbered_matrix(10, 2);
  Machine machine(5);
  EXPECT_THROW(
      {
        for (const Tile& tile : machine.stream(A.row_blocks(1), 3)) {
          FAIL() << "6 words do not fit: " << tile.words();
        }
      },
      FastMemoryOverflow);
  EXPECT_EQ(machine.live(), 0);
}

TEST(Stream, HoldsAtLeastOneBlock) {
  const SlowMatrix A = numbered_matrix(2, 2);
  Machine machine(4);
  EXPECT_THROW(static_cast<void>(machine.stream(A.row_blocks(1), 0)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(machine.stream(A.row_blocks(1), -1)), ShapeMismatch);
}

// ---- Reads during the caller's computation -----------------------------------------------

using Log = std::vector<std::string>;

// A store with reads ahead that arrive only when they are awaited, at their original address. The
// read that begins with row `fails` does not arrive.
class LateBacking : public Backing {
 public:
  LateBacking(Index rows, Index cols, Log& log, Index fails = -1)
      : words_(rows, cols), log_(log), fails_(fails) {}
  void read(Range rows, Range columns, std::span<float> to) const override {
    words_.read(rows, columns, to);
  }
  void write(Range rows, Range columns, std::span<const float> from) override {
    words_.write(rows, columns, from);
  }
  void read_tile(Range rows, Range columns, Orientation orientation,
                 std::span<float> to) const override {
    log_.push_back("read " + std::to_string(rows.begin));
    words_.read_tile(rows, columns, orientation, to);
  }
  std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns, Orientation orientation,
                                    std::span<float> to) const override {
    log_.push_back("begin " + std::to_string(rows.begin));
    return std::make_unique<Late>(log_, rows.begin, rows.begin == fails_,
                                  [this, rows, columns, orientation, to] {
                                    words_.read_tile(rows, columns, orientation, to);
                                  });
  }

 private:
  class Late final : public Fetch {
   public:
    Late(Log& log, Index row, bool fails, std::function<void()> arrive)
        : log_(log), row_(row), fails_(fails), arrive_(std::move(arrive)) {}
    ~Late() override { EXPECT_TRUE(waited_for_) << row_ << ": left while it goes on"; }
    void wait() noexcept override {
      if (!waited_for_) {
        log_.push_back("end " + std::to_string(row_));
        arrive_();
      }
      waited_for_ = true;
    }
    void finish() override {
      wait();
      if (fails_) {
        throw std::runtime_error("row " + std::to_string(row_) + " is lost");
      }
    }

   private:
    Log& log_;
    Index row_;
    bool fails_;
    std::function<void()> arrive_;
    bool waited_for_ = false;
  };

  RamBacking words_;
  Log& log_;
  Index fails_;
};

// A store that reads ahead in another thread.
class ThreadBacking final : public RamBacking {
 public:
  using RamBacking::RamBacking;
  std::unique_ptr<Fetch> fetch_tile(Range rows, Range columns, Orientation orientation,
                                    std::span<float> to) const override {
    return std::make_unique<Threaded>([this, rows, columns, orientation, to] {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
      read_tile(rows, columns, orientation, to);
    });
  }

 private:
  class Threaded final : public Fetch {
   public:
    explicit Threaded(std::function<void()> read) : thread_(std::move(read)) {}
    void wait() noexcept override {
      if (thread_.joinable()) {
        thread_.join();
      }
    }
    void finish() override { wait(); }

   private:
    std::thread thread_;
  };
};

SlowMatrix numbered_matrix(Index rows, Index cols, std::unique_ptr<Backing> backing) {
  SlowMatrix A("A", rows, cols, std::move(backing));
  std::vector<float> words(static_cast<std::size_t>(rows * cols));
  std::iota(words.begin(), words.end(), 0.0F);
  HostAccess::put(A, words);
  return A;
}

SlowMatrix late(Index rows, Index cols, Log& log, Index fails = -1) {
  return numbered_matrix(rows, cols, std::make_unique<LateBacking>(rows, cols, log, fails));
}

Index reads(const Machine& machine) {
  return total(machine.phases()).io.reads;
}

TEST(Stream, BeginsItsReadsBeforeItWaitsForThePresentOne) {
  Log log;
  const SlowMatrix A = late(4, 3, log);
  Machine machine(100);
  Index k = 0;
  for (const Tile& tile : machine.stream(A.row_blocks(1), 2)) {
    log.push_back("use " + std::to_string(k));
    EXPECT_EQ(tile(0, 0), static_cast<float>(3 * k));
    ++k;
  }
  EXPECT_EQ(log, (Log{"begin 0", "begin 1", "end 0", "use 0", "begin 2", "end 1", "use 1",
                      "begin 3", "end 2", "use 2", "end 3", "use 3"}));
}

TEST(Stream, OfOneBlockAtATimeReadsWhenItIsNeeded) {
  Log log;
  const SlowMatrix A = late(2, 3, log);
  Machine machine(100);
  for (const Tile& tile : machine.stream(A.row_blocks(1))) {
    log.push_back("use " + std::to_string(tile.words()));
  }
  EXPECT_EQ(log, (Log{"read 0", "use 3", "read 1", "use 3"}));
}

TEST(Stream, ChargesATileWhenItsReadBeginsAndCountsItsWordsWhenItEnds) {
  constexpr Index kBlocks = 5;
  for (Index depth = 2; depth <= kBlocks + 2; ++depth) {
    Log log;
    const SlowMatrix A = late(2 * kBlocks, 3, log);
    Machine machine(1000);
    Index k = 0;
    for (const Tile& tile : machine.stream(A.row_blocks(2), depth)) {
      EXPECT_EQ(machine.live(), std::min(depth, kBlocks - k) * tile.words());
      ++k;
      EXPECT_EQ(reads(machine), k * tile.words());
    }
    EXPECT_EQ(total(machine.phases()).peak, std::min(depth, kBlocks) * 6);
    EXPECT_EQ(machine.live(), 0);
  }
}

// Hears a tile only once its words have arrived, and hears the end of each such tile.
class Witness final : public Listener {
 public:
  explicit Witness(Log& log) : log_(log) {}
  void on(const Event& event) noexcept override {
    const bool read = event.kind == Event::Kind::read;
    log_.push_back((read ? "heard #" : "gone #") + std::to_string(event.tile) + " live " +
                   std::to_string(event.live));
  }

 private:
  Log& log_;
};

TEST(Stream, TellsOfAReadWhenTheWordsAreThere) {
  Log log;
  const SlowMatrix A = late(3, 2, log);
  Machine machine(100);
  Witness witness(log);
  machine.listen(witness);
  for (const Tile& tile : machine.stream(A.row_blocks(1), 2)) {
    static_cast<void>(tile);
  }
  EXPECT_EQ(log, (Log{"begin 0", "begin 1", "end 0", "heard #0 live 4", "gone #0 live 2", "begin 2",
                      "end 1", "heard #1 live 4", "gone #1 live 2", "end 2", "heard #2 live 2",
                      "gone #2 live 0"}));
}

// Tiles and counts are the same for every store, depth and orientation.
TEST(Stream, GivesTheSameFromAnyStore) {
  Log log;
  for (const Index rows : {1, 2, 5, 19}) {
    constexpr Index kCols = 18;
    const SlowMatrix stores[] = {
        numbered_matrix(rows, kCols, std::make_unique<RamBacking>(rows, kCols)),
        late(rows, kCols, log),
        numbered_matrix(rows, kCols, std::make_unique<ThreadBacking>(rows, kCols))};
    for (const SlowMatrix& A : stores) {
      for (Index step = 1; step <= rows + 1; ++step) {
        for (Index depth = 1; depth <= 4; ++depth) {
          Machine machine(std::min(rows, depth * step) * kCols);
          Index begin = 0;
          for (const Tile& tile : machine.stream(A.row_blocks(step), depth)) {
            for (Index i = 0; i < tile.rows(); ++i) {
              for (Index j = 0; j < kCols; ++j) {
                ASSERT_EQ(tile(i, j), static_cast<float>((begin + i) * kCols + j));
              }
            }
            begin += tile.rows();
          }
          EXPECT_EQ(begin, rows);
          begin = 0;
          for (const Tile& tile : machine.stream(transposed(A.row_blocks(step)), depth)) {
            for (Index i = 0; i < tile.cols(); ++i) {
              for (Index j = 0; j < kCols; ++j) {
                ASSERT_EQ(tile(j, i), static_cast<float>((begin + i) * kCols + j));
              }
            }
            begin += tile.cols();
          }
          EXPECT_EQ(begin, rows);
          EXPECT_EQ(total(machine.phases()).io, (IoCount{2 * rows * kCols, 0}));
          EXPECT_EQ(total(machine.phases()).peak, machine.capacity());
        }
      }
    }
  }
}

TEST(Stream, LeftEarlyWaitsForWhatGoesOnAndCountsIt) {
  Log log;
  const SlowMatrix A = late(10, 2, log);
  Machine machine(100);
  for (const Tile& tile : machine.stream(A.row_blocks(1), 3)) {
    if (tile(0, 0) == 2) {
      break;
    }
  }
  EXPECT_EQ(log,
            (Log{"begin 0", "begin 1", "begin 2", "end 0", "begin 3", "end 1", "end 2", "end 3"}));
  EXPECT_EQ(reads(machine), 8) << "two blocks, and two ahead that the store moved";
  EXPECT_EQ(machine.live(), 0);
}

// Running reads end before the words that they fill are freed, and are not counted.
TEST(Stream, ThatOutlivesItsMachineReadsNoMore) {
  Log log;
  const SlowMatrix A = late(4, 2, log);
  auto machine = std::make_unique<Machine>(100);
  const std::unique_ptr<Stream> begun(new Stream(machine->stream(A.row_blocks(1), 3)));
  const std::unique_ptr<Stream> not_begun(new Stream(machine->stream(A.row_blocks(1), 3)));
  { const Stream over = machine->stream(A.row_blocks(1), 3); }
  auto present = begun->begin();
  EXPECT_EQ((*present)(0, 1), 1);
  machine.reset();
  EXPECT_EQ(log, (Log{"begin 0", "begin 1", "begin 2", "end 0", "end 1", "end 2"}));
  EXPECT_EQ((*present).words(), 0);
  for (Stream* stream : {begun.get(), not_begun.get()}) {
    EXPECT_EQ(thrown<ShapeMismatch>([&] { stream->begin(); }),
              "required: a stream reads while its machine lives");
  }
}

// Blocks that arrived are counted, and stay until the stream ends. Other blocks are freed without
// an event.
TEST(Stream, LeftByAReadThatFailedLeavesTheMachineAsItWas) {
  Log log;
  const SlowMatrix A = late(6, 2, log, 2);
  Machine machine(100);
  Witness witness(log);
  machine.listen(witness);
  const Tile before = machine.initialize("before", 1);
  log.clear();
  Index used = 0;
  EXPECT_THROW(
      for (const Tile& tile
           : machine.stream(A.row_blocks(1), 2)) { used += tile.rows(); },
      std::runtime_error);
  EXPECT_EQ(used, 2);
  EXPECT_EQ(log, (Log{"begin 0", "begin 1", "end 0", "heard #1 live 5", "gone #1 live 3", "begin 2",
                      "end 1", "heard #2 live 5", "gone #2 live 3", "begin 3", "end 2", "end 3",
                      "heard #4 live 3", "gone #4 live 1"}));
  EXPECT_EQ(reads(machine), 6);
  EXPECT_EQ(machine.live(), 1);
  machine.silence(witness);
}

TEST(Stream, LeftEarlyWithAReadThatFailsDoesNotCountIt) {
  Log log;
  const SlowMatrix A = late(6, 2, log, 1);
  Machine machine(100);
  for (const Tile& tile : machine.stream(A.row_blocks(1), 3)) {
    static_cast<void>(tile);
    break;
  }
  EXPECT_EQ(log, (Log{"begin 0", "begin 1", "begin 2", "end 0", "end 1", "end 2"}));
  EXPECT_EQ(reads(machine), 4);
  EXPECT_EQ(machine.live(), 0);
}

TEST(Stream, WaitsForWhatGoesOnWhereTheNextBlockDoesNotFit) {
  Log log;
  const SlowMatrix A = late(6, 2, log);
  Machine machine(5);
  EXPECT_THROW(
      for (const Tile& tile
           : machine.stream(A.row_blocks(1), 3)) { static_cast<void>(tile); },
      FastMemoryOverflow);
  EXPECT_EQ(log, (Log{"begin 0", "begin 1", "end 0", "end 1"}));
  EXPECT_EQ(reads(machine), 4);
  EXPECT_EQ(machine.live(), 0);
}

// A tile that fits only if the others move. Words on their way arrive at their original address,
// and then move with their tile. If there is a free place, no read is awaited.
TEST(Stream, IsWaitedForBeforeTilesSlideTogether) {
  constexpr Index kM = 1 << 17;
  constexpr Index kCols = 64;
  Log log;
  const SlowMatrix A = late(3, kCols, log);
  Machine machine(kM);
  Tile first = machine.initialize("first", kM / 2);
  Index k = 0;
  for (const Tile& tile : machine.stream(A.row_blocks(1), 2)) {
    if (k == 0) {
      first.reset();
      const float* const at = ConstView(tile).at(0, 0);
      {
        const Tile small = machine.initialize("small", kM / 2 - 100);
        EXPECT_EQ(log, (Log{"begin 0", "begin 1", "end 0"})) << "waited for without need";
      }
      const Tile large = machine.initialize("large", kM - 2 * kCols);
      EXPECT_NE(ConstView(tile).at(0, 0), at) << "nothing slid: the test shows nothing";
      EXPECT_EQ(log.back(), "end 1");
    }
    for (Index j = 0; j < kCols; ++j) {
      ASSERT_EQ(ConstView(tile).at(0, j / kPanel)[j % kPanel], static_cast<float>(k * kCols + j));
    }
    ++k;
  }
  EXPECT_EQ(k, 3);
  EXPECT_EQ(reads(machine), 3 * kCols);
}

// Two streams in parallel: both begin all their reads before either waits.
TEST(Stream, GoesBesideAnotherStepByStep) {
  Log log;
  const SlowMatrix A = late(2, 2, log);
  const SlowMatrix B = late(2, 2, log);
  Machine machine(100);
  Stream a = machine.stream(A.row_blocks(1), 2);
  Stream b = machine.stream(B.row_blocks(1), 2);
  while (a.begin_read() && b.begin_read()) {
  }
  EXPECT_EQ(log, (Log{"begin 0", "begin 0", "begin 1", "begin 1"}));
  a.await();
  b.await();
  EXPECT_EQ(a.present()(0, 1), b.present()(0, 1));
  a.drop();
  b.drop();
  a.await();
  b.await();
  EXPECT_EQ(a.present()(0, 1), 3);
  a.drop();
  EXPECT_TRUE(a.over());
  EXPECT_FALSE(b.over());
}

}  // namespace
}  // namespace redblue
