#include "memsim/store/transfers.hpp"

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>

#include <unistd.h>

#include "memsim/store/threads.hpp"

#ifdef REDBLUE_WITH_URING
#include <liburing.h>
#endif

namespace redblue {
namespace {

class ThreadQueue final : public TransferQueue {
 public:
  explicit ThreadQueue(int depth) : threads_(static_cast<std::size_t>(depth)) {}

  void submit(Transfer& transfer) override {
    threads_.give([this, &transfer] { move(transfer); });
  }

  Transfer& wait() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return !done_.empty(); });
    Transfer& transfer = *done_.front();
    done_.pop_front();
    return transfer;
  }

 private:
  void move(Transfer& transfer) {
    const auto [kind, file, offset, bytes, _] = transfer;
    const ssize_t moved = kind == Transfer::Kind::read
                              ? ::pread(file, bytes.data(), bytes.size(), offset)
                              : ::pwrite(file, bytes.data(), bytes.size(), offset);
    transfer.result = moved < 0 ? -errno : moved;
    const std::lock_guard lock(mutex_);
    done_.push_back(&transfer);
    ended_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::deque<Transfer*> done_;
  Threads threads_;  // declared last and so destroyed first: the threads use the other members
};

#ifdef REDBLUE_WITH_URING

class Uring final : public TransferQueue {
 public:
  explicit Uring(int depth) {
    if (const int error = io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0); error < 0) {
      throw std::system_error(-error, std::generic_category(), "io_uring");
    }
  }
  ~Uring() override { io_uring_queue_exit(&ring_); }

  void submit(Transfer& transfer) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    const auto size = static_cast<unsigned>(transfer.bytes.size());
    const auto offset = static_cast<std::uint64_t>(transfer.offset);
    if (transfer.kind == Transfer::Kind::read) {
      io_uring_prep_read(entry, transfer.file, transfer.bytes.data(), size, offset);
    } else {
      io_uring_prep_write(entry, transfer.file, transfer.bytes.data(), size, offset);
    }
    io_uring_sqe_set_data(entry, &transfer);
    retry([&] { return io_uring_submit(&ring_); });
  }

  Transfer& wait() override {
    io_uring_cqe* entry = nullptr;
    retry([&] { return io_uring_wait_cqe(&ring_, &entry); });
    auto& transfer = *static_cast<Transfer*>(io_uring_cqe_get_data(entry));
    transfer.result = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    return transfer;
  }

 private:
  // Repeats an interrupted call. Other failures come from the ring itself, not from a request.
  template <class Call>
  static void retry(const Call& call) {
    int result = call();
    while (result == -EINTR || result == -EAGAIN) {
      result = call();
    }
    if (result < 0) {
      throw std::system_error(-result, std::generic_category(), "io_uring");
    }
  }

  io_uring ring_{};
};

#endif

}  // namespace

const char* to_string(Engine engine) {
  return engine == Engine::uring ? "io_uring" : "threads";
}

std::string unavailable(Engine engine) {
  if (engine == Engine::threads) {
    return {};
  }
#ifdef REDBLUE_WITH_URING
  try {
    const Uring tried(1);
    return {};
  } catch (const std::system_error& error) {
    return error.code().message();
  }
#else
  return "built without liburing";
#endif
}

std::unique_ptr<TransferQueue> make_queue(Engine engine, int depth) {
#ifdef REDBLUE_WITH_URING
  if (engine == Engine::uring) {
    return std::make_unique<Uring>(depth);
  }
#endif
  if (engine == Engine::uring) {
    throw std::system_error(ENOSYS, std::generic_category(), "io_uring: " + unavailable(engine));
  }
  return std::make_unique<ThreadQueue>(depth);
}

}  // namespace redblue
