#pragma once
// Numbers as people type them: 1000, 4K, 64KiB, 0.5. A text that is not clearly one is refused.
//
// `what` is the option that has the text ("--n"), and begins the message.

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "memsim/words.hpp"
#include "runtime/system/cache_part.hpp"

namespace redblue {

// What a person asks for does not exist, or cannot be had. One line: where, the text, the remedy.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A text that a person gave, and the option that it was given by, for messages.
struct Given {
  std::string text;
  std::string from;
};

// The one text of an option that may be given once, or nothing. Throws: UsageError for several.
std::optional<Given> at_most_one(const std::vector<Given>& given);
// The parts of these texts between commas. An empty last part counts.
std::vector<Given> between_commas(const std::vector<Given>& given);

// A whole number, 0 too: 1000, or K, M, G for 2^10, 2^20, 2^30. Nothing for another text, or where
// it is beyond 63 bits.
std::optional<Index> whole_number(std::string_view text);

// None of these takes a sign or spaces. All throw UsageError for a text that they do not take and
// for a number out of range.

// A positive count: 1000, or K, M, G for 2^10, 2^20, 2^30.
Index parse_size(std::string_view text, std::string_view what);

// Words of fast memory: as parse_size, or bytes as KiB, MiB, GiB, which are words of so many bytes:
// 64KiB is 16K words of four. Or a cache of
// the machine or a share of it, whose size the topology has: L1, L2*0.5. Or auto: the part that a
// calibration chose.
struct Auto {};
using FastMemory = std::variant<Index, CachePart, Auto>;
FastMemory parse_fast_memory(std::string_view text, std::string_view what,
                             Index word_bytes = kFloatBytes);

// Bytes, a whole number of words of so many: 192KiB, MiB, GiB, or 196608B.
Index parse_bytes(std::string_view text, std::string_view what, Index word_bytes = kFloatBytes);

// A positive finite number: 2, 0.5, 1e4.
double parse_scale(std::string_view text, std::string_view what);

// 0 to 2^64 - 1.
std::uint64_t parse_seed(std::string_view text, std::string_view what);

}  // namespace redblue
