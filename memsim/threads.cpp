#include "memsim/threads.hpp"

#include <utility>

namespace redblue {

Threads::~Threads() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  given_.notify_all();
}

void Threads::give(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (tasks_.size() >= idle_ && threads_.size() < most_) {
    threads_.emplace_back([this] { serve(); });
  }
  tasks_.push_back(std::move(task));  // once there is somebody who does it
  given_.notify_one();
}

void Threads::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    given_.wait(lock, [&] { return ending_ || !tasks_.empty(); });
    --idle_;
    if (tasks_.empty()) {
      return;
    }
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace redblue
