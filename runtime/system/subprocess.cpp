#include "runtime/system/subprocess.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/system/environment.hpp"
#include "runtime/system/input_error.hpp"
#include "runtime/system/read_text.hpp"
#include "runtime/system/system_call.hpp"
#include "runtime/system/unfinished_files.hpp"

namespace redblue {
namespace {

// Returns this thread's environment, with `variables` added. They replace older ones of the same
// names.
std::vector<std::string> environment_with(std::vector<std::string> variables) {
  const auto replaced = [names = variables](std::string_view old) {
    return std::ranges::any_of(names, [old](const std::string& variable) {
      return old.starts_with(variable.substr(0, variable.find('=') + 1));
    });
  };
  for (const std::string& entry : environment().all()) {
    if (!replaced(entry)) {
      variables.push_back(entry);
    }
  }
  return variables;
}

// Blocks these signals while it lives, so that wait() can receive them.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
      sigaddset(&held_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Returns a signal, or 0 after 10 ms. The timeout is needed because another thread may receive
  // the SIGCHLD of this child.
  [[nodiscard]] int wait() const {
    constexpr timespec kAWhile{.tv_sec = 0, .tv_nsec = 10'000'000};
    return std::max(::sigtimedwait(&held_, nullptr, &kAWhile), 0);
  }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{};
  sigset_t before_{};
};

// Runs in the child. Calls only functions that are safe in a signal handler.
[[noreturn]] void become(char* const* words, char* const* environment, const sigset_t& signals,
                         pid_t parent, int out, int err) {
  constexpr int kCannotStart = 127;
  const int in = ::open("/dev/null", O_RDONLY);
  if (::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
      ::dup2(err, STDERR_FILENO) >= 0 && dies_with(parent) &&
      ::signal(SIGPIPE, SIG_DFL) != SIG_ERR &&  // this process may ignore it
      ::pthread_sigmask(SIG_SETMASK, &signals, nullptr) == 0) {
    ::execve(words[0], words, environment);
  }
  ::_exit(kCannotStart);
}

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : handle_(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600)) {
    if (handle_ < 0) {
      fail(path.string());
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(handle_); }
  [[nodiscard]] int get() const { return handle_; }

 private:
  int handle_;
};

}  // namespace

bool dies_with(pid_t parent) {
  return ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent;
}

std::filesystem::path temporary_directory() {
  std::error_code error;
  std::filesystem::path directory = temporary_directory(error);
  if (error) {
    throw InputError("there is no directory for temporary files: set TMPDIR to one that is there");
  }
  return directory;
}

ScratchDirectory::ScratchDirectory(const std::filesystem::path& parent) {
  std::string name = (parent / "redblue-XXXXXX").string();
  UnfinishedFiles unfinished;
  if (::mkdtemp(name.data()) == nullptr) {
    fail(name);
  }
  path_ = name;
  unfinished.add(path_, UnfinishedFiles::Kind::folder);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  UnfinishedFiles().erase(path_);
}

std::optional<std::filesystem::path> find_program(std::string_view name, std::string_view search) {
  while (!search.empty()) {
    const std::size_t colon = std::min(search.find(':'), search.size());
    const std::string_view directory = search.substr(0, colon);
    search.remove_prefix(std::min(colon + 1, search.size()));
    const std::filesystem::path found =
        std::filesystem::path(directory.empty() ? "." : directory) / name;
    std::error_code ignored;
    if (::access(found.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(found, ignored)) {
      return found;
    }
  }
  return std::nullopt;
}

Ended run_program(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                  const std::filesystem::path& scratch) {
  std::vector<std::string> replaced = variables;
  replaced.emplace_back("LC_ALL=C.UTF-8");
  const std::vector<std::string> all = environment_with(std::move(replaced));
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> environment_pointers = pointers(all);
  Ended ended;
  {
    const File out(scratch / "standard_output");
    const File err(scratch / "standard_error");
    const HeldSignals signals;
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child < 0) {
      fail("fork");
    }
    if (child == 0) {
      become(word_pointers.data(), environment_pointers.data(), signals.before(), parent, out.get(),
             err.get());
    }
    int status = 0;
    for (pid_t done = 0; done == 0;) {
      const int signal = signals.wait();
      if (signal != SIGCHLD && signal != 0) {
        ended.interrupted = signal;
        // SIGKILL rather than the received signal: gnuplot may hang in its handler of SIGINT. The
        // partial output is dropped anyway.
        ::kill(child, SIGKILL);
      }
      done = ::waitpid(child, &status, WNOHANG);
      if (done < 0 && errno != EINTR) {
        fail("waitpid");
      }
    }
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  ended.out = content_if_any(scratch / "standard_output");
  ended.err = content_if_any(scratch / "standard_error");
  return ended;
}

}  // namespace redblue
