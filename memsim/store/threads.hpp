#pragma once
// Threads that do what they are given, in the order in which it is given: as many as there is to do
// at the same time, but at most so many.

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
  // When all is done.
  ~Threads();

  // Requires: the task does not throw. Throws: std::system_error where there is no thread for it,
  // and then it is not given.
  void give(std::function<void()> task);

 private:
  // Who waits has a condition of its own: where several wait on one, glibc may wake none of them
  // (its bug 25847).
  struct Idle {
    std::condition_variable woken;
    bool called = false;
  };
  void serve();
  void call_one();

  std::size_t most_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
  std::vector<Idle*> idle_;  // and not called yet
  bool ending_ = false;
  std::vector<std::jthread> threads_;  // the first to die: they use the rest
};

}  // namespace redblue
