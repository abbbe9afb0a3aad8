// Tests that another program's output, exit code and ending signal come back unchanged, and that no
// process or file stays behind.

#include "runtime/system/subprocess.hpp"

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/system/environment.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

Ended shell(const std::string& script, const std::vector<std::string>& variables = {}) {
  const TemporaryDirectory scratch;
  return run_program({"/bin/sh", "-c", script}, variables, scratch.path());
}

TEST(Subprocess, OutputAndExitCodeComeBack) {
  const Ended ended = shell("echo data; echo words >&2; exit 3");
  EXPECT_EQ(ended.out, "data\n");
  EXPECT_EQ(ended.err, "words\n");
  EXPECT_EQ(ended.code, 3);
  EXPECT_EQ(ended.signal, 0);
  EXPECT_EQ(ended.interrupted, 0);
}

TEST(Subprocess, MoreOutputThanAPipeHolds) {
  EXPECT_EQ(shell("head -c 1000000 /dev/zero").out.size(), 1000000U);
}

TEST(Subprocess, VariablesReplaceThoseOfTheEnvironment) {
  ::setenv("REDBLUE_TEST_OLD", "old", 1);
  ::setenv("REDBLUE_TEST_KEPT", "kept", 1);
  const Environment now = Environment::present();
  const WithEnvironment with(now);
  const Ended ended = shell("echo $REDBLUE_TEST_OLD $REDBLUE_TEST_KEPT $REDBLUE_TEST_NEW",
                            {"REDBLUE_TEST_OLD=other", "REDBLUE_TEST_NEW=new"});
  ::unsetenv("REDBLUE_TEST_OLD");
  ::unsetenv("REDBLUE_TEST_KEPT");
  EXPECT_EQ(ended.out, "other kept new\n");
}

// redblue reads the output of a child, so the language and letters of it must not depend on the
// parent's locale.
TEST(Subprocess, ItsLocaleIsOurChoice) {
  const char* before = std::getenv("LC_ALL");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("LC_ALL", "POSIX", 1);
  const Environment now = Environment::present();
  const WithEnvironment with(now);
  const Ended ended = shell("echo $LC_ALL; locale charmap 2>/dev/null");
  if (before == nullptr) {
    ::unsetenv("LC_ALL");
  } else {
    ::setenv("LC_ALL", kept.c_str(), 1);
  }
  EXPECT_EQ(ended.out, "C.UTF-8\nUTF-8\n");
}

// dies_with() returns false to a process with a parent that ended before the call: no signal will
// come.
TEST(Subprocess, AChildWhoseParentEndedBeforeIsTold) {
  int said[2];
  ASSERT_EQ(::pipe(said), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const pid_t me = ::getpid();
    if (::fork() == 0) {
      while (::getppid() == me) {
        ::usleep(1000);
      }
      const char answer = dies_with(me) ? 'y' : 'n';
      ::_exit(::write(said[1], &answer, 1) == 1 ? 0 : 1);
    }
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  ::close(said[1]);
  char answer = '?';
  EXPECT_EQ(::read(said[0], &answer, 1), 1);
  ::close(said[0]);
  EXPECT_EQ(answer, 'n');
}

// The signal of a child's end may go to another thread, which discards it.
TEST(Subprocess, ItsEndIsSeenFromAnyThread) {
  Ended ended;
  std::thread other([&] { ended = shell("sleep 0.1; exit 4"); });
  other.join();
  EXPECT_EQ(ended.code, 4);
}

TEST(Subprocess, ASignalThatEndsItIsTold) {
  const Ended ended = shell("kill -KILL $$");
  EXPECT_EQ(ended.signal, SIGKILL);
  EXPECT_EQ(ended.interrupted, 0);
}

// This process gets the signal, ends the program, and survives to clean up.
TEST(Subprocess, AnInterruptIsPassedOnAndTold) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const Ended ended =
        shell("trap - INT; kill -" + std::to_string(signal) + " $PPID; exec sleep 60");
    EXPECT_EQ(ended.interrupted, signal);
    EXPECT_EQ(ended.signal, SIGKILL);
  }
}

TEST(Subprocess, AProgramThatThereIsNotSaysSo) {
  const TemporaryDirectory scratch;
  EXPECT_EQ(run_program({"/none/program"}, {}, scratch.path()).code, 127);
}

TEST(FindProgram, AsAShellWould) {
  const TemporaryDirectory directory;
  const auto program = directory.write("second/tool", "#!/bin/sh\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  directory.write("first/tool", "may not be executed");
  std::filesystem::create_directories(directory / "zeroth/tool");
  const auto in = [&](const std::string& name) { return (directory / name).string(); };
  const std::string all = in("zeroth") + "::" + in("first") + ":" + in("second") + ":/none";
  EXPECT_EQ(find_program("tool", all), program);
  EXPECT_EQ(find_program("tool", in("zeroth") + ":" + in("first")), std::nullopt);
  EXPECT_EQ(find_program("tool", ""), std::nullopt);
}

TEST(ScratchDirectory, IsFreshAndIsRemovedWithItsContent) {
  const TemporaryDirectory parent;
  std::filesystem::path path;
  {
    const ScratchDirectory one(parent.path());
    const ScratchDirectory other(parent.path());
    EXPECT_NE(one.path(), other.path());
    path = one.path();
    std::filesystem::create_directory(path / "deep");
    std::ofstream(path / "deep/file") << "content";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::is_empty(parent.path()));
  EXPECT_THROW(ScratchDirectory(parent / "none"), std::system_error);
}

}  // namespace
}  // namespace redblue
