// The output of commands in the README and the pages is the actual one, to the letter. Exceptions
// are times, speeds and roundings, which depend on the machine, and output that is all about the
// machine.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/text/table.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

struct Shown {
  std::string command, output;
};

// The commands of a page's consoles.
void add_shown(const std::filesystem::path& page, std::vector<Shown>& all) {
  std::istringstream lines(content_of(page));
  bool console = false;
  for (std::string line; std::getline(lines, line);) {
    const std::string prompt = "$ redblue ";
    if (line.starts_with("```")) {
      console = line == "```console";
    } else if (console && line.starts_with("$ ")) {
      EXPECT_TRUE(line.starts_with(prompt)) << line;
      all.push_back({line.substr(prompt.size()), ""});
    } else if (console && !all.empty()) {
      all.back().output += line + "\n";
    }
  }
}

// The pages with consoles, from the root of the project.
std::vector<std::string> pages() {
  const std::filesystem::path root = REDBLUE_SOURCE_DIR;
  std::vector<std::string> all = {"README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md" &&
        content_of(entry.path()).find("```console\n") != std::string::npos) {
      all.push_back(entry.path().lexically_relative(root));
    }
  }
  std::ranges::sort(all);
  return all;
}

bool is_of_any_machine(const std::string& command) {
  const std::regex of_this_one("L[123]|time|^(measure|calibrate|check)\\b");
  return !std::regex_search(command, of_this_one);
}

std::string of_any_machine(const std::string& output) {
  const std::regex own(
      R"( +[0-9]+\.[0-9]{4}(?=\n)|\n[^\n]* GF/s[^\n]*|: error [^\n]*|relative error [^\n]*)");
  return std::regex_replace(output, own, "");
}

class Pages : public Cli, public testing::WithParamInterface<std::string> {};

TEST_P(Pages, ShowWhatCommandsPrint) {
  // Commands that name a file of the pages are given from the root of the project.
  const std::filesystem::path root = REDBLUE_SOURCE_DIR;
  std::filesystem::create_directory_symlink(root / "docs", directory_ / "docs");
  std::vector<Shown> all;
  add_shown(root / GetParam(), all);
  int compared = 0;
  for (const auto& [command, output] : all) {
    if (is_of_any_machine(command)) {
      SCOPED_TRACE(command);
      EXPECT_EQ(of_any_machine(data(command)), of_any_machine(output));
      ++compared;
    }
  }
  EXPECT_GE(compared, GetParam() == "README.md" ? 1 : 0) << "the pages are read";
}

INSTANTIATE_TEST_SUITE_P(Project, Pages, testing::ValuesIn(pages()), [](const auto& page) {
  std::string name = page.param;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

using Readme = Cli;

// What the first page says of the paper's large-cache algorithm: the words with its blocks as the
// paper prints them, the M that these need, and the words with the blocks that fit.
TEST_F(Readme, SaysWhichBlocksThePapersAlgorithmHas) {
  const std::string page = content_of(std::filesystem::path(REDBLUE_SOURCE_DIR) / "README.md");
  const std::string count = "count backward/large --n 4096 --d 64 --M 64K";
  const Json fitted = json(count);
  const Outcome outcome = redblue(count + " --blocks printed --format json");
  const Json printed = Json::parse(outcome.out);
  for (const Index words : {fitted["total"]["io"].get<Index>(), printed["total"]["io"].get<Index>(),
                            printed["total"]["peak"].get<Index>()}) {
    EXPECT_NE(page.find(grouped(words)), std::string::npos) << words;
  }
  EXPECT_GT(printed["total"]["peak"], 64 * 1024);
  // Algorithms 7 and 8 by hand, with Br = d = 64 rows and Bc = M / 4d = 256 keys in a block: A1,
  // A3, then X and Y for each of 64 row blocks; S and h; S, O, dO and A1 once, L, h and A2 for each
  // row block; g.
  const Index n = 4096, d = 64, row_blocks = n / d;
  EXPECT_EQ(printed["total"]["io"], 2 * n * d + row_blocks * 2 * d * d + 2 * n * d + 4 * n * d + n +
                                        row_blocks * 2 * n * d + d * d);
}

}  // namespace
}  // namespace redblue
