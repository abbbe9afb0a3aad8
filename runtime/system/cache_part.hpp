#pragma once
// Names a level of cache, and a part of it that serves as fast memory.

#include <array>
#include <cstddef>
#include <string_view>

#include "memsim/cxx20.hpp"

namespace redblue {

enum class CacheLevel { L1, L2, L3 };  // L1 is the data cache
inline constexpr std::array kCacheLevels = {CacheLevel::L1, CacheLevel::L2, CacheLevel::L3};
constexpr std::string_view to_string(CacheLevel level) {
  constexpr std::array kNames = {"L1", "L2", "L3"};
  return kNames[static_cast<std::size_t>(level)];
}

// A part of a cache as fast memory, such as L2 or L2*0.5.
struct CachePart {
  CacheLevel level = CacheLevel::L1;
  double share = 1;  // in (0, 1]

  friend bool operator==(const CachePart&, const CachePart&) = default;
};

}  // namespace redblue
