#include "tools/cli/interruption.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/system/unfinished_files.hpp"
#include "tools/cli/caller.hpp"

namespace redblue {
namespace {

std::atomic<int> came = 0;  // the signal that came; set by the handler, read by all threads
std::atomic<std::time_t> at = 0;
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::time_t>::is_always_lock_free);

std::time_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

std::atomic<bool> work_stops = false;  // the work checks `came` and ends by itself
std::atomic<pid_t> owner = 0;          // a forked child must not remove the files

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // delivered when the handler returns
}

// Ignores a signal soon after the first, because timeout(1) signals the process and then its group.
// A later signal means that the user wants to end at once.
extern "C" void note(int signal) {
  if (::getpid() != owner) {
    return end_by(signal);
  }
  const int error = errno;  // errno of the interrupted code
  const bool impatient = came != 0 && now() > at + 1;
  if (came == 0) {
    at = now();
    came = signal;
  }
  if ((impatient || !work_stops) && remove_unfinished(impatient)) {
    end_by(signal);
  }
  errno = error;
}

// Installs the handler. Signals that the process was told to ignore stay ignored, for example under
// nohup or in a script's background job.
void note_signals() {
  constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  owner = ::getpid();
  for (const int signal : kSignals) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) {
      continue;
    }
    struct sigaction action {};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    for (const int other : kSignals) {  // remove_unfinished() requires that they are blocked
      ::sigaddset(&action.sa_mask, other);
    }
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

std::string interruption() {
  const int signal = came;
  return signal == 0 ? "" : fmt::format("ended by SIG{}", sigabbrev_np(signal));
}

std::function<void()> stop_if_caller_asks() {
  if (caller() == nullptr) {
    return nullptr;
  }
  return [by = caller()] {
    if (by->stop) {
      throw Interrupted("ended by its caller");
    }
  };
}

std::function<void()> stop_if_asked() {
  if (auto stop = stop_if_caller_asks()) {
    return stop;
  }
  work_stops = true;
  note_signals();
  return [] {
    if (const std::string asked = interruption(); !asked.empty() && !outputs_are_kept()) {
      throw Interrupted(asked);
    }
  };
}

void remove_files_when_ended() {
  note_signals();
}

void remove_folders_when_ended(const std::vector<std::filesystem::path>& folders) {
  UnfinishedFiles unfinished;
  for (const std::filesystem::path& folder : folders) {
    unfinished.add(folder, UnfinishedFiles::Kind::folder_if_empty);
  }
}

}  // namespace redblue
