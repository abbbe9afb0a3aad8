#include "tests/support/cli.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <thread>

#include "tests/support/mpi_job.hpp"

namespace redblue {
namespace {

std::string changed(const std::map<std::string, std::string>& before,
                    const std::map<std::string, std::string>& after) {
  std::string names;
  for (const auto& [name, content] : before) {
    const auto found = after.find(name);
    if (found == after.end() || found->second != content) {
      names += "-" + name + " ";
    }
  }
  for (const auto& [name, content] : after) {
    if (!before.contains(name)) {
      names += "+" + name + " ";
    }
  }
  return names;
}

}  // namespace

Process Cli::process(const std::string& line) const {
  const CommandLine command = split(line);
  Process process{.words = {REDBLUE_COMMAND}, .environment = command.assignments};
  process.words.insert(process.words.end(), command.words.begin(), command.words.end());
  process.directory = directory_.path();
  // Threads that wait give their core to other tests.
  process.environment.emplace_back("OMP_WAIT_POLICY=passive");
  inherit(process, line);
  return process;
}

void inherit(Process& process, const std::string& line) {
  for (const char* name : {"ASAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS",
                           "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE", "GCOV_PREFIX", "REDBLUE_SIMD"}) {
    if (line.find(std::string(name) + "=") != std::string::npos) {
      continue;
    }
    if (const char* value = std::getenv(name)) {
      process.environment.push_back(std::string(name) + "=" + value);
    }
  }
}

Outcome Cli::signalled(const Process& process, int signal, const std::function<bool()>& now) const {
  const std::jthread sends([&](const std::stop_token& ended) {
    while (!ended.stop_requested() && !now()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (const int of : running_in(directory_.path())) {
      ::kill(of, signal);
    }
  });
  return process.run();
}

double Cli::seconds_after_start(const std::string& line, double enough) const {
  double least = std::numeric_limits<double>::infinity(), start = least;
  for (int i = 0; i < 10 && !(least - start < enough); ++i) {
    start = std::min(start, redblue("--version").seconds);
    least = std::min(least, redblue(line).seconds);
  }
  return least - start;
}

std::string Cli::data(const std::string& line) const {
  const Outcome outcome = redblue(line);
  EXPECT_EQ(outcome.code, 0) << line;
  EXPECT_EQ(outcome.err, "") << line;
  return outcome.out;
}

nlohmann::json Cli::json(const std::string& line) const {
  return nlohmann::json::parse(data(line + " --format json"));
}

void Cli::expect_refused(const std::function<Outcome()>& command, int code,
                         const std::string& message) const {
  const auto before = files();
  const Outcome outcome = command();
  EXPECT_EQ(outcome.code, code);
  EXPECT_EQ(outcome.out, "");
  const std::string line = outcome.err.substr(0, outcome.err.find('\n'));
  EXPECT_TRUE(line.starts_with("redblue: ") && outcome.err == line + "\n")
      << "not one line: " << outcome.err;
  EXPECT_TRUE(testing::Matcher<std::string>(testing::ContainsRegex(message)).Matches(line))
      << line << "\ndoes not match: " << message;
  EXPECT_EQ(changed(before, files()), "");
}

std::map<std::string, std::string> Cli::files() const {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path())) {
    if (entry.path().filename().string().starts_with("tsan.")) {
      continue;  // the thread sanitizer's own, which stays if a signal ends the command
    }
    found[entry.path().lexically_relative(directory_.path()).string()] =
        entry.is_regular_file() ? content_of(entry.path()) : "";
  }
  return found;
}

}  // namespace redblue
