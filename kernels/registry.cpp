#include "kernels/registry.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace redblue {

const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> all = {
      matmul_blocked(),
      matmul_stationary_a(),
      matmul_stationary_b(),
      matmul_stationary_c(),
      forward_naive(),
      forward_small(),
      forward_flash(),
      forward_rows(),
      forward_rows_resident(),
      forward_columns(),
      forward_tiles(),
      backward_naive(),
      backward_small(),
      backward_large(),
      backward_flash(),
      backward_rows("backward/rows",
                    "row blocks of S, G = dO Y^T and W = p A2 stay, keys pass; g is added to once "
                    "each",
                    Start::given, Sink::gradient),
      backward_rows("backward/rows-w",
                    "backward/rows with W in the slow store; g = A1^T W is a product", Start::given,
                    Sink::stored),
      backward_rows("backward/rows-onepass",
                    "backward/rows from nothing: q relative to its running mean, two sums stay",
                    Start::nothing, Sink::gradient),
      backward_rows("backward/rows-onepass-w",
                    "backward/rows-onepass with W in the slow store; g = A1^T W is a product",
                    Start::nothing, Sink::stored),
      backward_score_rows(),
      backward_rows_xg(),
      backward_rows_resident(),
      backward_columns(),
      backward_rows_q(Start::given),
      backward_rows_q(Start::nothing),
      backward_tiles(),
      backward_tiles_sqp(),
      backward_tiles_sq(),
  };
  return all;
}

const Kernel& find_kernel(std::string_view name) {
  const auto found = std::ranges::find(kernels(), name, &Kernel::name);
  if (found == kernels().end()) {
    throw std::out_of_range("no kernel is called " + std::string(name));
  }
  return *found;
}

}  // namespace redblue
