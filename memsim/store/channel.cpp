#include "memsim/store/channel.hpp"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "memsim/store/layout.hpp"

namespace redblue {
namespace {

constexpr auto kSector = static_cast<std::size_t>(StoreLayout::kSector);
constexpr int kMostTries = 100;

[[noreturn]] void fail(const Channel::Buffer& buffer, int error) {
  throw std::system_error(error, std::generic_category(),
                          buffer.path->string() + ": cannot " +
                              (buffer.kind == Transfer::Kind::read ? "read " : "write ") +
                              std::to_string(buffer.bytes.size()) + " bytes at offset " +
                              std::to_string(buffer.offset));
}

}  // namespace

void Channel::Release::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t(kSector));
}

Channel::Channel(const MakeQueue& make, int depth, Index buffer_bytes, Ledger& ledger)
    : buffer_bytes_(buffer_bytes), ledger_(ledger), queue_(make()) {
  const auto size = static_cast<std::size_t>(buffer_bytes);
  const auto count = static_cast<std::size_t>(depth);
  memory_.reset(static_cast<std::byte*>(::operator new[](count* size, std::align_val_t(kSector))));
  buffers_.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    buffers_[k].all = {memory_.get() + k * size, size};
    free_.push_back(&buffers_[k]);
  }
}

Channel::~Channel() {
  abandon();
  if (lost_) {
    static_cast<void>(memory_.release());  // lost requests may still write there
  }
}

Channel::Buffer& Channel::free_buffer() {
  if (lost_) {
    std::rethrow_exception(lost_);
  }
  while (free_.empty()) {
    end_one();
  }
  Buffer& buffer = *free_.back();
  free_.pop_back();
  return buffer;
}

void Channel::start(Buffer& buffer, Transfer::Kind kind, int file,
                    const std::filesystem::path& path, std::int64_t offset, Index size,
                    std::function<void()> then) {
  buffer.kind = kind;
  buffer.file = file;
  buffer.offset = offset;
  buffer.bytes = buffer.all.first(static_cast<std::size_t>(size));
  buffer.tries = 0;
  buffer.path = &path;
  buffer.then = std::move(then);
  queue_->submit(buffer);
  ++in_flight_;
}

// A request that moved too few bytes continues at the last whole sector, as direct requests must.
void Channel::end_one() {
  auto& buffer = static_cast<Buffer&>(queue_->wait());
  --in_flight_;
  const auto size = static_cast<std::int64_t>(buffer.bytes.size());
  const int error = buffer.result < 0 ? static_cast<int>(-buffer.result) : 0;
  const std::int64_t moved = std::max<std::int64_t>(buffer.result, 0);
  const std::int64_t whole =
      moved == size ? moved : moved / StoreLayout::kSector * StoreLayout::kSector;
  ledger_.add(
      buffer.kind == Transfer::Kind::read ? Ledger::Direction::read : Ledger::Direction::write,
      {.requests = 1, .moved = moved, .repeated = moved - whole});
  if (moved == size) {
    if (buffer.then) {
      buffer.then();
    }
    free_.push_back(&buffer);
    return;
  }
  const bool interrupted = error == EINTR || error == EAGAIN;
  if (error != 0 && !interrupted) {
    fail(buffer, error);
  }
  // No progress means the end of a file, or a device that is full.
  buffer.tries = whole > 0 ? 0 : buffer.tries + 1;
  if (buffer.result == 0 || buffer.tries > kMostTries) {
    fail(buffer, error != 0 ? error : buffer.kind == Transfer::Kind::read ? ENODATA : ENOSPC);
  }
  buffer.offset += whole;
  buffer.bytes = buffer.bytes.subspan(static_cast<std::size_t>(whole));
  queue_->submit(buffer);
  ++in_flight_;
}

void Channel::finish() {
  try {
    while (in_flight_ > 0) {
      end_one();
    }
  } catch (...) {
    abandon();
    throw;
  }
}

void Channel::abandon() noexcept {
  try {
    for (; in_flight_ > 0; --in_flight_) {
      queue_->wait();
    }
  } catch (...) {  // the queue itself failed: its requests cannot be waited for
    lost_ = std::current_exception();
    in_flight_ = 0;
  }
  free_.clear();  // the vector has capacity for all buffers
  for (Buffer& buffer : buffers_) {
    free_.push_back(&buffer);
  }
}

}  // namespace redblue
