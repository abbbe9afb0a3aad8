// Tests a command that a signal ends at any moment. An output is complete or absent, and no
// temporary file stays. The exit code says which: 0 if all outputs are there; otherwise no file has
// changed. REDBLUE_SIGNALS sets the number of signals.

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/system/subprocess.hpp"
#include "runtime/system/system_call.hpp"
#include "tests/support/cli.hpp"

namespace redblue {
namespace {

using Clock = std::chrono::steady_clock;
using Files = std::map<std::string, std::string>;

struct Line {
  std::string line;
  std::vector<std::string> outputs;  // the only files that a whole run leaves
  bool piecewise = false;            // a directory, with files that are complete one by one
};

// On a disk, where a file takes longest between its first byte and its name.
class Signals : public Cli {
 protected:
  Signals() : Cli(::testing::TempDir()) {}

  void SetUp() override {
    directory_.write("suite.json", R"({"how": "count", "points": [
      {"kernel": "forward/*", "n": 32, "d": 4, "M": [96, 200]}]})");
    for (const char* line :
         {"record suite.json -o base.json", "record suite.json --part 1/2 -o p1.json",
          "record suite.json --part 2/2 -o p2.json", "sweep suite.json -o sw",
          "sweep suite.json --part 1/2 -o sw1", "sweep suite.json --part 2/2 -o sw2",
          "store generate st --n 300 --d 100", "store export st A1=a.npy"}) {
      ASSERT_EQ(redblue(line).code, 0) << line;
    }
    std::filesystem::create_directory(directory_ / "tmp");
  }

  // Starts the command and sends the signal after `seconds`, or, without a time, when the first new
  // file appears. Returns the exit code, with 128 + the signal as in a shell.
  int signalled(const std::string& line, int signal, std::optional<double> seconds) const {
    Process process = this->process(line);
    process.environment.push_back("TMPDIR=" + (directory_ / "tmp").string());
    process.environment.emplace_back("PATH=/usr/bin:/bin");
    const std::vector<char*> words = pointers(process.words);
    const std::vector<char*> environment = pointers(process.environment);
    const auto names = [&] {
      std::vector<std::string> found;
      for (const char* folder : {".", "tmp", "new"}) {
        std::error_code none;
        for (const auto& entry : std::filesystem::directory_iterator(directory_ / folder, none)) {
          found.push_back(entry.path().string());
        }
      }
      return found;
    };
    const auto before = names();
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_RDWR);
      if (::chdir(directory_.path().c_str()) == 0 && ::dup2(null, STDIN_FILENO) >= 0 &&
          ::dup2(null, STDOUT_FILENO) >= 0 && ::dup2(null, STDERR_FILENO) >= 0) {
        ::execve(words[0], words.data(), environment.data());
      }
      ::_exit(127);
    }
    int status = 0;
    pid_t ended = 0;
    if (seconds) {
      std::this_thread::sleep_for(std::chrono::duration<double>(*seconds));
    } else {
      while (ended == 0 && names() == before) {
        ended = ::waitpid(child, &status, WNOHANG);
      }
    }
    if (ended == 0) {
      ::kill(child, signal);
      ::waitpid(child, &status, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Returns the first fault in the current files, or an empty text.
  [[nodiscard]] static std::string wrong(const Line& of, int code, const Files& before,
                                         const Files& whole, const Files& now) {
    const Files& expected = code == 0 ? whole : before;
    for (const auto& [name, content] : now) {
      const bool grows = name.ends_with("points.jsonl");  // line by line
      if (of.piecewise && whole.contains(name) &&
          (grows ? whole.at(name).starts_with(content) : content == whole.at(name))) {
        continue;
      }
      const auto found = expected.find(name);
      if (found == expected.end()) {
        return fmt::format("{} is there", name);
      }
      if (found->second != content) {
        return fmt::format("{} has other content", name);
      }
    }
    for (const auto& [name, content] : expected) {
      if (!now.contains(name)) {
        return fmt::format("{} is missing", name);
      }
    }
    return "";
  }

  void expect_whole_or_nothing(const Line& of, int signals, std::mt19937& random) {
    const auto remove = [&] {
      for (const std::string& output : of.outputs) {
        std::filesystem::remove_all(directory_ / output);
      }
    };
    const auto start = Clock::now();
    ASSERT_EQ(signalled(of.line, 0, 0.0), 0) << of.line;
    const std::chrono::duration<double> all = Clock::now() - start;
    const Files whole = files();
    int ended = 0;
    for (int k = 0; k < signals; ++k) {
      remove();
      for (const std::string& output : of.outputs) {
        if (k % 4 < 2 && output.find('.') != std::string::npos) {
          directory_.write(output, "older");
        }
      }
      const Files before = files();
      const int signal = std::array{SIGINT, SIGTERM, SIGHUP}[random() % 3];
      std::uniform_real_distribution<double> moment(0, 1.1 * all.count());
      const auto seconds = k % 2 == 0 ? std::optional(moment(random)) : std::nullopt;
      const int code = signalled(of.line, signal, seconds);
      EXPECT_TRUE(code == 0 || code == 1 || code == 128 + signal) << of.line << ": " << code;
      ended += code == 0 ? 0 : 1;
      EXPECT_EQ(wrong(of, code, before, whole, files()), "")
          << fmt::format("{}: signal {}, {}, exit code {}", of.line, signal,
                         seconds ? fmt::format("{} s", *seconds) : "at the first file", code);
      for (const auto& [name, content] : files()) {  // each failure is reported once
        if (!before.contains(name)) {
          std::filesystem::remove_all(directory_ / name);
        }
      }
    }
    remove();
    fmt::print("{}: {} of {} signals ended it\n", of.line, ended, signals);
    ended_ += ended;
  }

  int ended_ = 0;  // runs that a signal ended
};

TEST_F(Signals, LeaveOutputsWholeOrAsTheyWere) {
  const char* asked = std::getenv("REDBLUE_SIGNALS");
  const std::string sizes = " --n 64 --d 8 --M 1024 ";
  std::vector<Line> lines = {
      {"record suite.json -o o.json", {"o.json"}},
      {"check base.json --also json=o.json --also junit=o.xml", {"o.json", "o.xml"}},
      {"diff base.json base.json --also json=o.json", {"o.json"}},
      {"trace forward/rows" + sizes + "-o o.json --din o.din", {"o.json", "o.din"}},
      {"pebble dag attention --n 8 --d 4 -o o.dot", {"o.dot"}},
      {"pebble run forward/small --n 4 --d 2 --M 64 --dag o.dot --moves o.txt", {"o.dot", "o.txt"}},
      {"run forward/rows" + sizes + "--out O=o.npy --out L=l.npy", {"o.npy", "l.npy"}},
      {"store export st A1=o.npy", {"o.npy"}},
      {"store export st A1=o.npy X=x.npy Y=y.npy", {"o.npy", "x.npy", "y.npy"}},
      {"store import new A=a.npy B=a.npy", {"new"}, true},
      {"manual -o new", {"new"}, true},
      {"merge p1.json p2.json -o o.json", {"o.json"}},
      {"merge sw1 sw2 -o new", {"new"}},
      {"sweep suite.json -o new --jobs 1", {"new"}, true},
      {"report sw -o o.html", {"o.html"}},
      {"plot occupancy forward/rows" + sizes + "-o o.svg", {"o.svg"}},
  };
  const int signals = asked == nullptr ? 72 : std::atoi(asked);
  const int each = 1 + (signals - 1) / static_cast<int>(lines.size());
  std::mt19937 random(20261127);
  for (const Line& line : lines) {
    expect_whole_or_nothing(line, each, random);
  }
  // A test that sends all its signals too late is worthless.
  EXPECT_GT(ended_, signals / 8);
}

}  // namespace
}  // namespace redblue
