// What says redblue's version beside CMake says the same: the citation, and the recipe of Spack,
// which also is Python.

#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "runtime/system/build_info.hpp"
#include "runtime/system/subprocess.hpp"
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

// Each option that the recipe sets is one of the build.
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
  if (!find_program("python3", "/usr/bin:/bin")) {
    GTEST_SKIP() << "label docs: python3 is missing: tools/setup --tests installs mkdocs";
  }
  const Outcome outcome = Process{
      .words = {"/usr/bin/python3", "-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())",
                kRoot + "/tools/packaging/spack/package.py"},
      .environment = {}}.run();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

}  // namespace
}  // namespace redblue
