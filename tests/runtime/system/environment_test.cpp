// Tests that the environment is a value. If another thread changes the environment of the process,
// a call that has started does not notice.

#include "runtime/system/environment.hpp"

#include <cstdlib>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>

#include "runtime/system/subprocess.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

static_assert(std::is_constructible_v<WithEnvironment, const Environment&>);
static_assert(!std::is_constructible_v<WithEnvironment, Environment>);  // a temporary dies too soon
static_assert(!std::is_constructible_v<WithEnvironment, const Environment>);

// Sets a variable of the process, and restores its earlier value on destruction.
class Changed {
 public:
  Changed(const char* name, const std::string& value) : name_(name) {
    const char* const before = std::getenv(name);
    was_set_ = before != nullptr;
    before_ = was_set_ ? before : "";
    ::setenv(name, value.c_str(), 1);
  }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;
  ~Changed() { was_set_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

TEST(Environment, IsThatOfTheTimeWhenItWasCopied) {
  const Changed first("REDBLUE_TEST", "first");
  const Environment at_first = Environment::present();
  const Changed second("REDBLUE_TEST", "second");
  const WithEnvironment with(at_first);
  EXPECT_STREQ(variable("REDBLUE_TEST"), "first");
  EXPECT_EQ(variable("REDBLUE_TES"), nullptr);
  EXPECT_EQ(variable("REDBLUE_TEST="), nullptr);
  EXPECT_EQ(variable(""), nullptr);
}

// A program that a call starts gets the environment of the call, and temporary files are where it
// says.
TEST(Environment, IsWhatAProgramIsGivenAndFilesFollow) {
  const TemporaryDirectory ours, others;
  const Changed our_value("REDBLUE_TEST", "ours");
  const Changed our_directory("TMPDIR", ours.path().string());
  const Environment of_call = Environment::present();
  const Changed other_value("REDBLUE_TEST", "other");
  const Changed other_directory("TMPDIR", others.path().string());
  const WithEnvironment with(of_call);
  EXPECT_EQ(temporary_directory(), ours.path());
  EXPECT_EQ(run_program({"/bin/sh", "-c", "echo $REDBLUE_TEST"}, {}, ours.path()).out, "ours\n");
}

TEST(Environment, IsOfOneThreadAndEnds) {
  const Changed changed("REDBLUE_TEST", "ours");
  const Environment ours = Environment::present();
  const char* const before = variable("REDBLUE_TEST");
  {
    const WithEnvironment with(ours);
    EXPECT_STREQ(variable("REDBLUE_TEST"), "ours");
    std::thread([&] { EXPECT_EQ(variable("REDBLUE_TEST"), before); }).join();
  }
  EXPECT_EQ(variable("REDBLUE_TEST"), before);
}

TEST(Environment, ThatNamesNoDirectoryIsAnError) {
  const TemporaryDirectory scratch;
  const Changed changed("TMPDIR", (scratch.path() / "none").string());
  const Environment now = Environment::present();
  const WithEnvironment with(now);
  std::error_code error;
  EXPECT_EQ(temporary_directory(error), "");
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace redblue
