#include "runtime/run/checkpoint.hpp"

#include <cstdint>
#include <span>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "memsim/ranks/checksum.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/thrown.hpp"

namespace redblue {
namespace {

// Returns a checkpoint with a correct checksum of this content, as another build of redblue might
// write it.
std::string checkpoint_of(const std::string& content) {
  return fmt::format("redblue checkpoint 2 {:016x}\n{}",
                     checksum_of(std::as_bytes(std::span(content))), content);
}

TEST(CheckpointFile, IsReadAsItWasWritten) {
  const TemporaryDirectory directory;
  Checkpoint checkpoint;
  checkpoint.facts = {"p", "A1 of checksum 1"};
  checkpoint.forward = checkpoint.counted;
  checkpoint.units = 3;
  checkpoint.left = {1, -2, 0.5};
  checkpoint.links = {{}, {{{"A2", 0, 1}, {12, 1}}}};
  checkpoint.log = {.bytes = 48, .sum = UINT64_MAX};
  write(checkpoint, directory / "c");
  const Checkpoint found = read_checkpoint(directory / "c").value();
  EXPECT_EQ(found.facts, checkpoint.facts);
  EXPECT_EQ(found.forward, checkpoint.forward);
  EXPECT_EQ(found.units, 3);
  EXPECT_EQ(found.counted, checkpoint.counted);
  EXPECT_EQ(found.left, checkpoint.left);
  EXPECT_EQ(found.links, checkpoint.links);
  EXPECT_EQ(found.log, checkpoint.log);
  EXPECT_FALSE(read_checkpoint(directory / "none"));
}

// Content is refused even with a correct checksum: missing keys, wrong types, impossible units, or
// a wrong number of words.
TEST(CheckpointFile, OfAnotherContentIsRefused) {
  const TemporaryDirectory directory;
  write(Checkpoint(), directory / "c");
  std::string good = content_of(directory / "c");
  good.erase(0, good.find('\n') + 1);
  ASSERT_TRUE(good.ends_with("\"left\":0}\n")) << good;
  std::string negative = good;
  negative.replace(good.find("\"units\":0"), 9, "\"units\":-1");
  const std::string head = good.substr(0, good.size() - 3);
  for (const std::string& content :
       {std::string("{}\n"), std::string("[]\n"), head + "1}\n", head + "1}\nabc",
        head + "1}\nabcde", head + "4611686018427387904}\n", head + "-1}\n", good + "abcd",
        negative}) {
    const std::filesystem::path file = directory.write("c", checkpoint_of(content));
    EXPECT_EQ(thrown<InputError>([&] { read_checkpoint(file); }),
              fmt::format("{0}: no checkpoint, or a damaged one: remove {0}, and begin anew",
                          file.string()))
        << content;
  }
}

// A checkpoint belongs to one version. A checkpoint of 0.1.0 is not called damaged.
TEST(CheckpointFile, OfAnotherVersionIsRefused) {
  const TemporaryDirectory directory;
  const std::filesystem::path file =
      directory.write("c", "redblue checkpoint 1 0123456789abcdef\n{\"plan\":\"p\"}\n");
  EXPECT_EQ(thrown<InputError>([&] { read_checkpoint(file); }),
            file.string() +
                ": a checkpoint of another version of redblue: end that run with it, or remove "
                "this file");
  directory.write("c", "redblue checkpoint of a rank 1 0123456789abcdef\n{}\n");
  EXPECT_EQ(thrown<InputError>([&] {
              read_checkpoint(file);
            }).find(file.string() + ": a checkpoint of another"),
            0U);
}

}  // namespace
}  // namespace redblue
