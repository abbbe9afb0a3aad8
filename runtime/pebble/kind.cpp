#include "runtime/pebble/kind.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace redblue {
namespace {

// Visits the terms of a sum, each as the two vertices that were multiplied.
template <class Visit>
void each_term(const Pebbling& run, Index sum, const Visit& visit) {
  for (; sum >= 0; sum = run.made[slot(sum)].sum) {
    const Pebbling::Made& made = run.made[slot(sum)];
    if (made.a >= 0 && made.b >= 0) {
      visit(made.a, made.b);
    }
    if (made.joined >= 0) {
      each_term(run, made.joined, visit);
    }
  }
}

}  // namespace

bool is_two_step(const Pebbling& run) {
  return std::ranges::all_of(run.stored, [&](const Pebbling::Stored& word) {
    if (word.matrix != "g") {
      return true;
    }
    std::vector<Index> factors;
    each_term(run, word.vertex, [&](Index a, Index b) {
      for (const Index factor : {a, b}) {
        const std::string_view name = run.dag[factor].name;
        if (run.dag.input(factor) && (name.starts_with("A1(") || name.starts_with("A2("))) {
          factors.push_back(factor);
        }
      }
    });
    std::ranges::sort(factors);
    return std::ranges::adjacent_find(factors) == factors.end();
  });
}

}  // namespace redblue
