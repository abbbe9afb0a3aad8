#pragma once
// A checksum as fast as memory. It detects damage in transit or on disk, but not forgery.

#include <cstddef>
#include <cstdint>
#include <span>

#include "memsim/cxx20.hpp"

namespace redblue {

std::uint64_t checksum_of(std::span<const std::byte> bytes);
inline std::uint64_t checksum_of(std::span<const float> words) {
  return checksum_of(std::as_bytes(words));
}

}  // namespace redblue
