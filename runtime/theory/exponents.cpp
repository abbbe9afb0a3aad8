#include "runtime/theory/exponents.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "memsim/errors.hpp"

namespace redblue {
namespace {

using Column = std::vector<double>;

double dot(const Column& a, const Column& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Subtracts the mean and returns it.
double centre(Column& column) {
  const double mean =
      std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(column.size());
  for (double& value : column) {
    value -= mean;
  }
  return mean;
}

void subtract(double share, const Column& from, Column& column) {
  for (std::size_t i = 0; i < column.size(); ++i) {
    column[i] -= share * from[i];
  }
}

}  // namespace

PowerLaw fit_power_law(const std::vector<Sample>& samples) {
  constexpr std::size_t kSizes = 3;  // n, d, M; the last column is the words
  std::array<Column, kSizes + 1> columns;
  for (const Sample& sample : samples) {
    require(sample.n > 0 && sample.d > 0 && sample.M > 0 && sample.words > 0,
            "sizes and words that have logarithms");
    columns[0].push_back(std::log2(static_cast<double>(sample.n)));
    columns[1].push_back(std::log2(static_cast<double>(sample.d)));
    columns[2].push_back(std::log2(static_cast<double>(sample.M)));
    columns[3].push_back(std::log2(sample.words));
  }
  std::array<double, kSizes + 1> means{};
  for (std::size_t k = 0; k <= kSizes; ++k) {
    means[k] = centre(columns[k]);
  }
  // Gram-Schmidt: each column loses its components along the columns before it. In the end the
  // words have lost all that a power law explains. Logarithms are known to 1e-14 octaves. A size
  // that moves less than a millionth of an octave independently of the others does not determine
  // its exponent.
  constexpr double kLeastMove = 1e-6;
  std::array<std::array<double, kSizes + 1>, kSizes> share{};
  for (std::size_t k = 0; k < kSizes; ++k) {
    const double square = dot(columns[k], columns[k]);
    require(square > kLeastMove * kLeastMove * static_cast<double>(samples.size()),
            "samples in which n, d and M vary, each on its own");
    for (std::size_t j = k + 1; j <= kSizes; ++j) {
      share[k][j] = dot(columns[k], columns[j]) / square;
      subtract(share[k][j], columns[k], columns[j]);
    }
  }
  std::array<double, kSizes> exponents{};
  double log_constant = means[kSizes];
  for (std::size_t k = kSizes; k-- > 0;) {
    exponents[k] = share[k][kSizes];
    for (std::size_t j = k + 1; j < kSizes; ++j) {
      exponents[k] -= share[k][j] * exponents[j];
    }
    log_constant -= exponents[k] * means[k];
  }
  PowerLaw law{.constant = std::exp2(log_constant),
               .exponents = {.n = exponents[0], .d = exponents[1], .M = exponents[2]}};
  for (const double missed : columns[kSizes]) {
    law.residual = std::max(law.residual, std::abs(missed));
  }
  return law;
}

}  // namespace redblue
