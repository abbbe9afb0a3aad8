#pragma once
// Measures the time of messages between ranks, by messages that go back and forth.

#include "memsim/ranks/transport.hpp"

namespace redblue {

struct PingTimes {
  double seconds_a_message = 0;  // for a message of one word
  double seconds_a_word = 0;
};

// Returns the fastest of several rounds between the first rank and the last. Every rank calls it,
// and all get the same result. Requires: at least two ranks.
PingTimes ping(Transport& transport);

}  // namespace redblue
