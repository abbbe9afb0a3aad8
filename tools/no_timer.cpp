// Highway's library, in the version of Debian 12, measures how fine the processor's timer is while
// it is loaded: 5 of the 12 milliseconds of a start. That is for benchmarks, of which the command
// has none, and this function replaces it.

#include <cstdint>

#include <hwy/nanobenchmark.h>

namespace hwy::platform {

std::uint64_t TimerResolution() {
  return 1;
}

}  // namespace hwy::platform
