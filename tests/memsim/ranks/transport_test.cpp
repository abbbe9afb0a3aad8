// Messages between ranks: every word arrives and is counted once. A message that arrives otherwise
// than it was sent is refused.

#include "memsim/ranks/transport.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/ranks/local_transport.hpp"

namespace redblue {
namespace {

using Fate = LocalOptions::Fate;

std::vector<float> words_from(Index words, float first) {
  std::vector<float> all(static_cast<std::size_t>(words));
  std::iota(all.begin(), all.end(), first);
  return all;
}

// Each rank sends to all others at the same time, in two phases.
TEST(Transport, BringsEveryWordAndCountsItOnce) {
  for (const Index ranks : {1, 2, 3, 7}) {
    run_ranks(ranks, [&](Transport& transport) {
      const Index own = transport.rank();
      ASSERT_EQ(transport.size(), ranks);
      const std::vector<float> out = words_from(10 + own, static_cast<float>(100 * own));
      std::vector<std::vector<float>> in;
      std::vector<std::unique_ptr<Fetch>> under_way;
      for (const char* const phase : {"a", "b"}) {
        for (Index other = 0; other < ranks; ++other) {
          if (other != own) {
            under_way.push_back(transport.begin_send(phase, other, out));
          }
        }
      }
      std::vector<Index> from;
      for (const char* const phase : {"a", "b"}) {
        for (Index other = 0; other < ranks; ++other) {
          if (other != own) {
            from.push_back(other);
            in.emplace_back(static_cast<std::size_t>(10 + other));
            under_way.push_back(transport.begin_receive(phase, other, in.back()));
          }
        }
      }
      for (auto message = under_way.rbegin(); message != under_way.rend(); ++message) {
        (*message)->finish();
      }
      for (std::size_t k = 0; k < in.size(); ++k) {
        EXPECT_EQ(in[k], words_from(10 + from[k], static_cast<float>(100 * from[k])));
      }
      Links expected;
      for (const char* const phase : {"a", "b"}) {
        for (Index other = 0; other < ranks; ++other) {
          if (other != own) {
            expected[{phase, own, other}] = {10 + own, 1};
            expected[{phase, other, own}] = {10 + other, 1};
          }
        }
      }
      EXPECT_EQ(transport.links(), expected);
    });
  }
}

// A long message is sent as several. A message of no words is not sent. A message without a phase
// is not counted.
TEST(Transport, CountsMessages) {
  const Index most = kMostWordsOfMessage;
  run_ranks(2, [&](Transport& transport) {
    for (const Index words : {Index{0}, Index{1}, most, most + 1, 2 * most + 3}) {
      std::vector<float> all = words_from(words, 0);
      if (transport.rank() == 0) {
        transport.send("p", 1, all);
        transport.send("", 1, all);
      } else {
        std::vector<float> came(all.size());
        transport.receive("p", 0, came);
        EXPECT_EQ(came, all);
        transport.receive("", 0, came);
        EXPECT_EQ(came, all);
      }
    }
    EXPECT_EQ(transport.links(), (Links{{{"p", 0, 1}, {4 * most + 5, 7}}}));
  });
  EXPECT_EQ(count_of(0), (LinkCount{0, 0}));
  EXPECT_EQ(count_of(2 * most + 3), (LinkCount{2 * most + 3, 3}));
}

TEST(Transport, GathersWhatEachRankSays) {
  run_ranks(5, [](Transport& transport) {
    for (const char* const round : {"first ", "second "}) {
      std::vector<std::string> expected;
      for (Index rank = 0; rank < 5; ++rank) {
        expected.push_back(round + std::to_string(rank));
      }
      EXPECT_EQ(transport.gather(round + std::to_string(transport.rank())), expected);
    }
  });
}

// ---- faults ------------------------------------------------------------------------------

// Rank 0 sends four messages of 8 words to rank 1. The third suffers `fate`.
std::string failure_of(Fate fate) {
  LocalOptions options;
  options.fate = [&](Index, Index, std::uint64_t number) {
    return number == 2 ? fate : Fate::arrives;
  };
  try {
    run_ranks(
        2,
        [](Transport& transport) {
          transport.wait_at_most(std::chrono::milliseconds(300));
          std::vector<float> words = words_from(8, 1);
          for (int k = 0; k < 4; ++k) {
            if (transport.rank() == 0) {
              words[0] = static_cast<float>(k);
              transport.send("A2", 1, words);
            } else {
              transport.receive("A2", 0, words);
            }
          }
        },
        options);
  } catch (const TransportError& error) {
    return error.what();
  }
  return "";
}

// A message that is cut, changed, sent twice or lost causes a TransportError that names both ends.
TEST(Transport, RefusesWhatCameOtherwise) {
  EXPECT_EQ(failure_of(Fate::arrives), "");
  EXPECT_EQ(failure_of(Fate::is_cut),
            "rank 1 received from rank 0, message 2 (A2): 4 words of it, expected 8");
  EXPECT_EQ(failure_of(Fate::is_changed),
            "rank 1 received from rank 0, message 2 (A2): its words changed on the way");
  EXPECT_EQ(failure_of(Fate::is_doubled),
            "rank 1 received from rank 0, message 3 (A2): message 2 came in its place");
  EXPECT_EQ(failure_of(Fate::is_lost),
            "rank 1 received from rank 0, message 2 (A2): message 3 came in its place");
}

TEST(Transport, RefusesOtherPhasesWordsAndRuns) {
  const auto failure = [](std::uint64_t run, const char* phase, std::size_t words) {
    try {
      run_ranks(2, [&](Transport& transport) {
        std::vector<float> eight(8);
        if (transport.rank() == 0) {
          transport.send("A2", 1, eight);
        } else {
          transport.begin_run(run);
          std::vector<float> came(words);
          transport.receive(phase, 0, came);
        }
      });
    } catch (const TransportError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(failure(0, "A2", 8), "");
  EXPECT_EQ(failure(7, "A2", 8),
            "rank 1 received from rank 0, message 0 (A2): a message of another run");
  EXPECT_EQ(failure(0, "A3", 8),
            "rank 1 received from rank 0, message 0 (A3): 8 words of another phase, expected 8");
  EXPECT_EQ(failure(0, "A2", 7),
            "rank 1 received from rank 0, message 0 (A2): 8 words of it, expected 7");
}

// The others wait for a rank that failed, and then fail too. The caller gets the first failure.
TEST(Transport, EndsAllWhenOneEnds) {
  try {
    run_ranks(4, [](Transport& transport) {
      if (transport.rank() == 2) {
        throw std::runtime_error("the disk is full");
      }
      std::vector<float> words(3);
      transport.receive("A2", 2, words);
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "the disk is full");
  }
}

// The words of a message belong to the sender until they are taken. A sender that gives up while a
// message is on its way withdraws them. Here it then overwrites them, as freeing them might.
TEST(Transport, TakesNoWordsOfASenderThatGaveUp) {
  LocalOptions options;
  options.seconds_a_message = 0.3;
  std::vector<float> words = words_from(8, 1);
  std::string came;
  try {
    run_ranks(
        2,
        [&](Transport& transport) {
          if (transport.rank() == 0) {
            {
              const auto message = transport.begin_send("A2", 1, words);
              std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
            std::ranges::fill(words, -1.0F);
            throw std::runtime_error("the disk is full");
          }
          std::vector<float> copy(8);
          try {
            transport.receive("A2", 0, copy);
          } catch (const TransportError& error) {
            came = error.what();
          }
          EXPECT_EQ(copy, std::vector<float>(8));
        },
        options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "the disk is full");
  }
  EXPECT_EQ(came, "rank 1 received from rank 0, message 0: the disk is full");
}

TEST(Transport, GivesUpOnARankThatSaysNothing) {
  try {
    run_ranks(2, [](Transport& transport) {
      transport.wait_at_most(std::chrono::milliseconds(100));
      std::vector<float> words(3);
      if (transport.rank() == 1) {
        transport.receive("A2", 0, words);
      }
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const TransportError& error) {
    EXPECT_EQ(std::string(error.what()),
              "rank 1 received from rank 0, message 0: nothing came in 100 ms");
  }
}

// When all ranks must take part in an exchange, the error names the ranks that are missing.
TEST(Transport, NamesTheRanksThatDoNotSayAnything) {
  const auto failure = [](Index ranks, Index speakers) {
    try {
      run_ranks(ranks, [&](Transport& transport) {
        transport.wait_at_most(std::chrono::milliseconds(100));
        if (transport.rank() < speakers) {
          static_cast<void>(transport.gather("first"));
        }
      });
    } catch (const TransportError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(failure(2, 2), "");
  EXPECT_EQ(failure(2, 1), "rank 0 waits for what rank 1 says: nothing came in 100 ms");
  EXPECT_EQ(failure(4, 1), "rank 0 waits for what ranks 1, 2 and 3 say: nothing came in 100 ms");
}

// Links that take time: three messages follow each other while the receiver does other work.
TEST(Transport, TakesTheTimeOfItsLinks) {
  LocalOptions options;
  options.seconds_a_message = 0.01;
  options.seconds_a_word = 0.001;
  const auto start = std::chrono::steady_clock::now();  // before the start time of either rank
  run_ranks(
      2,
      [start](Transport& transport) {
        std::vector<float> words(20);
        std::vector<std::unique_ptr<Fetch>> under_way;
        for (int k = 0; k < 3; ++k) {
          under_way.push_back(transport.rank() == 0 ? transport.begin_send("A2", 1, words)
                                                    : transport.begin_receive("A2", 0, words));
        }
        for (const auto& message : under_way) {
          message->finish();
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        EXPECT_GE(took.count(), 3 * (0.01 + 20 * 0.001) * 0.99);
      },
      options);
}

}  // namespace
}  // namespace redblue
