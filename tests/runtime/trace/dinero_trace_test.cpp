// Tests that the trace has one line for each word that the machine counted, at its place in slow
// memory.

#include "runtime/trace/dinero_trace.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"
#include "tests/support/tested_kernel.hpp"
#include "tests/support/traced_runs.hpp"

namespace redblue {
namespace {

struct Dinero {
  std::string text;
  std::vector<DineroTrace::Placed> matrices;
  Index written = 0;
  Index all = 0;
  Part part;
};

Dinero dinero(const Request& request, Index most = kMostDineroWords) {
  Dinero found;
  std::tie(found.part, found.text) =
      followed(request, [&](Machine& machine, const Plan&, TextFile& file, const auto& go) {
        const DineroTrace trace(machine, file, most);
        go();
        trace.check();
        found.matrices = trace.matrices();
        found.written = trace.written();
        found.all = trace.all();
      });
  return found;
}

TEST(DineroTrace, IsALineForEachWord) {
  for (const Request& request : requests()) {
    SCOPED_TRACE(request.kernel);
    const Dinero found = dinero(request);
    Index last = 0;
    for (const auto& [name, rows, cols, weight, address] : found.matrices) {
      EXPECT_EQ(address % DineroTrace::kPage, 0);
      EXPECT_GT(address, last) << "they do not meet";
      last = address + rows * cols * weight * DineroTrace::kWord - 1;
    }
    Index counts[2] = {0, 0};
    std::set<std::uint64_t> read;
    std::istringstream lines(found.text);
    lines >> std::hex;
    std::uint64_t label = 0;
    std::uint64_t address = 0;
    while (lines >> label >> address) {
      ASSERT_LE(label, 1U);
      ++counts[label];
      const auto inside = [&](const DineroTrace::Placed& placed) {
        const auto at = static_cast<Index>(address) - placed.address;
        return at >= 0 && at % 4 == 0 &&
               at < placed.rows * placed.cols * placed.weight * DineroTrace::kWord;
      };
      ASSERT_TRUE(std::ranges::any_of(found.matrices, inside)) << address;
      read.insert(address);
    }
    EXPECT_EQ(counts[0], found.part.counted->total.io.reads);
    EXPECT_EQ(counts[1], found.part.counted->total.io.writes);
    EXPECT_EQ(found.written, found.part.counted->total.io.io());
    EXPECT_EQ(found.all, found.written);
    // Every operand is read completely, word by word.
    for (const Signature& given : tested_kernel(request.kernel).given) {
      const auto placed = std::ranges::find(found.matrices, given.name, &DineroTrace::Placed::name);
      ASSERT_NE(placed, found.matrices.end()) << given.name;
      for (Index word = 0; word < placed->rows * placed->cols * placed->weight; ++word) {
        ASSERT_TRUE(read.contains(static_cast<std::uint64_t>(placed->address + 4 * word)))
            << given.name << " " << word;
      }
    }
  }
}

// The words of a block, by hand.
TEST(DineroTrace, TakesBlocksRowByRow) {
  const TemporaryDirectory directory(TemporaryDirectory::in_memory());
  TextFile file(directory / "trace.din");
  Machine machine(10);
  SlowMatrix A("A", 3, 1000);
  SlowMatrix B("B", 2, 2);
  const DineroTrace trace(machine, file);
  {
    const Tile tile = machine.initialize("t", 2, 2);
    machine.write(tile, A.block({1, 3}, {998, 1000}));
    machine.write(tile, transposed(B.whole()));
  }
  static_cast<void>(machine.read(A.block({2, 3}, {999, 1000})));
  trace.check();
  file.finish();
  file.commit();
  EXPECT_EQ(content_of(directory / "trace.din"),
            "1 2f38\n1 2f3c\n1 3ed8\n1 3edc\n"
            "1 4000\n1 4004\n1 4008\n1 400c\n"
            "0 3edc\n");
}

TEST(DineroTrace, IsCutAnywhere) {
  const Request small = request("backward/small", {7, 5, 3}, 20);
  const std::string whole = dinero(small).text;
  for (const Index most : {1, 2, 7, 100}) {
    const Dinero cut = dinero(small, most);
    EXPECT_EQ(cut.written, most);
    EXPECT_EQ(cut.all, cut.part.counted->total.io.io());
    EXPECT_EQ(std::ranges::count(cut.text, '\n'), most);
    EXPECT_TRUE(whole.starts_with(cut.text));
  }
}

}  // namespace
}  // namespace redblue
