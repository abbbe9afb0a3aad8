#pragma once
// Threads that run tasks in the order in which they are given. A new thread starts if no thread is
// idle, up to a limit.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "memsim/cxx20.hpp"

namespace redblue {

class Threads {
 public:
  explicit Threads(std::size_t most = std::numeric_limits<std::size_t>::max()) : most_(most) {}
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  // Waits until all tasks are done.
  ~Threads();

  // Requires: the task does not throw. Throws: std::system_error if no thread at all can be
  // started; the task is then not taken.
  void give(std::function<void()> task);

 private:
  // Each waiter has a separate condition variable. With a shared one, glibc can lose a wake-up (bug
  // 25847).
  struct Idle {
    std::condition_variable woken;
    bool called = false;
  };
  void serve();
  void call_one();

  std::size_t most_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
  std::vector<Idle*> idle_;  // not called yet
  bool ending_ = false;
  // Declared last and so destroyed first: the threads use the other members.
  std::vector<std::jthread> threads_;
};

}  // namespace redblue
