#pragma once
// The words that a computation touches, in its order, or the rows of words that it touches as a
// whole. A unit is one or the other; units are numbered from 0.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "memsim/words.hpp"

namespace redblue {

struct Access {
  enum class Kind : std::uint8_t {
    need,       // its value: a cache that lacks it reads it
    change,     // its value, which another replaces
    overwrite,  // the unit gets another value: nobody reads the one before
    dead        // its value is of no use any more: nobody has to write it back
  };
  Kind kind;
  std::uint32_t unit;
};

// Whether the value that the unit has before is read.
inline bool reads(Access::Kind kind) {
  return kind == Access::Kind::need || kind == Access::Kind::change;
}
// Whether the unit has a value after it that is in no slow store.
inline bool writes(Access::Kind kind) {
  return kind == Access::Kind::change || kind == Access::Kind::overwrite;
}

struct Accesses {
  // From the access `begin` on, up to the next stretch; nothing before the first.
  struct Stretch {
    std::size_t begin;
    std::string phase;
  };
  std::vector<Access> in_order;
  std::vector<std::uint32_t> widths;  // of units, in words
  std::vector<Stretch> stretches = {};

  [[nodiscard]] Index units() const { return static_cast<Index>(widths.size()); }
  [[nodiscard]] Index words() const {
    return std::accumulate(widths.begin(), widths.end(), Index{0});
  }
};

// A trace in the format "din" of the cache simulator Dinero: on each line a label, 0 for a read and
// 1 for a write, and an address in hexadecimal; what follows on the line is not read. A word is 4
// bytes. Throws: InputError with the line and the fault.
Accesses parse_dinero(std::string_view text, const std::filesystem::path& file);

// In the format "txt" of the cache simulator libCacheSim: a line an access, the number of its unit,
// from 1 on. It knows neither writes nor deaths, so that deaths are left out.
std::string to_cachesim(const Accesses& accesses);

}  // namespace redblue
