#include "runtime/theory/sparse_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "runtime/theory/lemmas.hpp"

namespace redblue {
namespace {

// The most steps of a search. A search with more steps is replaced by a weaker bound in closed
// form.
constexpr Real kSteps = 0x1p31L;

// The products on one side of X (rows or keys), and the fewest of them for a live score.
struct SideOfX {
  Words products;
  Index charge = 1;
};

Index most_of_a_row(const BlockPattern& of) {
  Index most = 0;
  for (Index row = 0; row < of.rows; ++row) {
    most = std::max<Index>(most, std::ssize(of.row(row)));
  }
  return most;
}

// Returns, at index c, the number of rows with c entries.
std::vector<Index> by_length(const BlockPattern& of) {
  std::vector<Index> rows(static_cast<std::size_t>(of.cols) + 1);
  for (Index row = 0; row < of.rows; ++row) {
    ++rows[of.row(row).size()];
  }
  return rows;
}

// If X has all entries, a score has as many products as the shorter of its row and its key.
SideOfX with_full_X(const BlockPattern& rows, const BlockPattern& keys) {
  SideOfX found{.products = {}, .charge = std::numeric_limits<Index>::max()};
  const std::vector<Index> of_rows = by_length(rows);
  const std::vector<Index> of_keys = by_length(keys);
  for (std::size_t r = 1; r < of_rows.size(); ++r) {
    for (std::size_t k = 1; k < of_keys.size(); ++k) {
      if (of_rows[r] > 0 && of_keys[k] > 0) {
        const auto shorter = static_cast<Index>(std::min(r, k));
        found.products += Words(of_rows[r]) * of_keys[k] * shorter;
        found.charge = std::min(found.charge, shorter);
      }
    }
  }
  return found;
}

// Let S_i and A2_j share c entries. Their score is made with c words of S_i in fast memory, or with
// words of A1_i. In the second case each shared entry has at least one of its words there, and one
// entry has all of them. A word of A1_i serves at most as many entries as the longest row of X has.
SideOfX of_rows(const BlockPattern& A1, const BlockPattern& X, const BlockPattern& S,
                const BlockPattern& keys_of_columns, Index keys) {
  const Index longest = std::max<Index>(most_of_a_row(X), 1);
  SideOfX found{.products = {}, .charge = std::numeric_limits<Index>::max()};
  // For each entry of S_i, the number of its words in A1_i.
  std::vector<Index> sources(static_cast<std::size_t>(X.cols));
  struct Met {
    Index entries = 0, fewest = 0;
  };
  std::vector<Met> met(static_cast<std::size_t>(keys));
  std::vector<Index> touched;
  for (Index i = 0; i < A1.rows; ++i) {
    for (const Index k : A1.row(i)) {
      for (const Index l : X.row(k)) {
        ++sources[static_cast<std::size_t>(l)];
      }
    }
    for (const Index l : S.row(i)) {
      const Index made_of = std::exchange(sources[static_cast<std::size_t>(l)], 0);
      for (const Index j : keys_of_columns.row(l)) {
        Met& of = met[static_cast<std::size_t>(j)];
        if (of.entries++ == 0) {
          touched.push_back(j);
          of.fewest = made_of;
        }
        of.fewest = std::min(of.fewest, made_of);
      }
    }
    for (const Index j : touched) {
      const Met of = std::exchange(met[static_cast<std::size_t>(j)], {});
      const Index words = std::min(of.entries, std::max(ceil_div(of.entries, longest), of.fewest));
      found.products += words;
      found.charge = std::min(found.charge, words);
    }
    touched.clear();
  }
  return found;
}

// If no row of X has more than one entry, no word of A1_i serves two entries of S_i. So a score has
// a product for each entry that S_i and A2_j share.
SideOfX of_common_entries(const BlockPattern& S, const BlockPattern& keys_of_columns, Index keys) {
  SideOfX found{.products = {}, .charge = std::numeric_limits<Index>::max()};
  for (const Index l : S.columns) {
    found.products += std::ssize(keys_of_columns.row(l));
  }
  if (real(found.products.value()) > kSteps) {
    found.charge = 1;
    return found;
  }
  std::vector<Index> entries(static_cast<std::size_t>(keys));
  std::vector<Index> touched;
  for (Index i = 0; i < S.rows && found.charge > 1; ++i) {
    for (const Index l : S.row(i)) {
      for (const Index j : keys_of_columns.row(l)) {
        if (entries[static_cast<std::size_t>(j)]++ == 0) {
          touched.push_back(j);
        }
      }
    }
    for (const Index j : touched) {
      found.charge = std::min(found.charge, std::exchange(entries[static_cast<std::size_t>(j)], 0));
    }
    touched.clear();
  }
  return found;
}

Real steps_of(const BlockPattern& A1, const BlockPattern& X, const BlockPattern& S,
              const BlockPattern& keys_of_columns) {
  Real steps = 0;
  for (const Index l : S.columns) {
    steps += real(std::ssize(keys_of_columns.row(l)));
  }
  for (const Index k : A1.columns) {
    steps += real(std::ssize(X.row(k)));
  }
  return steps;
}

// Marks the rows with an entry in a marked column. columns_with() marks columns likewise.
std::vector<bool> rows_with(const BlockPattern& of, const std::vector<bool>& columns) {
  std::vector<bool> found(static_cast<std::size_t>(of.rows));
  for (Index row = 0; row < of.rows; ++row) {
    found[static_cast<std::size_t>(row)] = std::ranges::any_of(
        of.row(row), [&](Index column) { return columns[static_cast<std::size_t>(column)]; });
  }
  return found;
}
std::vector<bool> columns_with(const BlockPattern& of, const std::vector<bool>& rows) {
  std::vector<bool> found(static_cast<std::size_t>(of.cols));
  for (Index row = 0; row < of.rows; ++row) {
    if (rows[static_cast<std::size_t>(row)]) {
      for (const Index column : of.row(row)) {
        found[static_cast<std::size_t>(column)] = true;
      }
    }
  }
  return found;
}
Words entries_in(const BlockPattern& of, const std::vector<bool>& rows,
                 const std::vector<bool>& columns) {
  Words sum;
  for (Index row = 0; row < of.rows; ++row) {
    if (rows[static_cast<std::size_t>(row)]) {
      sum += std::ranges::count_if(
          of.row(row), [&](Index column) { return columns[static_cast<std::size_t>(column)]; });
    }
  }
  return sum;
}

std::vector<bool> all_of(Index size) {
  return std::vector<bool>(static_cast<std::size_t>(size), true);
}

// Counts the entries that take part. X_kl does if column k of A1 and column l of A2 are not empty.
// A1_ik does if row k of X has such an entry, and A2_jl if column l of X has one.
void add_entries(const Sparsity& of, SparseWork& work) {
  const std::vector<bool> of_A1 = columns_with(of.A1(), all_of(of.A1().rows));
  const std::vector<bool> of_A2 = columns_with(of.A2(), all_of(of.A2().rows));
  const std::vector<bool> left = rows_with(of.X(), of_A2);
  const std::vector<bool> right = columns_with(of.X(), of_A1);
  work.entries = entries_in(of.A1(), all_of(of.A1().rows), left) +
                 entries_in(of.X(), of_A1, of_A2) +
                 entries_in(of.A2(), all_of(of.A2().rows), right);
  work.queries = std::ranges::count(rows_with(of.A1(), left), true);
  work.keys = std::ranges::count(rows_with(of.A2(), right), true);
}

void add_sparse_product_bounds(const Task& task, std::vector<Bound>& bounds) {
  const Sparsity& of = task.problem.sparsity;
  Words products, of_A;
  for (const Index k : of.A1().columns) {
    const Index met = std::ssize(of.X().row(k));
    products += met;
    of_A += met > 0 ? 1 : 0;
  }
  const std::vector<bool> rows = columns_with(of.A1(), all_of(of.A1().rows));
  const Words of_B = entries_in(of.X(), rows, all_of(of.X().cols));
  bounds.push_back({"compulsory", (of_A + of_B + of.S().stored()).value()});
  bounds.push_back({"products", below(Products{.work = real(products.value())}.events(
                                          task.memory.M, task.problem.shape.d),
                                      0)});
}

}  // namespace

SparseWork sparse_work(const Sparsity& of) {
  SparseWork work;
  add_entries(of, work);
  if (work.queries == 0) {
    return work;
  }
  const auto& [A1, X, A2] = std::tie(of.A1(), of.X(), of.A2());
  if (X.stored() == X.rows * X.cols) {
    const SideOfX both = with_full_X(A1, A2);
    work.products = both.products;
    work.of_row = work.of_column = both.charge;
    return work;
  }
  // The same for the keys: rows of R^T = A2 X^T meet rows of A1.
  const Sparsity other(A2, transposed(X), A1);
  const auto side = [](const Sparsity& from) -> std::optional<SideOfX> {
    if (most_of_a_row(from.X()) <= 1) {
      return of_common_entries(from.S(), from.keys_of_columns(), from.A2().rows);
    }
    if (steps_of(from.A1(), from.X(), from.S(), from.keys_of_columns()) > kSteps) {
      return std::nullopt;
    }
    return of_rows(from.A1(), from.X(), from.S(), from.keys_of_columns(), from.A2().rows);
  };
  const std::optional<SideOfX> rows = side(of);
  const std::optional<SideOfX> columns = side(other);
  work.products = of.pairs();
  for (const std::optional<SideOfX>* found : {&rows, &columns}) {
    if (*found && work.products < (*found)->products) {
      work.products = (*found)->products;
    }
  }
  work.of_row = rows ? rows->charge : 1;
  work.of_column = columns ? columns->charge : 1;
  return work;
}

std::optional<Index> theorem_4_5(const Sparsity& of, Index M) {
  const Real Z_A = real(std::min(of.A1().stored(), of.A2().stored()));
  const Real Z_X = real(of.X().stored());
  const Sparsity other(of.A2(), transposed(of.X()), of.A1());
  const Real Z_AX = real(std::min(of.S().stored(), other.S().stored()));
  const Real Z_AXA = real(of.pairs().value());
  const Real words =
      std::min((Z_A * Z_A + Z_A * Z_X) / real(M),
               (Z_A * std::sqrt(Z_AXA) + std::sqrt(Z_A * Z_X * Z_AX)) / std::sqrt(real(M)));
  return words < 0x1p63L ? std::optional(rounded_down(words)) : std::nullopt;
}

std::vector<Bound> sparse_bounds(const Task& task) {
  std::vector<Bound> bounds;
  if (task.pass == Pass::product) {
    add_sparse_product_bounds(task, bounds);
    return bounds;
  }
  const auto [n, m, d] = task.problem.shape;
  const Index M = task.memory.M;
  const Sparsity& of = task.problem.sparsity;
  const SparseWork work = sparse_work(of);
  const Words square = work.queries == 0 ? Words(0) : Words(d) * d;
  const Words queries = Words(work.queries) * d;
  const Words values = Words(work.keys) * d + square;         // of A3 and Y
  const Words of_rows = Words(n) * task.problem.row_words();  // L
  const Words written = task.pass == Pass::logsumexp ? of_rows
                        : task.pass == Pass::forward ? Words(n) * d + of_rows
                                                     : Words(d) * d;
  const Words read = task.pass == Pass::logsumexp ? work.entries
                     : task.pass == Pass::forward ? work.entries + values
                                                  : work.entries + values + queries;  // dO
  bounds.push_back({"compulsory", (read + written).value()});
  const Real pairs = real(of.pairs().value());
  const Real made = task.pass == Pass::backward ? 2 : 1;  // s and q
  const Products scores{.work = real(work.products.value()) + (made - 1) * pairs * real(d)};
  bounds.push_back({"scores", below(scores.events(M, d) + real(written.value()), made * pairs)});
  const Real rho = real(work.of_row);
  const Real gamma = real(work.of_column);
  // For pairs that charge d more words to their row and to their column.
  const Real whole = 4 * (rho + real(d)) * (gamma + real(d));
  const Real L = real(of_rows.value());
  const auto of_pairs = [&](Real share, Real last) {
    return below(moves_of_pairs(pairs, share, M) + last, 0);
  };
  if (task.pass == Pass::logsumexp) {
    bounds.push_back({"pairs", of_pairs(4 * rho * gamma, L)});
  } else if (task.pass == Pass::backward) {
    bounds.push_back({"pairs", of_pairs(whole, real(d) * real(d))});
  } else {
    bounds.push_back({"pairs", of_pairs(16 * real(d) * std::sqrt(rho * gamma), L)});
    bounds.push_back(
        {.name = "pairs, each score once", .words = of_pairs(whole, L), .recomputation = false});
  }
  if (const std::optional<Index> claimed = theorem_4_5(of, M)) {
    bounds.push_back({.name = "Theorem 4.5",
                      .words = *claimed,
                      .status = Status::asymptotic,
                      .regime = "any M",
                      .in_regime = true});
  }
  return bounds;
}

}  // namespace redblue
