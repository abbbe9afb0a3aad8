// Replaces a function of Highway, as packaged in Debian 12, that measures the resolution of the
// processor's timer at load. The measurement takes 5 of the 12 milliseconds of a start. Only
// benchmarks need it, and the command has none.

#include <cstdint>

#include <hwy/nanobenchmark.h>

namespace hwy::platform {

std::uint64_t TimerResolution() {
  return 1;
}

}  // namespace hwy::platform
