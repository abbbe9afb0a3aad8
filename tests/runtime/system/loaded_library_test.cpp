// Tests a library that is loaded on demand. Its functions work. If the library or a function is
// missing, the error says so and the process does not end.

#include "runtime/system/loaded_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace redblue {
namespace {

TEST(LoadedLibraries, HaveTheirFunctions) {
  LoadedLibrary math("libm.so.6");
  double (*const root)(double) = math["sqrt"];
  ASSERT_EQ(math.problem(), "");
  EXPECT_EQ(root(16), 4);
}

TEST(LoadedLibraries, SayWhatIsMissing) {
  LoadedLibrary none("libredblue-none.so.1");
  void (*const nothing)() = none["nothing"];
  EXPECT_EQ(nothing, nullptr);
  EXPECT_THAT(none.problem(), testing::HasSubstr("libredblue-none.so.1"));

  LoadedLibrary math("libm.so.6");
  void (*const unknown)() = math["redblue_unknown"];
  EXPECT_EQ(unknown, nullptr);
  EXPECT_THAT(math.problem(), testing::HasSubstr("redblue_unknown"));
}

}  // namespace
}  // namespace redblue
