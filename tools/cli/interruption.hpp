#pragma once
// Signals that ask a run to end. The run ends as after an error, so that it leaves nothing behind,
// or what it needs to continue.

#include <functional>
#include <stdexcept>
#include <string>

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
// ignored.
std::function<void()> stop_if_asked();

}  // namespace redblue
