#pragma once
// What a word costs that comes from a cache, or from memory: the time of a copy within it, on one
// core.

#include <cstdint>

namespace redblue {

// Copies one half of so many bytes to the other, again and again, on the calling thread.
// Nanoseconds for each word that is read or written, of the fastest round: disturbances only add
// time. Requires: at least 128 bytes.
double nanoseconds_a_word(std::uint64_t bytes);

}  // namespace redblue
