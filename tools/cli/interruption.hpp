#pragma once
// Signals that ask a command to end: SIGINT, SIGTERM and SIGHUP. An output is whole or as it was,
// and no temporary file stays. Exit code 0 after a signal means that it came too late: all outputs
// are in their places. A run that can continue keeps its checkpoint or journal.

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace redblue {

// A run was asked to end, and did: "ended by SIGINT".
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The message of such an end if one was asked for; else empty. Requires: stop_if_asked() was called
// before.
std::string interruption();

// From now on a signal ends the command after its temporary files are removed
// (runtime/system/unfinished_files.hpp), but not once an output is in its place. Signals that the
// process was told to ignore stay ignored.
void remove_files_when_ended();

// Notes signals from now on. The returned function throws Interrupted if one has come before the
// first output was in its place; it is called now and then, from any thread. A signal that comes
// two seconds after the first, or later, ends the process at once. In a program that called, whose
// signals are its own, it throws where the caller asks.
std::function<void()> stop_if_asked();

// The same for work that a signal may end at once: null, where nobody called.
std::function<void()> stop_if_caller_asks();

// Where one of these signals ends the process, these folders are removed before, if they are empty
// then: the first, and then the next.
void remove_folders_when_ended(const std::vector<std::filesystem::path>& folders);

}  // namespace redblue
