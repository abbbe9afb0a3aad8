#include "runtime/run/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

namespace redblue {
namespace {

struct Operand {
  Index rows;
  Index cols;
  double factor;
};

// Returns the number of products in a score. For sparse operands it is the mean over live scores:
// each entry of X meets the stored entries of a column of A1 and of a column of A2. Whole numbers
// below 2^53 are exact, and larger sums always have the same order.
double products_of_a_score(const Problem& problem) {
  const auto width = static_cast<double>(problem.shape.d);
  if (problem.sparsity.dense() || problem.sparsity.pairs() == Words(0)) {
    return width * width;
  }
  const auto in_columns = [](const BlockPattern& of) {
    std::vector<double> stored(static_cast<std::size_t>(of.cols));
    for (const Index column : of.columns) {
      ++stored[static_cast<std::size_t>(column)];
    }
    return stored;
  };
  const std::vector<double> of_A1 = in_columns(problem.sparsity.A1());
  const std::vector<double> of_A2 = in_columns(problem.sparsity.A2());
  double products = 0;
  for (Index k = 0; k < problem.shape.d; ++k) {
    for (const Index l : problem.sparsity.X().row(k)) {
      products += of_A1[static_cast<std::size_t>(k)] * of_A2[static_cast<std::size_t>(l)];
    }
  }
  return products / static_cast<double>(problem.sparsity.pairs().value());
}

// Finds the extents and the factor of an operand. Entries u are independent with variance 1/3.
//
// Scores of A1 X A2^T: with X scaled by f, a product of three entries has variance f^2 / 27. A
// score sums d^2 such products (fewer if operands are sparse), which are uncorrelated. Its
// deviation is d f / sqrt(27).
//
// Elements of h = A3 Y: with Y scaled by f, an element sums d products of two entries. Its
// deviation is sqrt(d) f / 3. A score c Q K^T, with Q scaled by f, has c times that.
//
// The square root and the quotient are exactly rounded on every platform (IEEE 754).
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
    return {d, d, scale * std::sqrt(27.0) / std::sqrt(products_of_a_score(problem))};
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

// Returns the position in the sequence of SplitMix64 at which an operand's numbers start. The name
// is mixed in letter by letter. Each step is a bijection, so different names and seeds start at
// different positions.
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
  InputMaker(operand, problem, seed, scale).fill(first_row, rows, out);
}

InputMaker::InputMaker(std::string_view operand, const Problem& problem, std::uint64_t seed,
                       double scale)
    : operand_(operand), hashes_(seed, operand) {
  const auto [rows, cols, factor] = find(operand, problem, scale);
  if (!(factor >= std::numeric_limits<float>::min() * 0x1p23 &&
        factor <= std::numeric_limits<float>::max())) {
    throw std::invalid_argument(
        fmt::format("{}: the scale {} asks for numbers that float32 has not", operand, scale));
  }
  rows_ = rows;
  cols_ = cols;
  factor_ = static_cast<float>(factor);
}

void InputMaker::fill(Index first_row, Index rows, std::span<float> out) const {
  if (first_row < 0 || rows < 0 || first_row > rows_ || rows > rows_ - first_row ||
      out.size() != static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols_)) {
    throw std::invalid_argument(fmt::format("{}: {} rows from row {} of {} x {} into {} words",
                                            operand_, rows, first_row, rows_, cols_, out.size()));
  }
  std::uint64_t number = static_cast<std::uint64_t>(first_row) * static_cast<std::uint64_t>(cols_);
  for (float& element : out) {
    const auto top = static_cast<std::int32_t>(hashes_[++number] >> 40U);  // 24 bits
    element = factor_ * (static_cast<float>(top - (1 << 23)) * 0x1p-23F);
  }
}

Hashes::Hashes(std::uint64_t seed, std::string_view name) : start_(start(seed, name)) {}

std::uint64_t Hashes::operator[](std::uint64_t i) const {
  return mix(start_ + i * kGolden);
}

}  // namespace redblue
