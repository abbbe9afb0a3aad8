#include <iostream>
#include <vector>

#include <redblue/attention.hpp>

using namespace redblue;

int main() {
  const Index n = 1000, d = 64, heads = 4;
  const std::vector<float> Q(heads * n * d, 0.1F), K = Q, V = Q, dO = Q;  // your own
  std::vector<float> O(Q.size()), L(heads * n), dQ(Q.size()), dK(K.size()), dV(V.size());

  const AttentionProblem problem{.shape = {n, n, d}, .heads = heads, .mask = "causal"};
  const AttentionOptions options{.M = 64 * 1024};  // or cache_words(CacheLevel::L2, 0.25)
  attention(problem, {.Q = Q, .K = K, .V = V}, {.O = O, .L = L}, options);
  const AttentionRun run = gradients(problem, {.Q = Q, .K = K, .V = V, .dO = dO, .O = O, .L = L},
                                     {.dQ = dQ, .dK = dK, .dV = dV}, options);

  std::cout << run.kernel.plan.kernel << " moved " << run.kernel.words()
            << " words; the lower bound is " << run.lower_bound->words << '\n';
}
