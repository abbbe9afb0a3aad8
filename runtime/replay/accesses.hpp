#pragma once
// The accesses of a computation in their order. A unit is a word, or a row of words that is touched
// as a whole. Units are numbered from 0.

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
    need,       // the value is used: a cache without it reads it
    change,     // the value is used and then replaced by another
    overwrite,  // the unit gets another value, without use of the old one
    dead        // the value is not used again and need not be written back
  };
  Kind kind;
  std::uint32_t unit;
};

// Returns whether the access uses the old value of the unit.
inline bool reads(Access::Kind kind) {
  return kind == Access::Kind::need || kind == Access::Kind::change;
}
// Returns whether the access gives the unit a value that slow memory does not have.
inline bool writes(Access::Kind kind) {
  return kind == Access::Kind::change || kind == Access::Kind::overwrite;
}

struct Accesses {
  // Accesses of one phase, from `begin` up to the next stretch. Accesses before the first stretch
  // are outside all phases.
  struct Stretch {
    std::size_t begin;
    std::string phase;
  };
  std::vector<Access> in_order;
  std::vector<std::uint32_t> widths;  // words of each unit
  std::vector<Stretch> stretches = {};

  [[nodiscard]] Index units() const { return static_cast<Index>(widths.size()); }
  [[nodiscard]] Index words() const {
    return std::accumulate(widths.begin(), widths.end(), Index{0});
  }
};

// Parses a trace in the format "din" of the cache simulator Dinero. Each line has a label, 0 for a
// read and 1 for a write, and a hexadecimal address. The rest of the line is ignored. A word is 4
// bytes. Throws: InputError with the line and the fault.
Accesses parse_dinero(std::string_view text, const std::filesystem::path& file);

// Returns the accesses in the format "txt" of the cache simulator libCacheSim. Each line is the
// number of the accessed unit, from 1 on. The format has no writes and no deaths, so deaths are
// left out.
std::string to_cachesim(const Accesses& accesses);

}  // namespace redblue
