// Streams over matrices of a store, with reads in other threads, give the same tiles, counts and
// peak as over main memory. A stream that fails, or is left early, leaves no read running.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "memsim/store/store.hpp"
#include "memsim/stream.hpp"
#include "tests/support/print.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/words.hpp"

namespace redblue {
namespace {

constexpr Index kRow = kSectorWords;  // a row is a granule

// A store with matrices in which each word is its own index.
class Numbered {
 public:
  explicit Numbered(StoreOptions options = {.granule_bytes = kSector})
      : store_(directory_ / "store", std::move(options)) {}

  SlowMatrix matrix(const std::string& name, Index rows, Index cols) {
    const auto file = store_.create(name + ".rb", StoreLayout::row_major(rows, cols, kSector),
                                    StoreFile::Life::temporary);
    SlowMatrix made = store_.matrix(name, file);
    HostAccess::put(made, numbered(rows * cols));
    file->matrix()->flush();
    return made;
  }
  // Changes a byte of a row in the file. Each row must be one granule.
  void damage(const std::string& name, Index row) const {
    std::fstream file(store_.path(name + ".rb"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp((2 + row) * kSector);  // behind the header and a table
    file.put('\x5a');
    EXPECT_TRUE(file.good());
  }
  Store& store() { return store_; }

 private:
  TemporaryDirectory directory_;
  Store store_;
};

// The tiles, counts and peak of a walk over some of the blocks, and the words live after it.
struct Walk {
  Buffer words;
  IoCount io;
  Index peak = 0;
  Index live = 0;
  friend bool operator==(const Walk&, const Walk&) = default;
};

template <class Sequence>
Walk walk(const Sequence& blocks, Index depth, Index M, Index most) {
  Walk seen;
  Machine machine(M);
  {
    const Phase phase(machine, "walk");
    for (const Tile& tile : machine.stream(blocks, depth)) {
      if (most-- == 0) {
        break;
      }
      for (Index i = 0; i < tile.rows(); ++i) {
        for (Index j = 0; j < tile.cols(); ++j) {
          seen.words.push_back(tile(i, j));
        }
      }
    }
  }
  const PhaseCounts all = total(machine.phases());
  seen.io = all.io;
  seen.peak = all.peak;
  seen.live = machine.live();
  return seen;
}

TEST(StoredStream, IsThatOverMainMemoryAlsoWhereItIsLeftEarly) {
  Random random(1);
  Numbered numbers;
  for (int k = 0; k < 12; ++k) {
    const Index rows = between(random, 1, 60);
    const Index cols = between(random, 1, 90);
    const SlowMatrix stored = numbers.matrix("A", rows, cols);
    SlowMatrix in_memory("A", rows, cols);
    HostAccess::put(in_memory, numbered(rows * cols));
    for (int w = 0; w < 10; ++w) {
      const Index step = between(random, 1, rows);
      const Index depth = between(random, 1, 5);
      const Index most = between(random, 0, ceil_div(rows, step));
      const Index M = rows * cols;  // whatever the depth
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols) + " step " +
                   std::to_string(step) + " depth " + std::to_string(depth) + " most " +
                   std::to_string(most));
      const Walk straight = walk(stored.row_blocks(step), depth, M, most);
      EXPECT_EQ(straight, walk(in_memory.row_blocks(step), depth, M, most));
      EXPECT_EQ(straight.live, 0);
      EXPECT_EQ(walk(transposed(stored.row_blocks(step)), depth, M, most),
                walk(transposed(in_memory.row_blocks(step)), depth, M, most));
      const Index columns = between(random, 1, cols);
      const Range some{rows / 3, rows / 3 + 1};
      EXPECT_EQ(walk(stored.column_blocks(some, columns), depth, M, most),
                walk(in_memory.column_blocks(some, columns), depth, M, most));
    }
  }
}

constexpr Index kRows = 8;

// Counts the rows until the error. Returns the message of the error.
template <class Error>
std::string walk_until_it_throws(Machine& machine, const SlowMatrix& A, Index depth, Index& rows) {
  rows = 0;
  try {
    for (const Tile& tile : machine.stream(A.row_blocks(1), depth)) {
      EXPECT_EQ(tile(0, 1), static_cast<float>(rows * kRow + 1));
      ++rows;
    }
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(StoredStream, ThrowsWhenItComesToABlockThatFailed) {
  for (const Index damaged : {0, 3, 7}) {
    for (Index depth = 1; depth <= 4; ++depth) {
      Numbered numbers;
      const SlowMatrix A = numbers.matrix("A", kRows, kRow);
      numbers.damage("A", damaged);
      Machine machine(kRows * kRow);
      Index rows = 0;
      const std::string message = walk_until_it_throws<StoreError>(machine, A, depth, rows);
      EXPECT_EQ(rows, damaged) << "all before it are there";
      EXPECT_NE(message.find("A.rb"), std::string::npos) << message;
      EXPECT_NE(message.find("at offset " + std::to_string((2 + damaged) * kSector)),
                std::string::npos)
          << message;
      EXPECT_EQ(machine.live(), 0);
    }
  }
}

// Blocks that arrived were moved, whether or not they were used. The failed block was not.
TEST(StoredStream, CountsWhatArrivedBehindABlockThatFailed) {
  constexpr Index kDamaged = 4;
  for (Index depth = 1; depth <= 6; ++depth) {
    Numbered numbers;
    const SlowMatrix A = numbers.matrix("A", kRows, kRow);
    numbers.damage("A", kDamaged);
    Machine machine(kRows * kRow);
    Index rows = 0;
    numbers.store().ledger().begin(Purpose::kernel);
    walk_until_it_throws<StoreError>(machine, A, depth, rows);
    const Index behind = std::min(depth - 1, kRows - 1 - kDamaged);
    EXPECT_EQ(total(machine.phases()).io.reads, (kDamaged + behind) * kRow) << depth;
    const StoreBytes bytes = numbers.store().ledger().of(Purpose::kernel).read;
    EXPECT_EQ(bytes.words, (kDamaged + behind) * kSector);
    EXPECT_EQ(bytes.moved, (kDamaged + behind + 1) * kSector) << "what failed moved in vain";
  }
}

TEST(StoredStream, LeftBeforeABlockThatFailsNeedsItNot) {
  constexpr Index kDamaged = 3;
  for (Index depth = 1; depth <= 4; ++depth) {
    Numbered numbers;
    const SlowMatrix A = numbers.matrix("A", kRows, kRow);
    numbers.damage("A", kDamaged);
    Machine machine(kRows * kRow);
    Index rows = 0;
    for (const Tile& tile : machine.stream(A.row_blocks(1), depth)) {
      EXPECT_EQ(tile(0, 0), static_cast<float>(rows * kRow));
      if (++rows == kDamaged) {
        break;
      }
    }
    EXPECT_EQ(rows, kDamaged);
    EXPECT_EQ(total(machine.phases()).io.reads, (kDamaged + std::max<Index>(depth - 2, 0)) * kRow);
    EXPECT_EQ(machine.live(), 0);
  }
}

// Reads ahead also call the hook before they begin.
TEST(StoredStream, StopsBeforeAnyWindow) {
  struct Stopped : std::runtime_error {
    Stopped() : std::runtime_error("stopped") {}
  };
  for (Index depth = 1; depth <= 3; ++depth) {
    std::atomic<bool> stopped = false;
    Numbered numbers({.granule_bytes = kSector, .before_each = [&] {
                        if (stopped) {
                          throw Stopped();
                        }
                      }});
    const SlowMatrix A = numbers.matrix("A", kRows, kRow);
    Machine machine(kRows * kRow);
    Index rows = 0;
    EXPECT_THROW(
        for (const Tile& tile
             : machine.stream(A.row_blocks(1), depth)) {
          rows += tile.rows();
          stopped = stopped || rows == 3;
        },
        Stopped);
    EXPECT_GE(rows, 3);
    EXPECT_LT(rows, 3 + depth) << "those that were on their way";
    EXPECT_EQ(machine.live(), 0);
  }
}

// A queue with slow reads.
class SlowReads final : public TransferQueue {
 public:
  explicit SlowReads(std::unique_ptr<TransferQueue> inner) : inner_(std::move(inner)) {}
  void submit(Transfer& transfer) override { inner_->submit(transfer); }
  Transfer& wait() override {
    Transfer& transfer = inner_->wait();
    if (transfer.kind == Transfer::Kind::read) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    return transfer;
  }

 private:
  std::unique_ptr<TransferQueue> inner_;
};

// Other tiles come and go during two streams, until memory is fragmented and tiles slide together.
// Words on their way arrive where their tiles are then.
TEST(StoredStreams, ArriveWhereTheirTilesAreAlsoWhenThoseSlide) {
  constexpr Index kM = Index{1} << 17;
  constexpr Index kCols = 300;
  Numbered numbers({.granule_bytes = kSector, .queue = [] {
                      return std::make_unique<SlowReads>(make_queue(Engine::threads, 8));
                    }});
  const SlowMatrix A = numbers.matrix("A", 160, kCols);
  const SlowMatrix B = numbers.matrix("B", 160, kCols);
  int slid = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    Random random(seed);
    Machine machine(kM);
    std::vector<Tile> others;
    const Index step = between(random, 3, 20);
    Stream a = machine.stream(A.row_blocks(step), between(random, 2, 3));
    Stream b = machine.stream(transposed(B.row_blocks(step)), between(random, 2, 3));
    for (Index row = 0; row < 160; row += step) {
      while (a.begin_read()) {
      }
      while (b.begin_read()) {
      }
      // First before the tiles are awaited, then before they are used.
      for (int k = 0; k < 12; ++k) {
        if (k == 6) {
          a.await();
          b.await();
        }
        if (!others.empty() && between(random, 0, 2) == 0) {
          std::swap(others[static_cast<std::size_t>(
                        between(random, 0, static_cast<Index>(others.size()) - 1))],
                    others.back());
          others.pop_back();
          continue;
        }
        const float* const before = others.empty() ? nullptr : ConstView(others.front()).at(0, 0);
        const Index free = machine.capacity() - machine.live();
        if (free > 0) {
          others.push_back(machine.initialize(
              "other",
              between(random, 1, std::min(free, between(random, 0, 3) == 0 ? free : kM / 8)), 1,
              static_cast<float>(row)));
        }
        if (before != nullptr && k < 6) {
          slid += ConstView(others.front()).at(0, 0) != before ? 1 : 0;
        }
      }
      const Index rows = std::min(step, 160 - row);
      ASSERT_EQ(a.present().rows(), rows);
      ASSERT_EQ(b.present().cols(), rows);
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < kCols; ++j) {
          const auto word = static_cast<float>((row + i) * kCols + j);
          ASSERT_EQ(a.present()(i, j), word);
          ASSERT_EQ(b.present()(j, i), word);
        }
      }
      // Makes room for the next tiles.
      a.drop();
      b.drop();
      while (machine.capacity() - machine.live() < 6 * step * kCols) {
        others.pop_back();
      }
    }
    EXPECT_TRUE(a.over() && b.over());
    EXPECT_EQ(total(machine.phases()).io.reads, 2 * 160 * kCols);
  }
  EXPECT_GT(slid, 10) << "nothing slid: the test shows nothing";
}

}  // namespace
}  // namespace redblue
