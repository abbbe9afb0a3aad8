#include "runtime/pebble/kind.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

namespace redblue {
namespace {

class Sums {
 public:
  explicit Sums(const Pebbling& run) : run_(run) {}

  // Visits the terms of the sum: the vertices that were multiplied.
  template <class Visit>
  void each_term(Index sum, const Visit& visit) const {
    for (; sum >= 0; sum = run_.made[slot(sum)].sum) {
      const Pebbling::Made& made = run_.made[slot(sum)];
      if (made.a >= 0 && made.b >= 0) {
        visit(made.a, made.b);
      }
      if (made.joined >= 0) {
        each_term(made.joined, visit);
      }
    }
  }
  Index terms(Index sum) {
    const auto [known, is_new] = terms_.try_emplace(sum, 0);
    if (is_new) {
      each_term(sum, [&](Index, Index) { ++known->second; });
    }
    return known->second;
  }

 private:
  const Pebbling& run_;
  std::map<Index, Index> terms_;
};

// The row of an input that is called "A1(3,0)"; -1 if it is of another matrix.
Index row_of(std::string_view name, std::string_view matrix) {
  Index row = -1;
  if (name.starts_with(matrix) && name.size() > matrix.size() && name[matrix.size()] == '(') {
    name.remove_prefix(matrix.size() + 1);
    std::from_chars(name.data(), name.data() + name.size(), row);
  }
  return row;
}

}  // namespace

bool is_two_step(const Pebbling& run, const Shape& shape, const Mask& mask) {
  Sums sums(run);
  const Range queries = {0, shape.n}, keys = {0, shape.m};
  const auto pairs = [&](Range i, Range j) {
    return mask.full() ? i.size() * j.size() : mask.pairs(i, j).value();
  };
  bool whole = true;
  for (const Pebbling::Stored& word : run.stored) {
    if (word.matrix != "g") {
      continue;
    }
    sums.each_term(word.vertex, [&](Index a, Index b) {
      for (const auto& [factor, other] : {std::pair(a, b), std::pair(b, a)}) {
        if (!run.dag.input(factor)) {
          continue;
        }
        const std::string_view name = run.dag[factor].name;
        if (const Index i = row_of(name, "A1"); i >= 0) {
          whole = whole && sums.terms(other) == pairs({i, i + 1}, keys);
        } else if (const Index j = row_of(name, "A2"); j >= 0) {
          whole = whole && sums.terms(other) == pairs(queries, {j, j + 1});
        }
      }
    });
  }
  return whole;
}

}  // namespace redblue
