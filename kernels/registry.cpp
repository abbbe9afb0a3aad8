#include <algorithm>

#include "kernels/backward_columns.hpp"
#include "kernels/backward_flash.hpp"
#include "kernels/backward_large.hpp"
#include "kernels/backward_naive.hpp"
#include "kernels/backward_rows.hpp"
#include "kernels/backward_rows_onepass.hpp"
#include "kernels/backward_rows_q.hpp"
#include "kernels/backward_rows_resident.hpp"
#include "kernels/backward_rows_xg.hpp"
#include "kernels/backward_score_rows.hpp"
#include "kernels/backward_small.hpp"
#include "kernels/backward_tiles.hpp"
#include "kernels/forward_columns.hpp"
#include "kernels/forward_flash.hpp"
#include "kernels/forward_naive.hpp"
#include "kernels/forward_rows.hpp"
#include "kernels/forward_rows_resident.hpp"
#include "kernels/forward_small.hpp"
#include "kernels/forward_tiles.hpp"
#include "kernels/kernel.hpp"
#include "kernels/matmul_blocked.hpp"
#include "kernels/matmul_stationary.hpp"

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
      backward_rows(),
      backward_rows_w(),
      backward_rows_onepass(),
      backward_score_rows(),
      backward_rows_xg(),
      backward_rows_resident(),
      backward_columns(),
      backward_rows_q(),
      backward_rows_q_onepass(),
      backward_tiles(),
      backward_tiles_sqp(),
      backward_tiles_sq(),
      forward_rows_shared(),
      forward_rows_resident_shared(),
      forward_tiles_shared(),
      backward_rows_shared(),
      backward_rows_w_shared(),
      backward_rows_onepass_shared(),
      backward_rows_xg_shared(),
      backward_rows_resident_shared(),
      backward_tiles_shared(),
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
