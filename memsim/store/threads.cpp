#include "memsim/store/threads.hpp"

#include <system_error>
#include <utility>

#include "memsim/errors.hpp"

namespace redblue {

Threads::~Threads() {
  const std::lock_guard lock(mutex_);
  ending_ = true;
  while (!idle_.empty()) {
    call_one();
  }
}

// Each task wakes an idle thread or starts a new one. At the limit (ours or the system's), a busy
// thread takes the task, because it looks for more tasks before it becomes idle.
void Threads::give(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (idle_.empty() && threads_.size() < most_) {
    idle_.reserve(threads_.size() + 1);  // so that becoming idle cannot fail
    try {
      threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error& error) {
      if (threads_.empty()) {
        throw no_thread("transfers of words", error.code());
      }
    }
  }
  tasks_.push_back(std::move(task));  // after the thread, whose start may throw
  if (!idle_.empty()) {
    call_one();
  }
}

void Threads::call_one() {
  Idle& idle = *idle_.back();
  idle_.pop_back();
  idle.called = true;
  idle.woken.notify_one();
}

void Threads::serve() {
  Idle self;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (tasks_.empty()) {
      if (ending_) {
        return;
      }
      self.called = false;
      idle_.push_back(&self);
      self.woken.wait(lock, [&] { return self.called; });
    }
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace redblue
