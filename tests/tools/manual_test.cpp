// Tests manual pages and completions, which are made from the command's own options. Every option
// of --help is in the page of its command and is offered where it may stand. man reports no
// warning. bash and fish complete typed words.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernel.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// The subcommands and options that --help names. The test reads them without the code that makes
// the pages.
struct Help {
  std::vector<std::string> subcommands;
  std::vector<std::string> options;  // long names, and -h
};

class Manual : public Cli {
 protected:
  [[nodiscard]] Help help_of(const std::string& command) const {
    Help help;
    bool of_arguments = false;
    for (const std::string& line : lines_of(data(command + " --help"))) {
      of_arguments = line.ends_with(":") ? line == "Positionals:" : of_arguments;
      if (line == "Environment:") {
        break;
      }
      if (!line.starts_with("  ") || line[2] == ' ') {
        continue;
      }
      std::string word = line.substr(2, line.find(' ', 2) - 2);
      if (word[0] == '-') {
        std::istringstream names(word);
        while (std::getline(names, word, ',')) {
          help.options.push_back(word);
        }
      } else if (!of_arguments) {
        help.subcommands.push_back(word);
      }
    }
    return help;
  }
  // Calls visit for all commands, and for their subcommands.
  void each_command(const std::function<void(const std::string&, const Help&)>& visit) const {
    const Help root = help_of("");
    ASSERT_GT(root.subcommands.size(), 20U);
    visit("", root);
    for (const std::string& name : root.subcommands) {
      const Help help = help_of(name);
      visit(name, help);
      for (const std::string& inner : help.subcommands) {
        visit(name + " " + inner, help_of(name + " " + inner));
      }
    }
  }
  // Returns the words that are offered after the given words. Its first line says which files are
  // offered.
  [[nodiscard]] std::vector<std::string> offered(const std::string& words) const {
    std::vector<std::string> found = lines_of(data("completion words -- " + words));
    for (std::string& line : found) {
      line.resize(std::min(line.find('\t'), line.size()));
    }
    return found;
  }
};

// A page has the name of each option, in the form that troff prints.
TEST_F(Manual, PagesHaveEveryOption) {
  int pages = 0;
  each_command([&](const std::string& command, const Help& help) {
    SCOPED_TRACE(command);
    const std::string page = data("manual " + command.substr(0, command.find(' ')));
    for (const std::string& option : help.options) {
      std::string name = option;
      for (std::size_t at = 0; (at = name.find('-', at)) != std::string::npos; at += 2) {
        name.replace(at, 1, "\\-");
      }
      EXPECT_NE(page.find("\\fB" + name + "\\fR"), std::string::npos) << option;
    }
    for (const std::string& subcommand : help.subcommands) {
      EXPECT_NE(page.find(subcommand + "\\fR"), std::string::npos) << subcommand;
    }
    ++pages;
  });
  EXPECT_GT(pages, 30);
  EXPECT_NE(data("manual").find("\\fBREDBLUE_SIMD\\fR"), std::string::npos);
}

TEST_F(Manual, AllPagesAsFiles) {
  data("manual --out pages");
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "pages")) {
    found.insert(entry.path().filename().string());
  }
  std::set<std::string> expected = {"redblue.1"};
  for (const std::string& name : help_of("").subcommands) {
    expected.insert("redblue-" + name + ".1");
    EXPECT_EQ(content_of(directory_ / "pages" / ("redblue-" + name + ".1")),
              data("manual " + name));
  }
  EXPECT_EQ(found, expected);
}

// docs/commands has a page for each subcommand, and each page ends with the current usage. The
// script tools/docs/commands renews them.
TEST_F(Manual, PagesOfTheProjectAreRenewed) {
  data("manual --format markdown --out pages");
  const std::filesystem::path docs = std::filesystem::path(REDBLUE_SOURCE_DIR) / "docs/commands";
  std::set<std::string> found, expected;
  for (const auto& entry : std::filesystem::directory_iterator(docs)) {
    found.insert("redblue-" + entry.path().filename().string());
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "pages")) {
    const std::string name = entry.path().filename().string();
    expected.insert(name);
    EXPECT_TRUE(content_of(docs / name.substr(std::string("redblue-").size()))
                    .ends_with("\n\n" + content_of(entry.path())))
        << name;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(Manual, BadPagesAreRefused) {
  expect_refused(process("manual --format html"), 2, "--format 'html': expected troff or markdown");
  expect_refused(process("manual walk"), 2, "no page is called redblue-walk: give a subcommand");
  expect_refused(process("manual run --out pages"), 2, "--out has all pages: leave run out");
  directory_.write("file", "");
  expect_refused(process("manual --out file/pages"), 1, "file/pages");
}

// man prints no warning for any page, with all warnings of groff on.
TEST_F(Manual, PagesAreClean) {
  data("manual --out pages");
  for (const auto& entry : std::filesystem::directory_iterator(directory_ / "pages")) {
    const Outcome outcome =
        Process{.words = {"/usr/bin/man", "--warnings=w", "-E", "UTF-8", "-l", "-Tutf8", "-Z",
                          entry.path().string()},
                .environment = {"LC_ALL=C.UTF-8", "MANWIDTH=80", "PATH=/usr/bin:/bin"},
                .directory = directory_.path()}
            .run();
    EXPECT_EQ(outcome.code, 0) << entry.path();
    EXPECT_EQ(outcome.err, "") << entry.path();
    EXPECT_NE(outcome.out, "") << entry.path();
  }
}

// After each command its subcommands are offered, and its options after a typed dash.
TEST_F(Manual, SubcommandsAndOptionsAreOffered) {
  each_command([&](const std::string& command, const Help& help) {
    SCOPED_TRACE(command);
    if (!help.subcommands.empty()) {
      std::vector<std::string> expected = help.subcommands;
      expected.insert(expected.begin(), "none");
      EXPECT_EQ(offered(command + " ''"), expected);
    }
    const std::vector<std::string> options = offered(command + " -");
    for (const std::string& option : help.options) {
      if (option.starts_with("--")) {
        EXPECT_EQ(std::ranges::count(options, option), 1) << option;
      }
    }
  });
}

TEST_F(Manual, WordsAndFilesAreOffered) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(offered("run --format ''"), (Words{"none", "table", "json", "csv"}));
  EXPECT_EQ(offered("run --format=j"), (Words{"none", "table", "json", "csv"}));
  EXPECT_EQ(offered("pebble check --format t"), (Words{"none", "table", "json"}));
  EXPECT_EQ(offered("run backward/small --in Q"), Words{"behind-equals"});
  EXPECT_EQ(offered("run backward/small --n ''"), Words{"none"});
  EXPECT_EQ(offered("record ''"), Words{"all"});
  EXPECT_EQ(offered("merge a b ''"), Words{"all"});
  EXPECT_EQ(offered("report ''"), Words{"directories"});
  EXPECT_EQ(offered("store export ''"), Words{"directories"});
  EXPECT_EQ(offered("store export there ''"), Words{"behind-equals"});
  EXPECT_EQ(offered("sweep suite.json -o ''"), Words{"directories"});
  EXPECT_EQ(offered("run backward/small ''"), Words{"none"});  // its kernel is there
  EXPECT_EQ(offered("run --verify ''"), offered("run ''"));    // a switch has no value
  EXPECT_EQ(offered("walk ''"), offered("''"));
  EXPECT_EQ(offered("manual ''"), offered("''"));  // it has a page for each command
  const Words kernels_offered = offered("run ''");
  for (const Kernel& kernel : kernels()) {
    EXPECT_EQ(std::ranges::count(kernels_offered, kernel.name), 1) << kernel.name;
  }
  EXPECT_EQ(std::ranges::count(kernels_offered, "backward/auto"), 1);
  EXPECT_EQ(std::ranges::count(offered("count --device ''"), "a100"), 1);
  EXPECT_EQ(offered("count --device ''").front(), "all");
}

// Each word that an option offers is accepted, or refused for another reason than being unknown.
// The words of --format are tried in each command, the words of other options once.
TEST_F(Manual, WordsThatAreOfferedAreTaken) {
  std::set<std::string> tried;
  each_command([&](const std::string& command, const Help& help) {
    for (const std::string& option : help.options) {
      if (!help.subcommands.empty() || option == "--device" || option == "--kernel") {
        continue;  // names of lists, which other tests check
      }
      const std::vector<std::string> words = offered(command + " " + option + " ''");
      for (std::size_t k = 1; k < words.size(); ++k) {
        const std::string asked = option + " " + words[k];
        if (words[k].find('/') != std::string::npos ||
            !tried.insert(option == "--format" ? command + asked : asked).second) {
          continue;
        }
        // Every command refuses n = 0, so no trial takes long.
        const Outcome outcome =
            redblue(command + " " + asked + (command == "count" ? " --symbolic" : "") + " --n 0");
        EXPECT_EQ(outcome.err.find("'" + words[k] + "': expected"), std::string::npos)
            << command << ' ' << asked << ": " << outcome.err;
      }
    }
  });
  EXPECT_GT(tried.size(), 70U);
}

// Completes in bash itself. bash cuts the words at = and :.
TEST_F(Manual, BashCompletes) {
  directory_.write("Q of mine.npy", "");
  std::filesystem::create_directory(directory_ / "Queries");
  directory_.write("complete.bash", data("completion bash"));
  const auto completed = [&](const std::string& words) {
    const Process bash{
        .words = {"/bin/bash", "--norc", "-c",
                  "set -u; source complete.bash; COMP_WORDS=(" REDBLUE_COMMAND " " + words +
                      "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _redblue; "
                      "printf '%s\\n' \"${COMPREPLY[@]}\""},
        .environment = process("").environment,
        .directory = directory_.path()};
    const Outcome outcome = bash.run();
    EXPECT_EQ(outcome.err, "") << words;
    std::vector<std::string> found = lines_of(outcome.out);
    std::ranges::sort(found);
    return found;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(completed("re"), (Words{"record", "replay", "report"}));
  EXPECT_EQ(completed("run --se"), Words{"--seed"});
  EXPECT_EQ(completed("run --format ''"), (Words{"csv", "json", "table"}));
  EXPECT_EQ(completed("run --format = js"), Words{"json"});
  EXPECT_EQ(completed("run --format ="), (Words{"csv", "json", "table"}));
  EXPECT_EQ(completed("run backward/sm"), Words{"backward/small"});
  EXPECT_EQ(completed("run backward/small --in Q = Q"), (Words{"Q of mine.npy", "Queries"}));
  EXPECT_EQ(completed("run backward/small --in Q"), Words{""});
  EXPECT_EQ(completed("report Q"), Words{"Queries"});
  EXPECT_EQ(completed("pebble ch"), Words{"check"});
}

// Completes in fish, which passes the whole command line.
TEST_F(Manual, FishCompletes) {
  directory_.write("Q of mine.npy", "");
  directory_.write("complete.fish", data("completion fish"));
  std::filesystem::create_symlink(REDBLUE_COMMAND, directory_ / "redblue");
  const auto completed = [&](const std::string& line) {
    Process fish{.words = {"/usr/bin/fish", "--no-config", "-c",
                           "source complete.fish; complete -C '" + line + "'"},
                 .environment = process("").environment,
                 .directory = directory_.path()};
    fish.environment.push_back("PATH=" + directory_.path().string() + ":/usr/bin:/bin");
    fish.environment.push_back("HOME=" + directory_.path().string());
    const Outcome outcome = fish.run();
    EXPECT_EQ(outcome.err, "") << line;
    return outcome.out;
  };
  EXPECT_EQ(completed("redblue run --see"),
            "--seed\trandom seed of all operands that --in does not give (default: 1)\n");
  EXPECT_EQ(completed("redblue run --format j"), "json\n");
  EXPECT_EQ(completed("redblue run --format=j"), "--format=json\n");
  EXPECT_EQ(completed("redblue run backward/small --in Q=Q"), "Q=Q of mine.npy\n");
}

TEST_F(Manual, ZshTakesItsScript) {
  const std::string script = data("completion zsh");
  EXPECT_TRUE(script.starts_with("#compdef redblue\n"));
  directory_.write("_redblue", script);
  const Outcome outcome = Process{.words = {"/usr/bin/zsh", "-n", "_redblue"},
                                  .environment = {},
                                  .directory = directory_.path()}
                              .run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace redblue
