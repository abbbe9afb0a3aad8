#pragma once
// The rules by which operands are made: which entries are stored, row by row. Entries that are not
// stored are 0 where a kernel takes dense operands.
//
//   identity       the entries (i, i), of as many rows as columns
//   random:S       S columns of each row, every set of them as likely as another
//   banded:S       S columns side by side, from i (cols - S) / (rows - 1) on, rounded down: the
//   band
//                  goes from corner to corner, and borders have as many as other rows
//   powerlaw:S     S columns of each row, small ones more often: the columns are cut into
//                  [0, 1), [1, 3), [3, 7), ... of which each is as likely as another, and in one of
//                  these all columns are; a column that the row has already gives way to the next
//                  one that it has not, the first after the last
//   clusters:S:C   rows and columns are cut into C clusters of equal size, but for one; S columns
//                  of each row, of its own cluster
//   density:P/Q    each entry by itself with this chance; or density:0.125
//
// Numbers may be 4K, as sizes may.
//
// A row has no more entries than columns to have them in. The choice is in whole numbers, of
// (seed, operand's name, row) alone: the same on every platform, for any range of rows.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/mask.hpp"
#include "memsim/words.hpp"

namespace redblue {

struct Rule {
  enum class Kind : std::uint8_t { identity, random, banded, powerlaw, clusters, density };

  Kind kind = Kind::identity;
  std::uint64_t entries = 0;  // S
  std::uint64_t clusters = 0;
  std::uint64_t parts = 0, whole = 1;  // P and Q

  friend bool operator==(const Rule&, const Rule&) = default;
};

inline constexpr std::string_view kRules =
    "identity, random:S, banded:S, powerlaw:S, clusters:S:C or density:P/Q";

// Throws: std::invalid_argument with what is wrong, in words that follow the text.
Rule parse_rule(std::string_view text);
std::string to_string(const Rule& rule);

// The columns that a row has, in their order. Requires: rows and columns below 2^32.
std::vector<Index> row_by_rule(const Rule& rule, std::string_view operand, std::uint64_t seed,
                               Index row, Index rows, Index cols);
// All rows. Throws: std::invalid_argument, also for extents that the rule does not take.
BlockPattern pattern_by_rule(const Rule& rule, std::string_view operand, std::uint64_t seed,
                             Index rows, Index cols);
// All entries.
BlockPattern full_pattern(Index rows, Index cols);
// Throws: std::invalid_argument with what is wrong, in words that follow the operand's name.
void check_extents(const Rule& rule, Index rows, Index cols);

}  // namespace redblue
