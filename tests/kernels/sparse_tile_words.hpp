#pragma once
// A second version of the words of forward/sparse-tiles and backward/sparse-tiles, by loops over
// blocks, keys and entries.

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "kernels/plan.hpp"
#include "memsim/io_count.hpp"
#include "memsim/range.hpp"
#include "tests/kernels/sparse_tile_reference.hpp"

namespace redblue {

struct LiteralPhase {
  IoCount io, indices;
  Index peak = 0;

  void values(Index reads, Index writes) { io += {reads, writes}; }
  void index(Index reads, Index writes) {
    indices += {reads, writes};
    io += {reads, writes};
  }
  void holds(Index words) { peak = std::max(peak, words); }
};

class LiteralTiles {
 public:
  LiteralTiles(const Plan& plan, const StoredAt& live)
      : plan_(plan),
        live_(live),
        one_(plan.problem.normalised() ? 1 : 0),
        r_(std::min(plan.blocks["r"], plan.problem.shape.n)) {
    Index pairs = 0, met = 0;
    for (const Range I : rows()) {
      for (const Index count : counts(I)) {
        pairs += count;
        met += count > 0 ? 1 : 0;
      }
    }
    const Index mask = ceil_div(r_, Index{32});
    bits_ = met * (1 + mask) < 2 * met + pairs;
    header_ = bits_ ? 1 + mask : 2;
    passing_ = bits_ ? 2 : 3;
  }

  [[nodiscard]] bool bits() const { return bits_; }

  [[nodiscard]] LiteralPhase core() const {
    const bool given = plan_.pass == Pass::backward;
    const Sparsity& of = plan_.problem.sparsity;
    LiteralPhase sum;
    for (const Range I : rows()) {
      const auto s = columns(of.S(), I);
      const Index of_rows = one_ * (given ? 1 : 2) * I.size();
      sum.values(given ? one_ * I.size() : 0, given ? 0 : one_ * I.size());
      sum.holds(of_rows + 1);
      sum.index(0, 1);
      for (const Range J : blocks(shape().m, plan_.blocks["c"])) {
        const auto a2 = columns(of.A2(), J);
        Index both = 0, few = 0;
        for (const auto& [k, number] : s) {
          if (const auto found = a2.find(k); found != a2.end()) {
            both += number + found->second;
            few = std::max(few, std::min(number, found->second));
          }
        }
        if (both > 0) {
          sum.index(1 + 2 * (std::ssize(s) + std::ssize(a2)) + both, 0);
          sum.values(both, 0);
          sum.holds(of_rows + I.size() * J.size() + 5 + 2 * few + 2);
        }
      }
      for (const Index count : counts(I)) {
        sum.index(0, pattern(count));
        sum.values(0, count);
      }
    }
    return sum;
  }

  [[nodiscard]] LiteralPhase Z() const {
    const Index w = plan_.blocks["w"];
    LiteralPhase sum;
    for (const Range I : rows()) {
      sum.values(one_ * I.size(), 0);
      for (const Range K : blocks(shape().d, w)) {
        sum.index(1, 0);
        sum.values(0, I.size() * K.size());
        sum.holds(I.size() * (one_ + K.size()) + 1);
        for (const Index count : counts(I)) {
          if (count > 0) {
            sum.index(pattern(count), 0);
            sum.values(count + K.size(), 0);
            sum.holds(I.size() * (one_ + K.size()) + 1 + passing_ + I.size() + K.size());
          }
        }
      }
    }
    return sum;
  }

  [[nodiscard]] LiteralPhase p() const {
    const Index d = shape().d, h = std::min(plan_.blocks["p.depth"], d);
    LiteralPhase sum;
    for (const Range I : rows()) {
      sum.values(one_ * I.size(), 0);
      sum.index(1, 0);
      sum.holds(one_ * I.size() + 1);
      const std::vector<Index> count = counts(I);
      for (const Range J : blocks(shape().m, plan_.blocks["p.cols"])) {
        Index queries = 0, keys = 0;
        for (Index j = J.begin; j < J.end; ++j) {
          keys += count[j] > 0 ? 1 : 0;
          sum.index(pattern(count[j]), 0);
          sum.values(count[j], count[j]);
        }
        for (Index i = I.begin; i < I.end; ++i) {
          const auto begin = live_[i].begin();
          queries += std::count(begin + J.begin, begin + J.end, true) > 0 ? 1 : 0;
        }
        sum.values(d * (queries + keys), 0);
        if (keys > 0) {
          sum.holds(one_ * I.size() + 1 + I.size() * J.size() +
                    std::max(passing_, I.size() * h + h));
        }
      }
    }
    return sum;
  }

  // Returns the words of W and of g.
  [[nodiscard]] std::pair<LiteralPhase, LiteralPhase> gradients() const {
    const Index d = shape().d, w = std::min(plan_.blocks["w"], d);
    const Sparsity& of = plan_.problem.sparsity;
    LiteralPhase W, g;
    std::map<std::pair<Index, Index>, bool> written;
    for (const Range I : rows()) {
      const std::vector<Index> count = counts(I);
      const auto a1 = columns(of.A1(), I);
      for (const Range K : blocks(d, w)) {
        bool any = false;
        for (Index j = 0; j < shape().m; ++j) {
          const Index entries = std::ranges::count_if(
              of.A2().row(j), [&](Index k) { return K.begin <= k && k < K.end; });
          if (count[j] > 0 && entries > 0) {
            any = true;
            W.index(3 + pattern(count[j]) + entries, 0);
            W.values(count[j] + entries, 0);
            W.holds(I.size() * K.size() + 3 + passing_ + I.size() + 2);
          }
        }
        for (const auto& [k, entries] : a1) {
          if (any) {
            const bool again = std::exchange(written[{k, K.begin}], true);
            g.index(2 + entries, 0);
            g.values(entries + (again ? K.size() : 0), K.size());
            g.holds(I.size() * K.size() + K.size() + 4);
          }
        }
      }
    }
    for (Index k = 0; k < d; ++k) {
      for (const Range K : blocks(d, w)) {
        if (!written.contains({k, K.begin})) {
          g.values(0, K.size());
          g.holds(K.size());
        }
      }
    }
    return {W, g};
  }

 private:
  [[nodiscard]] const Shape& shape() const { return plan_.problem.shape; }
  [[nodiscard]] std::vector<Range> rows() const {
    std::vector<Range> all;
    for (const Range I : blocks(shape().n, r_)) {
      all.push_back(I);
    }
    return all;
  }
  [[nodiscard]] std::vector<Index> counts(Range I) const {
    std::vector<Index> found(static_cast<std::size_t>(shape().m));
    for (Index i = I.begin; i < I.end; ++i) {
      for (std::size_t j = 0; j < found.size(); ++j) {
        found[j] += live_[i][j] ? 1 : 0;
      }
    }
    return found;
  }
  [[nodiscard]] Index pattern(Index count) const {
    return count == 0 ? 0 : header_ + (bits_ ? 0 : count);
  }
  static std::map<Index, Index> columns(const BlockPattern& of, Range rows) {
    std::map<Index, Index> found;
    for (Index i = rows.begin; i < rows.end; ++i) {
      for (const Index k : of.row(i)) {
        ++found[k];
      }
    }
    return found;
  }

  const Plan& plan_;
  const StoredAt& live_;
  Index one_, r_;
  bool bits_ = false;
  Index header_ = 0, passing_ = 0;
};

}  // namespace redblue
