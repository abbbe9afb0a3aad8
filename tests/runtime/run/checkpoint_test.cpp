#include "runtime/run/checkpoint.hpp"

#include <cstdint>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/system/input_error.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// With the checksum of the content, FNV-1a: as another build of redblue might have written it.
std::string checkpoint_of(const std::string& content) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const char byte : content) {
    sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  }
  return fmt::format("redblue checkpoint 1 {:016x}\n{}", sum, content);
}

TEST(CheckpointFile, IsReadAsItWasWritten) {
  const TemporaryDirectory directory;
  Checkpoint checkpoint;
  checkpoint.plan = "p";
  checkpoint.operands = {{"A1", UINT64_MAX}};
  checkpoint.units = 3;
  checkpoint.sum = {1, -2, 0.5};
  write(checkpoint, directory / "c");
  const Checkpoint found = read_checkpoint(directory / "c").value();
  EXPECT_EQ(found.plan, "p");
  EXPECT_EQ(found.operands, checkpoint.operands);
  EXPECT_EQ(found.units, 3);
  EXPECT_EQ(found.counted, checkpoint.counted);
  EXPECT_EQ(found.sum, checkpoint.sum);
  EXPECT_FALSE(read_checkpoint(directory / "none"));
}

// However right its checksum is: keys that are missing or of other types, and a sum of other words
// than it says.
TEST(CheckpointFile, OfAnotherContentIsRefused) {
  const TemporaryDirectory directory;
  write(Checkpoint(), directory / "c");
  std::string good = content_of(directory / "c");
  good.erase(0, good.find('\n') + 1);
  ASSERT_TRUE(good.ends_with("\"sum\":0}\n")) << good;
  const std::string head = good.substr(0, good.size() - 3);
  for (const std::string& content :
       {std::string("{}\n"), std::string("[]\n"), head + "1}\n", head + "1}\nabc",
        head + "1}\nabcde", head + "4611686018427387904}\n", head + "-1}\n", good + "abcd"}) {
    const std::filesystem::path file = directory.write("c", checkpoint_of(content));
    EXPECT_EQ(thrown<InputError>([&] { read_checkpoint(file); }),
              file.string() + ": no checkpoint, or a damaged one: remove it, and begin anew")
        << content;
  }
}

}  // namespace
}  // namespace redblue
