// Arithmetic that does not call account() would be missing from the flops. So each function that
// arithmetic.hpp declares must end in account(). This test checks the source text.

#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "memsim/words.hpp"

namespace redblue {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream in(std::string(REDBLUE_SOURCE_DIR) + "/kernels/arithmetic/" + file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Accounting, EveryFunctionOnTilesEndsInIt) {
  const std::string header = text_of("arithmetic.hpp");
  const std::regex declared("\nvoid (\\w+)\\(");
  const auto declarations =
      std::distance(std::sregex_iterator(header.begin(), header.end(), declared), {});
  ASSERT_GT(declarations, 20);

  const std::regex definition("\nvoid (\\w+)\\([^{]*\\{\n([^]*?)\n\\}\n");
  Index found = 0;
  for (const char* const file :
       {"activations.cpp", "folds.cpp", "maps.cpp", "mapped_products.cpp", "multiply.cpp"}) {
    const std::string source = text_of(file);
    const std::string once = source.substr(source.find("#if HWY_ONCE"));
    // Definitions follow the helpers, which are in an unnamed namespace.
    const std::string defined = once.substr(once.find("\n}  // namespace\n"));
    for (std::sregex_iterator at(defined.begin(), defined.end(), definition), end; at != end;
         ++at) {
      const std::string body = (*at)[2];
      // The last line on which a statement begins.
      std::smatch last;
      ASSERT_TRUE(std::regex_search(body, last, std::regex("[^]*\n  (\\w[^\n]*)"))) << body;
      EXPECT_TRUE(last[1].str().starts_with("account(")) << (*at)[1] << ": " << body;
      ++found;
    }
  }
  EXPECT_EQ(found, declarations) << "functions of arithmetic.hpp, and of its sources";
}

}  // namespace
}  // namespace redblue
