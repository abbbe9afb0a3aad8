#include "tests/support/process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "runtime/system/system_call.hpp"
#include "runtime/system/whole_file.hpp"

namespace redblue {
namespace {

constexpr int kCannotStart = 127;
constexpr unsigned kNobody = 65534;
// Prefixes of the variables that the command or its libraries read.
constexpr std::array kVariables = {"REDBLUE_", "HWLOC_", "PAPI_",  "XDG_",
                                   "HOME=",    "PATH=",  "TMPDIR="};

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

File temporary() {
  File file(std::tmpfile());
  if (!file) {
    fail("a temporary file");
  }
  return file;
}

std::string content(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;) {
    text.append(buffer.data(), got);
  }
  return text;
}

// A terminal: bytes written to one end arrive unchanged at the other.
struct Terminal {
  Descriptor ours, theirs;
};

Terminal open_terminal() {
  int ours = -1;
  int theirs = -1;
  if (::openpty(&ours, &theirs, nullptr, nullptr, nullptr) != 0) {
    fail("openpty");
  }
  Terminal terminal{Descriptor(ours), Descriptor(theirs)};
  termios mode{};
  if (::tcgetattr(theirs, &mode) != 0) {
    fail("tcgetattr");
  }
  ::cfmakeraw(&mode);
  if (::tcsetattr(theirs, TCSANOW, &mode) != 0) {
    fail("tcsetattr");
  }
  return terminal;
}

// Reads until the other end has no open descriptor.
std::string content(const Descriptor& terminal) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(terminal.get(), buffer.data(), buffer.size());
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return text;
    }
  }
}

// Runs in the child, which may only call functions that are safe in a signal handler.
void become(const Process& process, char* const* words, char* const* environment, int out,
            int err) {
  bool ok = ::chdir(process.directory.c_str()) == 0;
  if (!process.standard_output.empty()) {
    out = ::open(process.standard_output.c_str(), O_WRONLY);
  }
  const int in = ::open("/dev/null", O_RDONLY);
  ok = ok && ::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
       ::dup2(err, STDERR_FILENO) >= 0;
  if (process.largest_file) {
    const auto bytes = static_cast<rlim_t>(*process.largest_file);
    const rlimit limit{bytes, bytes};
    ok = ok && ::setrlimit(RLIMIT_FSIZE, &limit) == 0;
  }
  // Opened as root, because `nobody` may not enter root's folders.
  const int program = ::open(words[0], O_PATH | O_CLOEXEC);
  if (process.without_root && ::geteuid() == 0) {
    ok = ok && ::setgid(kNobody) == 0 && ::setuid(kNobody) == 0;
  }
  if (process.most_threads) {  // after setuid: a user with too many processes may not exec
    const rlimit limit{*process.most_threads, *process.most_threads};
    ok = ok && ::setrlimit(RLIMIT_NPROC, &limit) == 0;
  }
  if (ok && process.without_root) {
    ::fexecve(program, words, environment);
  } else if (ok) {
    ::execve(words[0], words, environment);
  }
  ::_exit(kCannotStart);
}

}  // namespace

Outcome Process::run() const {
  const File out = temporary();
  const File err = temporary();
  std::optional<Terminal> shown;
  if (terminal) {
    shown = open_terminal();
  }
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> environment_pointers = pointers(environment);

  const auto start = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child < 0) {
    fail("fork");
  }
  if (child == 0) {
    become(*this, word_pointers.data(), environment_pointers.data(), ::fileno(out.get()),
           shown ? shown->theirs.get() : ::fileno(err.get()));
  }
  std::string seen;
  if (shown) {
    shown->theirs = Descriptor();
    seen = content(shown->ours);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      fail("waitpid");
    }
  }
  Outcome outcome;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = content(out.get());
  outcome.err = shown ? seen : content(err.get());
  if (outcome.code == kCannotStart) {
    throw std::system_error(ENOEXEC, std::generic_category(), words.front());
  }
  return outcome;
}

CommandLine split(const std::string& line) {
  CommandLine command;
  std::istringstream stream(line);
  for (std::string word; stream >> word;) {
    const bool name =
        std::ranges::any_of(kVariables, [&](const char* start) { return word.starts_with(start); });
    if (command.words.empty() && name) {
      command.assignments.push_back(word);
    } else {
      command.words.push_back(word == "''" ? "" : word);
    }
  }
  return command;
}

}  // namespace redblue
