#include "runtime/run/rules.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "runtime/run/inputs.hpp"
#include "runtime/text/sizes.hpp"

namespace redblue {
namespace {

using Kind = Rule::Kind;
constexpr std::uint64_t kMost = (std::uint64_t{1} << 32) - 1;  // a product of two fits in 64 bits

constexpr std::array<std::pair<std::string_view, Kind>, 6> kNames = {{{"identity", Kind::identity},
                                                                      {"random", Kind::random},
                                                                      {"banded", Kind::banded},
                                                                      {"powerlaw", Kind::powerlaw},
                                                                      {"clusters", Kind::clusters},
                                                                      {"density", Kind::density}}};

std::string_view name_of(Kind kind) {
  return std::ranges::find(kNames, kind, &std::pair<std::string_view, Kind>::second)->first;
}

// Parses a number, also with a suffix as in 4K, 2M or 1G.
std::optional<std::uint64_t> number_of(std::string_view text) {
  const auto number = whole_number(text);
  return number && static_cast<std::uint64_t>(*number) <= kMost
             ? std::optional(static_cast<std::uint64_t>(*number))
             : std::nullopt;
}

std::uint64_t at_least_one(std::string_view text, std::string_view what) {
  const auto value = number_of(text);
  if (!value || *value == 0) {
    throw std::invalid_argument(
        fmt::format("{} is {}: expected 1 to {}", what, text.empty() ? "missing" : text, kMost));
  }
  return *value;
}

// Parses P/Q or a decimal number.
void parse_density(std::string_view text, Rule& rule) {
  const std::size_t slash = text.find('/');
  std::optional<std::uint64_t> parts, whole;
  if (slash != std::string_view::npos) {
    parts = number_of(text.substr(0, slash));
    whole = number_of(text.substr(slash + 1));
  } else {
    constexpr std::size_t kMostDigits = 9;
    const std::size_t point = std::min(text.find('.'), text.size());
    const std::string_view digits = text.substr(std::min(point + 1, text.size()));
    if (digits.size() <= kMostDigits &&
        text.find_first_not_of("0123456789.") == std::string_view::npos) {
      whole = 1;
      for (std::size_t k = 0; k < digits.size(); ++k) {
        *whole *= 10;
      }
      parts = number_of(std::string(text.substr(0, point)) + std::string(digits));
    }
  }
  if (!parts || !whole || *parts == 0 || *parts > *whole) {
    throw std::invalid_argument(
        fmt::format("the density is {}: expected above 0 and at most 1, as 1/32 or 0.125",
                    text.empty() ? "missing" : text));
  }
  rule.parts = *parts;
  rule.whole = *whole;
}

// Maps 32 random bits to a number below `extent`, uniformly to 32 bits.
std::uint64_t scaled(std::uint64_t bits, std::uint64_t extent) {
  return bits * extent >> 32U;
}
std::uint64_t upper(std::uint64_t hash) {
  return hash >> 32U;
}
std::uint64_t lower(std::uint64_t hash) {
  return hash & kMost;
}

class Row {
 public:
  Row(const Rule& rule, const Hashes& hashes, std::uint64_t row, std::uint64_t rows,
      std::uint64_t cols)
      : rule_(rule), hashes_(hashes), row_(row), rows_(rows), cols_(cols) {}

  std::vector<Index> columns() {
    switch (rule_.kind) {
      case Kind::identity:
        add(row_, row_ + 1);
        break;
      case Kind::random:
        choose(0, cols_);
        break;
      case Kind::banded: {
        const std::uint64_t count = std::min(rule_.entries, cols_);
        const std::uint64_t first = rows_ == 1 ? 0 : row_ * (cols_ - count) / (rows_ - 1);
        add(first, first + count);
        break;
      }
      case Kind::powerlaw:
        fall_off();
        break;
      case Kind::clusters: {
        const std::uint64_t own = row_ * rule_.clusters / rows_;
        const auto begin = [&](std::uint64_t cluster) {
          return (cluster * cols_ + rule_.clusters - 1) / rule_.clusters;
        };
        choose(begin(own), begin(own + 1));
        break;
      }
      case Kind::density:
        for (std::uint64_t column = 0; column < cols_; ++column) {
          if (upper(hashes_[row_ * cols_ + column]) * rule_.whole < rule_.parts << 32U) {
            add(column, column + 1);
          }
        }
    }
    std::ranges::sort(found_);
    return std::move(found_);
  }

 private:
  void add(std::uint64_t begin, std::uint64_t end) {
    for (; begin < end; ++begin) {
      found_.push_back(static_cast<Index>(begin));
    }
  }
  [[nodiscard]] std::uint64_t draw(std::uint64_t k) const {
    return hashes_[row_ * rule_.entries + k];
  }
  // Floyd's sampling from [begin, end): every set is equally likely.
  void choose(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t extent = end - begin;
    const std::uint64_t count = std::min(rule_.entries, extent);
    std::vector<bool> taken(extent);
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::uint64_t last = extent - count + k;
      const std::uint64_t drawn = scaled(upper(draw(k)), last + 1);
      const std::uint64_t column = taken[drawn] ? last : drawn;
      taken[column] = true;
      add(begin + column, begin + column + 1);
    }
  }
  void fall_off() {
    const std::uint64_t count = std::min(rule_.entries, cols_);
    const auto octaves = static_cast<std::uint64_t>(std::bit_width(cols_));
    std::vector<bool> taken(cols_);
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::uint64_t hash = draw(k);
      const std::uint64_t octave = scaled(upper(hash), octaves);
      const std::uint64_t begin = (std::uint64_t{1} << octave) - 1;
      const std::uint64_t end = std::min(2 * begin + 1, cols_);
      std::uint64_t column = begin + scaled(lower(hash), end - begin);
      while (taken[column]) {
        column = column + 1 == cols_ ? 0 : column + 1;
      }
      taken[column] = true;
      add(column, column + 1);
    }
  }

  const Rule& rule_;
  const Hashes& hashes_;
  std::uint64_t row_, rows_, cols_;
  std::vector<Index> found_;
};

// Returns hashes that differ from the hashes of the operand's elements.
Hashes hashes_of(std::string_view operand, std::uint64_t seed) {
  return {seed, std::string(operand) + "/pattern"};
}

std::vector<Index> row_of(const Rule& rule, const Hashes& hashes, Index row, Index rows,
                          Index cols) {
  return Row(rule, hashes, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(rows),
             static_cast<std::uint64_t>(cols))
      .columns();
}

}  // namespace

Rule parse_rule(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto* const named =
      std::ranges::find(kNames, text.substr(0, colon), &std::pair<std::string_view, Kind>::first);
  const std::string_view sizes = text.substr(std::min(colon + 1, text.size()));
  if (named == kNames.end() || (named->second == Kind::identity && colon < text.size())) {
    throw std::invalid_argument(fmt::format("expected a pattern: {}", kRules));
  }
  Rule rule{.kind = named->second};
  if (rule.kind == Kind::density) {
    parse_density(sizes, rule);
  } else if (rule.kind == Kind::clusters) {
    const std::size_t second = std::min(sizes.find(':'), sizes.size());
    rule.entries = at_least_one(sizes.substr(0, second), "S, the entries of a row,");
    rule.clusters = at_least_one(sizes.substr(std::min(second + 1, sizes.size())),
                                 "C, the number of clusters,");
  } else if (rule.kind != Kind::identity) {
    rule.entries = at_least_one(sizes, "S, the entries of a row,");
  }
  return rule;
}

std::string to_string(const Rule& rule) {
  const std::string_view name = name_of(rule.kind);
  switch (rule.kind) {
    case Kind::identity:
      return std::string(name);
    case Kind::clusters:
      return fmt::format("{}:{}:{}", name, rule.entries, rule.clusters);
    case Kind::density: {
      const std::uint64_t common = std::gcd(rule.parts, rule.whole);
      return fmt::format("{}:{}/{}", name, rule.parts / common, rule.whole / common);
    }
    case Kind::random:
    case Kind::banded:
    case Kind::powerlaw:
      break;
  }
  return fmt::format("{}:{}", name, rule.entries);
}

void check_extents(const Rule& rule, Index rows, Index cols) {
  if (rule.kind == Kind::identity && rows != cols) {
    throw std::invalid_argument(
        fmt::format("is {} x {}: the identity has as many rows as columns", rows, cols));
  }
  if (rule.kind == Kind::identity) {
    return;
  }
  if (static_cast<std::uint64_t>(std::max(rows, cols)) > kMost) {
    throw std::invalid_argument(
        fmt::format("is {} x {}: a pattern has fewer than 2^32 rows and columns", rows, cols));
  }
  if (rule.clusters > static_cast<std::uint64_t>(cols)) {
    throw std::invalid_argument(
        fmt::format("has {} columns: of {} clusters some would have none", cols, rule.clusters));
  }
}

std::vector<Index> row_by_rule(const Rule& rule, std::string_view operand, std::uint64_t seed,
                               Index row, Index rows, Index cols) {
  return row_of(rule, hashes_of(operand, seed), row, rows, cols);
}

BlockPattern pattern_by_rule(const Rule& rule, std::string_view operand, std::uint64_t seed,
                             Index rows, Index cols) {
  check_extents(rule, rows, cols);
  const Hashes hashes = hashes_of(operand, seed);
  BlockPattern found{rows, cols, 1, 1, {0}, {}};
  for (Index row = 0; row < rows; ++row) {
    const std::vector<Index> columns = row_of(rule, hashes, row, rows, cols);
    found.columns.insert(found.columns.end(), columns.begin(), columns.end());
    found.offsets.push_back(found.stored());
  }
  return found;
}

BlockPattern full_pattern(Index rows, Index cols) {
  BlockPattern found{rows, cols, 1, 1, {0}, {}};
  found.columns.reserve(static_cast<std::size_t>(rows * cols));
  for (Index row = 0; row < rows; ++row) {
    for (Index column = 0; column < cols; ++column) {
      found.columns.push_back(column);
    }
    found.offsets.push_back(found.stored());
  }
  return found;
}

}  // namespace redblue
