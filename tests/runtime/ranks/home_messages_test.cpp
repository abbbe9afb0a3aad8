// Tests messages between homes, in any order and of any length, with few of them in buffers. Every
// row arrives, and no rank waits for ever.

#include "runtime/ranks/home_messages.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/plan.hpp"
#include "kernels/registry.hpp"
#include "memsim/ranks/local_transport.hpp"
#include "memsim/store/store.hpp"
#include "tests/support/faulty_queue.hpp"
#include "tests/support/print.hpp"
#include "tests/support/temporary_directory.hpp"

namespace redblue {
namespace {

constexpr Index kRows = 24, kCols = 5;  // of each rank's A2 (sent) and V (received)

struct Sent {
  Index from, to;
  Range rows;   // rows of the sender's A2
  Index first;  // first row in the receiver's V
  Index order, group;
};

// Deals each rank's V to messages from the others, each row once or not at all.
std::vector<Sent> random_messages(Index ranks, std::mt19937_64& random) {
  const auto below = [&](Index bound) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(bound));
  };
  std::vector<Sent> all;
  for (Index to = 0; to < ranks && ranks > 1; ++to) {
    for (Index first = below(3); first < kRows;) {
      const Index rows = std::min(1 + below(6), kRows - first);
      const Index begin = below(kRows - rows + 1);
      all.push_back({(to + 1 + below(ranks - 1)) % ranks,
                     to,
                     {begin, begin + rows},
                     first,
                     below(3),
                     below(4)});
      first += rows + below(2);
    }
  }
  std::ranges::shuffle(all, random);
  return all;
}

// All ranks to all, each to the next in a ring, or all to one.
std::vector<Sent> pattern(Index ranks, Index which) {
  std::vector<Sent> all;
  const Index share = kRows / std::max<Index>(ranks, 1);
  for (Index to = 0; to < ranks; ++to) {
    for (Index distance = 1; distance < ranks; ++distance) {
      if ((which == 1 && distance > 1) || (which == 2 && to > 0)) {
        continue;
      }
      all.push_back({(to + distance) % ranks, to, {0, share}, distance * share, 0, 0});
    }
  }
  return all;
}

float word(Index rank, Index number) {
  return static_cast<float>(1000 * rank + number);
}

class MessagesOfHomes : public testing::Test {
 protected:
  // Sends the messages in pieces of `most` words, and checks every word of every V. Returns the
  // most words in buffers.
  Index send(Index ranks, const std::vector<Sent>& all, Index most, bool on_disk,
             const StoreOptions& options = {}) {
    const Kernel& kernel = find_kernel("forward/rows");
    const Plan plan =
        kernel.plan(Problem(ranks, kRows, kCols), 400, Blocks{{"Br", 1}, {"Bc", 4}, {"Bw", 1}});
    const GridPlan of(kernel, plan, {ranks, 1});
    std::vector<Index> buffered(static_cast<std::size_t>(ranks));
    run_ranks(ranks, [&](Transport& transport) {
      transport.wait_at_most(std::chrono::seconds(30));
      const Index rank = transport.rank();
      std::optional<Store> store;
      if (on_disk) {
        store.emplace(directory_ / std::to_string(rank), options);
      }
      RankHome home(RankPart(of, rank), store ? &*store : nullptr);
      std::vector<float> words(static_cast<std::size_t>(kRows * kCols));
      for (std::size_t k = 0; k < words.size(); ++k) {
        words[k] = word(rank, static_cast<Index>(k));
      }
      home.put("A2", 0, words);
      std::vector<float> expected(words.size(), -1);
      home.put("A3", 0, expected);
      std::vector<HomeMessage> messages;
      for (const Sent& its : all) {
        const Range received = {its.first, its.first + its.rows.size()};
        if (its.to == rank || its.from == rank) {
          messages.push_back({.phase = "p",
                              .from = its.from,
                              .to = its.to,
                              .home = &home,
                              .matrix = its.to == rank ? "A3" : "A2",
                              .rows = its.to == rank ? received : its.rows,
                              .order = its.order,
                              .group = its.group});
        }
        for (Index k = 0; its.to == rank && k < received.size() * kCols; ++k) {
          expected[static_cast<std::size_t>(its.first * kCols + k)] =
              word(its.from, its.rows.begin * kCols + k);
        }
      }
      HomeMessages under_way(transport, std::move(messages), most);
      for (Index group = 0; group < 3; ++group) {
        under_way.progress();
        under_way.finish_up_to(group);
        for (const Sent& its : all) {  // has arrived
          if (its.to == rank && its.group <= group) {
            std::vector<float> row(static_cast<std::size_t>(kCols));
            home.get("A3", its.first * kCols, row);
            EXPECT_EQ(row[0], word(its.from, its.rows.begin * kCols));
          }
        }
      }
      under_way.finish();
      home.get("A3", 0, words);
      EXPECT_EQ(words, expected);
      buffered[static_cast<std::size_t>(rank)] = under_way.buffered();
    });
    return *std::ranges::max_element(buffered);
  }

  TemporaryDirectory directory_{TemporaryDirectory::in_memory()};
};

TEST_F(MessagesOfHomes, ArriveInAnyOrderAndHoldFewBuffers) {
  std::mt19937_64 random(7);
  for (const Index ranks : {1, 2, 3, 4, 6}) {
    for (Index k = 0; k < 9; ++k) {
      const std::vector<Sent> all = k < 3 ? pattern(ranks, k) : random_messages(ranks, random);
      for (const Index most : {1, 7, 1000}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, list " << k << ", " << most);
        EXPECT_EQ(send(ranks, all, most, false), 0);
        const Index buffered = send(ranks, all, most, true);
        EXPECT_LE(buffered, HomeMessages::most_buffered(most));
        EXPECT_EQ(buffered > 0, !all.empty());
      }
    }
  }
}

// A read fails at the start of a message. The rank reports it, and the other ranks do not wait for
// it.
TEST_F(MessagesOfHomes, EndWhereADiskFails) {
  const std::vector<Sent> all = pattern(4, 0);
  const auto options = [](Faults& faults) {
    StoreOptions its;
    its.queue = faults.around([] { return make_queue(Engine::threads, 8); });
    return its;
  };
  Faults none({.kind = Fault::eio, .which = -1, .of = Fault::Of::reads});
  send(4, all, 7, true, options(none));
  ASSERT_GE(none.requests(), 8);
  for (Index which = 0; which < none.requests(); ++which) {
    Faults faults({.kind = Fault::eio, .which = which, .of = Fault::Of::reads});
    EXPECT_THROW(send(4, all, 7, true, options(faults)), std::system_error) << which;
  }
}

}  // namespace
}  // namespace redblue
