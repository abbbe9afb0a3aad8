#pragma once
// Requests to files, several in flight: through io_uring, or by threads that call pread and pwrite.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "memsim/cxx20.hpp"

namespace redblue {

struct Transfer {
  enum class Kind { read, write };
  Kind kind = Kind::read;
  int file = -1;
  std::int64_t offset = 0;
  std::span<std::byte> bytes;
  std::int64_t result = 0;  // bytes moved (maybe fewer than requested), or a negative errno
};

// Only one thread uses a queue, and all requests in the queue are its own.
class TransferQueue {
 public:
  TransferQueue() = default;
  TransferQueue(const TransferQueue&) = delete;
  TransferQueue& operator=(const TransferQueue&) = delete;
  virtual ~TransferQueue() = default;

  // Starts a transfer, which must stay in place until wait() returns it. Requires: fewer than
  // `depth` transfers are in flight.
  virtual void submit(Transfer& transfer) = 0;
  // Waits for a request to end. Requires: a request is in flight.
  virtual Transfer& wait() = 0;
};

enum class Engine { uring, threads };
const char* to_string(Engine engine);
// Returns an empty string, or the reason why the engine is unavailable.
std::string unavailable(Engine engine);

using MakeQueue = std::function<std::unique_ptr<TransferQueue>()>;
// Throws: std::system_error.
std::unique_ptr<TransferQueue> make_queue(Engine engine, int depth);

}  // namespace redblue
