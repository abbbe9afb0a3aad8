#pragma once
// Requests of one thread to the files of a store, from a few aligned buffers of its own: what was
// cut short is continued, what was interrupted is repeated, and who fails names file, offset and
// cause.

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "memsim/store/ledger.hpp"
#include "memsim/store/transfers.hpp"

namespace redblue {

class Channel {
 public:
  // Requires: buffers of whole sectors, and two or more.
  Channel(const MakeQueue& make, int depth, Index buffer_bytes, Ledger& ledger);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] Index buffer_bytes() const { return buffer_bytes_; }

  struct Buffer : Transfer {
    std::span<std::byte> all;
    int tries = 0;
    const std::filesystem::path* path = nullptr;
    std::function<void()> then;  // when it has ended well
  };

  // One that is free, once a request has ended where all are in flight. It is the caller's until it
  // is started. Throws: std::system_error of the request that ended.
  Buffer& free_buffer();
  // The first `size` bytes of the buffer, at `offset` of the file.
  void start(Buffer& buffer, Transfer::Kind kind, int file, const std::filesystem::path& path,
             std::int64_t offset, Index size, std::function<void()> then = nullptr);
  // All that was started has ended. Throws: as free_buffer(), what the first to fail threw, when
  // nothing is in flight any more.
  void finish();
  // Waits for what is in flight, and forgets how it ended. All buffers are free.
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
};

}  // namespace redblue
