// Tests that a journal returns exactly the lines that were complete when its process ended.

#include "runtime/system/journal.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

using Lines = std::vector<std::string>;

TEST(Journal, GivesBackWhatWasAppended) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "journal";
  {
    Journal fresh(path);
    EXPECT_EQ(fresh.lines(), Lines());
    fresh.append("one\n");
    fresh.append("two\n");
  }
  Journal again(path);
  EXPECT_EQ(again.lines(), (Lines{"one", "two"}));
  again.append("three\n");
  EXPECT_EQ(content_of(path), "one\ntwo\nthree\n");
}

// A kill may cut the file at any byte. The lines before the cut remain, and new lines follow them.
TEST(Journal, ForgetsALineThatWasCut) {
  const std::string text = "one\ntwo\nthree\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const TemporaryDirectory directory;
    const auto path = directory.path() / "journal";
    std::ofstream(path) << text.substr(0, cut);
    const auto whole = static_cast<std::size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut), '\n'));
    {
      Journal journal(path);
      EXPECT_EQ(journal.lines().size(), whole) << cut;
      journal.append("four\n");
    }
    EXPECT_EQ(Journal(path).lines().size(), whole + 1) << cut;
    EXPECT_EQ(Journal(path).lines().back(), "four") << cut;
  }
}

TEST(Journal, BelongsToOneAtATime) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "journal";
  const Journal first(path);
  try {
    const Journal second(path);
    FAIL() << "two have it";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("in use by another process"), std::string::npos);
  }
}

TEST(Journal, FailsWhereItCannotBe) {
  const TemporaryDirectory directory;
  EXPECT_THROW(Journal(directory.path() / "no" / "journal"), std::system_error);
  EXPECT_THROW(Journal(directory.path()), std::system_error);
}

TEST(Journal, IsClearedAndRemoved) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "journal";
  Journal journal(path);
  journal.append("one\n");
  journal.clear();
  journal.append("two\n");
  EXPECT_EQ(content_of(path), "two\n");
  journal.remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

// A file that is not a journal may have no end, so it is not read.
TEST(Journal, IsARegularFileOfItsSize) {
  EXPECT_THROW(Journal("/dev/zero"), std::runtime_error);
  const TemporaryDirectory directory;
  const auto path = directory.write("journal", "one\n");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_THROW(Journal{path}, std::runtime_error);
}

}  // namespace
}  // namespace redblue
