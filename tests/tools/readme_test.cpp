// What the README shows of a command is what it prints, to the letter; but for times and speeds,
// and where a command speaks of the machine that it runs on.

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/tools/cli.hpp"

namespace redblue {
namespace {

struct Shown {
  std::string command, output;
};

// The commands of the README's consoles.
std::vector<Shown> shown() {
  std::istringstream readme(content_of(REDBLUE_SOURCE_DIR "/README.md"));
  std::vector<Shown> all;
  bool console = false;
  for (std::string line; std::getline(readme, line);) {
    const std::string prompt = "$ redblue ";
    if (line.starts_with("```")) {
      console = line == "```console";
    } else if (console && line.starts_with(prompt)) {
      all.push_back({line.substr(prompt.size()), ""});
    } else if (console) {
      all.back().output += line + "\n";
    }
  }
  return all;
}

bool is_of_any_machine(const std::string& command) {
  const std::regex of_this_one("L[123]|time|^(measure|calibrate|check)\\b");
  return !std::regex_search(command, of_this_one);
}

std::string without_times(const std::string& output) {
  const std::regex times(R"( +[0-9]+\.[0-9]{4}(?=\n)|\n[^\n]* GF/s[^\n]*)");
  return std::regex_replace(output, times, "");
}

using Readme = Cli;
TEST_F(Readme, ShowsWhatCommandsPrint) {
  int compared = 0;
  for (const auto& [command, output] : shown()) {
    if (is_of_any_machine(command)) {
      SCOPED_TRACE(command);
      EXPECT_EQ(without_times(data(command)), without_times(output));
      ++compared;
    }
  }
  EXPECT_GE(compared, 4) << "the README is read";
}

}  // namespace
}  // namespace redblue
