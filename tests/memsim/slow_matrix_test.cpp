// A slow matrix is NaN until written, and has blocks only within its extents. It can use buffers of
// the caller directly, to the bit.

#include "memsim/slow_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/errors.hpp"
#include "memsim/host_access.hpp"
#include "memsim/machine.hpp"
#include "tests/support/print.hpp"

namespace redblue {
namespace {

using Buffer = std::vector<float>;

bool same_bits(const Buffer& a, const Buffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Returns every kind of float: both zeros, infinities, subnormals, quiet and signalling NaNs with
// payloads.
Buffer strange_words(std::size_t count) {
  const std::uint32_t patterns[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                    0xffc12345, 0x7f812345, 0xff800001, 0x00000001, 0x807fffff,
                                    0x7f7fffff, 0x3f800000, 0xdeadbeef};
  Buffer words(count);
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = std::bit_cast<float>(patterns[i % std::size(patterns)]);
  }
  return words;
}

TEST(SlowMatrix, IsNaNWhenFresh) {
  SlowMatrix A("A", 3, 5);
  EXPECT_EQ(A.name(), "A");
  EXPECT_EQ(A.rows(), 3);
  EXPECT_EQ(A.cols(), 5);
  Machine machine(15);
  const Tile a = machine.read(A.whole());
  for (Index i = 0; i < 3; ++i) {
    for (Index j = 0; j < 5; ++j) {
      EXPECT_TRUE(std::isnan(a(i, j)));
    }
  }
}

TEST(SlowMatrix, HasAtLeastOneRowAndColumn) {
  EXPECT_THROW(static_cast<void>(SlowMatrix("A", 0, 5)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(SlowMatrix("A", 5, 0)), ShapeMismatch);
}

TEST(SlowMatrix, WithMoreWordsThanCanBeCountedIsRefused) {
  EXPECT_THROW(static_cast<void>(SlowMatrix("A", Index{1} << 32, Index{1} << 32)), CountOverflow);
}

TEST(SlowMatrix, GivesNoBlockThatLeavesIt) {
  SlowMatrix A("A", 4, 6);
  const SlowMatrix& constant = A;
  const std::pair<Range, Range> outside[] = {{{-1, 2}, {0, 6}}, {{0, 5}, {0, 6}}, {{0, 4}, {0, 7}},
                                             {{0, 4}, {-1, 6}}, {{3, 2}, {0, 6}}, {{0, 4}, {5, 4}},
                                             {{5, 5}, {0, 6}},  {{0, 4}, {7, 7}}};
  for (const auto& [rows, columns] : outside) {
    EXPECT_THROW(static_cast<void>(A.block(rows, columns)), ShapeMismatch);
    EXPECT_THROW(static_cast<void>(constant.block(rows, columns)), ShapeMismatch);
  }
  EXPECT_THROW(static_cast<void>(A.row_block({2, 5})), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(constant.row_block({-1, 1})), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(A.column_blocks({0, 5}, 2)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(A.row_blocks(0)), ShapeMismatch);
  EXPECT_THROW(static_cast<void>(A.column_blocks({0, 4}, 0)), ShapeMismatch);
  try {
    static_cast<void>(A.block({1, 5}, {2, 3}));
    FAIL() << "the block leaves A";
  } catch (const ShapeMismatch& error) {
    const std::string message = error.what();
    for (const char* part : {"[1, 5)", "[2, 3)", "A", "4 x 6"}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
}

TEST(SlowMatrix, BlocksKnowTheirRanges) {
  const SlowMatrix A("A", 4, 6);
  const ConstBlock block = A.block({1, 3}, {2, 6});
  EXPECT_EQ(&block.matrix(), &A);
  EXPECT_EQ(block.row_range(), (Range{1, 3}));
  EXPECT_EQ(block.column_range(), (Range{2, 6}));
  EXPECT_EQ(block.rows(), 2);
  EXPECT_EQ(block.cols(), 4);
  EXPECT_EQ(A.row_block({1, 2}).column_range(), (Range{0, 6}));
  EXPECT_EQ(A.whole().row_range(), (Range{0, 4}));
}

// A block is the pieces of its rows, in order, for reads and writes. Words around it do not change.
TEST(SlowMatrix, MovesExactlyTheWindow) {
  Buffer words(24);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<float>(i);
  }
  SlowMatrix A("A", 4, 6);
  HostAccess::put(A, words);
  Machine machine(100);
  Tile tile = machine.read(A.block({1, 3}, {2, 5}));
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      EXPECT_EQ(tile(i, j), static_cast<float>((i + 1) * 6 + j + 2));
      tile(i, j) = -1 - static_cast<float>(3 * i + j);
    }
  }
  machine.write(tile, A.block({2, 4}, {3, 6}));
  Buffer after(words.size());
  HostAccess::get(A, after);
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j) {
      words[static_cast<std::size_t>((i + 2) * 6 + 3 + j)] = -1 - static_cast<float>(3 * i + j);
    }
  }
  EXPECT_EQ(after, words);
}

TEST(SlowMatrix, KeepsEveryBit) {
  const Buffer words = strange_words(63);
  SlowMatrix A("A", 7, 9);
  SlowMatrix B("B", 7, 9);
  HostAccess::put(A, words);
  Machine machine(6);
  for (const Range I : blocks(7, 2)) {
    for (const Range J : blocks(9, 3)) {
      machine.write(machine.read(A.block(I, J)), B.block(I, J));
    }
  }
  Buffer back(words.size());
  HostAccess::get(B, back);
  EXPECT_TRUE(same_bits(words, back));
}

TEST(Borrow, UsesTheCallersWordsInPlace) {
  const Buffer words = strange_words(20);
  Buffer target(words.size(), 0.0F);
  const SlowMatrix A = borrow("A", words.data(), 5, 4);
  SlowMatrix B = borrow("B", target.data(), 5, 4);
  Machine machine(20);
  machine.write(machine.read(A.whole()), B.whole());
  EXPECT_TRUE(same_bits(words, target)) << "written straight into the buffer";

  target[7] = 42;  // the caller changes a word: the matrix sees it
  const Tile tile = machine.read(B.row_block({1, 2}));
  EXPECT_EQ(tile(0, 3), 42);
}

TEST(Borrow, ForReadingAloneRefusesWrites) {
  const Buffer words(6, 1.5F);
  SlowMatrix A = borrow("A", words.data(), 2, 3);  // copy elision drops the const
  Machine machine(6);
  const Tile tile = machine.initialize("t", 2, 3, 9);
  EXPECT_THROW(machine.write(tile, A.whole()), std::logic_error);
  EXPECT_EQ(total(machine.phases()).io, IoCount{});
  EXPECT_EQ(words, Buffer(6, 1.5F));
  static_assert(
      std::is_same_v<decltype(borrow("A", std::declval<const float*>(), 1, 1)), const SlowMatrix>);
}

// Row k of a selection is the k-th row of its ranges, in their order. Tiles may have any size and
// orientation. A write reaches only these rows.
TEST(SelectedRows, AreRowsInAnyOrder) {
  const Index rows = 60, cols = 37;
  const Buffer words = strange_words(static_cast<std::size_t>(rows * cols));
  SlowMatrix A("A", rows, cols);
  SlowMatrix B("B", rows, cols);
  HostAccess::put(A, words);
  const std::vector<Range> ranges = {{40, 59}, {7, 8}, {3, 4}, {20, 20}, {9, 17}, {0, 2}, {4, 7}};
  const SlowMatrix from = selected_rows(std::as_const(A), ranges);
  SlowMatrix to = selected_rows(B, ranges);
  std::vector<Index> order;
  for (const Range range : ranges) {
    for (Index i = range.begin; i < range.end; ++i) {
      order.push_back(i);
    }
  }
  ASSERT_EQ(from.rows(), std::ssize(order));
  Machine machine(rows * cols);
  for (const Index r : {1, 5, 16, 23, 34}) {
    for (const Index c : {1, 16, 20, 37}) {
      HostAccess::put(B, Buffer(words.size(), 0.0F));
      for (const Range I : blocks(from.rows(), r)) {
        for (const Range J : blocks(cols, c)) {
          const bool straight = (I.begin + J.begin) % 2 == 0;
          if (straight) {
            machine.write(machine.read(from.block(I, J)), to.block(I, J));
          } else {
            machine.write(machine.read(transposed(from.block(I, J))), transposed(to.block(I, J)));
          }
        }
      }
      Buffer expected(words.size(), 0.0F);
      for (const Index i : order) {
        std::copy_n(words.begin() + i * cols, cols, expected.begin() + i * cols);
      }
      Buffer found(words.size());
      HostAccess::get(B, found);
      EXPECT_TRUE(same_bits(found, expected)) << r << " rows, " << c << " columns";
    }
  }
  const Tile tile = machine.read(from.row_block({18, 21}));
  Buffer bits, expected;
  for (Index i = 0; i < 3; ++i) {
    const Index row = order[static_cast<std::size_t>(18 + i)];
    for (Index j = 0; j < cols; ++j) {
      bits.push_back(tile(i, j));
      expected.push_back(words[static_cast<std::size_t>(row * cols + j)]);
    }
  }
  EXPECT_TRUE(same_bits(bits, expected));
}

TEST(SlowMatrix, MovesWithItsWords) {
  SlowMatrix A("A", 2, 2);
  HostAccess::put(A, Buffer{1, 2, 3, 4});
  SlowMatrix B = std::move(A);
  EXPECT_EQ(B.name(), "A");
  SlowMatrix C("C", 1, 1);
  C = std::move(B);
  EXPECT_EQ(C.rows(), 2);
  Buffer words(4);
  HostAccess::get(C, words);
  EXPECT_EQ(words, (Buffer{1, 2, 3, 4}));
  static_assert(!std::is_copy_constructible_v<SlowMatrix> &&
                !std::is_copy_assignable_v<SlowMatrix>);
}

}  // namespace
}  // namespace redblue
