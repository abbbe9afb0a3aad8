#pragma once
// The keys that stream past a chunk of rows, and the scores of its live pairs with one key.

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "kernels/sparse/arithmetic.hpp"
#include "kernels/sparse/csr.hpp"
#include "kernels/sparse/rows.hpp"
#include "memsim/machine.hpp"

namespace redblue {

// Reads the indices of all keys, or the given runs. Calls visit(keys, their entries) for the keys
// met: for at most `together` consecutive keys per call.
template <class Visit>
void each_met_keys(Machine& machine, const SlowCsr& A2, const MetKeys& met, Index together,
                   const Visit& visit) {
  Tile run;
  Index next = 0;                      // the next key
  Index pointers = met.given ? 0 : 1;  // pointers still to read in addition: the first pointer
  const auto pass = [&](Index end) {
    if (next < end) {
      Index most = 0;
      for (Index key = next; key < end; ++key) {
        most = std::max(most, stored_in(A2.pattern, key));
      }
      const Tile index = machine.read_indices(
          stored_in(A2.pattern, {next, end}) + end - next + std::exchange(pointers, 0), most + 1);
    }
  };
  each_piece(met.keys, together, [&](Range keys) {
    if (!met.given) {
      pass(keys.begin);
    } else if (keys.begin != next || run.words() == 0) {
      run.reset();
      run = machine.read_indices(3, 3);
    }
    const Range entries = entries_of(A2.pattern, keys);
    const Index index = entries.size() + keys.size();
    const CsrEntries a2{entries, machine.read_indices(index + std::exchange(pointers, 0), index),
                        machine.read(A2.values.row_block(entries))};
    visit(keys, a2);
    next = keys.end;
  });
  if (!met.given) {
    pass(A2.pattern.rows);
  }
}

// The scores of a chunk of rows of S.
class StayingS {
 public:
  StayingS(const SparseRows& by, Range I, const CsrEntries& s)
      : by_(by), I_(I), s_(s), columns_(by.rows, I), met_(static_cast<std::size_t>(I.size()), -1) {}

  [[nodiscard]] Tile beside(Machine&, Index, const CsrEntries&) { return {}; }

  // Computes each live pair's score in `score`, then calls visit(row in the chunk).
  template <class Visit>
  Operations each(Machine& machine, Index key, const CsrEntries& a2, const Tile&, float* score,
                  const Visit& visit) {
    const BlockPattern& S = by_.rows;
    const SparseRow of_key{by_.of.A2().row(key), a2.word(a2.entries.begin)};
    Operations done;
    const auto pair = [&](Index i) {
      const Index row = I_.begin + i;
      dot(machine, {S.row(row), s_.word(entries_of(S, row).begin)}, of_key, S.cols, score);
      visit(i);
    };
    for (const Index column : of_key.columns) {
      done.flops += 2 * std::ssize(columns_[column]);
    }
    for (const Index column : of_key.columns) {
      if (std::ssize(columns_[column]) == I_.size()) {
        for (Index i = 0; i < I_.size(); ++i) {
          if (met_[static_cast<std::size_t>(i)] != key) {
            pair(i);
          }
        }
        return done;
      }
      for (const ByColumns::Entry& entry : columns_[column]) {
        const Index i = entry.row - I_.begin;
        if (std::exchange(met_[static_cast<std::size_t>(i)], key) != key) {
          pair(i);
        }
      }
    }
    return done;
  }

 private:
  const SparseRows& by_;
  Range I_;
  const CsrEntries& s_;
  ByColumns columns_;
  std::vector<Index> met_;  // the last key that each row met
};

// X by columns, and the positions of A2's entries.
struct KeysTimesX {
  const BlockPattern& of_A2;
  const ByColumns& columns;
  const CsrEntries& x;
};

// y += X A2_j^T. Calls visit(row of y) for each product.
template <class Visit>
void add_key_times_X(Machine& machine, const KeysTimesX& of, const CsrEntries& a2, Index key,
                     Tile& y, const Visit& visit) {
  float* const sums = View(y).at(0, 0);
  const float* const x = of.x.entries.size() > 0 ? of.x.word(0) : nullptr;
  const Range entries = entries_of(of.of_A2, key);
  Index products = 0;
  for (Index entry = entries.begin; entry < entries.end; ++entry) {
    const auto column = of.columns[of.of_A2.columns[static_cast<std::size_t>(entry)]];
    const float* const a = a2.word(entry);
    const float factor = *a;
    for (const ByColumns::Entry& at : column) {
      sums[at.row] += x[at.entry] * factor;
      visit(at.row);
    }
    if (machine.is_heard()) [[unlikely]] {
      for (const ByColumns::Entry& at : column) {
        tell_term(machine, x + at.entry, a, sums + at.row);
      }
    }
    products += std::ssize(column);
  }
  machine.computed(Operations{.flops = 2 * products});
}

// The scores of a chunk of rows of A1, with X resident.
class StayingX {
 public:
  StayingX(const SparseRows& by, const ByColumns& x_columns, const CsrEntries& x, Range I,
           const CsrEntries& a1)
      : by_(by),
        x_columns_(x_columns),
        x_(x),
        I_(I),
        a1_(a1),
        stored_(static_cast<std::size_t>(by.d), -1) {}

  // y = X A2_j^T.
  [[nodiscard]] Tile beside(Machine& machine, Index key, const CsrEntries& a2) {
    Tile y = machine.initialize("y", by_.d);
    add_key_times_X(machine, {by_.of.A2(), x_columns_, x_}, a2, key, y,
                    [&](Index row) { stored_[static_cast<std::size_t>(row)] = key; });
    return y;
  }

  template <class Visit>
  Operations each(Machine& machine, Index key, const CsrEntries&, const Tile& y, float* score,
                  const Visit& visit) {
    const BlockPattern& A1 = by_.rows;
    const float* const of_key = ConstView(y).at(0, 0);
    Operations done;
    for (Index i = 0; i < I_.size(); ++i) {
      const std::span<const Index> columns = A1.row(I_.begin + i);
      if (columns.empty()) {
        continue;
      }
      const float* const words = a1_.word(entries_of(A1, I_.begin + i).begin);
      float s = 0;
      Index products = 0;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        if (stored_[static_cast<std::size_t>(columns[k])] == key) {
          s += words[k] * of_key[columns[k]];
          ++products;
        }
      }
      if (products > 0) {
        *score = s;
        if (machine.is_heard()) [[unlikely]] {
          tell_map(machine, "fill", score, Old::overwritten, {});
          for (std::size_t k = 0; k < columns.size(); ++k) {
            if (stored_[static_cast<std::size_t>(columns[k])] == key) {
              tell_term(machine, words + k, of_key + columns[k], score);
            }
          }
        }
        visit(i);
        done.flops += 2 * products;
      }
    }
    return done;
  }

 private:
  const SparseRows& by_;
  const ByColumns& x_columns_;
  const CsrEntries& x_;
  Range I_;
  const CsrEntries& a1_;
  std::vector<Index> stored_;  // for each column, the last key whose y has an entry there
};

}  // namespace redblue
