#pragma once
// The requests of one thread to the files of a store, through a few aligned buffers. A request that
// was cut short is continued, and an interrupted one is repeated. The error of a failed request
// names file, offset and cause.

#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "memsim/store/ledger.hpp"
#include "memsim/store/transfers.hpp"

namespace redblue {

class Channel {
 public:
  // Requires: buffer_bytes is a multiple of a sector, and depth >= 2.
  Channel(const MakeQueue& make, int depth, Index buffer_bytes, Ledger& ledger);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] Index buffer_bytes() const { return buffer_bytes_; }

  struct Buffer : Transfer {
    std::span<std::byte> all;
    int tries = 0;
    const std::filesystem::path* path = nullptr;
    std::function<void()> then;  // called when the request has succeeded
  };

  // Returns a free buffer. If all buffers are in flight, waits for one request to end. The buffer
  // belongs to the caller until start(). Throws: the std::system_error of the request that ended,
  // or an exception of its `then`.
  Buffer& free_buffer();
  // Moves the first `size` bytes of the buffer from or to `offset` in the file. `path` must outlive
  // the request.
  void start(Buffer& buffer, Transfer::Kind kind, int file, const std::filesystem::path& path,
             std::int64_t offset, Index size, std::function<void()> then = nullptr);
  // Waits for all requests in flight. Throws: as free_buffer(). The first failure is thrown after
  // all requests have ended.
  void finish();
  // Waits for all requests in flight and discards their results. Afterwards all buffers are free.
  // If the queue itself fails, the channel is lost: free_buffer() then throws that failure.
  void abandon() noexcept;

 private:
  void end_one();

  struct Release {
    void operator()(std::byte* memory) const;
  };
  Index buffer_bytes_;
  Ledger& ledger_;
  std::unique_ptr<TransferQueue> queue_;
  std::unique_ptr<std::byte, Release> memory_;
  std::vector<Buffer> buffers_;
  std::vector<Buffer*> free_;
  std::size_t in_flight_ = 0;
  std::exception_ptr lost_;  // the queue's failure in abandon(), if any
};

}  // namespace redblue
