#pragma once
// Lets a program, such as a Python interpreter, call commands as functions. Output goes to the
// caller and not to the streams of the process. The caller, not a signal, asks a command to stop.

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mask.hpp"

namespace redblue {

struct Caller {
  std::string data;                // the command's standard output
  std::string table, csv;          // the same report in other formats, when `data` is JSON
  std::vector<std::string> words;  // the lines of standard error
  std::atomic<bool> stop = false;  // set by any thread; the work then throws Interrupted
  // The mask of a command that is called with --mask, in place of its text.
  std::optional<Mask> mask;
  // Shows a line about the progress of a run; empty: none is shown. Called on any thread.
  std::function<void(std::string_view line)> show;
  // hold_environment() stops all threads of the program from changing the environment of the
  // process, until release_environment(). Both may wait for the program.
  std::function<void()> hold_environment, release_environment;
};

// While an object lives, commands on this thread work for `caller`, which must outlive the object.
class CalledBy {
 public:
  explicit CalledBy(Caller& caller);
  CalledBy(const CalledBy&) = delete;
  CalledBy& operator=(const CalledBy&) = delete;
  ~CalledBy();
};

// Returns the program that this thread works for; null if the command was typed.
Caller* caller();

// While an object lives, the calling program does not change the environment, so libraries can read
// it safely. Without a caller it has no effect. Requires: this thread holds no other such object.
class UnchangedEnvironment {
 public:
  UnchangedEnvironment();
  UnchangedEnvironment(const UnchangedEnvironment&) = delete;
  UnchangedEnvironment& operator=(const UnchangedEnvironment&) = delete;
  ~UnchangedEnvironment();
};

}  // namespace redblue
