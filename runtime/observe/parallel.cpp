#include "runtime/observe/parallel.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sched.h>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

// Blocks all signals except faults while it lives. Threads that start meanwhile never take a
// signal that is meant for a thread of the caller.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&all, fault);
    }
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// The process's threads for workers. A thread that has ended its work waits for more, because
// starting one can take milliseconds. Threads are never joined: at the end of the process they
// wait.
class WorkerThreads {
 public:
  // Never deleted, because threads wait on it until the end.
  static WorkerThreads& of_process() {
    static auto* const all = new WorkerThreads;
    // Only the calling thread lives on in a child of fork().
    static const int handled =
        ::pthread_atfork([] { all->mutex_.lock(); }, [] { all->mutex_.unlock(); },
                         [] {
                           all->waiting_ = nullptr;
                           all->mutex_.unlock();
                         });
    static_cast<void>(handled);
    return *all;
  }

  // Calls work(0) on the calling thread and work(1) to work(workers - 1) on other threads.
  // Requires: work does not throw. Throws: as no_thread(), before any call.
  void run(Index workers, const std::function<void(Index)>& work) {
    Job job{work, workers - 1};
    {
      const std::lock_guard lock(mutex_);
      Thread* last = nullptr;
      for (Index k = 1; k < workers; ++k) {
        Thread*& next = last == nullptr ? waiting_ : last->next;
        if (next == nullptr) {
          next = started(k, workers);
        }
        last = next;
      }
      for (Index k = 1; k < workers; ++k) {
        Thread& thread = *std::exchange(waiting_, waiting_->next);
        thread.job = &job;
        thread.worker = k;
        thread.called.notify_one();
      }
    }
    work(0);
    const auto is_over = [&] { return job.working == 0; };
    look_for(is_over);
    std::unique_lock lock(mutex_);
    job.ended.wait(lock, is_over);
  }

 private:
  struct Job {
    const std::function<void(Index)>& work;
    std::atomic<Index> working;  // workers that have not ended
    std::condition_variable ended = {};
  };
  struct Thread {
    std::condition_variable called = {};
    std::atomic<Job*> job = nullptr;
    Index worker = 0;
    Thread* next = nullptr;  // of those that wait
  };

  // Waits a little until `holds` does. To wake a sleeping thread takes about as long.
  template <class Holds>
  static void look_for(const Holds& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (!holds() && std::chrono::steady_clock::now() < end) {
    }
  }

  // Requires: the mutex is held.
  Thread* started(Index worker, Index workers) {
    auto own = std::make_unique<Thread>();
    Thread* const thread = own.get();
    const NoSignals none;
    try {
      std::thread([this, own = std::move(own)] { serve(*own); }).detach();
    } catch (const std::system_error& error) {
      throw no_thread("worker " + std::to_string(worker) + " of " + std::to_string(workers),
                      error.code());
    }
    return thread;
  }

  [[noreturn]] void serve(Thread& thread) {
    const auto is_called = [&] { return thread.job != nullptr; };
    while (true) {
      look_for(is_called);
      std::unique_lock lock(mutex_);
      thread.called.wait(lock, is_called);
      Job& job = *thread.job.exchange(nullptr);
      lock.unlock();
      job.work(thread.worker);
      lock.lock();
      thread.next = std::exchange(waiting_, &thread);
      if (--job.working == 0) {
        job.ended.notify_one();  // under the mutex, which keeps the job alive
      }
    }
  }

  std::mutex mutex_;
  Thread* waiting_ = nullptr;
};

}  // namespace

std::string in_parallel(Index workers, const Topology& topology,
                        const std::function<void(Index worker)>& work) {
  if (workers == 1) {
    work(0);
    return topology.unpinnable;
  }
  std::exception_ptr failure;
  std::string unpinned;
  std::mutex mutex;
  cpu_set_t before;
  const bool known = sched_getaffinity(0, sizeof(before), &before) == 0;
  WorkerThreads::of_process().run(workers, [&](Index worker) {
    try {
      if (known && worker > 0) {  // an earlier team may have pinned the thread
        sched_setaffinity(0, sizeof(before), &before);
      }
      const std::string why = pin_this_thread(topology, static_cast<std::size_t>(worker));
      if (!why.empty()) {
        const std::lock_guard lock(mutex);
        unpinned = why;
      }
      work(worker);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (failure == nullptr) {
        failure = std::current_exception();
      }
    }
  });
  if (known) {
    sched_setaffinity(0, sizeof(before), &before);
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
  return unpinned;
}

}  // namespace redblue
