#pragma once
// Runs a subject with unknown code in child processes. A crash then ends only the child.

#include <functional>

#include "runtime/gate/subject.hpp"

namespace redblue {

// Redirects this process's standard output to standard error during its lifetime. A kernel may
// print, but standard output is for data. For use in a child, which has one thread.
class StdoutToStderr {
 public:
  StdoutToStderr();
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr();

 private:
  int output_;  // -1: standard output is closed
};

// Returns the subject with functions that each run in a child process. They throw
// FastMemoryOverflow, FastMemoryTooSmall, CountOverflow and std::bad_alloc as the originals do. For
// any other exception and for a crash they throw std::runtime_error. Several threads may call them
// at once.
//
// Requires: the subjects' own functions never run in this process itself. A child has one thread,
// and would wait forever for a lock that another thread held at the fork.
Subject isolated(Subject subject);

// Does the work in a child, which may print and write files. Throws as above.
void in_child(const std::function<void()>& work);
// Returns the counts and seconds of work in a child. Throws as above.
RunCounts counted_in_child(const std::function<RunCounts()>& work);

}  // namespace redblue
