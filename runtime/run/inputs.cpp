#include "runtime/run/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

#include <fmt/format.h>

namespace redblue {
namespace {

struct Operand {
  Index rows;
  Index cols;
  double factor;
};

// A product of three independent entries u of variance 1/3 has variance f^2 / 27 with X scaled
// by f. A score sums d^2 of them, uncorrelated, so its deviation is d f / sqrt(27). An element
// of h sums d products of two, so its deviation is sqrt(d) f / 3 with Y scaled by f, and a score of
// Q, scaled by f, and K has c times that. The square root and the quotient are exactly rounded
// everywhere (IEEE 754).
Operand find(std::string_view name, const Problem& problem, double scale) {
  const auto [n, m, d] = problem.shape;
  const auto width = static_cast<double>(d);
  if (name == "Q") {
    return {n, d, scale * 3 / (std::sqrt(width) * static_cast<double>(problem.scale()))};
  }
  if (name == "A1" || name == "A") {
    return {n, d, 1};
  }
  if (name == "dO") {
    return {n, problem.shape.dv, 1};
  }
  if (name == "A2" || name == "A3" || name == "K") {
    return {m, d, 1};
  }
  if (name == "V") {
    return {m, problem.shape.dv, 1};
  }
  if (name == "X") {
    return {d, d, scale * std::sqrt(27.0) / width};
  }
  if (name == "Y") {
    return {d, d, 3 / std::sqrt(width)};
  }
  if (name == "B") {
    return {d, m, 1};
  }
  throw std::invalid_argument(fmt::format("no operand {:?} to make from a seed", name));
}

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits in which every
// input bit reaches every output bit.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio, odd

// The place on SplitMix64's one long orbit at which an operand's numbers start. The name is folded
// in letter by letter. Each step is a bijection, so that both names and seeds lead to other places.
std::uint64_t start(std::uint64_t seed, std::string_view name) {
  std::uint64_t state = mix(seed + kGolden);
  for (const char letter : name) {
    state = mix(state ^ static_cast<unsigned char>(letter)) + kGolden;
  }
  return state;
}

}  // namespace

void fill_input(std::string_view operand, const Problem& problem, std::uint64_t seed, double scale,
                Index first_row, Index rows, std::span<float> out) {
  const auto [all_rows, cols, factor] = find(operand, problem, scale);
  if (first_row < 0 || rows < 0 || first_row > all_rows || rows > all_rows - first_row ||
      out.size() != static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)) {
    throw std::invalid_argument(fmt::format("{}: {} rows from row {} of {} x {} into {} words",
                                            operand, rows, first_row, all_rows, cols, out.size()));
  }
  if (!(factor >= std::numeric_limits<float>::min() * 0x1p23 &&
        factor <= std::numeric_limits<float>::max())) {
    throw std::invalid_argument(
        fmt::format("{}: the scale {} asks for numbers that float32 has not", operand, scale));
  }
  const auto f = static_cast<float>(factor);
  const auto first = static_cast<std::uint64_t>(first_row) * static_cast<std::uint64_t>(cols);
  std::uint64_t state = start(seed, operand) + first * kGolden;
  for (float& element : out) {
    state += kGolden;
    const auto top = static_cast<std::int32_t>(mix(state) >> 40U);  // 24 bits
    element = f * (static_cast<float>(top - (1 << 23)) * 0x1p-23F);
  }
}

std::string_view to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::identity:
      return "identity";
  }
  return "";
}

std::optional<Pattern> pattern_of(std::string_view name) {
  const auto found =
      std::ranges::find_if(kPatterns, [&](Pattern pattern) { return to_string(pattern) == name; });
  return found == kPatterns.end() ? std::nullopt : std::optional(*found);
}

void fill_pattern(Pattern pattern, Index cols, Index first_row, std::span<float> out) {
  switch (pattern) {
    case Pattern::identity:
      for (std::size_t at = 0; at < out.size(); ++at) {
        const auto i = static_cast<Index>(at);
        out[at] = first_row + i / cols == i % cols ? 1.0F : 0.0F;
      }
  }
}

}  // namespace redblue
