// Dump files of callgrind.

#include "runtime/observe/callgrind.hpp"

#include <stdexcept>

#include "tests/fuzz/fuzz.hpp"

namespace redblue::fuzz {

void callgrind(std::string_view input) {
  const auto profile =
      read_or_refused<std::runtime_error>("callgrind", [&] { return parse_callgrind(input); });
  if (!profile) {
    return;
  }
  demand(!profile->empty(), "no counts");
  for (const auto& [kernel, phases] : *profile) {
    for (const auto& [phase, events] : phases) {
      read_or_refused<std::runtime_error>("callgrind", [&, &of = events] {
        const LineTraffic lines = traffic(of, 64);
        demand(lines.in >= 0 && lines.out >= 0, "fewer than no words");
        return lines;
      });
    }
  }
}

}  // namespace redblue::fuzz
