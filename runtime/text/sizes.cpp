#include "runtime/text/sizes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>
#include <sstream>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "runtime/text/printable.hpp"

namespace redblue {
namespace {

struct Unit {
  std::string_view suffix;
  Index size;
};
constexpr Unit kInWords[] = {
    {"", 1}, {"K", Index{1} << 10}, {"M", Index{1} << 20}, {"G", Index{1} << 30}};
constexpr Unit kBytes[] = {{"B", 1},
                           {"KiB", Index{1} << 10},
                           {"MiB", Index{1} << 20},
                           {"GiB", Index{1} << 30},
                           {"TiB", Index{1} << 40}};

// Units in words. A whole KiB is a whole number of words of two or four bytes.
std::array<Unit, 7> words_or_bytes(Index word_bytes) {
  return {kInWords[0],
          kInWords[1],
          kInWords[2],
          kInWords[3],
          {"KiB", (Index{1} << 10) / word_bytes},
          {"MiB", (Index{1} << 20) / word_bytes},
          {"GiB", (Index{1} << 30) / word_bytes}};
}

[[noreturn]] void refuse(std::string_view what, std::string_view text, std::string_view why) {
  constexpr std::size_t kMost = 72;
  throw UsageError(fmt::format("{}: {:?} {}", what,
                               text.size() > kMost ? shortened(text) : std::string(text), why));
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Returns the probable meaning of 64kb, 64KB, 64Ki and similar texts, else "".
std::string guess(std::string_view digits, std::string_view suffix, std::span<const Unit> units) {
  const auto known = [&](std::string_view unit) {
    return std::ranges::find(units, unit, &Unit::suffix) != units.end();
  };
  std::string small;
  for (const char c : suffix) {
    small += lower(c);
  }
  for (const std::string_view unit : {"K", "M", "G"}) {
    const std::string first(1, lower(unit[0]));
    if (small == first || small == first + "b" || small == first + "i" || small == first + "ib") {
      return !known("KiB") ? fmt::format("did you mean {}{}?", digits, unit)
             : !known("K")
                 ? fmt::format("did you mean {}{}iB?", digits, unit)
                 : fmt::format("did you mean {0}{1}iB (bytes) or {0}{1} (words)?", digits, unit);
    }
  }
  return "";
}

Index parse(std::string_view text, std::string_view what, std::span<const Unit> units,
            std::string_view expected) {
  Index number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool too_large = error == std::errc::result_out_of_range;
  if (text.empty() || text[0] == '-' || (error != std::errc() && !too_large)) {
    refuse(what, text, fmt::format("is not {}", expected));
  }
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : units) {
    if (suffix != unit.suffix) {
      continue;
    }
    if (!too_large && number == 0) {
      refuse(what, text, fmt::format("is zero; expected {}", expected));
    }
    Index size = 0;
    if (too_large || __builtin_mul_overflow(number, unit.size, &size)) {
      refuse(what, text,
             fmt::format("is too large; expected at most {}", std::numeric_limits<Index>::max()));
    }
    return size;
  }
  const std::string_view digits = text.substr(0, text.size() - suffix.size());
  const std::string meant = guess(digits, suffix, units);
  refuse(what, text,
         fmt::format("is not {}", meant.empty() ? std::string(expected) : "a size; " + meant));
}

// Parses L2 or L2*0.5.
CachePart parse_cache(std::string_view text, std::string_view what) {
  const std::size_t star = std::min(text.find('*'), text.size());
  const std::string_view name = text.substr(0, star);
  CachePart part;
  const auto level =
      std::ranges::find(kCacheLevels, name, [](CacheLevel l) { return to_string(l); });
  if (level == kCacheLevels.end()) {
    for (const CacheLevel near : kCacheLevels) {
      // Mistakes such as l2, L2d, L2/2.
      const std::string_view cache = to_string(near);
      if (name.size() >= 2 && name[1] == cache[1]) {
        refuse(what, text,
               fmt::format("is no cache; did you mean {0}? (half of it is {0}*0.5)", cache));
      }
    }
    refuse(what, text, "is no cache; expected L1, L2 or L3, or a share of one such as L2*0.5");
  }
  part.level = *level;
  if (star < text.size()) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + star + 1, end, part.share);
    if (error != std::errc() || rest != end || !(part.share > 0) || part.share > 1) {
      refuse(what, text,
             fmt::format("has no share of {0} above 0 and up to 1, such as {0}*0.5", name));
    }
  }
  return part;
}

}  // namespace

std::optional<Given> at_most_one(const std::vector<Given>& given) {
  if (given.size() > 1) {
    throw UsageError(
        fmt::format("{} is given {} times; once is enough", given.front().from, given.size()));
  }
  return given.empty() ? std::nullopt : std::optional(given.front());
}

std::vector<Given> between_commas(const std::vector<Given>& given) {
  std::vector<Given> parts;
  for (const auto& [text, from] : given) {
    std::istringstream list(text + ',');
    for (std::string part; std::getline(list, part, ',');) {
      parts.push_back({part, from});
    }
  }
  return parts;
}

std::optional<Index> whole_number(std::string_view text) {
  Index number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(rest - text.data()));
  const auto* const unit = std::ranges::find(kInWords, suffix, &Unit::suffix);
  Index size = 0;
  if (error != std::errc() || text.starts_with('-') || unit == std::end(kInWords) ||
      __builtin_mul_overflow(number, unit->size, &size)) {
    return std::nullopt;
  }
  return size;
}

Index parse_size(std::string_view text, std::string_view what) {
  return parse(text, what, kInWords,
               "a positive whole number such as 1000, 4K or 2M (powers of two)");
}

FastMemory parse_fast_memory(std::string_view text, std::string_view what, Index word_bytes) {
  if (text == "auto") {
    return Auto();
  }
  if (!text.empty() && lower(text[0]) == 'l') {
    return parse_cache(text, what);
  }
  return parse(text, what, words_or_bytes(word_bytes),
               "a positive whole number of words such as 1000 or 64K, of bytes such as 64KiB or "
               "2MiB, a cache such as L2 or L2*0.5, or auto");
}

Index parse_bytes(std::string_view text, std::string_view what, Index word_bytes) {
  const Index bytes = parse(text, what, kBytes, "a size in bytes such as 192KiB, 1MiB or 196608B");
  if (bytes % word_bytes != 0) {
    refuse(what, text,
           fmt::format("is no whole number of words; expected a multiple of {} bytes", word_bytes));
  }
  return bytes;
}

double parse_scale(std::string_view text, std::string_view what) {
  double scale = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, scale);
  if (error != std::errc() || rest != end || !std::isfinite(scale) || scale <= 0) {
    refuse(what, text, "is not a positive finite number such as 1 or 0.5");
  }
  return scale;
}

std::uint64_t parse_seed(std::string_view text, std::string_view what) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, seed);
  if (error != std::errc() || rest != end) {
    refuse(what, text,
           fmt::format("is not a whole number from 0 to {}",
                       std::numeric_limits<std::uint64_t>::max()));
  }
  return seed;
}

}  // namespace redblue
