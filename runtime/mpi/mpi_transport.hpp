#pragma once
// Connects ranks that are processes of one MPI job. Only redblue-mpi links it.

#include <memory>

#include "memsim/ranks/transport.hpp"

namespace redblue {

class MpiTransport;

// Initializes MPI and finalizes it at the end of its life. A process has at most one MpiJob.
class MpiJob {
 public:
  MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;
  // Waits for all ranks. After an error, call abandon() instead.
  ~MpiJob();

  [[nodiscard]] Transport& transport();
  // Called by a rank that failed. Returns whether all ranks failed before their first messages.
  // Then no rank waits for another, and each destroys its MpiJob as after a success. Waits at most
  // a few seconds for the other ranks.
  [[nodiscard]] bool all_failed_at_start();
  // Ends all processes of the job with this exit code.
  [[noreturn]] void abandon(int code) noexcept;

 private:
  std::unique_ptr<MpiTransport> transport_;
};

}  // namespace redblue
