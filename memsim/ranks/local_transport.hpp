#pragma once
// Ranks that are threads of one process. A rank that throws ends the others, which wait for it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "memsim/ranks/transport.hpp"

namespace redblue {

struct LocalOptions {
  // What comes to a rank takes a time for each message and each word, one after the other, as
  // between machines that have one link each; 0: none.
  double seconds_a_message = 0, seconds_a_word = 0;
  // For tests: what happens to a message on its way.
  enum class Fate : std::uint8_t { arrives, is_cut, is_doubled, is_lost, is_changed };
  std::function<Fate(Index from, Index to, std::uint64_t number)> fate = nullptr;
};

// Calls work(transport) for each rank, on a thread each, and returns when all have ended. Throws:
// the first failure; or as run_together(), and then no rank has begun.
void run_ranks(Index ranks, const std::function<void(Transport& transport)>& work,
               const LocalOptions& options = {});

}  // namespace redblue
