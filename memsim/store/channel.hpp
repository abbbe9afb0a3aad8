#pragma once
// The requests of one thread to the files of a store, through a few aligned buffers. A request that
// was cut short is continued; an interrupted one is repeated. The error of a failed request names
// file, offset and cause.

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
  // Requires: buffer_bytes is a multiple of a sector, and depth is 2 or more.
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

  // A free buffer; where all are in flight, waits for a request to end. The buffer is the caller's
  // until start(). Throws: std::system_error of the request that ended, or what its `then` threw.
  Buffer& free_buffer();
  // Moves the first `size` bytes of the buffer, at `offset` of the file. `path` must outlive the
  // request.
  void start(Buffer& buffer, Transfer::Kind kind, int file, const std::filesystem::path& path,
             std::int64_t offset, Index size, std::function<void()> then = nullptr);
  // Waits for all requests in flight. Throws: as free_buffer(), the first failure, once no request
  // is in flight any more.
  void finish();
  // Waits for all requests in flight and discards their results. All buffers are free afterwards.
  // If the queue fails meanwhile, the channel is lost: free_buffer() throws that failure.
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
  std::exception_ptr lost_;  // the failure of a queue that abandon() could not wait for
};

}  // namespace redblue
