#pragma once
// Signals that ask a run to end: it ends as at an error, so that it leaves nothing behind, or what
// it needs to go on.

#include <functional>
#include <stdexcept>
#include <string>

namespace redblue {

// What was asked to end, did: "ended by SIGINT".
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The message of such an end where one is asked for; else empty. Requires: stop_if_asked() was
// called before.
std::string interruption();

// From now on SIGINT, SIGTERM and SIGHUP are noted, and what this returns throws Interrupted when
// one was: to be called now and then, from any thread. One that comes two seconds after the first,
// or later, ends the process at once; and what the process was told to ignore stays so.
std::function<void()> stop_if_asked();

}  // namespace redblue
