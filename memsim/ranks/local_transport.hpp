#pragma once
// Runs ranks as threads of one process. If a rank throws, the ranks that wait for it end too.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "memsim/ranks/transport.hpp"

namespace redblue {

struct LocalOptions {
  // Simulated cost of each message and each word at the receiver, as between machines with one link
  // each. Messages arrive one after the other. 0: no cost.
  double seconds_a_message = 0, seconds_a_word = 0;
  // For tests: the fate of a message on its way.
  enum class Fate : std::uint8_t { arrives, is_cut, is_doubled, is_lost, is_changed };
  std::function<Fate(Index from, Index to, std::uint64_t number)> fate = nullptr;
};

// Calls work(transport) for each rank, each on its thread, and returns when all have ended. Throws:
// the first failure. If it throws as run_together() does, no rank has begun.
void run_ranks(Index ranks, const std::function<void(Transport& transport)>& work,
               const LocalOptions& options = {});

}  // namespace redblue
