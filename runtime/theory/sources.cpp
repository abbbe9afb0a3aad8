#include "runtime/theory/sources.hpp"

#include <algorithm>

#include "kernels/attention.hpp"

namespace redblue {

Words results(const Task& task) {
  const Problem& problem = task.problem;
  const bool gradients = is_backward(task.pass) && task.pass != Pass::backward;
  Words words;
  Words of_source;  // results that count as one, because their sources are one
  for (const Signature& result : of_activation(results_of(task.pass), problem.activation)) {
    const Words own = Words(result.rows_of(problem.shape)) * result.cols_of(problem.shape);
    const bool of_one =
        gradients && ((problem.sharing == Sharing::self && result.rows != &Shape::d) ||
                      (problem.sharing == Sharing::kv && result.rows == &Shape::m));
    if (problem.wanted.contains(result.name)) {
      (of_one ? of_source : words) = of_one ? own : words + own;
    }
  }
  return words + of_source;
}

bool needs_values(const Task& task) {
  const auto& all = results_of(task.pass);
  return std::ranges::any_of(all, [&](const Signature& result) {
    return task.problem.wanted.contains(result.name) && result.name != kL.name &&
           result.name != kdV.name && result.name != kdA3.name && result.name != kdY.name;
  });
}

std::vector<Source> sources_of(const Task& task) {
  const Problem& problem = task.problem;
  const auto [n, m, d] = problem.shape;
  const Words queries = size_of(problem.live_queries()), keys = size_of(problem.live_keys());
  if (task.pass == Pass::product) {
    return {{"A", queries * d}, {"B", keys * d}};
  }
  // Rows of dO belong to queries. With `self`, a source may be live as a key alone.
  const Words of_dO = problem.mask.full() ? Words(n) : size_of(problem.mask.live_queries());
  const bool plain = inputs_of(task.pass) == Inputs::plain;
  const bool is_layer = task.pass == Pass::layer;
  const bool needs_q = needs_values(task);
  std::vector<Source> sources = {{plain ? kQ.name : kA1.name, queries * d}};
  if (problem.sharing != Sharing::self) {
    sources.push_back({plain ? kK.name : kA2.name, keys * d});
  }
  if (problem.sharing == Sharing::none && (needs_q || (is_layer && problem.wants(kdY.name)))) {
    sources.push_back({plain ? kV.name : kA3.name, keys * problem.shape.dv});
  }
  const Words square = queries == Words(0) ? Words(0) : Words(d) * d;
  if (!plain && task.pass != Pass::linear_gradient) {
    sources.push_back({kX.name, square});
  }
  // g of linear attention does not read X.
  if (!plain &&
      (needs_q || (is_layer && problem.wants(kdA3.name)) || task.pass == Pass::linear_gradient)) {
    sources.push_back({kY.name, square});
  }
  if (is_backward(task.pass) || task.pass == Pass::linear_gradient) {
    sources.push_back({kdO.name, of_dO * problem.shape.dv});
  }
  return sources;
}

}  // namespace redblue
