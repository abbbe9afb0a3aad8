// Tests the attention kernel that docs/cpp.md shows: its words and peak are those of the page's
// formulas, and its values are softmax(Q K^T / sqrt(d)) V in double precision.

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "memsim/machine.hpp"
#include "memsim/workspace.hpp"
#include "page_kernel.hpp"

namespace redblue {
namespace {

std::vector<float> waves(Index words, float step) {
  std::vector<float> all(static_cast<std::size_t>(words));
  for (std::size_t k = 0; k < all.size(); ++k) {
    all[k] = std::sin(step * static_cast<float>(k));
  }
  return all;
}

TEST(PageOfCpp, ItsAttentionHasItsWordsAndValues) {
  for (const auto& [n, m, d, dv, Br] : std::vector<std::array<Index, 5>>{
           {1, 1, 1, 1, 1}, {50, 50, 4, 4, 16}, {7, 31, 5, 3, 7}, {33, 13, 8, 2, 10}}) {
    const std::vector<float> q = waves(n * d, 1), k = waves(m * d, 0.7F), v = waves(m * dv, 2);
    std::vector<float> o(static_cast<std::size_t>(n * dv));
    const SlowMatrix Q = borrow("Q", q.data(), n, d), K = borrow("K", k.data(), m, d);
    const SlowMatrix V = borrow("V", v.data(), m, dv);
    SlowMatrix O = borrow("O", o.data(), n, dv);
    const Index peak = std::min(Br, n) * (d + dv + 2) + d + dv;
    Machine machine(peak);
    attend(machine, Br, Q, K, V, O);
    const PhaseCounts moved = total(machine.phases());
    EXPECT_EQ(moved.io.reads + moved.io.writes, (n + ceil_div(n, Br) * m) * (d + dv));
    EXPECT_EQ(moved.peak, peak);
    EXPECT_EQ(machine.live(), 0);
    const auto at = [](const auto& words, Index i, Index cols, Index j) {
      return static_cast<double>(words[static_cast<std::size_t>(i * cols + j)]);
    };
    for (Index i = 0; i < n; ++i) {
      std::vector<double> e(static_cast<std::size_t>(m));
      double sum = 0;
      for (Index j = 0; j < m; ++j) {
        double s = 0;
        for (Index c = 0; c < d; ++c) {
          s += at(q, i, d, c) * at(k, j, d, c);
        }
        sum += e[static_cast<std::size_t>(j)] = std::exp(s / std::sqrt(static_cast<double>(d)));
      }
      for (Index c = 0; c < dv; ++c) {
        double exact = 0;
        for (Index j = 0; j < m; ++j) {
          exact += e[static_cast<std::size_t>(j)] / sum * at(v, j, dv, c);
        }
        // Each of m terms is rounded a few times, and none exceeds 1.
        EXPECT_NEAR(at(o, i, dv, c), exact, 1e-6 * static_cast<double>(m + 4));
      }
    }
  }
}

}  // namespace
}  // namespace redblue
