#pragma once
// How long messages between ranks take, by a message that goes to and fro.

#include "memsim/ranks/transport.hpp"

namespace redblue {

struct PingTimes {
  double seconds_a_message = 0;  // of one word
  double seconds_a_word = 0;
};

// Between the first rank and the last, which are two; the fastest of some rounds. Every rank calls,
// and all return the same.
PingTimes ping(Transport& transport);

}  // namespace redblue
