#pragma once
// Parses numbers as people type them: 1000, 4K, 64KiB, 0.5. Refuses a text that is not clearly a
// number.
//
// `what` is the option that has the text ("--n"). It begins the message.

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

// The user asks for something that does not exist or cannot be done. The message is one line:
// where, the text, the remedy.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A text from the user, and the option that gave it, for messages.
struct Given {
  std::string text;
  std::string from;
};

// Returns the text of an option that may be given once, or nullopt. Throws: UsageError for several.
std::optional<Given> at_most_one(const std::vector<Given>& given);
// Splits the texts at commas. An empty last part counts.
std::vector<Given> between_commas(const std::vector<Given>& given);

// Returns a whole number, 0 included: 1000, or with K, M, G for 2^10, 2^20, 2^30. Returns nullopt
// for any other text, or for a number beyond 63 bits.
std::optional<Index> whole_number(std::string_view text);

// The functions below take no sign and no spaces. They throw UsageError for a text that they do not
// accept and for a number out of range.

// Parses a positive count: 1000, or with K, M, G for 2^10, 2^20, 2^30.
Index parse_size(std::string_view text, std::string_view what);

// Words of fast memory. A plain count is as in parse_size. Bytes in KiB, MiB, GiB are converted to
// words: 64KiB is 16K words of four bytes. L1 or L2*0.5 means a cache of the machine or a share of
// it; the topology has its size. `auto` means the part that a calibration chose.
struct Auto {};
using FastMemory = std::variant<Index, CachePart, Auto>;
FastMemory parse_fast_memory(std::string_view text, std::string_view what,
                             Index word_bytes = kFloatBytes);

// Parses bytes that are a whole number of words of `word_bytes`: 192KiB, MiB, GiB, or 196608B.
Index parse_bytes(std::string_view text, std::string_view what, Index word_bytes = kFloatBytes);

// Parses a positive finite number: 2, 0.5, 1e4.
double parse_scale(std::string_view text, std::string_view what);

// Parses 0 to 2^64 - 1.
std::uint64_t parse_seed(std::string_view text, std::string_view what);

}  // namespace redblue
