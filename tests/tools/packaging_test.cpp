// Tests that all files with redblue's version agree with CMake: the citation and the Spack recipe,
// which must also be valid Python. tools/setup must install the programs that tests run.

#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "runtime/system/build_info.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

const std::string kRoot = REDBLUE_SOURCE_DIR;

std::string found_in(const std::string& file, const std::string& pattern) {
  const std::string text = content_of(kRoot + file);
  std::smatch match;
  return std::regex_search(text, match, std::regex(pattern)) ? match[1].str() : "not there";
}

TEST(Packaging, VersionsAreEqual) {
  const std::string version(build_info::kVersion);
  EXPECT_EQ(found_in("/CITATION.cff", "\nversion: (\\S+)\n"), version);
  EXPECT_EQ(found_in("/tools/packaging/spack/package.py", "\n    version\\(\"([^\"]+)\"\\)\n"),
            version);
  EXPECT_EQ(found_in("/CMakeLists.txt", "project\\(redblue VERSION (\\S+) "), version);
}

// Each option that the recipe sets is an option of the build.
TEST(Packaging, TheRecipeKnowsTheOptionsOfTheBuild) {
  const std::string recipe = content_of(kRoot + "/tools/packaging/spack/package.py");
  const std::string build = content_of(kRoot + "/CMakeLists.txt");
  const std::regex option("\"(REDBLUE_\\w+)\"");
  int options = 0;
  for (std::sregex_iterator at(recipe.begin(), recipe.end(), option), end; at != end; ++at) {
    EXPECT_NE(build.find("option(" + (*at)[1].str() + " "), std::string::npos) << (*at)[1];
    ++options;
  }
  EXPECT_GT(options, 4);
}

TEST(Packaging, TheRecipeIsPython) {
  const Outcome outcome = Process{
      .words = {"/usr/bin/python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())",
                kRoot + "/tools/packaging/spack/package.py"},
      .environment = {}}.run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// tools/test calls tools/setup, and on a bare Debian 12 no test may be skipped or fail because a
// package is missing. So the default packages of tools/setup must contain every program that a test
// runs by its path in /usr/bin, and every program that configuring the tests asks for.
TEST(Packaging, SetupInstallsEveryProgramThatTestsRun) {
  std::set<std::string> programs;
  const auto add_all = [&](const std::string& text, const std::regex& program) {
    for (std::sregex_iterator at(text.begin(), text.end(), program), end; at != end; ++at) {
      programs.insert((*at)[1]);
    }
  };
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot + "/tests")) {
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".py") {
      add_all(content_of(entry.path()), std::regex("\"/usr/bin/([a-z0-9-]+)\""));
    }
  }
  add_all(found_in("/tests/CMakeLists.txt", "\nforeach\\(program([^)]+)\\)"),
          std::regex("([a-z0-9-]+)"));
  for (const char* essential : {"env", "timeout", "unshare"}) {  // in every Debian
    programs.erase(essential);
  }
  EXPECT_GT(programs.size(), 12U);
  std::map<std::string, std::string> packages = {
      {"gnuplot", "gnuplot-nox"}, {"man", "man-db"}, {"mpirun", "openmpi-bin"}};
  const std::string setup = content_of(kRoot + "/tools/setup");
  const std::string always = setup.substr(0, setup.find("\nclang=("));
  for (const std::string& program : programs) {
    const std::string package = packages.emplace(program, program).first->second;
    EXPECT_TRUE(std::regex_search(always, std::regex("[ (\n]" + package + "[ )\n]"))) << package;
  }
  EXPECT_EQ(content_of(kRoot + "/.ci/run").find("tools/setup"), std::string::npos)
      << "CI hides what tools/test does not install";
}

}  // namespace
}  // namespace redblue
