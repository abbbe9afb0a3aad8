#include "runtime/observe/parallel.hpp"

#include <atomic>
#include <exception>
#include <mutex>

#include <sched.h>

#include "memsim/ranks/together.hpp"

namespace redblue {

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
  // OpenMP ends the process if the system refuses a thread. So run_together(), which throws
  // instead, first tries a team that is larger than any before. OpenMP keeps its threads for later
  // teams.
  static std::atomic<Index> most_workers = 1;
  if (workers > most_workers) {
    run_together(workers, "worker", [](Index) {});
    most_workers = workers;
  }
#pragma omp parallel for num_threads(static_cast <int>(workers)) schedule(static, 1)
  for (Index worker = 0; worker < workers; ++worker) {
    try {
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
  }
  if (known) {
    sched_setaffinity(0, sizeof(before), &before);
  }
  if (failure != nullptr) {
    std::rethrow_exception(failure);
  }
  return unpinned;
}

}  // namespace redblue
