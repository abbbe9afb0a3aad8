#pragma once
// A program that has commands as functions, such as an interpreter of Python. What a command prints
// goes to the caller and not to the streams of the process; and the caller, not a signal, asks it
// to end.

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace redblue {

struct Caller {
  std::string data;                // what a person has on standard output
  std::string table, csv;          // the other forms of a report whose JSON is in `data`
  std::vector<std::string> words;  // the lines of standard error
  std::atomic<bool> stop = false;  // set by any thread: what works throws Interrupted soon
  // Between the two no thread of the program changes the environment of the process. Each may wait
  // for the program.
  std::function<void()> hold_environment, release_environment;
};

// While it lives, what this thread does is for the caller, which must outlive it.
class CalledBy {
 public:
  explicit CalledBy(Caller& caller);
  CalledBy(const CalledBy&) = delete;
  CalledBy& operator=(const CalledBy&) = delete;
  ~CalledBy();
};

// The program that this thread works for; null: none, and a person typed the command.
Caller* caller();

// While it lives, nobody changes the environment of the process, which libraries read. Not while
// another one of this thread lives.
class UnchangedEnvironment {
 public:
  UnchangedEnvironment();
  UnchangedEnvironment(const UnchangedEnvironment&) = delete;
  UnchangedEnvironment& operator=(const UnchangedEnvironment&) = delete;
  ~UnchangedEnvironment();
};

}  // namespace redblue
