#pragma once
// Handles the signals that ask a command to end: SIGINT, SIGTERM and SIGHUP. An output file is
// either complete or unchanged, and no temporary file remains. Exit code 0 after a signal means
// that the signal came too late: all outputs are in place. A run that can continue later keeps its
// checkpoint or journal.

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace redblue {

// Thrown when work ends because a signal or a caller asked: "ended by SIGINT".
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the message for the signal that came, or an empty text if none came. Requires:
// stop_if_asked() was called before.
std::string interruption();

// From now on a signal removes temporary files (runtime/system/unfinished_files.hpp) and ends the
// command. It no longer does so once an output is in place. Ignored signals (nohup) stay ignored.
void remove_files_when_ended();

// Records signals from now on. The returned function throws Interrupted if a signal came before the
// first output was in place. Any thread may call it, and long work calls it regularly. A second
// signal ends the process at once if it comes two seconds or more after the first. If a program
// called the command, signals belong to that program: the function throws when the caller asks.
std::function<void()> stop_if_asked();

// Like stop_if_asked(), for work that a signal may end at once. Returns null without a caller.
std::function<void()> stop_if_caller_asks();

// If a signal ends the process, first removes every empty folder of `folders`, in the given order.
void remove_folders_when_ended(const std::vector<std::filesystem::path>& folders);

}  // namespace redblue
