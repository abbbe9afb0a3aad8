#pragma once
// Ranks that are processes of one MPI job (redblue-mpi alone links it).

#include <memory>

#include "memsim/ranks/transport.hpp"

namespace redblue {

class MpiTransport;

// MPI from here to the end of this value; a process has one.
class MpiJob {
 public:
  MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;
  // Waits for all ranks; not after an error: then the caller abandons the job.
  ~MpiJob();

  [[nodiscard]] Transport& transport();
  // Called by a rank that failed. Whether all ranks did before their first messages: then none
  // waits for another, and each ends this value as after a success. Waits some seconds at most for
  // what the others do.
  [[nodiscard]] bool all_failed_at_start();
  // Ends all processes of the job with this exit code.
  [[noreturn]] void abandon(int code) noexcept;

 private:
  std::unique_ptr<MpiTransport> transport_;
};

}  // namespace redblue
