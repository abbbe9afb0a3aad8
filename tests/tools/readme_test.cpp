// Tests that the README and the pages show the actual output of their commands, letter for letter.
// Exceptions are times, speeds and roundings, which depend on the machine, and output that is all
// about the machine.

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/text/table.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

// A command of a page and the output below it.
struct Shown {
  std::string page;
  int place = 0;  // the number of the command in its page
  std::string command, output;
  friend void PrintTo(const Shown& shown, std::ostream* out) { *out << shown.command; }
};

// Adds the commands in the consoles of a page.
void add_shown(const std::filesystem::path& root, const std::string& page,
               std::vector<Shown>& all) {
  std::istringstream lines(content_of(root / page));
  bool console = false;
  int place = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string prompt = "$ redblue ";
    if (line.starts_with("```")) {
      console = line == "```console";
    } else if (console && line.starts_with(prompt)) {
      all.push_back({page, place++, line.substr(prompt.size()), ""});
    } else if (console && line.starts_with("$ ")) {  // redblue refuses a command of another program
      all.push_back({page, place++, line, ""});
    } else if (console && place > 0) {
      all.back().output += line + "\n";
    }
  }
}

// Returns whether a page shows files, as ```json suite.json. Such a page is worked through from top
// to bottom.
bool is_walked_through(const std::filesystem::path& page) {
  return content_of(page).find("```json ") != std::string::npos;
}

// Returns the commands of the README and of docs/, without pages that are worked through.
std::vector<Shown> all_shown() {
  const std::filesystem::path root = REDBLUE_SOURCE_DIR;
  std::vector<std::string> pages = {"README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs")) {
    if (entry.path().extension() == ".md" && !is_walked_through(entry.path())) {
      pages.push_back(entry.path().lexically_relative(root));
    }
  }
  std::ranges::sort(pages);
  std::vector<Shown> all;
  for (const std::string& page : pages) {
    add_shown(root, page, all);
  }
  return all;
}

bool is_of_any_machine(const std::string& command) {
  const std::regex of_this_one("L[123]|time|^(measure|calibrate|tune|check)\\b");
  return !std::regex_search(command, of_this_one);
}

std::string of_any_machine(const std::string& output) {
  const std::regex own(
      R"( +[0-9]+\.[0-9]{4}(?=\n)|\n[^\n]* GF/s[^\n]*|: error [^\n]*|relative error [^\n]*)");
  return std::regex_replace(output, own, "");
}

class Pages : public Cli, public testing::WithParamInterface<Shown> {};

TEST_P(Pages, ShowWhatCommandsPrint) {
  // Commands that name a file of the pages run in the root of the project.
  std::filesystem::create_directory_symlink(std::filesystem::path(REDBLUE_SOURCE_DIR) / "docs",
                                            directory_ / "docs");
  const auto& [page, place, command, output] = GetParam();
  EXPECT_EQ(of_any_machine(data(command)), of_any_machine(output));
}

std::vector<Shown> shown_of_any_machine() {
  std::vector<Shown> all = all_shown();
  std::erase_if(all, [](const Shown& shown) { return !is_of_any_machine(shown.command); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Project, Pages, testing::ValuesIn(shown_of_any_machine()),
                         [](const auto& shown) {
                           std::string name =
                               fmt::format("{}_{}", shown.param.page, shown.param.place + 1);
                           std::ranges::replace_if(
                               name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(ThePages, HaveCommands) {
  EXPECT_GE(shown_of_any_machine().size(), 40U);
}

using Walk = Cli;

// A reader types the commands of a page in order, in a directory with the files of the page, and
// sees the output on the page.
TEST_F(Walk, ThroughTheTutorial) {
  const std::filesystem::path page =
      std::filesystem::path(REDBLUE_SOURCE_DIR) / "docs" / "tutorial.md";
  ASSERT_TRUE(is_walked_through(page));
  const std::string path = std::filesystem::path(REDBLUE_COMMAND).parent_path().string();
  std::istringstream lines(content_of(page));
  std::string block, file, expected, actual;
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      block = block.empty() ? line : "";
      file = block.starts_with("```json ") ? block.substr(8) : "";
    } else if (!file.empty()) {
      std::ofstream(directory_ / file, std::ios::app) << line << '\n';
    } else if (block == "```console" && line.starts_with("$ ")) {
      Process process{.words = {"/bin/sh", "-c", "{ " + line.substr(2) + "; } 2>&1"},
                      .environment = {"PATH=" + path + ":/usr/bin:/bin"},
                      .directory = directory_ / "."};
      inherit(process, line);
      const Outcome outcome = process.run();
      actual += line + "\n" + outcome.out;
      expected += line + "\n";
      ++commands;
    } else if (block == "```console") {
      expected += line + "\n";
    }
  }
  EXPECT_EQ(of_any_machine(actual), of_any_machine(expected));
  EXPECT_EQ(commands, 10);
}

using Readme = Cli;

// The README states three numbers of the paper's large-cache algorithm: the words with the printed
// blocks, the M that these blocks need, and the words with blocks that fit.
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
  // Algorithms 7 and 8 by hand, with Br = d = 64 rows and Bc = M / 4d = 256 keys in a block. The
  // first line has A1 and A3, X and Y for each of 64 row blocks, S and h, then S, O, dO and A1
  // once, and L. The second line has h and A2 for each row block, and g.
  const Index n = 4096, d = 64, row_blocks = n / d;
  EXPECT_EQ(printed["total"]["io"], 2 * n * d + row_blocks * 2 * d * d + 2 * n * d + 4 * n * d + n +
                                        row_blocks * 2 * n * d + d * d);
}

}  // namespace
}  // namespace redblue
