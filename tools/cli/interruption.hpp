#pragma once
// Signals that ask a run to end. The run ends as after an error, so that it leaves nothing behind,
// or what it needs to continue.

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

// Notes SIGINT, SIGTERM and SIGHUP from now on. The returned function throws Interrupted if one has
// come; it is called now and then, from any thread. A signal that comes two seconds after the
// first, or later, ends the process at once. Signals that the process was told to ignore stay
// ignored. In a program that called, whose signals are its own, it throws where the caller asks.
std::function<void()> stop_if_asked();

// The same for work that a signal may end at once: null, where nobody called.
std::function<void()> stop_if_caller_asks();

// Where one of these signals ends the process, these folders are removed before, if they are empty
// then: the first, and then the next.
void remove_folders_when_ended(const std::vector<std::filesystem::path>& folders);

}  // namespace redblue
