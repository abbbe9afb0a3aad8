#include <iostream>
#include <vector>

#include <redblue/attention.hpp>

int main() {
  const redblue::Index n = 1000, d = 64;
  const std::vector<float> Q(n * d, 0.1F), K = Q, V = Q;  // your own
  std::vector<float> O(n * d), L(n);
  const redblue::AttentionRun run =
      redblue::attention({.shape = {n, n, d}, .mask = "causal"}, {.Q = Q, .K = K, .V = V},
                         {.O = O, .L = L}, {.M = 64 * 1024});
  std::cout << run.kernel.plan.kernel << " moved " << run.kernel.words()
            << " words; the lower bound is " << run.lower_bound->words << '\n';
}
