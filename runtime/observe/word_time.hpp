#pragma once
// What a word costs that comes from a cache, or from memory: the time of a copy within it, on one
// core.

#include <cstdint>

namespace redblue {

// Copies one half of so many bytes to the other, piece by piece, again and again, on the calling
// thread. Nanoseconds for each word that is read or written, in the median of short samples, so
// that other work of the core, which takes all of a sample, does not count. Requires: at least 128
// bytes.
double nanoseconds_a_word(std::uint64_t bytes);

}  // namespace redblue
