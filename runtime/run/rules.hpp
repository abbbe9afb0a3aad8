#pragma once
// Rules that make operands: they choose the stored entries of each row. Other entries are 0 if a
// kernel takes the operand as a dense matrix.
//
//   identity       entries (i, i). The matrix must be square.
//   random:S       S columns in each row. Every set of columns is equally likely.
//   banded:S       S adjacent columns, starting at i (cols - S) / (rows - 1) rounded down. The
//                  band runs from corner to corner. Border rows are as long as other rows.
//   powerlaw:S     S columns in each row, small columns more often. Each draw picks one of the
//                  ranges [0, 1), [1, 3), [3, 7), ... with equal chance, then a column in it.
//                  If that column is already taken, the row takes the next free one, cyclically.
//   clusters:S:C   Rows and columns are cut into C clusters. Cluster sizes differ by at most one.
//                  Each row has S columns, all in its own cluster.
//   density:P/Q    Each entry is stored independently with this chance; or density:0.125.
//
// Numbers may have a suffix, such as 4K. A row never has more entries than there are columns to
// choose from.
//
// The choice uses whole numbers only, and depends only on (seed, operand's name, row). It is the
// same on every platform, for any range of rows.

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

// Throws: std::invalid_argument. The message continues a sentence that begins with the text.
Rule parse_rule(std::string_view text);
std::string to_string(const Rule& rule);

// Returns the columns of a row's entries in ascending order. Requires: fewer than 2^32 rows and
// columns.
std::vector<Index> row_by_rule(const Rule& rule, std::string_view operand, std::uint64_t seed,
                               Index row, Index rows, Index cols);
// Returns the entries of all rows. Throws: std::invalid_argument, also for extents that the rule
// does not take.
BlockPattern pattern_by_rule(const Rule& rule, std::string_view operand, std::uint64_t seed,
                             Index rows, Index cols);
// Returns a pattern with all entries.
BlockPattern full_pattern(Index rows, Index cols);
// Throws: std::invalid_argument. The message continues a sentence that begins with the operand's
// name.
void check_extents(const Rule& rule, Index rows, Index cols);

}  // namespace redblue
