// The file of `redblue tune`, read on a machine of one core with L1 and L2.

#include "runtime/run/tuned.hpp"

#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void tuned(std::string_view input) {
  Topology topology{.model = "a processor", .cores = {{0}}};
  topology.caches = {{{{.bytes = 32768, .line = {}, .ways = {}, .cores = {0}}},
                      {{.bytes = 1048576, .line = {}, .ways = {}, .cores = {0}}},
                      {}}};
  const auto read =
      read_or_refused<InputError>("a.json", [&] { return read_tuned(input, "a.json", topology); });
  if (!read) {
    return;
  }
  for (const TunedProblem& problem : *read) {
    const AutoRequest same{.pass = problem.pass,
                           .mask = problem.mask,
                           .n = problem.n,
                           .d = problem.d,
                           .threads = problem.threads};
    const auto memory = auto_memory(same, *read, topology);
    demand(memory && memory->tuned && memory->part.share > 0 && memory->part.share <= 1,
           "a tuned problem has no answer");
  }
  demand(read_tuned(tuned_text(*read, topology), "again.json", topology) == *read,
         "what is written is read as other answers");
}

}  // namespace redblue::fuzz
