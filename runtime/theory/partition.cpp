#include "runtime/theory/partition.hpp"

#include <algorithm>
#include <cmath>

#include "memsim/errors.hpp"
#include "runtime/theory/lemmas.hpp"

namespace redblue {
namespace {

// A family of products. Each part of an X-partition has only a limited number of them.
struct Family {
  std::string_view products;
  Real all;
  Real d;
  bool results;

  // Returns the fewest parts. The quotient is first lowered by more than all roundings.
  [[nodiscard]] Real parts(Real X) const {
    return std::ceil(all / most_in_a_part(X, d, results) * (1 - 0x1p-50L));
  }
};

// Returns the largest length that leaves as many parts as T does.
Real longest(const Family& of, Real M, Real T) {
  const Real parts = of.parts(M + T);
  Real most = 2 * T;  // larger lengths are tried separately
  while (most - T > 1) {
    const Real between = std::floor((T + most) / 2);
    (of.parts(M + between) >= parts ? T : most) = between;
  }
  return T;
}

Partition of_family(const Family& of, Index memory) {
  const Real M = real(memory);
  Partition made{.products = of.products,
                 .all = rounded_down(of.all),
                 .in_a_part = rounded_down(most_in_a_part(2 * M, of.d, of.results)),
                 .parts = rounded_down(of.parts(2 * M))};
  made.words = rounded_down(M * (of.parts(2 * M) - 1));
  made.best_length = memory;
  made.best_words = made.words;
  for (Real octave = 0; octave < 62 * 16; ++octave) {
    const Real T = longest(of, M, std::floor(std::exp2(octave / 16)));
    const Real words = T * (of.parts(M + T) - 1);
    if (words > real(made.best_words)) {
      made.best_length = rounded_down(T);
      made.best_words = rounded_down(words);
    }
  }
  return made;
}

}  // namespace

// Some sums have no word in the part's dominator or minimum. They need whole rows and columns: X
// words of rows and columns form X^2 / (4 d^2) such sums. If the sums are results, such a sum has
// no products in the part. Each of the other sums has a word in the dominator or the minimum. These
// sums have d products each. By Loomis and Whitney they also have at most X / 2 sqrt(others)
// products in all, with X words of rows and columns. The products in the dominator itself come on
// top.
Real most_in_a_part(Real X, Real d, bool results) {
  const Real whole = results ? 0 : X * X / (4 * d);
  const Real others = results ? X : 2 * X;
  return whole + std::min(X / 2 * std::sqrt(others), others * d) + X;
}

std::string no_partitions(const Task& task) {
  const Problem& problem = task.problem;
  if (task.pass != Pass::product && task.pass != Pass::forward && task.pass != Pass::backward) {
    return "of product, forward and backward alone";
  }
  if (!problem.mask.full()) {
    return "of all pairs, without a mask";
  }
  if (!problem.sparsity.dense()) {
    return "of dense operands";
  }
  if (problem.sharing != Sharing::none) {
    return "without sharing";
  }
  return task.heads * problem.stacked > 1 ? "of one head" : "";
}

std::vector<Partition> partitions(const Task& task) {
  require(no_partitions(task).empty(), "a problem of whose partitions something is proven");
  const Shape& shape = task.problem.shape;
  const Real d = real(shape.d);
  const Real pairs = real(shape.n) * real(shape.m);
  const Index M = task.memory.M;
  if (task.pass == Pass::product) {
    return {of_family({"C", pairs * d, d, true}, M)};
  }
  std::vector<Partition> all;
  if (task.pass == Pass::backward) {
    all.push_back(of_family({"S", real(shape.n) * d * d, d, false}, M));
  }
  all.push_back(of_family({"s", pairs * d, d, false}, M));
  if (task.pass == Pass::backward) {
    all.push_back(of_family({"s and q", 2 * pairs * d, d, false}, M));
  }
  return all;
}

}  // namespace redblue
