// Each file of tests/fuzz/corpus/TARGET, which fuzzing found or a person wrote, goes through its
// fuzz target (tests/fuzz/fuzz.hpp): the reader takes it or refuses it, and keeps its promises.

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

const std::filesystem::path kCorpora =
    std::filesystem::path(REDBLUE_SOURCE_DIR) / "tests/fuzz/corpus";

class Corpus : public ::testing::TestWithParam<fuzz::Target> {};

TEST_P(Corpus, IsTakenOrRefused) {
  const auto& [name, feed] = GetParam();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpora / name)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  EXPECT_FALSE(files.empty());
  feed("");
  for (const std::filesystem::path& file : files) {
    EXPECT_NO_THROW(feed(content_of(file))) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Corpus, ::testing::ValuesIn(fuzz::kTargets),
                         [](const auto& target) { return std::string(target.param.name); });

TEST(Corpora, AreThoseOfTheTargetsAndSmall) {
  constexpr std::uintmax_t kMost = std::uintmax_t{1} << 20;
  std::set<std::string> targets, corpora;
  for (const fuzz::Target& target : fuzz::kTargets) {
    targets.insert(target.name);
  }
  std::uintmax_t bytes = 0;
  for (const auto& corpus : std::filesystem::directory_iterator(kCorpora)) {
    corpora.insert(corpus.path().filename().string());
    for (const auto& file : std::filesystem::directory_iterator(corpus.path())) {
      bytes += file.file_size();
    }
  }
  EXPECT_EQ(corpora, targets);
  EXPECT_LE(bytes, kMost);
}

}  // namespace
}  // namespace redblue
