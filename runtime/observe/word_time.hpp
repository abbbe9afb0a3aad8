#pragma once
// Measures the time of moving a word from a cache or from memory, by copies on one core.

#include <cstdint>

namespace redblue {

// Copies one half of a buffer of `bytes` bytes to the other, piece by piece, repeatedly, on the
// calling thread. Returns the nanoseconds for each word read or written, as the median of short
// samples. The median ignores samples that other work on the core lengthened. Requires: at least
// 128 bytes.
double nanoseconds_a_word(std::uint64_t bytes);

}  // namespace redblue
