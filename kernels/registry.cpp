#include <algorithm>

#include "kernels/backward/columns.hpp"
#include "kernels/backward/flash.hpp"
#include "kernels/backward/large.hpp"
#include "kernels/backward/naive.hpp"
#include "kernels/backward/rows.hpp"
#include "kernels/backward/rows_onepass.hpp"
#include "kernels/backward/rows_q.hpp"
#include "kernels/backward/rows_resident.hpp"
#include "kernels/backward/rows_xg.hpp"
#include "kernels/backward/score_rows.hpp"
#include "kernels/backward/small.hpp"
#include "kernels/backward/tiles.hpp"
#include "kernels/forward/columns.hpp"
#include "kernels/forward/flash.hpp"
#include "kernels/forward/naive.hpp"
#include "kernels/forward/rows.hpp"
#include "kernels/forward/rows_resident.hpp"
#include "kernels/forward/small.hpp"
#include "kernels/forward/tiles.hpp"
#include "kernels/kernel.hpp"
#include "kernels/matmul/blocked.hpp"
#include "kernels/matmul/stationary.hpp"

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
