#pragma once
// A subject with unknown code. Its run and its formula each happen in a child process, so that a
// crash ends the child alone.

#include <functional>

#include "runtime/gate/subject.hpp"

namespace redblue {

// While it lives, what this process prints on standard output goes to standard error: a kernel may
// print, and standard output is for data. For a child, which has one thread.
class Aside {
 public:
  Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside();

 private:
  int output_;  // -1: there is none
};

// Returns the same subject with other functions. They throw FastMemoryOverflow, FastMemoryTooSmall,
// CountOverflow and std::bad_alloc as the subject's own functions do, and std::runtime_error for
// any other exception and for a crash. They may be called from several threads at once. Requires:
// no subject's code runs in this process itself. A child has one thread, and would wait forever for
// a lock that another thread held at the fork.
Subject isolated(Subject subject);

// Does the work in a child, which prints and writes files for itself; throws likewise.
void in_child(const std::function<void()>& work);
// Counts, with the seconds, of work in a child; throws likewise.
RunCounts counted_in_child(const std::function<RunCounts()>& work);

}  // namespace redblue
