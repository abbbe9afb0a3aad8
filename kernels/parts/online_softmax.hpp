#pragma once
// What rows of scores are summed up into while their keys come in blocks: relative to the largest
// score so far, and rescaled where that rises.

#include <initializer_list>
#include <optional>

#include "kernels/kernel.hpp"
#include "kernels/parts/levels.hpp"
#include "kernels/parts/live_pairs.hpp"
#include "kernels/problem.hpp"
#include "memsim/layout.hpp"
#include "memsim/range.hpp"
#include "memsim/slow_matrix.hpp"
#include "memsim/tile.hpp"

namespace redblue {

class Machine;

// The maximum of each row's scores and the sum of e = exp(s - maximum), over the keys so far.
class OnlineSoftmax {
 public:
  static constexpr Index kWords = 2;  // of each row

  // Of no keys.
  OnlineSoftmax(Machine& machine, Index rows);
  // Of the rows I as write() left them.
  OnlineSoftmax(Machine& machine, const SlowMatrix& maxima, const SlowMatrix& sums, Range I);

  // The rows K meet scores s: their maximum rises to the largest of them, and their sum and the
  // accumulators (rows K of sums with weights e) are rescaled. `factors` is a word for each row.
  void raise(const ConstView& s, Range K, const View& factors,
             std::initializer_list<View> accumulators = {});
  void raise(const Transposed<ConstView>& s_t, Range K, const View& factors,
             std::initializer_list<View> accumulators = {});
  // The scores become e, and the sum grows by them. Requires: raise() has met them.
  void add(const View& s, Range K);
  void add(const Transposed<View>& s_t, Range K);
  // The same, and dots_i += sum_j e_ij q_ij.
  void add(const Transposed<View>& s_t, Range K, const Transposed<ConstView>& q_t,
           const View& dots);

  // a_i /= the sum of row i, for those of the rows K that have met a key; or for all rows.
  void divide(const View& a, Range K) const;
  void divide(Tile& accumulator, const Levels& levels = {}) const;
  // L, where the maximum was; nothing is left of the sum.
  [[nodiscard]] Tile log_sum_exp(const Levels& levels = {});
  void write(Machine& machine, SlowMatrix& maxima, SlowMatrix& sums, Range I);
  // What is kept of all rows.
  struct OfRows {
    const Tile &maximum, &sum;
  };
  [[nodiscard]] OfRows of_rows() const { return {maximum_, sum_}; }

 private:
  void rescale(Range K, const View& factors, std::initializer_list<View> accumulators);

  Tile maximum_, sum_;
};

// What rows of scores become before they meet their values: e of an online softmax, of which the
// rows' sums are divided at last; or f of another activation, of which rows keep nothing.
class RowNormaliser {
 public:
  // Words of each row that are kept.
  static Index words(const Problem& problem) { return OnlineSoftmax::kWords * problem.row_words(); }

  // Of no keys.
  RowNormaliser(Machine& machine, const Problem& problem, Index rows);
  // Of the rows I as write() left them; nothing is read where nothing was left.
  RowNormaliser(Machine& machine, const Problem& problem, const SlowMatrix* maxima,
                const SlowMatrix* sums, Range I);

  // The scores of all rows with these pairs become weights, 0 where they are dead, and the
  // accumulator is rescaled. Takes tiles, because a tile for the factors is made here: no view
  // outlives that.
  void apply(Tile& s, const LivePairs& pairs, Tile& accumulator);
  // The same for the rows K. `factors` has a word for each of them.
  void apply(const Transposed<View>& s_t, Range K, const LivePairs& pairs, Tile& factors,
             std::initializer_list<View> accumulators);

  void divide(Tile& accumulator, const Levels& levels = {}) const;
  void divide_unless_0(Tile& accumulator) const;
  // L of the rows I, after which nothing is left; and what is kept between two passes.
  void write_L(const Operands& io, std::string_view name, Range I, const Levels& levels = {});
  void write_L(SlowMatrix* L, Range I, const Levels& levels = {});
  void write(SlowMatrix* maxima, SlowMatrix* sums, Range I);

  // Of a softmax.
  [[nodiscard]] OnlineSoftmax& softmax() { return *softmax_; }
  // Empty tiles where nothing is kept.
  [[nodiscard]] OnlineSoftmax::OfRows of_rows() const {
    return softmax_ ? softmax_->of_rows() : OnlineSoftmax::OfRows{none_, none_};
  }

 private:
  Machine* machine_;
  Activation activation_;
  std::optional<OnlineSoftmax> softmax_;
  Tile none_;
};

// The mean of q_i over the keys so far, with weights e. W = sum e (q - v) A2 cancels where all q of
// a row have much in common; so U = sum e (q - mean) A2 is kept, which follows the mean as that
// moves by delta: U -= delta Z, with Z = sum e A2. After the last key the mean is v, and W = U /
// sum.
class RunningMean {
 public:
  static constexpr Index kWords = 1;  // of each row

  RunningMean(Machine& machine, Index rows);
  // Of the rows K.
  [[nodiscard]] ConstView of(Range K) const { return mean_.part(K); }
  [[nodiscard]] const Tile& of_rows() const { return mean_; }
  // Of all rows: v, after the last key.
  [[nodiscard]] Tile take() { return std::move(mean_); }
  // The scores become e, q - mean becomes e (q - mean) with the new mean, and U follows it; `delta`
  // is a word for each row, 0 at first. Requires: q_t is q - of(K); raise() met these scores, and
  // rescaled U and Z, which these keys are not in yet.
  void follow(OnlineSoftmax& softmax, Range K, const View& s_t, const View& q_t, const View& delta,
              const View& U, const ConstView& Z);

 private:
  Tile mean_;
};

}  // namespace redblue
