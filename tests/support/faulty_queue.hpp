#pragma once
// A queue of disk requests in which one request goes wrong: it fails, or falsely reports success.
// The test chooses the request and the fault. Random choices come from a seed, so that a run can be
// repeated.
//
//   Faults faults({.kind = Fault::torn, .which = 17, .seed = 1});
//   Store store(directory, {.queue = faults.around([] { return make_queue(...); })});

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "memsim/store/layout.hpp"
#include "memsim/store/transfers.hpp"

namespace redblue {

struct Fault {
  enum Kind {
    eio,
    enospc,
    eintr,
    short_read,
    short_write,
    torn,           // only some of the first sectors reach the file, but all are reported
    flipped_read,   // a bit of the result flips
    flipped_write,  // a bit of the bytes written to the file flips
    stale           // success is reported, but nothing happened
  };
  enum class Of { reads, writes, both };

  Kind kind = eio;
  Index which = -1;  // index among the requests that the fault may strike, from 0; -1: no fault
  std::uint64_t seed = 0;
  Of of = Of::both;  // for eio and eintr; the other kinds imply it

  [[nodiscard]] bool strikes(Transfer::Kind request) const {
    const bool read = request == Transfer::Kind::read;
    switch (kind) {
      case eio:
      case eintr:
        return of == Of::both || (of == Of::reads) == read;
      case short_read:
      case flipped_read:
        return read;
      default:
        return !read;
    }
  }
};

inline constexpr std::array kFaults = {Fault::eio,          Fault::enospc,        Fault::eintr,
                                       Fault::short_read,   Fault::short_write,   Fault::torn,
                                       Fault::flipped_read, Fault::flipped_write, Fault::stale};

inline const char* to_string(Fault::Kind kind) {
  constexpr std::array kNames = {"EIO",          "ENOSPC",        "EINTR",
                                 "short read",   "short write",   "torn",
                                 "flipped read", "flipped write", "stale"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Shared by the queues of all threads. REQUIRES: it outlives them.
class Faults {
 public:
  explicit Faults(Fault fault = {}) : fault_(fault), random_(fault.seed) {}

  // The number of requests so far that the fault may strike, and the number that it struck: 0 or 1.
  [[nodiscard]] Index requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  [[nodiscard]] Index injected() const {
    const std::lock_guard lock(mutex_);
    return injected_;
  }
  // Returns the request that was struck, such as "EIO: write of 4096 bytes at offset 8192", or "".
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

  [[nodiscard]] MakeQueue around(MakeQueue make) {
    return [this, make = std::move(make)] { return std::make_unique<Queue>(*this, make()); };
  }

 private:
  static constexpr auto kSector = static_cast<std::size_t>(StoreLayout::kSector);

  struct Request : Transfer {
    Transfer* asked = nullptr;
    bool struck = false;
    std::size_t part = 0;  // the number of bytes that are left of it, or the bit that flips
  };

  class Queue final : public TransferQueue {
   public:
    Queue(Faults& faults, std::unique_ptr<TransferQueue> inner)
        : faults_(faults), inner_(std::move(inner)) {}

    void submit(Transfer& asked) override {
      Request& request = requests_.emplace_back(Request{asked, &asked});
      request.struck = faults_.next(request);
      if (!request.struck || faults_.begin(request)) {
        inner_->submit(request);
      } else {
        ended_.push_back(&request);
      }
    }

    Transfer& wait() override {
      Request* request = nullptr;
      if (!ended_.empty()) {
        request = ended_.front();
        ended_.pop_front();
      } else {
        request = &static_cast<Request&>(inner_->wait());
        if (request->struck) {
          faults_.end(*request);
        }
      }
      Transfer& asked = *request->asked;
      asked.result = request->result;
      requests_.remove_if([&](const Request& other) { return &other == request; });
      return asked;
    }

   private:
    Faults& faults_;
    std::unique_ptr<TransferQueue> inner_;
    std::list<Request> requests_;
    std::deque<Request*> ended_;  // failed before they reached the inner queue
  };

  // Returns whether the fault strikes this request.
  bool next(Request& request) {
    const std::lock_guard lock(mutex_);
    if (!fault_.strikes(request.kind) || requests_++ != fault_.which) {
      return false;
    }
    ++injected_;
    const std::size_t size = request.bytes.size();
    text_ = std::string(to_string(fault_.kind)) + ": " +
            (request.kind == Transfer::Kind::read ? "read" : "write") + " of " +
            std::to_string(size) + " bytes at offset " + std::to_string(request.offset);
    switch (fault_.kind) {
      case Fault::short_read:
      case Fault::short_write:
        request.part = below(size - 1) + 1;
        if (request.part > kSector && below(2) == 0) {
          request.part = request.part / kSector * kSector;
        }
        break;
      case Fault::torn:
        request.part = size > kSector ? (below(size / kSector - 1) + 1) * kSector : 0;
        break;
      case Fault::flipped_read:
      case Fault::flipped_write:
        request.part = below(size * 8);
        break;
      default:
        break;
    }
    return true;
  }
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }

  // Returns whether the request reaches the file at all.
  [[nodiscard]] bool begin(Request& request) const {
    switch (fault_.kind) {
      case Fault::eio:
        request.result = -EIO;
        return false;
      case Fault::enospc:
        request.result = -ENOSPC;
        return false;
      case Fault::eintr:
        request.result = -EINTR;
        return false;
      case Fault::stale:
        request.result = static_cast<std::int64_t>(request.bytes.size());
        return false;
      case Fault::short_read:  // direct requests are whole sectors
        request.bytes = request.bytes.first(
            std::min(request.bytes.size(), (request.part + kSector - 1) / kSector * kSector));
        return true;
      case Fault::short_write:
        request.result = static_cast<std::int64_t>(request.part);
        request.bytes = request.bytes.first(request.part / kSector * kSector);
        return !request.bytes.empty();
      case Fault::torn:
        request.result = static_cast<std::int64_t>(request.bytes.size());
        request.bytes = request.bytes.first(request.part);
        return !request.bytes.empty();
      case Fault::flipped_write:
        flip(request);
        return true;
      case Fault::flipped_read:
        return true;
    }
    return true;
  }

  void end(Request& request) const {
    if (request.result < 0) {
      return;
    }
    switch (fault_.kind) {
      case Fault::short_read:  // the rest of the buffer is arbitrary
        request.result = std::min(request.result, static_cast<std::int64_t>(request.part));
        std::ranges::fill(request.asked->bytes.subspan(static_cast<std::size_t>(request.result)),
                          std::byte{0x5a});
        break;
      case Fault::short_write:
        request.result = static_cast<std::int64_t>(request.part);
        break;
      case Fault::torn:
        request.result = static_cast<std::int64_t>(request.asked->bytes.size());
        break;
      case Fault::flipped_read:
      case Fault::flipped_write:  // restored, because the buffer is the writer's
        flip(request);
        break;
      default:
        break;
    }
  }

  static void flip(Request& request) {
    request.asked->bytes[request.part / 8] ^= static_cast<std::byte>(1U << request.part % 8);
  }

  Fault fault_;
  mutable std::mutex mutex_;  // guards the members below
  std::mt19937_64 random_;
  Index requests_ = 0;
  Index injected_ = 0;
  std::string text_;
};

}  // namespace redblue
