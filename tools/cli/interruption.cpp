#include "tools/cli/interruption.hpp"

#include <atomic>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fmt/format.h>
#include <unistd.h>

#include "tools/cli/caller.hpp"

namespace redblue {
namespace {

std::atomic<int> came = 0;  // set by the handler, seen by all threads
std::atomic<std::time_t> at = 0;
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<std::time_t>::is_always_lock_free);

std::time_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// A signal soon after the first does nothing: timeout(1) sends its signal to the process and again
// to its group. A later one is an impatient person's.
extern "C" void note(int signal) {
  if (came == 0) {
    at = now();
    came = signal;
  } else if (now() > at + 1) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

// Never freed: the handler reads them at any time.
const std::vector<std::string>* folders_to_remove = nullptr;

extern "C" void remove_folders(int signal) {
  for (const std::string& folder : *folders_to_remove) {
    ::rmdir(folder.c_str());
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Signals that the process was told to ignore (nohup, or a script's job in the background) stay
// ignored.
void on_signals(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) {
      continue;
    }
    struct sigaction action {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
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
  on_signals(note);
  return [] {
    if (const std::string asked = interruption(); !asked.empty()) {
      throw Interrupted(asked);
    }
  };
}

void remove_folders_when_ended(const std::vector<std::filesystem::path>& folders) {
  auto* const names = new std::vector<std::string>();
  for (const std::filesystem::path& folder : folders) {
    names->push_back(folder.string());
  }
  folders_to_remove = names;
  on_signals(remove_folders);
}

}  // namespace redblue
