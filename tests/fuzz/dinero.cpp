// Traces in the format of Dinero. Traces that can be read are replayed in caches of every size.

#include "runtime/replay/replay.hpp"
#include "runtime/system/input_error.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void dinero(std::string_view input) {
  const auto read =
      read_or_refused<InputError>("a.din", [&] { return parse_dinero(input, "a.din"); });
  if (!read) {
    return;
  }
  demand(read->words() > 0, "no words");
  const Replayed all = replay(*read);
  for (std::size_t M = 0; M < all.opt_reads.size(); ++M) {
    demand(all.opt_reads[M] <= all.lru_reads[M], "LRU reads fewer words than OPT");
    demand(M == 0 || all.lru_reads[M] <= all.lru_reads[M - 1], "a larger cache reads more");
  }
}

}  // namespace redblue::fuzz
