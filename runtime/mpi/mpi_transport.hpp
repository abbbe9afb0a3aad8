#pragma once
// Ranks that are processes of one MPI job (redblue-mpi alone links it).

#include <memory>

#include "memsim/ranks/transport.hpp"

namespace redblue {

// MPI from here to the end of this value; a process has one.
class MpiJob {
 public:
  MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;
  // Waits for all ranks; not after an error: then the caller abandons the job.
  ~MpiJob();

  [[nodiscard]] Transport& transport() { return *transport_; }
  // Ends all processes of the job with this exit code.
  [[noreturn]] void abandon(int code) noexcept;

 private:
  std::unique_ptr<Transport> transport_;
};

}  // namespace redblue
