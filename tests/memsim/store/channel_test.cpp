// A channel with a queue that itself fails, as a ring of the kernel may. Functions that may not
// throw do not throw, and the next request reports the failure.

#include "memsim/store/channel.hpp"

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/store/layout.hpp"

namespace redblue {
namespace {

// The memory that requests of a broken queue may still write. A lost channel leaves it alone.
// Keeping the pointers here stops a sanitizer from reporting a leak.
std::vector<std::byte*>& still_moving() {
  static auto& all = *new std::vector<std::byte*>;  // lives until the process ends
  return all;
}

// Takes requests, and fails when it is asked for one that ended.
class BrokenQueue final : public TransferQueue {
 public:
  void submit(Transfer& transfer) override { still_moving().push_back(transfer.bytes.data()); }
  Transfer& wait() override { throw std::system_error(ENXIO, std::generic_category(), "the ring"); }
};

int error_of_next(Channel& channel) {
  try {
    static_cast<void>(channel.free_buffer());
  } catch (const std::system_error& error) {
    return error.code().value();
  }
  return 0;
}

TEST(Channel, SaysLaterThatItsQueueFailedWhileItWasAbandoned) {
  Ledger ledger;
  const std::filesystem::path path = "A.rb";
  Channel channel([] { return std::make_unique<BrokenQueue>(); }, 2, StoreLayout::kSector, ledger);
  channel.abandon();
  EXPECT_EQ(error_of_next(channel), 0) << "nothing is in flight";
  channel.start(channel.free_buffer(), Transfer::Kind::read, -1, path, 0, StoreLayout::kSector);
  channel.abandon();  // noexcept
  EXPECT_EQ(error_of_next(channel), ENXIO);
}

// finish() abandons the channel when a request fails, and passes the failure to the caller.
TEST(Channel, FinishesWithTheFailureOfItsQueue) {
  Ledger ledger;
  const std::filesystem::path path = "A.rb";
  Channel channel([] { return std::make_unique<BrokenQueue>(); }, 2, StoreLayout::kSector, ledger);
  for (int k = 0; k < 2; ++k) {
    channel.start(channel.free_buffer(), Transfer::Kind::write, -1, path, 0, StoreLayout::kSector);
  }
  EXPECT_THROW(channel.finish(), std::system_error);
  EXPECT_EQ(error_of_next(channel), ENXIO);
}

}  // namespace
}  // namespace redblue
